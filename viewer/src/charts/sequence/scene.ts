/** What there is to draw of one direction, prepared once: a frame then only walks over what is in view. */

import {
  BARE,
  CLIENT,
  FLAG,
  flagsOf,
  hasAck,
  hasWindow,
  kindOf,
  type Marks,
  SERVER,
  type Side,
  sideOf,
  type Table,
} from "../../data/table.ts";
import { firstAfter, firstAtLeast } from "../search.ts";
import type { Range } from "../view.ts";
import { type Hole, holesOf } from "./holes.ts";

/** Rows of the packet table, with their times beside them for searching. */
export interface Rows {
  row: Int32Array;
  time: Float64Array;
}

/** Packets with data: their first byte, and the one after the last. */
export interface Segments extends Rows {
  low: Float64Array;
  high: Float64Array;
}

/** What the receiver's packets tell, one entry an ACK. */
export interface Acks extends Rows {
  /** The highest ACK so far. */
  top: Float64Array;
  /** Right edge of the window; NaN where it is not known. */
  edge: Float64Array;
  /** 1 where an ACK only says again what the one before it said (RFC 5681 section 2). */
  again: Uint8Array;
}

/** A wait of the receiver: an ACK it held. */
export interface Hold {
  from: number;
  until: number;
  acked: number;
}

/** The SACK blocks about one direction. */
export interface Blocks {
  time: Float64Array;
  left: Float64Array;
  right: Float64Array;
}

/** One direction: the data of a sender, and what its receiver says of it. */
export interface Scene {
  sender: Side;
  marks: Marks;
  /** Packets with data by kind: new, sent again, probes. */
  sent: [Segments, Segments, Segments];
  /** SYN, FIN and RST of the sender. */
  named: Rows;
  acks: Acks;
  blocks: Blocks;
  holes: Hole[];
  /** In order; they do not overlap. */
  holds: Hold[];
  /** When each of them ended. */
  heldUntil: Float64Array;
  totals: { segments: number; again: number; bytes: number };
}

const NAMED = FLAG.SYN | FLAG.FIN | FLAG.RST;

/** The name that a packet has on the plot, if it has one. */
export function nameOf(what: number): string {
  const flags = flagsOf(what);
  if (flags & FLAG.RST) return "RST";
  if (flags & FLAG.SYN) return flags & FLAG.ACK ? "SYN-ACK" : "SYN";
  return flags & FLAG.FIN ? "FIN" : "";
}

/** Rows in a list that grows. */
class RowList {
  private rows = new Int32Array(256);
  private count = 0;

  push(row: number): void {
    if (this.count === this.rows.length) {
      const larger = new Int32Array(this.count * 2);
      larger.set(this.rows);
      this.rows = larger;
    }
    this.rows[this.count++] = row;
  }

  take(marks: Marks): Rows {
    const row = this.rows.slice(0, this.count);
    return { row, time: picked(marks.time, row) };
  }
}

/** The values of some rows. */
function picked(column: Float64Array, rows: Int32Array): Float64Array {
  const values = new Float64Array(rows.length);
  for (let at = 0; at < rows.length; at++) values[at] = column[rows[at] as number] as number;
  return values;
}

/** The packets of one direction by what they are on its plot. */
interface Parts {
  sent: [RowList, RowList, RowList];
  named: RowList;
  acks: RowList;
}

/** Sorts all packets into the two directions' parts, in one walk. */
function partsOf(marks: Marks): [Parts, Parts] {
  const empty = (): Parts => ({
    sent: [new RowList(), new RowList(), new RowList()],
    named: new RowList(),
    acks: new RowList(),
  });
  const parts: [Parts, Parts] = [empty(), empty()];
  for (let row = 0; row < marks.count; row++) {
    const what = marks.what[row] as number;
    const side = sideOf(what);
    const kind = kindOf(what);
    if (kind !== BARE) (parts[side].sent[kind] as RowList).push(row);
    if (flagsOf(what) & NAMED) parts[side].named.push(row);
    if (hasAck(what)) parts[side === 0 ? 1 : 0].acks.push(row);
  }
  return parts;
}

/** Packets with data, with the bytes they carry. */
function segmentsOf(rows: Rows, marks: Marks): Segments {
  const low = picked(marks.seq, rows.row);
  const high = picked(marks.len, rows.row);
  for (let at = 0; at < high.length; at++) high[at] = (high[at] as number) + (low[at] as number);
  return { ...rows, low, high };
}

/** Whether a packet says nothing but an ACK. */
export function isPureAck(what: number, len: number): boolean {
  return len === 0 && hasAck(what) && (flagsOf(what) & NAMED) === 0;
}

