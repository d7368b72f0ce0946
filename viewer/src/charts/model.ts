/** What the pictures of one connection have in common: the stretch of time shown, and the packet pointed at. */

import type { Finding } from "../data/page.ts";
import type { Table } from "../data/table.ts";
import { firstAtLeast, rowOf } from "./search.ts";
import { type Scene, scenesOf } from "./sequence/scene.ts";
import { between, History, type Range, same, showing, span, whole, within } from "./view.ts";

/** What changed: the stretch of time, the packet under the pointer, or the chosen one. */
export type Change = "view" | "point" | "choose";

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
  pointed = NONE;
  chosen = NONE;
  private readonly history = new History();
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

  /** Shows `range` at once; events of the same gesture are one step of the history. */
  show(range: Range, gesture: string): void {
    const next = within(range, this.all);
    this.stop();
    if (same(next, this.view)) return;
    this.history.remember(this.view, gesture, performance.now());
    this.set(next);
  }

  /** Goes to `range` so that the eye can follow. */
  glide(range: Range, gesture: string): void {
    const next = within(range, this.all);
    this.stop();
    if (same(next, this.view)) return;
    this.history.remember(this.view, gesture, performance.now());
    this.glideTo(next);
  }

  /** What was shown before the last gesture; all of it where there was none. */
  back(): void {
    this.stop();
    this.glideTo(within(this.history.back() ?? this.all, this.all));
  }

  get canGoBack(): boolean {
    return this.history.length > 0 || !same(this.goal, this.all);
  }

  get isWhole(): boolean {
    return same(this.goal, this.all);
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
    if (time !== undefined) this.glide(showing(this.goal, time, this.all), "choose");
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
    if (span(this.goal) > span(near) * 3) this.glide(within(near, this.all), "choose");
    else this.glide(showing(this.goal, at, this.all), "choose");
    this.chosen = row;
    this.tell("choose");
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

  private set(range: Range): void {
    this.view = range;
    this.goal = range;
    this.tell("view");
  }

  private glideTo(goal: Range): void {
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) {
      this.set(goal);
      return;
    }
    const begin = this.view;
    const start = performance.now();
    this.goal = goal;
    const step = (now: number) => {
      const part = Math.min(1, Math.max(0, now - start) / GLIDE_MS);
      const eased = 1 - (1 - part) ** 3;
      this.view = between(begin, goal, eased);
      this.frame = part < 1 ? requestAnimationFrame(step) : 0;
      this.tell("view");
    };
    this.frame = requestAnimationFrame(step);
  }

  /** Ends a jump where it is to end. */
  stop(): void {
    if (this.frame === 0) return;
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    this.view = this.goal;
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
