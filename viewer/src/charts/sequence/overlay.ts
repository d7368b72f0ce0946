/** What lies over the marks and changes with the pointer: crosshair, rings, the chosen packet, a stretch being dragged. */

import { BARE, kindOf, type Side, sideOf } from "../../data/table.ts";
import { type Model, NONE } from "../model.ts";
import type { Palette } from "../palette.ts";
import { byteOf } from "./bytes.ts";
import { type Drag, marked } from "./drag.ts";
import { type Box, type Layout, type Scale, xOf, yOf } from "./layout.ts";
import { outlined, type Place } from "./paint.ts";
import { nameOf } from "./scene.ts";

/** Radius of a ring, CSS pixels. */
const RING = 5;
/** Numbers of packets closer than this, in CSS pixels, would cover each other. */
const APART = { x: 40, y: 12 };

/** Where the pointer is: which plot, and where on the canvas. */
export interface Pointer {
  plot: number;
  x: number;
  y: number;
}

/** Where a packet is on a plot; null where it has no place there. */
export function placeOf(
  model: Model,
  scale: Scale,
  sender: Side,
  row: number,
): { x: number; y: number } | null {
  const { marks } = model.table;
  const what = marks.what[row] ?? 0;
  const x = xOf(scale, marks.time[row] as number);
  if (x < scale.box.x - 1 || x > scale.box.x + scale.box.width + 1) return null;
  const isMine = sideOf(what) === sender;
  if (isMine && kindOf(what) === BARE && nameOf(what) === "") return null;
  const byte = byteOf(marks, sender, row);
  if (byte === null) return null;
  const y = yOf(scale, byte);
  return y < scale.box.y - 1 || y > scale.box.y + scale.box.height + 1 ? null : { x, y };
}

/** Whether a packet is shown by the data of `sender`: its own data, or what the other side has to say of it. */
function isAt(model: Model, sender: Side, row: number): boolean {
  const what = model.table.marks.what[row] ?? 0;
  const isOwn = sideOf(what) === sender;
  return isOwn ? kindOf(what) !== BARE || nameOf(what) !== "" : kindOf(what) === BARE;
}

/** Rings around the packets that show findings, with their numbers where there is room between `taken` places. */
export function paintRings(
  context: CanvasRenderingContext2D,
  model: Model,
  scale: Scale,
  sender: Side,
  taken: Place[],
  ratio: number,
  palette: Palette,
): void {
  const { box } = scale;
  const places = [...model.pinsByRow.keys()]
    .filter((row) => row >= 0 && isAt(model, sender, row))
    .flatMap((row) => {
      const place = placeOf(model, scale, sender, row);
      return place ? [{ row, ...place }] : [];
    });
  context.strokeStyle = palette.ink;
  context.lineWidth = 1.5 * ratio;
  for (const { x, y } of places) ring(context, x, y, RING * ratio);
  context.font = `600 ${11 * ratio}px ${palette.font}`;
  context.textBaseline = "alphabetic";
  context.lineJoin = "round";
  context.lineWidth = 3 * ratio;
  for (const { row, x, y } of places) {
    const isRight = x > box.x + box.width - APART.x * ratio;
    const heights = [y + 13 * ratio, y - 7 * ratio].map((top) =>
      clamp(top, box.y + 11 * ratio, box.y + box.height - 3 * ratio),
    );
    const free = heights.find(
      (top) =>
        !taken.some(
          (other) => Math.abs(other.x - x) < APART.x * ratio && Math.abs(other.y - top) < APART.y * ratio,
        ),
    );
    if (free === undefined) continue;
    taken.push({ x, y: free });
    context.textAlign = isRight ? "right" : "left";
    const number = String(model.table.marks.number[row]);
    outlined(context, number, isRight ? x - 8 * ratio : x + 8 * ratio, free, palette);
  }
}

function ring(context: CanvasRenderingContext2D, x: number, y: number, radius: number): void {
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  context.stroke();
}