function acksOf(rows: Rows, marks: Marks): Acks {
  const size = rows.row.length;
  const acks: Acks = {
    ...rows,
    top: new Float64Array(size),
    edge: new Float64Array(size),
    again: new Uint8Array(size),
  };
  let top = Number.NEGATIVE_INFINITY;
  let before = { ack: Number.NaN, window: Number.NaN };
  for (let at = 0; at < size; at++) {
    const row = rows.row[at] as number;
    const what = marks.what[row] as number;
    const now = {
      ack: marks.ack[row] as number,
      window: hasWindow(what) ? (marks.window[row] as number) : -1,
    };
    top = Math.max(top, now.ack);
    acks.top[at] = top;
    acks.edge[at] = now.window < 0 ? Number.NaN : now.ack + now.window;
    const isAgain =
      isPureAck(what, marks.len[row] as number) && now.ack === before.ack && now.window === before.window;
    acks.again[at] = isAgain ? 1 : 0;
    before = now;
  }
  return acks;
}

function blocksOf(sender: Side, { sacks }: Table): Blocks {
  const rows = Int32Array.from(sacks.from.keys()).filter((row) => sacks.from[row] !== sender);
  return { time: picked(sacks.time, rows), left: picked(sacks.left, rows), right: picked(sacks.right, rows) };
}

function holdsOf(sender: Side, { held }: Table): Hold[] {
  const holds: Hold[] = [];
  for (let row = 0; row < held.count; row++) {
    if (held.sender[row] !== sender) continue;
    holds.push({
      from: held.from[row] as number,
      until: held.until[row] as number,
      acked: held.acked[row] as number,
    });
  }
  return holds.sort((one, other) => one.from - other.from);
}

/** Prepares both directions, by their senders. */
export function scenesOf(table: Table): [Scene, Scene] {
  const [client, server] = partsOf(table.marks);
  return [sceneOf(CLIENT, client, table), sceneOf(SERVER, server, table)];
}

function sceneOf(sender: Side, parts: Parts, table: Table): Scene {
  const { marks } = table;
  const sent = parts.sent.map((rows) => segmentsOf(rows.take(marks), marks)) as Scene["sent"];
  const [data, again] = sent;
  const holds = holdsOf(sender, table);
  let bytes = 0;
  for (let at = 0; at < data.low.length; at++) bytes += (data.high[at] as number) - (data.low[at] as number);
  return {
    sender,
    marks,
    sent,
    named: parts.named.take(marks),
    acks: acksOf(parts.acks.take(marks), marks),
    blocks: blocksOf(sender, table),
    holes: holesOf(sender, marks, table.sacks),
    holds,
    heldUntil: Float64Array.from(holds, ({ until }) => until),
    totals: { segments: data.row.length + again.row.length, again: again.row.length, bytes },
  };
}

/** Which entries of `rows` are in view, as a half-open range. */
export function inView(rows: { time: Float64Array }, view: Range): [number, number] {
  return [firstAtLeast(rows.time, view.from), firstAfter(rows.time, view.until)];
}

/** Room above and below the data, as a share of it. */
const MARGIN = 0.06;
/** The window's edge is in the picture if the data takes this share of the height with it. */
const LEAST_SHARE = 0.4;

/** The bytes that the axis shows, and whether the window's edge is among them. */
export interface Reach {
  low: number;
  high: number;
  edge: "shown" | "above" | "none";
}

/** What the data with its ACKs reaches over in view; `withEdge` with the window's edge even where the data is flat then. */
export function reachOf(scene: Scene, view: Range, withEdge = false): Reach {
  const { sent, acks } = scene;
  let low = Number.POSITIVE_INFINITY;
  let high = Number.NEGATIVE_INFINITY;
  let edge = Number.NEGATIVE_INFINITY;
  const take = (from: number, until: number) => {
    if (from < low) low = from;
    if (until > high) high = until;
  };
  for (const segments of sent) {
    const [begin, end] = inView(segments, view);
    for (let at = begin; at < end; at++) take(segments.low[at] as number, segments.high[at] as number);
  }
  const [first, last] = inView(acks, view);
  // What was ACKed before is where the line enters the picture; of them all, the tops only grow.
  const entering = Math.max(0, first - 1);
  if (acks.top.length > 0) {
    take(acks.top[entering] as number, acks.top[Math.max(entering, last - 1)] as number);
    for (let at = entering; at < last; at++)
      if ((acks.edge[at] as number) > edge) edge = acks.edge[at] as number;
  }
  return fitted(low, high, edge, withEdge);
}

function fitted(low: number, high: number, edge: number, withEdge: boolean): Reach {
  if (low > high) return { low: -0.1, high: 1.1, edge: "none" };
  const isNear = withEdge || high - low >= (edge - low) * LEAST_SHARE;
  const top = isNear ? Math.max(high, edge) : high;
  const room = Math.max(top - low, 1) * MARGIN;
  return {
    low: low - room,
    high: top + room,
    edge: edge === Number.NEGATIVE_INFINITY ? "none" : isNear ? "shown" : "above",
  };
}
