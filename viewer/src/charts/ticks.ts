/** Round numbers to write at an axis. */

export interface Tick {
  value: number;
  label: string;
}

export interface Ticks {
  ticks: Tick[];
  /** The labels' unit. */
  unit: string;
  /** What the labels count from, where they would be too long otherwise. */
  base: Tick | null;
}

/** A unit, how many of the axis's own it has, and up to which span it is read with ease. */
type Unit = readonly [name: string, size: number, span: number];

const TIME: readonly Unit[] = [
  ["µs", 1e3, 1.5e6],
  ["ms", 1e6, 2e9],
  ["s", 1e9, 6e11],
  ["min", 6e10, Number.POSITIVE_INFINITY],
];
const BYTES: readonly Unit[] = [
  ["bytes", 1, 1e4],
  ["kB", 1e3, 1e7],
  ["MB", 1e6, 1e10],
  ["GB", 1e9, Number.POSITIVE_INFINITY],
];
/** A label with more digits than these is hard to read: labels then count from a round base. */
const LARGEST_LABEL = 99_999;
/** Should rounding ever fail: no picture has room for more. */
const MOST = 400;

/** The next of 1, 2 and 5 times a power of ten. */
export function roundStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, Number.MIN_VALUE)));
  const factor = [1, 2, 5, 10].find((step) => step * power >= least * 0.999_999) ?? 10;
  return factor * power;
}

function unitFor(units: readonly Unit[], span: number): Unit {
  return units.find((unit) => span <= unit[2]) ?? (units[units.length - 1] as Unit);
}

function decimalsOf(step: number): number {
  return Math.max(0, Math.ceil(-Math.log10(step) - 1e-9));
}

/**
 * Ticks between two times in ns. Where a label would have too many digits (3,600,010.25 ms), they count from a base:
 * `+0.25 ms` from `3600.010 s`. All steps are whole ns, so that no digit is invented.
 */
export function timeTicks(from: number, until: number, most: number): Ticks {
  const [unit, size] = unitFor(TIME, until - from);
  const step = Math.max(1, roundStep((until - from) / size / Math.max(1, most)) * size);
  const digits = Math.max(Math.abs(from), Math.abs(until)) / size;
  const isLong = digits > LARGEST_LABEL || digits / (step / size) > 10 * LARGEST_LABEL;
  const base = isLong ? baseBefore(from, step) : null;
  const first = Math.ceil((from - (base?.value ?? 0)) / step);
  const decimals = decimalsOf(step / size);
  const ticks: Tick[] = [];
  for (let n = first; ticks.length < MOST; n++) {
    const offset = n * step;
    const value = (base?.value ?? 0) + offset;
    if (value > until) break;
    const label = (offset / size).toFixed(decimals);
    ticks.push({ value, label: base ? `+${label}` : label });
  }
  return { ticks, unit, base };
}

/** A moment with few digits at or before `from`: a thousand steps of the labels fit after it. */
function baseBefore(from: number, step: number): Tick {
  const round = 10 ** Math.ceil(Math.log10(step * 100) - 1e-9);
  const value = Math.floor(from / round) * round;
  const decimals = Math.min(9, Math.max(0, Math.round(9 - Math.log10(round))));
  const seconds = Math.floor(value / 1e9);
  const rest = Math.round((value - seconds * 1e9) / 10 ** (9 - decimals));
  const label = decimals > 0 ? `${seconds}.${String(rest).padStart(decimals, "0")} s` : `${seconds} s`;
  return { value, label };
}

/** Ticks between two numbers of bytes. */
export function byteTicks(from: number, until: number, most: number): Ticks {
  const span = until - from;
  const largest = Math.max(Math.abs(from), Math.abs(until));
  const fits = BYTES.find((unit) => span <= unit[2] && largest / unit[1] <= LARGEST_LABEL);
  const [unit, size] = fits ?? (BYTES[BYTES.length - 1] as Unit);
  const step = Math.max(1 / size, roundStep(span / size / Math.max(1, most)));
  const decimals = decimalsOf(step);
  const ticks: Tick[] = [];
  for (let n = Math.ceil(from / size / step); ticks.length < MOST; n++) {
    const value = n * step * size;
    if (value > until) break;
    ticks.push({ value, label: grouped((n * step).toFixed(decimals)) });
  }
  return { ticks, unit, base: null };
}

/** Thousands set apart, before the point. */
function grouped(label: string): string {
  const [whole = "", rest] = label.split(".");
  const apart = whole.replace(/\B(?=(\d{3})+(?!\d))/g, ",");
  return rest === undefined ? apart : `${apart}.${rest}`;
}
