/**
 * Numbers as people read them: three digits that matter, the unit that fits, and no rounding that lies.
 * What the terminal shows looks the same: `crates/report/src/number.rs`.
 */

/** Between a number and its unit no line ends. */
const GLUE = "\u00a0";
/** Below this, seconds alone are easier to compare than minutes and seconds. */
const SECONDS_UNTIL = 119.5;

/** A length of time given in ms: `210 µs`, `1.23 ms`, `63.9 s`, `2 min 05 s`, `3 h 07 min`. */
export function duration(ms: number): string {
  if (!Number.isFinite(ms)) return "?";
  if (ms < 0) return `-${duration(-ms)}`;
  const us = ms * 1e3;
  const s = ms / 1e3;
  if (us < 0.5) return `0${GLUE}ms`;
  if (us < 999.5) return `${us.toFixed(0)}${GLUE}µs`;
  if (ms < 999.5) return `${threeDigits(ms)}${GLUE}ms`;
  if (s < SECONDS_UNTIL) return `${threeDigits(s)}${GLUE}s`;
  return wholeSeconds(Math.round(s));
}

function wholeSeconds(s: number): string {
  const two = (n: number) => String(Math.floor(n)).padStart(2, "0");
  const parts =
    s < 3_600
      ? [Math.floor(s / 60), "min", two(s % 60), "s"]
      : s < 2 * 86_400
        ? [Math.floor(s / 3_600), "h", two((s % 3_600) / 60), "min"]
        : [count(Math.floor(s / 86_400)), "d", two((s % 86_400) / 3_600), "h"];
  return parts.join(GLUE);
}

/** `value` (0 to 1000) with three digits, as many of them after the point as fit. */
function threeDigits(value: number): string {
  return value.toFixed(value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
}

/** A moment given in ms, as seconds to the microsecond: what Wireshark shows. */
export function moment(ms: number): string {
  return `${(ms / 1e3).toFixed(6)}${GLUE}s`;
}

/** The share of `part` in `whole`. `100 %` and `0 %` mean exactly that. */
export function percent(part: number, whole: number): string {
  const share = (100 * part) / whole;
  // Sums of floating point numbers miss their total by their last digits.
  const same = 1e-7;
  if (!Number.isFinite(share)) return "?";
  if (share <= same) return `0${GLUE}%`;
  if (share < 0.995) return `<1${GLUE}%`;
  if (share > 99 && share < 100 - same) return share < 99.5 ? `99${GLUE}%` : `>99${GLUE}%`;
  return `${share.toFixed(0)}${GLUE}%`;
}

/** Bytes in decimal units: `372 B`, `1.20 kB`, `3.40 GB`. */
export function bytes(n: number): string {
  if (n < 1_000) return `${n}${GLUE}B`;
  const units = ["kB", "MB", "GB", "TB", "PB", "EB"];
  let value = n / 1e3;
  let unit = 0;
  while (value >= 999.5 && unit + 1 < units.length) {
    value /= 1e3;
    unit += 1;
  }
  return `${threeDigits(value)}${GLUE}${units[unit]}`;
}

/** `1,234,567`. */
export function count(n: number): string {
  return String(n).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** `1 packet`, `0 packets`. */
export function plural(n: number, noun: string): string {
  return `${count(n)} ${noun}${n === 1 ? "" : "s"}`;
}
