/** Where things are on the canvas, in its own pixels. */

import type { Range } from "../view.ts";
import type { Reach } from "./scene.ts";

export interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** Around the graphs, CSS pixels: labels left, headings above each, the ledger's strip and the time below. */
const LEFT = 70;
const RIGHT = 12;
const HEADING = 24;
const STRIP = 14;
const STRIP_GAP = 4;
const AXIS = 36;
/** The lowest a graph gets. */
const LEAST = 60;

export interface Layout {
  /** Canvas pixels to a CSS pixel. */
  ratio: number;
  plots: Box[];
  strip: Box;
}

/** Graphs above each other, whose heights are as `weights`; all whole pixels, so that lines are sharp. */
export function layoutOf(width: number, height: number, weights: number[], ratio: number): Layout {
  const px = (css: number) => Math.round(css * ratio);
  const x = px(LEFT);
  const inner = Math.max(1, Math.round(width * ratio) - x - px(RIGHT));
  const room = height - STRIP - STRIP_GAP - AXIS - HEADING * weights.length;
  const all = weights.reduce((sum, weight) => sum + weight, 0);
  const plots: Box[] = [];
  let y = 0;
  for (const weight of weights) {
    y += px(HEADING);
    const tall = px(Math.max(LEAST, (room * weight) / all));
    plots.push({ x, y, width: inner, height: tall });
    y += tall;
  }
  return { ratio, plots, strip: { x, y: y + px(STRIP_GAP), width: inner, height: px(STRIP) } };
}

/** Maps time and bytes to pixels of a plot. */
export interface Scale {
  box: Box;
  view: Range;
  reach: Reach;
}

export const xOf = (scale: Scale, time: number): number =>
  scale.box.x + ((time - scale.view.from) / (scale.view.until - scale.view.from)) * scale.box.width;

export const yOf = (scale: Scale, bytes: number): number =>
  scale.box.y + scale.box.height * (1 - (bytes - scale.reach.low) / (scale.reach.high - scale.reach.low));

/** The byte at a height on the canvas. */
export const bytesAt = ({ box, reach }: Scale, y: number): number =>
  reach.low + (1 - (y - box.y) / box.height) * (reach.high - reach.low);

/** The moment at a place on the canvas. */
export const timeAt = (box: Box, view: Range, x: number): number =>
  view.from + ((x - box.x) / box.width) * (view.until - view.from);
