/** Draws one direction's marks. */

import type { Palette } from "../palette.ts";
import { firstAtLeast } from "../search.ts";
import { Bars, Stairs } from "./columns.ts";
import { type Scale, xOf, yOf } from "./layout.ts";
import { inView, nameOf, type Scene, type Segments } from "./scene.ts";

/** The smallest bar of a segment, of one that was sent again or is a probe, and of an ACK that came again. CSS pixels. */
const LEAST = 4;
const LEAST_AGAIN = 9;
const LEAST_TICK = 6;
/** From so many segments in view on bars are thin; with fewer than the second they are wide. */
const MANY = 600;
const FEW = 80;
/** SYN, FIN and RST are written at most so often, and not closer than so many CSS pixels. */
const MOST_NAMES = 40;
const NAMES_APART = 26;
/** Half the height of a held ACK's bar. CSS pixels. */
const HELD = 3;

/** No mark is so high, pixels of the canvas. */
const OUTSIDE = 10_000;

/** Where text stands, so that no other is written over it. */
export type Place = { x: number; y: number };

/** Draws all marks of `scene`; the context is clipped to the plot. Returns where names stand. */
export function paintMarks(
  context: CanvasRenderingContext2D,
  scene: Scene,
  scale: Scale,
  ratio: number,
  palette: Palette,
): Place[] {
  const brush = new Brush(context, scale, ratio);
  paintHoles(brush, scene, palette);
  paintSacked(brush, scene, palette);
  paintHeld(brush, scene, palette);
  paintAcks(brush, scene, palette);
  paintData(brush, scene, palette);
  return paintNames(brush, scene, palette);
}

/** Fills boxes of one colour at a time. */
class Brush {
  constructor(
    readonly context: CanvasRenderingContext2D,
    readonly scale: Scale,
    readonly ratio: number,
  ) {}

  /** The pixel column of a moment. */
  column(time: number): number {
    return Math.round(xOf(this.scale, time));
  }

  /** The height of a byte; what is far outside of the picture is not as far as numbers go. */
  y(bytes: number): number {
    const { box } = this.scale;
    return Math.min(Math.max(yOf(this.scale, bytes), box.y - OUTSIDE), box.y + box.height + OUTSIDE);
  }

  /** CSS pixels as whole ones of the canvas. */
  px(css: number): number {
    return Math.max(1, Math.round(css * this.ratio));
  }

  /** Bars of one colour, `width` CSS pixels wide. */
  bars(color: string, width: number): Bars {
    const { context, scale } = this;
    const wide = this.px(width);
    const left = Math.floor((wide - 1) / 2);
    context.fillStyle = color;
    return new Bars(scale.box.height, (column, top, bottom) =>
      context.fillRect(column - left, scale.box.y + top, wide, bottom - top + 1),
    );
  }

  stairs(color: string, thickness: number): Stairs {
    const { context } = this;
    return new Stairs((x, y, width, height) => {
      context.fillStyle = color;
      context.fillRect(x, y, width, height);
    }, this.px(thickness));
  }
}

function paintHoles(brush: Brush, scene: Scene, palette: Palette): void {
  const { context, scale } = brush;
  context.fillStyle = palette.hole;
  context.globalAlpha = 0.75;
  let last = "";
  for (const hole of scene.holes) {
    if (hole.until < scale.view.from || hole.from > scale.view.until) continue;
    const left = brush.column(Math.max(hole.from, scale.view.from));
    const right = brush.column(Math.min(hole.until, scale.view.until));
    const top = Math.round(brush.y(hole.right));
    const bottom = Math.round(brush.y(hole.left));
    // Of holes on the same pixels, one is enough.
    const pixels = `${left} ${right} ${top} ${bottom}`;
    if (pixels === last) continue;
    last = pixels;
    context.fillRect(left, top, Math.max(1, right - left), Math.max(1, bottom - top));
  }
  context.globalAlpha = 1;
}

function paintSacked(brush: Brush, scene: Scene, palette: Palette): void {
  const { blocks } = scene;
  const [begin, end] = inView(blocks, brush.scale.view);
  const bars = brush.bars(palette.sacked, 1.2);
  const top = brush.scale.box.y;
  for (let at = begin; at < end; at++) {
    const ends = [
      brush.y(blocks.left[at] as number) - top,
      brush.y(blocks.right[at] as number) - top,
    ] as const;
    bars.add(brush.column(blocks.time[at] as number), ends[0], ends[1], 1);
  }
  bars.flush();
}

function paintHeld(brush: Brush, scene: Scene, palette: Palette): void {
  const { context, scale } = brush;
  context.fillStyle = palette.held;
  for (const hold of scene.holds) {
    if (hold.until < scale.view.from || hold.from > scale.view.until) continue;
    const left = brush.column(Math.max(hold.from, scale.view.from));
    const right = brush.column(Math.min(hold.until, scale.view.until));
    const middle = Math.round(brush.y(hold.acked));
    const half = brush.px(HELD);
    context.fillRect(left, middle - half, Math.max(1, right - left), 2 * half);
  }
}

