/** Frames, grids, labels, headings, and the ledger's strip. */

import { bytes, count, plural } from "../../text/number.ts";
import { type Palette, SHADE } from "../palette.ts";
import { byteTicks, type Ticks, timeTicks } from "../ticks.ts";
import type { Range } from "../view.ts";
import { type Layout, type Scale, xOf, yOf } from "./layout.ts";
import type { Scene } from "./scene.ts";
import { eachShare, type Stretch } from "./stretches.ts";

/** A tick needs so many CSS pixels across, and so many upright. */
const ACROSS = 84;
const UPRIGHT = 36;
/** A tint weaker than this cannot be seen. */
const INVISIBLE = 0.01;
const FAR = "the window's edge is far above";

/** Shades the plots by what TCP withholds, and fills the strip with all lines. */
export function paintLedger(
  context: CanvasRenderingContext2D,
  layout: Layout,
  all: Stretch[],
  palette: Palette,
): void {
  const { strip, plots } = layout;
  for (const stretch of all) {
    const x = strip.x + stretch.from;
    const width = stretch.until - stretch.from;
    let y = strip.y + strip.height;
    eachShare(stretch, (line, share) => {
      const color = palette.lines[line] as string;
      const height = strip.height * share;
      y -= height;
      context.fillStyle = color;
      context.fillRect(x, y, width, height);
      const shade = (SHADE[line] as number) * share;
      if (shade < INVISIBLE) return;
      context.globalAlpha = shade;
      for (const plot of plots) context.fillRect(x, plot.y, width, plot.height);
      context.globalAlpha = 1;
    });
  }
  outline(context, strip.x, strip.y, strip.width, strip.height, palette.frame);
}

/** A frame of one pixel. */
function outline(
  context: CanvasRenderingContext2D,
  x: number,
  y: number,
  width: number,
  height: number,
  color: string,
): void {
  context.strokeStyle = color;
  context.lineWidth = 1;
  context.strokeRect(x - 0.5, y - 0.5, width + 1, height + 1);
}

/** The time axis, below all: lines through the plots, labels, and what they count from. */
export function paintTimes(
  context: CanvasRenderingContext2D,
  layout: Layout,
  view: Range,
  palette: Palette,
): Ticks {
  const { strip, plots, ratio } = layout;
  const times = timeTicks(view.from, view.until, strip.width / (ACROSS * ratio));
  const scale = { box: strip, view } as Scale;
  context.font = `${11 * ratio}px ${palette.font}`;
  context.textAlign = "center";
  context.textBaseline = "top";
  for (const { value, label } of times.ticks) {
    const x = Math.round(xOf(scale, value));
    context.fillStyle = palette.grid;
    for (const plot of plots) context.fillRect(x, plot.y, 1, plot.height);
    context.fillStyle = palette.faint;
    context.fillRect(x, strip.y + strip.height + 1, 1, 4 * ratio);
    context.fillText(label, x, strip.y + strip.height + 6 * ratio);
  }
  context.fillStyle = palette.faint;
  context.fillText(axisTitle(times), strip.x + strip.width / 2, strip.y + strip.height + 20 * ratio);
  return times;
}

/** What the labels of a time axis mean. */
export function axisTitle(times: Ticks): string {
  return times.base
    ? `${times.unit} after ${times.base.label}`
    : `${times.unit} since the capture's first packet`;
}

/** The axis of one plot's bytes. */
export function paintBytes(
  context: CanvasRenderingContext2D,
  scale: Scale,
  sender: string,
  ratio: number,
  palette: Palette,
): void {
  const { box, reach } = scale;
  const ticks = byteTicks(reach.low, reach.high, box.height / (UPRIGHT * ratio));
  context.font = `${11 * ratio}px ${palette.font}`;
  context.textAlign = "right";
  context.textBaseline = "middle";
  for (const { value, label } of ticks.ticks) {
    const y = Math.round(yOf(scale, value));
    context.fillStyle = palette.grid;
    context.fillRect(box.x, y, box.width, 1);
    context.fillStyle = palette.faint;
    context.fillText(label, box.x - 6 * ratio, y);
  }
  context.save();
  context.translate(10 * ratio, box.y + box.height / 2);
  context.rotate(-Math.PI / 2);
  context.textAlign = "center";
  const title = `${ticks.unit} of the ${sender}`;
  // A low graph has no room for the long form.
  context.fillText(context.measureText(title).width < box.height ? title : ticks.unit, 0, 0);
  context.restore();
}

/** What stands above a plot, and its frame. */
export function paintFrame(
  context: CanvasRenderingContext2D,
  scale: Scale,
  heading: string,
  notesEdge: boolean,
  ratio: number,
  palette: Palette,
): void {
  const { box } = scale;
  outline(context, box.x, box.y, box.width, box.height, palette.frame);
  context.font = `600 ${12 * ratio}px ${palette.font}`;
  context.textAlign = "left";
  context.textBaseline = "alphabetic";
  context.fillStyle = palette.ink;
  context.fillText(heading, box.x, box.y - 8 * ratio);
  const room = box.width - context.measureText(heading).width;
  context.font = `${11 * ratio}px ${palette.font}`;
  if (!notesEdge || context.measureText(FAR).width + 20 * ratio > room) return;
  context.textAlign = "right";
  context.fillStyle = palette.faint;
  context.fillText(FAR, box.x + box.width, box.y - 8 * ratio);
}

/** `client → server: 100 kB in 84 segments, 3 sent again`; `noun` is what they are. */
export function headingOf({ sender, totals }: Scene, noun: string, sampled: boolean): string {
  const ends = sender === 0 ? "client → server" : "server → client";
  if (totals.segments === 0) return `${ends}: no data`;
  // Of a sample the sums would be too small.
  if (sampled) return ends;
  const again = totals.again > 0 ? `, ${count(totals.again)} sent again` : "";
  return `${ends}: ${bytes(totals.bytes)} in ${plural(totals.segments, noun)}${again}`;
}
