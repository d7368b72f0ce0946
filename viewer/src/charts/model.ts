/** What the pictures of one connection have in common: the stretch of time shown, and the packet pointed at. */

import type { Finding } from "../data/page.ts";
import type { Side, Table } from "../data/table.ts";
import { firstAtLeast, rowOf } from "./search.ts";
import {
  type Bytes,
  betweenBytes,
  byteOf,
  chosenReach,
  FEWEST,
  FITTED,
  fits,
  following,
  rangeOf,
  sameBytes,
  wholeReach,
} from "./sequence/bytes.ts";
import { type Reach, reachOf, type Scene, scenesOf } from "./sequence/scene.ts";
import { between, History, panned, type Range, same, showing, span, whole, within, zoomed } from "./view.ts";

/** What changed: the stretch of time, the bytes, the packet under the pointer, or the chosen one. */
export type Change = "view" | "bytes" | "point" | "choose";

/** What the plots show: a stretch of time, and of each sender some bytes or those that fit it. */
interface Shown {
  time: Range;
  bytes: Bytes;
}

/** The bytes that fit the data at a time. */
interface Fitted {
  time: Range;
  reach: Reach;
}

/** A packet that shows a finding. */
export interface Pin {
  /** Its row in the table; -1 where the table does not have it. */
  row: number;
  packet: number;
  /** ns since the capture's first packet. */
  time: number;
  /** Index into the findings, and what the finding says of it. */
  finding: number;
  note: string;
}

/** How long a jump takes, ms: long enough to see where it goes. */
const GLIDE_MS = 220;
const NS_PER_MS = 1e6;
/** No packet. */
export const NONE = -1;

export class Model {
  /** The first packet and the last, and the same with a margin. */
  readonly life: Range;
  readonly all: Range;
  /** By sender. */
  readonly scenes: readonly [Scene, Scene];
  readonly pins: readonly Pin[];
  readonly pinsByRow = new Map<number, Pin[]>();
  view: Range;
  /** Where a jump leads that is under way; else what is shown. */
  goal: Range;
  /** The bytes that were chosen, and where a jump leads. */
  bytes: Bytes = FITTED;
  bytesGoal: Bytes = FITTED;
  pointed = NONE;
  chosen = NONE;
  /** All that there is, by sender. */
  private readonly wholes: readonly [Reach, Reach];
  private readonly lastFitted: [Fitted | null, Fitted | null] = [null, null];
  private readonly history = new History<Shown>();
  private readonly listeners = new Set<(change: Change) => void>();
  private frame = 0;

  constructor(
    readonly table: Table,
    readonly findings: readonly Finding[],
    /** Whether only some of the packets are in the table. */
    readonly sampled: boolean,
    /** What a packet with data is called. */
    readonly noun = "segment",
  ) {
    const { time, count } = table.marks;
    this.life = { from: time[0] ?? 0, until: time[count - 1] ?? 0 };
    this.all = whole(this.life.from, this.life.until);
    this.view = this.all;
    this.goal = this.all;
    this.scenes = scenesOf(table);
    this.wholes = [wholeReach(this.scenes[0]), wholeReach(this.scenes[1])];
    this.pins = pinsOf(findings, table);
    for (const pin of this.pins) {
      const others = this.pinsByRow.get(pin.row);
      if (others) others.push(pin);
      else this.pinsByRow.set(pin.row, [pin]);
    }
  }

