/** Which bytes a plot shows where its reader has chosen some; otherwise its axis fits the data in view. */

import { hasAck, type Marks, type Side, sideOf } from "../../data/table.ts";
import { between, type Range, span } from "../view.ts";
import { type Reach, reachOf, type Scene } from "./scene.ts";

/** The fewest bytes shown: bars of single bytes can be told apart then. */
export const FEWEST = 8;
/** Ranges that differ by no more than this share look the same. */
const SAME = 1e-6;

/** The bytes chosen, by sender; null where the axis fits the data in view. */
export type Bytes = readonly [Range | null, Range | null];
export const FITTED: Bytes = [null, null];

export const rangeOf = ({ low, high }: Reach): Range => ({ from: low, until: high });

/** All that there is of a direction, its window's edge too. */
export function wholeReach(scene: Scene): Reach {
  return reachOf(scene, { from: Number.NEGATIVE_INFINITY, until: Number.POSITIVE_INFINITY }, true);
}

/** What an axis shows with `chosen` bytes; `edge` of all there is tells whether there is a window to draw. */
export function chosenReach(chosen: Range, whole: Reach): Reach {
  return { low: chosen.from, high: chosen.until, edge: whole.edge };
}

/** `range` moved as little as it takes to show the data, which is somewhere else at another time: into `data`, or around it. */
export function following(range: Range, data: Range): Range {
  const ends = [data.from - range.from, data.until - range.until] as const;
  const by = Math.max(Math.min(...ends), Math.min(0, Math.max(...ends)));
  return by === 0 ? range : { from: range.from + by, until: range.until + by };
}

/** Whether `range` shows what `fitted` does. */
export function fits(range: Range, fitted: Range): boolean {
  const off = Math.abs(range.from - fitted.from) + Math.abs(range.until - fitted.until);
  return off <= SAME * span(fitted);
}

/** Whether both say the same of both senders. */
export function sameBytes(one: Bytes, other: Bytes): boolean {
  return one.every((range, sender) => {
    const its = other[sender];
    return range === its || (range && its ? range.from === its.from && range.until === its.until : false);
  });
}

/** Part of the way from one range to another; null where neither end was chosen. */
export function betweenBytes(
  ends: readonly (readonly [Range, Range] | null)[],
  share: number,
): [Range | null, Range | null] {
  const [client = null, server = null] = ends.map((pair) => pair && between(pair[0], pair[1], share));
  return [client, server];
}

/** The byte that a packet is drawn at in the plot of a sender's data; null where its ACK is not known. */
export function byteOf(marks: Marks, sender: Side, row: number): number | null {
  const what = marks.what[row] ?? 0;
  if (sideOf(what) === sender) return (marks.seq[row] as number) + (marks.len[row] as number);
  return hasAck(what) ? (marks.ack[row] as number) : null;
}
