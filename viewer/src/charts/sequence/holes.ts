/** What a receiver lacked, by its SACK blocks (RFC 2018). */

import { hasAck, type Marks, type Sacks, type Side, sideOf } from "../../data/table.ts";

/** Bytes that a receiver lacked for some time. */
export interface Hole {
  left: number;
  right: number;
  /** ns since the capture's first packet. */
  from: number;
  until: number;
}

/** Ranges beyond the ACK that are remembered; a window with more holes is hostile or beyond what a picture can show. */
const MOST_RANGES = 256;
/** Holes kept in all: no picture has room for more. */
const MOST_HOLES = 50_000;

type Range = [left: number, right: number];

/** What the receiver has beyond its ACK, as its ACKs told so far: ranges in order, apart from each other. */
class Scoreboard {
  ranges: Range[] = [];

  /** Takes a block. One below the ACK reports what came twice (RFC 2883), and is not kept. */
  take(ack: number, left: number, right: number): void {
    this.acked(ack);
    if (left >= right || right <= ack) return;
    const first = this.ranges.findIndex((range) => range[1] >= left);
    const begin = first < 0 ? this.ranges.length : first;
    let end = begin;
    while (end < this.ranges.length && (this.ranges[end] as Range)[0] <= right) end++;
    const merged = this.ranges.slice(begin, end);
    const from = Math.min(left, merged[0]?.[0] ?? left);
    const until = Math.max(right, merged.at(-1)?.[1] ?? right);
    this.ranges.splice(begin, end - begin, [from, until]);
    if (this.ranges.length > MOST_RANGES) this.ranges.shift();
  }

  /** Everything up to `ack` is there. */
  acked(ack: number): void {
    while (this.ranges[0] && this.ranges[0][1] <= ack) this.ranges.shift();
  }

  /** What is missing between `ack` and the highest byte that is there. */
  missing(ack: number): Range[] {
    let at = ack;
    const holes: Range[] = [];
    for (const [from, until] of this.ranges) {
      if (at < from) holes.push([at, from]);
      at = Math.max(at, until);
    }
    return holes;
  }
}

/** The holes in the data of `sender`, by when they ended. */
export function holesOf(sender: Side, marks: Marks, sacks: Sacks): Hole[] {
  const found: Hole[] = [];
  const board = new Scoreboard();
  let open: Hole[] = [];
  let highest = Number.NEGATIVE_INFINITY;
  let next = 0;
  let now = 0;
  for (let row = 0; row < marks.count && found.length < MOST_HOLES; row++) {
    const what = marks.what[row] as number;
    if (sideOf(what) === sender || !hasAck(what)) continue;
    now = marks.time[row] as number;
    highest = Math.max(highest, marks.ack[row] as number);
    for (; next < sacks.count && (sacks.time[next] as number) <= now; next++) {
      if (sacks.from[next] !== sender)
        board.take(sacks.ack[next] as number, sacks.left[next] as number, sacks.right[next] as number);
    }
    board.acked(highest);
    if (open.length > 0 || board.ranges.length > 0) open = update(open, board.missing(highest), now, found);
  }
  for (const hole of open) found.push({ ...hole, until: now });
  return found;
}

/** What is open now: those holes of `open` that still are, and those of `missing` that are new. Both are in order. */
function update(open: Hole[], missing: Range[], now: number, found: Hole[]): Hole[] {
  let at = 0;
  const close = (hole: Hole) => found.push({ ...hole, until: now });
  const still = missing.map(([left, right]): Hole => {
    let hole = open[at];
    while (hole && (hole.left < left || (hole.left === left && hole.right !== right))) {
      close(hole);
      hole = open[++at];
    }
    const isSame = hole && hole.left === left && hole.right === right;
    if (isSame) at++;
    return isSame && hole ? hole : { left, right, from: now, until: now };
  });
  for (const hole of open.slice(at)) close(hole);
  return still;
}