  listen(listener: (change: Change) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  private tell(change: Change): void {
    for (const listener of this.listeners) listener(change);
  }

  /** Shows `time`, and these bytes or what follows from it, at once; events of the same gesture are one step of the history. */
  show(time: Range, gesture: string, bytes?: Bytes): void {
    const next = this.next(time, gesture, bytes);
    if (next) this.set(next);
  }

  /** Goes there so that the eye can follow. */
  glide(time: Range, gesture: string, bytes?: Bytes): void {
    const next = this.next(time, gesture, bytes);
    if (next) this.glideTo(next);
  }

  /** What is to be shown next, with what is shown now noted; nothing where that is the same. */
  private next(time: Range, gesture: string, bytes?: Bytes): Shown | undefined {
    const to = within(time, this.all);
    const next = { time: to, bytes: bytes ?? this.followed(to) };
    this.stop();
    if (same(next.time, this.view) && sameBytes(next.bytes, this.bytes)) return undefined;
    this.history.remember({ time: this.view, bytes: this.bytes }, gesture, performance.now());
    return next;
  }

  /** What was shown before the last gesture; all of it where there was none. */
  back(): void {
    this.stop();
    const { time, bytes } = this.history.back() ?? { time: this.all, bytes: FITTED };
    this.glideTo({ time: within(time, this.all), bytes });
  }

  /** Shows all, as it fits. */
  reset(gesture: string): void {
    this.glide(this.all, gesture, FITTED);
  }

  get canGoBack(): boolean {
    return this.history.length > 0 || !same(this.goal, this.all) || !this.isFitted;
  }

  get isWhole(): boolean {
    return same(this.goal, this.all);
  }

  /** Whether the axes of bytes fit the data in view. */
  get isFitted(): boolean {
    return sameBytes(this.bytesGoal, FITTED);
  }

  /** The bytes that a sender's plot shows now. */
  reach(sender: Side): Reach {
    const chosen = this.bytes[sender];
    return chosen ? chosenReach(chosen, this.wholes[sender]) : this.fitted(sender, this.view);
  }

  /** The bytes that fit the data at a time. Asked of the same time again while bytes are zoomed, and all its packets count. */
  private fitted(sender: Side, time: Range): Reach {
    const last = this.lastFitted[sender];
    if (last && same(last.time, time)) return last.reach;
    const reach = reachOf(this.scenes[sender], time);
    this.lastFitted[sender] = { time, reach };
    return reach;
  }

  /** The bytes of a sender after a zoom about `byte`, or about the chosen packet or the middle; what fits is not passed by. */
  zoomedBytes(sender: Side, factor: number, byte?: number): Range | null {
    const fitted = rangeOf(this.fitted(sender, this.goal));
    const now = this.bytesGoal[sender] ?? fitted;
    const about = byte ?? this.chosenByte(sender, now) ?? (now.from + now.until) / 2;
    const next = zoomed(now, factor, about, rangeOf(this.wholes[sender]), Math.min(FEWEST, span(now)));
    const isPassing = span(now) < span(fitted) && span(next) >= span(fitted);
    return isPassing || fits(next, fitted) ? null : next;
  }

  /** The bytes of a sender after moving by a share of what is shown. */
  pannedBytes(sender: Side, share: number, from = this.bytesGoal[sender]): Range {
    const now = from ?? rangeOf(this.fitted(sender, this.goal));
    return panned(now, share, rangeOf(this.wholes[sender]), FEWEST);
  }

  /** The bytes that both plots show at another time, if those of one sender are `range` there. */
  withBytes(time: Range, sender: Side, range: Range | null): Bytes {
    const [client, server] = this.followed(time);
    const own = range && within(range, rangeOf(this.wholes[sender]), FEWEST);
    return sender === 0 ? [own, server] : [client, own];
  }

  private chosenByte(sender: Side, shown: Range): number | undefined {
    const byte = this.chosen === NONE ? null : byteOf(this.table.marks, sender, this.chosen);
    return byte !== null && byte >= shown.from && byte <= shown.until ? byte : undefined;
  }

  /** The chosen bytes at another time: as many, where the data is then, and so that `row` is seen. */
  private followed(time: Range, row = NONE): Bytes {
    if (this.isFitted) return FITTED;
    const follow = (sender: Side): Range | null => {
      const now = this.bytesGoal[sender];
      if (!now) return null;
      const next = same(time, this.goal) ? now : following(now, rangeOf(this.fitted(sender, time)));
      const byte = row === NONE ? null : byteOf(this.table.marks, sender, row);
      return byte === null ? next : showing(next, byte, rangeOf(this.wholes[sender]), FEWEST);
    };
    return [follow(0), follow(1)];
  }

  /** The packet under the pointer; {@link NONE} for none. */
  point(row: number): void {
    if (row === this.pointed) return;
    this.pointed = row;
    this.tell("point");
  }

  /** Chooses a packet and brings it into view. */
  choose(row: number): void {
    this.chosen = row;
    const time = this.table.marks.time[row];
    if (time !== undefined) this.glideToRow(showing(this.goal, time, this.all), row);
    this.tell("choose");
  }

  /** Chooses a packet by its frame number, near enough to see what happened around it. */
  choosePacket(packet: number): boolean {
    const row = rowOf(this.table.marks.number, packet);
    const pin = this.pins.find((other) => other.packet === packet);
    if (row >= 0) this.reveal(row);
    else if (pin) this.choosePin(pin);
    return row >= 0 || pin !== undefined;
  }

  /** Goes to where a finding's packet is. */
  choosePin(pin: Pin): void {
    if (pin.row >= 0) this.reveal(pin.row);
    else this.glide(showing(this.goal, pin.time, this.all), "choose");
  }

  /** Chooses a packet and shows it with those around it. */
  reveal(row: number): void {
    const { time } = this.table.marks;
    const at = time[row] as number;
    const { begin, end } = this.around(row);
    const near = { from: begin - (end - begin) * 0.15, until: end + (end - begin) * 0.15 };
    // What already shows it closer stays.
    const isFar = span(this.goal) > span(near) * 3;
    this.glideToRow(isFar ? within(near, this.all) : showing(this.goal, at, this.all), row);
    this.chosen = row;
    this.tell("choose");
  }

  private glideToRow(time: Range, row: number): void {
    this.glide(time, "choose", this.followed(time, row));
  }

  /** The time of some packets before and after one. */
  private around(row: number): { begin: number; end: number } {
    const { time, count } = this.table.marks;
    const at = time[row] as number;
    const begin = time[Math.max(0, row - AROUND)] as number;
    const end = time[Math.min(count - 1, row + AROUND)] as number;
    // Of a burst, one sees nothing but the burst otherwise.
    return { begin: Math.min(begin, at - LEAST_AROUND), end: Math.max(end, at + LEAST_AROUND) };
  }

  /** The packet that follows `moment` most closely; the last one after the end. */
  rowAt(moment: number): number {
    return Math.min(firstAtLeast(this.table.marks.time, moment), this.table.marks.count - 1);
  }

  private set({ time, bytes }: Shown): void {
    const change = same(time, this.view) ? "bytes" : "view";
    if (change === "view") this.view = time;
    this.goal = this.view;
    this.bytes = bytes;
    this.bytesGoal = bytes;
    this.tell(change);
  }

  private glideTo(goal: Shown): void {
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) {
      this.set(goal);
      return;
    }
    const begin = this.view;
    const ends = this.ends(goal);
    const change = same(begin, goal.time) ? "bytes" : "view";
    const start = performance.now();
    this.goal = change === "bytes" ? begin : goal.time;
    this.bytesGoal = goal.bytes;
    const step = (now: number) => {
      const part = Math.min(1, Math.max(0, now - start) / GLIDE_MS);
      const eased = 1 - (1 - part) ** 3;
      this.view = change === "bytes" ? begin : between(begin, goal.time, eased);
      this.bytes = part < 1 ? betweenBytes(ends, eased) : goal.bytes;
      this.frame = part < 1 ? requestAnimationFrame(step) : 0;
      this.tell(change);
    };
    this.frame = requestAnimationFrame(step);
  }

  /** The bytes at both ends of a jump, by sender; null where they fit the time at both. */
  private ends(goal: Shown): ([Range, Range] | null)[] {
    return ([0, 1] as const).map((sender) => {
      const [from, to] = [this.bytes[sender], goal.bytes[sender]];
      if (!from && !to) return null;
      const fitted = (time: Range) => rangeOf(this.fitted(sender, time));
      return [from ?? fitted(this.view), to ?? fitted(goal.time)];
    });
  }

  /** Ends a jump where it is to end. */
  stop(): void {
    if (this.frame === 0) return;
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    this.view = this.goal;
    this.bytes = this.bytesGoal;
  }
}

/** Packets before and after one that are shown with it, and the least time, ns. */
const AROUND = 12;
const LEAST_AROUND = 2_000_000;

function pinsOf(findings: readonly Finding[], table: Table): Pin[] {
  const pins = findings.flatMap((finding, index) =>
    finding.evidence.map((shown) => ({
      row: rowOf(table.marks.number, shown.packet),
      packet: shown.packet,
      time: Math.round(shown.time_ms * NS_PER_MS),
      finding: index,
      note: shown.note,
    })),
  );
  return pins.sort((one, other) => one.time - other.time);
}
