/** Draws dots; of many on the same pixel, one. */

import type { Palette } from "../palette.ts";
import type { Box } from "../sequence/layout.ts";
import type { Range } from "../view.ts";
import { type Axis, type Dots, dotsIn, heightOn } from "./dots.ts";

/** From so many dots in view on they are small squares. */
const MANY = 1_500;

export function paintDots(
  context: CanvasRenderingContext2D,
  dots: Dots,
  view: Range,
  axis: Axis,
  box: Box,
  line: number | null,
  near: number,
  palette: Palette,
): void {
  const ratio = devicePixelRatio || 1;
  const xOf = (time: number) => box.x + ((time - view.from) / (view.until - view.from)) * box.width;
  const yOf = (value: number) => box.y + (1 - heightOn(axis, value)) * box.height;
  context.save();
  context.beginPath();
  context.rect(box.x, box.y, box.width, box.height);
  context.clip();
  if (line !== null) paintLine(context, yOf(line), box, ratio, palette);
  const [begin, end] = dotsIn(dots, view);
  const isMany = end - begin > MANY;
  const size = Math.round((isMany ? 2 : 5) * ratio);
  const wide = Math.ceil(box.width) + 1;
  for (const side of [0, 1]) {
    const taken = new Uint8Array(wide * (Math.ceil(box.height) + 1));
    context.fillStyle = side === 0 ? palette.data : palette.sacked;
    for (let index = begin; index < end; index++) {
      if (dots.side[index] !== side) continue;
      const x = Math.round(xOf(dots.time[index] as number));
      const y = Math.round(yOf(dots.value[index] as number));
      const pixel = (y - Math.floor(box.y)) * wide + (x - Math.floor(box.x));
      if (taken[pixel]) continue;
      taken[pixel] = 1;
      if (isMany) context.fillRect(x - size / 2, y - size / 2, size, size);
      else paintDot(context, x, y, size / 2);
    }
  }
  if (near >= 0)
    paintNear(context, xOf(dots.time[near] as number), yOf(dots.value[near] as number), ratio, palette);
  context.restore();
}

function paintDot(context: CanvasRenderingContext2D, x: number, y: number, radius: number): void {
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  context.fill();
}

function paintNear(
  context: CanvasRenderingContext2D,
  x: number,
  y: number,
  ratio: number,
  palette: Palette,
): void {
  context.strokeStyle = palette.accent;
  context.lineWidth = 2 * ratio;
  context.beginPath();
  context.arc(x, y, 6 * ratio, 0, 2 * Math.PI);
  context.stroke();
}

function paintLine(
  context: CanvasRenderingContext2D,
  y: number,
  box: Box,
  ratio: number,
  palette: Palette,
): void {
  context.strokeStyle = palette.again;
  context.lineWidth = 1.5 * ratio;
  context.setLineDash([6 * ratio, 4 * ratio]);
  context.beginPath();
  context.moveTo(box.x, y);
  context.lineTo(box.x + box.width, y);
  context.stroke();
  context.setLineDash([]);
}
