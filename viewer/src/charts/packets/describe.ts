/** A packet in words. */

import {
  BARE,
  type Bookings,
  FLAG,
  flagsOf,
  hasAck,
  hasWindow,
  kindOf,
  PROBE,
  RETRANSMISSION,
  sideOf,
} from "../../data/table.ts";
import { LINES } from "../../text/lines.ts";
import { count } from "../../text/number.ts";
import type { Model } from "../model.ts";
import { firstAtLeast, rowOf } from "../search.ts";
import { isPureAck, nameOf, type Scene } from "../sequence/scene.ts";
import { sumsOf } from "../sequence/stretches.ts";
import { duration } from "../words.ts";

const LETTERS: readonly (readonly [number, string])[] = [
  [FLAG.SYN, "S"],
  [FLAG.FIN, "F"],
  [FLAG.RST, "R"],
  [FLAG.PSH, "P"],
  [FLAG.URG, "U"],
  [FLAG.ECE, "E"],
  [FLAG.CWR, "W"],
  [FLAG.ACK, "."],
];

/** TCP flags as tcpdump writes them: `S`, `P.`, `.`. */
export function flagLetters(what: number): string {
  const flags = flagsOf(what);
  return LETTERS.filter(([bit]) => flags & bit)
    .map(([, letter]) => letter)
    .join("");
}

/** The sender in a word. */
export const senderOf = (what: number): string => (sideOf(what) === 0 ? "client" : "server");

/** What a packet is: `data`, `sent again`, `ACK`, `same ACK again`, `SYN-ACK`, … */
export function kindInWords(model: Model, row: number): string {
  const { marks } = model.table;
  const what = marks.what[row] as number;
  const len = marks.len[row] as number;
  const kind = kindOf(what);
  const name = nameOf(what);
  if (kind === RETRANSMISSION) return name ? `${name}, sent again` : "sent again";
  if (kind === PROBE) return "probe";
  if (kind !== BARE) return name ? `data, ${name}` : "data";
  if (name) return name;
  if (!isPureAck(what, len)) return "";
  if (hasWindow(what) && marks.window[row] === 0) return "ACK, window full";
  const { acks } = model.scenes[1 - sideOf(what)] as Scene;
  const at = rowOf(acks.row, row);
  if (acks.again[at]) return "same ACK again";
  const isUpdate = at > 0 && acks.top[at] === acks.top[at - 1];
  return isUpdate ? "window update" : "ACK";
}

/** For how long its sender held an ACK, ns; 0 where that is not known. */
export function heldFor(model: Model, row: number): number {
  const { marks } = model.table;
  const what = marks.what[row] as number;
  const { holds, heldUntil } = model.scenes[1 - sideOf(what)] as Scene;
  if (!hasAck(what) || kindOf(what) !== BARE) return 0;
  const hold = holds[rowOf(heldUntil, marks.time[row] as number)];
  return hold ? hold.until - hold.from : 0;
}

/** The blocks that a packet reports to have beyond its ACK, as `left–right`. */
export function blocksOf(model: Model, row: number): string[] {
  const { marks, sacks } = model.table;
  const what = marks.what[row] as number;
  const time = marks.time[row] as number;
  const blocks: string[] = [];
  for (let at = firstAtLeast(sacks.time, time); at < sacks.count && sacks.time[at] === time; at++) {
    if (sacks.from[at] !== sideOf(what) || sacks.ack[at] !== marks.ack[row]) continue;
    blocks.push(`${count(sacks.left[at] as number)}–${count(sacks.right[at] as number)}`);
  }
  return blocks;
}

/** The whole last column: what it is, what it SACKs, and what a finding says of it. */
export function inWords(model: Model, row: number): string {
  const what = model.table.marks.what[row] as number;
  const held = heldFor(model, row);
  const parts = [held > 0 ? `${kindInWords(model, row)}, held ${duration(held)}` : kindInWords(model, row)];
  const blocks = hasAck(what) ? blocksOf(model, row) : [];
  if (blocks.length > 0) parts.push(`SACK ${blocks.join(" ")}`);
  for (const pin of model.pinsByRow.get(row) ?? []) parts.push(pin.note);
  return parts.filter((part) => part !== "").join("; ");
}

/** Lines of the ledger with some time between two moments, the longest first. */
export function waits(
  bookings: Bookings,
  from: number,
  until: number,
): { line: string; index: number; ns: number }[] {
  const sums = sumsOf(bookings, { from, until });
  return [...sums.entries()]
    .filter(([, ns]) => ns > 0)
    .map(([index, ns]) => ({ line: LINES[index] as string, index, ns }))
    .sort((one, other) => other.ns - one.ns);
}

/** `nagle 160 ms, delayed-ack 39.2 ms`: what the time before a packet went to. */
export function waitInWords(bookings: Bookings, from: number, until: number): string {
  return waits(bookings, from, until)
    .slice(0, 3)
    .map(({ line, ns }) => `${line} ${duration(ns)}`)
    .join(", ");
}

/** One sentence for those who do not see the plot. */
export function spoken(model: Model, row: number): string {
  const { marks } = model.table;
  const what = marks.what[row] as number;
  const at = `packet ${count(marks.number[row] as number)} from the ${senderOf(what)}`;
  const before =
    row > 0
      ? `, ${duration((marks.time[row] as number) - (marks.time[row - 1] as number))} after the one before`
      : "";
  const size = (marks.len[row] as number) > 0 ? `, ${count(marks.len[row] as number)} bytes` : "";
  return `${at}${before}: ${inWords(model, row)}${size}`;
}
