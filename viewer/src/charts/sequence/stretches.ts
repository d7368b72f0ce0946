/** The ledger behind the marks: intervals as wide as they are, and those too narrow to be seen put together. */

import type { Bookings } from "../../data/table.ts";
import { LINES } from "../../text/lines.ts";
import { firstAfter } from "../search.ts";
import type { Range } from "../view.ts";

/** Some pixels of time, and which part of them each line has. */
export interface Stretch {
  /** Pixels from the left edge of the view. */
  from: number;
  until: number;
  /** The line, where it is only one; else -1. */
  line: number;
  /** Pixels on each line; empty where it is only one. */
  shares: Float64Array;
}

/** Intervals narrower than this, in pixels, are drawn together with those beside them… */
const NARROW = 0.5;
/** …until they are as wide as this. */
const TOGETHER = 1;
const NONE = new Float64Array(0);

/** Intervals of `view`, drawn `width` pixels wide. */
export function stretches(bookings: Bookings, view: Range, width: number): Stretch[] {
  const all: Stretch[] = [];
  const scale = width / (view.until - view.from);
  let narrow: Stretch | null = null;
  for (let row = firstAfter(bookings.until, view.from); row < bookings.count; row++) {
    const begin = bookings.from[row] as number;
    if (begin >= view.until) break;
    const line = bookings.line[row] as number;
    const from = (Math.max(begin, view.from) - view.from) * scale;
    const until = (Math.min(bookings.until[row] as number, view.until) - view.from) * scale;
    const isWide = until - from >= NARROW;
    if (narrow && (isWide || narrow.until - narrow.from >= TOGETHER)) narrow = null;
    if (isWide) {
      all.push({ from, until, line, shares: NONE });
      continue;
    }
    if (!narrow) {
      narrow = { from, until: from, line: -1, shares: new Float64Array(LINES.length) };
      all.push(narrow);
    }
    narrow.shares[line]! += until - from;
    narrow.until = until;
  }
  return all;
}

/** Calls `take` with each line of a stretch and its share, 0 to 1. */
export function eachShare(stretch: Stretch, take: (line: number, share: number) => void): void {
  if (stretch.line >= 0) {
    take(stretch.line, 1);
    return;
  }
  const width = stretch.until - stretch.from;
  for (let line = 0; line < LINES.length; line++) {
    const share = (stretch.shares[line] as number) / width;
    if (share > 0) take(line, share);
  }
}

/** How much of `range` each line has, ns. */
export function sumsOf(bookings: Bookings, range: Range): Float64Array {
  const sums = new Float64Array(LINES.length);
  for (let row = firstAfter(bookings.until, range.from); row < bookings.count; row++) {
    const from = bookings.from[row] as number;
    if (from >= range.until) break;
    const part = Math.min(bookings.until[row] as number, range.until) - Math.max(from, range.from);
    sums[bookings.line[row] as number]! += part;
  }
  return sums;
}

/** The row booked at a moment; -1 where there is none. */
export function bookedAt(bookings: Bookings, moment: number): number {
  const row = firstAfter(bookings.until, moment);
  return row < bookings.count && (bookings.from[row] as number) <= moment ? row : -1;
}
