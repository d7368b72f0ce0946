/** Which part of a connection is shown, and how that is changed: of its life, ns since the capture's first packet, or of its bytes. */

export interface Range {
  from: number;
  until: number;
}

/** The shortest stretch shown: captures tell no more than single ns, and a picture of a µs still has round ticks. */
export const SHORTEST = 1_000;
/** Room left and right of the first and the last packet, as a share of the time between. */
const MARGIN = 0.01;

/** What sums of times are off by at most, as a share of them. */
const ROUNDED = 1e-12;

/** All of a connection from its first packet to its last, with a margin. */
export function whole(first: number, last: number): Range {
  const span = Math.max(last - first, SHORTEST);
  return { from: first - span * MARGIN, until: first + span * (1 + MARGIN) };
}

export const span = (range: Range): number => range.until - range.from;

/** `range` moved and, if need be, shortened so that it is inside of `all`, and not below `shortest`. */
export function within(range: Range, all: Range, shortest = SHORTEST): Range {
  const width = Math.min(Math.max(span(range), shortest), span(all));
  // To the last bit: whether it is all is asked often, and sums are rounded.
  if (width >= span(all) * (1 - ROUNDED)) return all;
  const from = Math.min(Math.max(range.from, all.from), all.until - width);
  return { from, until: from + width };
}

/** Zooms about a moment, which stays where it is; a factor below 1 shows less. */
export function zoomed(range: Range, factor: number, about: number, all: Range, shortest = SHORTEST): Range {
  const width = Math.min(Math.max(span(range) * factor, shortest), span(all));
  const share = (about - range.from) / span(range);
  const from = about - share * width;
  return within({ from, until: from + width }, all, shortest);
}

/** Moves by a share of what is shown. */
export function panned(range: Range, share: number, all: Range, shortest = SHORTEST): Range {
  const by = span(range) * share;
  return within({ from: range.from + by, until: range.until + by }, all, shortest);
}

/** A range with a moment in its middle, unless it shows the moment already, not at its very edge. */
export function showing(range: Range, moment: number, all: Range, shortest = SHORTEST): Range {
  const edge = span(range) * 0.04;
  if (moment >= range.from + edge && moment <= range.until - edge) return range;
  const half = span(range) / 2;
  return within({ from: moment - half, until: moment + half }, all, shortest);
}

/** Part of the way from one range to another, as smooth zooming needs it: widths change by equal factors. */
export function between(one: Range, other: Range, share: number): Range {
  if (share >= 1) return other;
  const width = span(one) * (span(other) / span(one)) ** share;
  // The edges move in proportion to the width where it changes, else evenly.
  const change = span(other) - span(one);
  const done = Math.abs(change) < span(one) * 1e-3 ? share : (width - span(one)) / change;
  const from = one.from + (other.from - one.from) * done;
  return { from, until: from + width };
}

export const same = (one: Range, other: Range): boolean =>
  one.from === other.from && one.until === other.until;

/** Places to go back to. */
const MOST_STEPS = 100;

/** Where one was before: one step for each gesture, however many events it had. */
export class History<Shown> {
  private readonly steps: Shown[] = [];
  private last = { gesture: "", at: Number.NEGATIVE_INFINITY };

  /** Events of the same gesture that follow each other within so many ms are one step. */
  static readonly TOGETHER = 600;

  /** Before a change by `gesture` at `now` (ms on any clock), tells what is shown. */
  remember(shown: Shown, gesture: string, now: number): void {
    const goesOn = gesture === this.last.gesture && now - this.last.at < History.TOGETHER;
    this.last = { gesture, at: now };
    if (goesOn) return;
    this.steps.push(shown);
    if (this.steps.length > MOST_STEPS) this.steps.shift();
  }

  /** What was shown before the last gesture. */
  back(): Shown | undefined {
    this.last = { gesture: "", at: Number.NEGATIVE_INFINITY };
    return this.steps.pop();
  }

  get length(): number {
    return this.steps.length;
  }
}