const clamp = (value: number, least: number, most: number) => Math.min(Math.max(value, least), most);

/** Everything that follows the pointer. */
export function paintOverlay(
  context: CanvasRenderingContext2D,
  model: Model,
  layout: Layout,
  scales: readonly { sender: Side; scale: Scale }[],
  pointer: Pointer | null,
  drag: Drag | null,
  palette: Palette,
): void {
  const { canvas } = context;
  context.clearRect(0, 0, canvas.width, canvas.height);
  if (drag) paintDrag(context, layout, drag, palette);
  if (pointer && !drag) paintCrosshair(context, layout, pointer, palette);
  for (const { sender, scale } of scales) {
    if (model.chosen !== NONE) paintChosen(context, model, scale, sender, layout.ratio, palette);
    if (model.pointed !== NONE) paintPointed(context, model, scale, sender, layout.ratio, palette);
  }
}

function paintDrag(context: CanvasRenderingContext2D, layout: Layout, drag: Drag, palette: Palette): void {
  const thick = Math.max(1, layout.ratio);
  context.fillStyle = palette.accent;
  for (const { x, y, width, height } of marked(drag, layout.plots)) {
    context.globalAlpha = 0.18;
    context.fillRect(x, y, width, height);
    context.globalAlpha = 1;
    if (drag.axes !== "bytes") for (const at of [x, x + width]) context.fillRect(at, y, thick, height);
    if (drag.axes !== "time") for (const at of [y, y + height]) context.fillRect(x, at, width, thick);
  }
}

function dashed(context: CanvasRenderingContext2D, ratio: number, color: string, draw: () => void): void {
  context.strokeStyle = color;
  context.lineWidth = ratio;
  context.setLineDash([3 * ratio, 3 * ratio]);
  context.beginPath();
  draw();
  context.stroke();
  context.setLineDash([]);
}

function paintCrosshair(
  context: CanvasRenderingContext2D,
  layout: Layout,
  pointer: Pointer,
  palette: Palette,
): void {
  const x = Math.round(pointer.x) + 0.5;
  dashed(context, layout.ratio, palette.faint, () => {
    for (const box of [...layout.plots, layout.strip]) upright(context, box, x);
    const box = layout.plots[pointer.plot];
    if (!box) return;
    const y = Math.round(pointer.y) + 0.5;
    context.moveTo(box.x, y);
    context.lineTo(box.x + box.width, y);
  });
}

function upright(context: CanvasRenderingContext2D, box: Box, x: number): void {
  context.moveTo(x, box.y);
  context.lineTo(x, box.y + box.height);
}

function paintPointed(
  context: CanvasRenderingContext2D,
  model: Model,
  scale: Scale,
  sender: Side,
  ratio: number,
  palette: Palette,
): void {
  const place = placeOf(model, scale, sender, model.pointed);
  if (!place) return;
  context.strokeStyle = palette.accent;
  context.lineWidth = 2 * ratio;
  ring(context, place.x, place.y, 7 * ratio);
}

/** A line through all its plots, and a ring around the packet. */
function paintChosen(
  context: CanvasRenderingContext2D,
  model: Model,
  scale: Scale,
  sender: Side,
  ratio: number,
  palette: Palette,
): void {
  const x = xOf(scale, model.table.marks.time[model.chosen] as number);
  if (x < scale.box.x || x > scale.box.x + scale.box.width) return;
  context.fillStyle = palette.accent;
  context.globalAlpha = 0.55;
  context.fillRect(Math.round(x), scale.box.y, Math.max(1, ratio), scale.box.height);
  context.globalAlpha = 1;
  const place = placeOf(model, scale, sender, model.chosen);
  if (!place) return;
  // A ring, so that the mark itself can be seen.
  for (const [width, color] of [
    [5, palette.background],
    [2.5, palette.accent],
  ] as const) {
    context.lineWidth = width * ratio;
    context.strokeStyle = color;
    ring(context, place.x, place.y, 8 * ratio);
  }
}