function paintAcks(brush: Brush, scene: Scene, palette: Palette): void {
  const { acks } = scene;
  const { view, box, reach } = brush.scale;
  const [begin, end] = inView(acks, view);
  if (acks.row.length === 0) return;
  // The line enters with what was ACKed before the picture begins.
  const first = Math.max(0, begin - 1);
  const isEntering = begin > 0;
  const last = brush.column(Math.min(acks.time[acks.time.length - 1] as number, view.until));
  const columnOf = (at: number) =>
    at === first && isEntering ? box.x : brush.column(acks.time[at] as number);
  if (reach.edge === "shown") {
    const edges = brush.stairs(palette.window, 1.3);
    for (let at = first; at < end; at++) {
      const edge = acks.edge[at] as number;
      if (Number.isNaN(edge)) edges.lift(columnOf(at));
      else edges.to(columnOf(at), brush.y(edge));
    }
    edges.end(last);
  }
  const stairs = brush.stairs(palette.acked, 1.5);
  for (let at = first; at < end; at++) stairs.to(columnOf(at), brush.y(acks.top[at] as number));
  stairs.end(last);
  const again = brush.bars(palette.acked, 1.5);
  for (let at = begin; at < end; at++) {
    if (!acks.again[at]) continue;
    const y = brush.y(scene.marks.ack[acks.row[at] as number] as number) - box.y;
    again.add(brush.column(acks.time[at] as number), y, y, brush.px(LEAST_TICK));
  }
  again.flush();
}

function paintData(brush: Brush, scene: Scene, palette: Palette): void {
  const ranges = scene.sent.map((segments) => inView(segments, brush.scale.view));
  const many = ranges.reduce((sum, [begin, end]) => sum + end - begin, 0);
  const width = many > MANY ? 1 : many > FEW ? 2 : 3;
  const looks = [
    { color: palette.data, width, least: LEAST },
    { color: palette.again, width: width + 1, least: LEAST_AGAIN },
    { color: palette.probe, width: width + 1, least: LEAST_AGAIN },
  ];
  const top = brush.scale.box.y;
  looks.forEach((look, kind) => {
    const { time, low, high } = scene.sent[kind] as Segments;
    const [begin, end] = ranges[kind] as [number, number];
    const bars = brush.bars(look.color, look.width);
    const least = brush.px(look.least);
    for (let at = begin; at < end; at++) {
      const ends = [brush.y(low[at] as number) - top, brush.y(high[at] as number) - top] as const;
      bars.add(brush.column(time[at] as number), ends[0], ends[1], least);
    }
    bars.flush();
  });
}

/** SYN, FIN and RST by name, where there is room. */
function paintNames(brush: Brush, scene: Scene, palette: Palette): Place[] {
  const { marks, named } = scene;
  const { context, scale } = brush;
  const [begin] = inView(named, scale.view);
  const end = firstAtLeast(named.time, scale.view.until);
  const px = (css: number) => brush.px(css);
  context.font = `600 ${px(10)}px ${palette.font}`;
  context.lineWidth = px(3);
  context.lineJoin = "round";
  context.textBaseline = "alphabetic";
  const written: Place[] = [];
  let free = Number.NEGATIVE_INFINITY;
  const bars = brush.bars(palette.ink, 1.5);
  for (let at = begin; at < end; at++) {
    const row = named.row[at] as number;
    const x = brush.column(named.time[at] as number);
    const y = brush.y((marks.seq[row] as number) + (marks.len[row] as number));
    context.fillStyle = palette.ink;
    bars.add(x, y - scale.box.y, y - scale.box.y, px(LEAST_TICK));
    const isOut = y < scale.box.y || y > scale.box.y + scale.box.height;
    if (isOut || x < free || written.length >= MOST_NAMES) continue;
    free = x + px(NAMES_APART);
    const isRight = x > scale.box.x + scale.box.width - px(NAMES_APART);
    const baseline = Math.max(y - px(6), scale.box.y + px(11));
    context.textAlign = isRight ? "right" : "left";
    written.push({ x, y: baseline });
    outlined(context, nameOf(marks.what[row] as number), isRight ? x - px(2) : x + px(2), baseline, palette);
  }
  context.fillStyle = palette.ink;
  bars.flush();
  return written;
}

/** Text that can be read on whatever lies behind it. */
export function outlined(
  context: CanvasRenderingContext2D,
  text: string,
  x: number,
  y: number,
  palette: Palette,
): void {
  context.strokeStyle = palette.background;
  context.strokeText(text, x, y);
  context.fillStyle = palette.ink;
  context.fillText(text, x, y);
}
