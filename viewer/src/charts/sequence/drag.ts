/** What is dragged over the plot: a stretch of time, of bytes, or a box of both. */

import type { Box } from "./layout.ts";

export interface Point {
  x: number;
  y: number;
}

export type Axes = "time" | "bytes" | "both";

export interface Drag {
  /** Which plot it began in; -1 on the strip below them. */
  plot: number;
  /** On the canvas, inside of that plot. */
  from: Point;
  until: Point;
  axes: Axes;
}

/** Less than this, in CSS pixels, is a click. */
export const CLICK = 4;
/** Less than this down is a hand that is not steady, CSS pixels. */
const STEADY = 24;
/** What is so much flatter than it is long, or so much steeper, is meant for one axis. */
const SLOPE = 0.3;

/** What a drag from one place to another (CSS pixels) is meant for; null where it is a click. */
export function axesOf(from: Point, until: Point): Axes | null {
  const across = Math.abs(until.x - from.x);
  const down = Math.abs(until.y - from.y);
  if (down < STEADY || down < across * SLOPE) return across < CLICK ? null : "time";
  return across < down * SLOPE ? "bytes" : "both";
}

/** The boxes that a drag marks: time in all plots, bytes in its own. */
export function marked(drag: Drag, plots: readonly Box[]): Box[] {
  const [left, right] = [drag.from.x, drag.until.x].sort((one, other) => one - other) as [number, number];
  if (drag.axes === "time") return plots.map((box) => ({ ...box, x: left, width: right - left }));
  const own = plots[drag.plot];
  if (!own) return [];
  const [top, bottom] = [drag.from.y, drag.until.y].sort((one, other) => one - other) as [number, number];
  const across = drag.axes === "bytes" ? { x: own.x, width: own.width } : { x: left, width: right - left };
  return [{ ...across, y: top, height: bottom - top }];
}
