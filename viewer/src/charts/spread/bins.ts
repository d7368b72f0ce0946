/** How values spread: counted in bins with round edges. */

import { roundStep } from "../ticks.ts";

export interface Bins {
  /** One more than there are bins. */
  edges: number[];
  /** Counts by sender, then by bin. */
  counts: [number[], number[]];
}

/** Bins to aim for. */
const MANY = 32;
/** Bins to a factor of ten: edges at 1, 1.6, 2.5, 4 and 6.3 times a power of it. */
const PER_TEN = 5;
/** Fewer powers of ten would make a few values look like a wall. */
const LEAST_TENS = 3;

function empty(edges: number[]): Bins {
  const zeros = () => new Array<number>(Math.max(0, edges.length - 1)).fill(0);
  return { edges, counts: [zeros(), zeros()] };
}

/** Equally wide bins from 0 on. */
export function evenBins(values: readonly [ArrayLike<number>, ArrayLike<number>]): Bins {
  const most = Math.max(largest(values[0]), largest(values[1]), 1);
  const step = Math.max(1, roundStep(most / MANY));
  const bins = empty(Array.from({ length: Math.floor(most / step) + 2 }, (_, index) => index * step));
  return filled(bins, values, (value) => Math.floor(value / step));
}

/** Bins that grow by equal factors; what is below `least`, 0 among it, is in the first. */
export function growingBins(values: readonly [ArrayLike<number>, ArrayLike<number>], least: number): Bins {
  const most = Math.max(largest(values[0]), largest(values[1]), least);
  const first = Math.min(smallest(values[0], least), smallest(values[1], least), most);
  // Whole powers of ten, which have the labels.
  const low = Math.floor(Math.log10(first) + 1e-9);
  const high = Math.max(Math.floor(Math.log10(most) + 1e-9) + 1, low + LEAST_TENS);
  const [begin, end] = [low * PER_TEN, high * PER_TEN];
  const bins = empty(
    Array.from({ length: end - begin + 1 }, (_, index) => 10 ** ((begin + index) / PER_TEN)),
  );
  return filled(bins, values, (value) =>
    value < least ? 0 : Math.floor(Math.log10(value) * PER_TEN + 1e-9) - begin,
  );
}

function filled(
  bins: Bins,
  values: readonly [ArrayLike<number>, ArrayLike<number>],
  binOf: (value: number) => number,
): Bins {
  bins.counts.forEach((counts, side) => {
    const own = values[side] as ArrayLike<number>;
    for (let index = 0; index < own.length; index++) {
      const bin = Math.min(Math.max(binOf(own[index] as number), 0), counts.length - 1);
      counts[bin] = (counts[bin] as number) + 1;
    }
  });
  return bins;
}

function largest(values: ArrayLike<number>): number {
  let most = 0;
  for (let index = 0; index < values.length; index++) most = Math.max(most, values[index] as number);
  return most;
}

function smallest(values: ArrayLike<number>, least: number): number {
  let low = Number.POSITIVE_INFINITY;
  for (let index = 0; index < values.length; index++) {
    const value = values[index] as number;
    if (value >= least && value < low) low = value;
  }
  return low;
}
