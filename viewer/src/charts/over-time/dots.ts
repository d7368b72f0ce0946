/** Durations over time, each a dot: round trips, latencies, gaps. */

import { kindOf, PROBE, type Side, sideOf, type Table } from "../../data/table.ts";
import { firstAfter, firstAtLeast } from "../search.ts";
import type { Range } from "../view.ts";

export interface Dots {
  /** In order; ns since the capture's first packet. */
  time: Float64Array;
  /** A duration, ns. */
  value: Float64Array;
  /** Whose it is. */
  side: Uint8Array;
  /** The packet to jump to, by frame number; 0 where only the time is known. */
  packet: Float64Array;
}

function emptyDots(count: number): Dots {
  return {
    time: new Float64Array(count),
    value: new Float64Array(count),
    side: new Uint8Array(count),
    packet: new Float64Array(count),
  };
}

/** The rows of a column by their time. */
function inOrder(times: Float64Array): Uint32Array {
  const rows = Uint32Array.from(times.keys());
  let isOrdered = true;
  for (let row = 1; row < times.length; row++)
    isOrdered &&= (times[row] as number) >= (times[row - 1] as number);
  return isOrdered ? rows : rows.sort((one, other) => (times[one] as number) - (times[other] as number));
}

/** Round trips by when their ACK came. */
export function roundTripDots({ roundTrips }: Table): Dots {
  const dots = emptyDots(roundTrips.count);
  inOrder(roundTrips.time).forEach((row, at) => {
    dots.time[at] = roundTrips.time[row] as number;
    dots.value[at] = roundTrips.rtt[row] as number;
    dots.side[at] = roundTrips.from[row] as number;
  });
  return dots;
}

/** Latencies of exchanges by when their request began. */
export function exchangeDots({ exchanges }: Table): Dots {
  const dots = emptyDots(exchanges.count);
  inOrder(exchanges.start).forEach((row, at) => {
    dots.time[at] = exchanges.start[row] as number;
    dots.value[at] = (exchanges.end[row] as number) - (exchanges.start[row] as number);
    dots.packet[at] = exchanges.number[row] as number;
  });
  return dots;
}

/** Gaps between the packets with data of one side, by when each ended. */
export function gapDots({ marks }: Table, side: Side): Dots {
  const rows = new Uint32Array(marks.count);
  let many = 0;
  for (let row = 0; row < marks.count; row++) {
    const what = marks.what[row] as number;
    if (sideOf(what) === side && (marks.len[row] as number) > 0 && kindOf(what) !== PROBE) rows[many++] = row;
  }
  const dots = emptyDots(Math.max(0, many - 1));
  dots.side.fill(side);
  for (let at = 0; at + 1 < many; at++) {
    const row = rows[at + 1] as number;
    const time = marks.time[row] as number;
    dots.time[at] = time;
    dots.value[at] = time - (marks.time[rows[at] as number] as number);
    dots.packet[at] = marks.number[row] as number;
  }
  return dots;
}

/** The dots in view, as a half-open range. */
export function dotsIn(dots: Dots, view: Range): [number, number] {
  return [firstAtLeast(dots.time, view.from), firstAfter(dots.time, view.until)];
}

/** The `most` largest of some dots, the largest first. */
export function slowestOf(dots: Dots, begin: number, end: number, most: number): number[] {
  const largest: number[] = [];
  for (let index = begin; index < end; index++) {
    const value = dots.value[index] as number;
    if (largest.length === most && value <= (dots.value[largest[most - 1] as number] as number)) continue;
    const at = largest.findIndex((other) => (dots.value[other] as number) < value);
    largest.splice(at < 0 ? largest.length : at, 0, index);
    largest.length = Math.min(largest.length, most);
  }
  return largest;
}

/** Least, median, 99th percentile and most of some values; null where there are none. */
export interface Figures {
  count: number;
  least: number;
  median: number;
  p99: number;
  most: number;
}

export function figuresOf(values: Float64Array): Figures | null {
  if (values.length === 0) return null;
  const sorted = values.slice().sort();
  const at = (share: number) =>
    sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] as number;
  return { count: sorted.length, least: at(0), median: at(0.5), p99: at(0.99), most: at(1) };
}

/** Axes reach so far beyond their dots. */
const MARGIN = 1.08;
/** From this ratio of the largest to the smallest on, an axis is logarithmic. */
const WIDE = 40;
/** An axis without anything on it reaches over a ms. */
const EMPTY = 1e6;

/** An axis for durations, ns. */
export interface Axis {
  low: number;
  high: number;
  isLog: boolean;
}

/** An axis that shows all values, `line` among them. A few of 0 ns do not make it endless. */
export function axisFor(figures: Figures | null, line: number | null): Axis {
  if (!figures && line === null) return { low: 0, high: EMPTY, isLog: false };
  const most = Math.max(figures?.most ?? 0, line ?? 0, 1);
  const least = Math.min(figures?.least ?? most, line ?? most);
  const isLog = most / Math.max(least, 1) >= WIDE;
  if (!isLog) return { low: 0, high: most * MARGIN, isLog };
  const low = Math.max(1_000, 10 ** Math.floor(Math.log10(Math.max(least, 1))));
  return { low, high: Math.max(most * 1.3, low * 10), isLog };
}

/** The share of an axis's height that a value is at, 0 to 1; what is below its low end is at 0. */
export function heightOn(axis: Axis, value: number): number {
  if (!axis.isLog) return (value - axis.low) / (axis.high - axis.low);
  const above = Math.log(Math.max(value, axis.low) / axis.low);
  return above / Math.log(axis.high / axis.low);
}

/** The dot nearest to a place, in units of `scale` pixels; -1 where none is within `near` of them. */
export function nearest(
  dots: Dots,
  view: Range,
  at: { x: number; y: number },
  place: (index: number) => { x: number; y: number },
  perPixel: number,
  near: number,
): number {
  const time = view.from + at.x * perPixel;
  const begin = firstAtLeast(dots.time, time - near * perPixel);
  const end = firstAfter(dots.time, time + near * perPixel);
  let best = near * near;
  let found = -1;
  for (let index = begin; index < end; index++) {
    const { x, y } = place(index);
    const distance = (x - at.x) ** 2 + (y - at.y) ** 2;
    if (distance > best) continue;
    best = distance;
    found = index;
  }
  return found;
}
