/** The time-sequence plot on its two canvases: marks below, what follows the pointer above. */

import type { Side } from "../../data/table.ts";
import { type Model, NONE } from "../model.ts";
import { type Palette, paletteOf } from "../palette.ts";
import { headingOf, paintBytes, paintFrame, paintLedger, paintTimes } from "./axes.ts";
import type { Drag } from "./drag.ts";
import { rowNear } from "./hit.ts";
import { bytesAt, type Layout, layoutOf, type Scale, timeAt } from "./layout.ts";
import { type Pointer, paintOverlay, paintRings } from "./overlay.ts";
import { paintMarks } from "./paint.ts";
import { stretches } from "./stretches.ts";

/** A direction with less than this share of the other's bytes gets less room. */
const MINOR = 0.1;
const MINOR_WEIGHT = 0.5;
/** One without any data shows nothing but when it ended. */
const EMPTY_WEIGHT = 0.25;

interface Panel {
  sender: Side;
  scale: Scale;
}

export class Picture {
  pointer: Pointer | null = null;
  drag: Drag | null = null;
  /** Whose data is drawn. */
  private senders: Side[] = [0, 1];
  private layout: Layout | null = null;
  private panels: Panel[] = [];
  private palette: Palette;
  private size = { width: 0, height: 0 };
  private frame = 0;
  private stale = { marks: true, overlay: true };

  constructor(
    readonly model: Model,
    private readonly base: HTMLCanvasElement,
    private readonly overlay: HTMLCanvasElement,
  ) {
    this.palette = paletteOf(base.parentElement as HTMLElement);
  }

  /** Takes the colours anew; at once, since paper does not wait for a frame. */
  recolor(): void {
    this.palette = paletteOf(this.base.parentElement as HTMLElement);
    this.paint();
  }

  /** Whose data is drawn. */
  choose(senders: Side[]): void {
    this.senders = senders;
    this.fit();
  }

  /** CSS pixels that it may use. */
  resize(width: number, height: number): void {
    this.size = { width, height };
    this.fit();
  }

  private fit(): void {
    const { width, height } = this.size;
    if (width === 0) return;
    const ratio = devicePixelRatio || 1;
    for (const canvas of [this.base, this.overlay]) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    const bytes = this.senders.map((sender) => this.model.scenes[sender].totals.bytes);
    const most = Math.max(...bytes);
    const weights = bytes.map((own) => (own === 0 ? EMPTY_WEIGHT : own < most * MINOR ? MINOR_WEIGHT : 1));
    this.layout = layoutOf(width, height, weights, ratio);
    this.paint();
  }

  /** Draws in the next frame: all, or only what follows the pointer. */
  schedule(what: "marks" | "overlay"): void {
    this.stale[what] = true;
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      if (this.stale.marks) this.paint();
      else this.paintOver();
    });
  }

  stop(): void {
    cancelAnimationFrame(this.frame);
  }

  private paint(): void {
    const context = this.base.getContext("2d", { alpha: false });
    const { layout, model, palette } = this;
    if (!context || !layout) return;
    const { view, scenes, table, sampled } = model;
    context.fillStyle = palette.background;
    context.fillRect(0, 0, context.canvas.width, context.canvas.height);
    paintLedger(context, layout, stretches(table.bookings, view, layout.strip.width), palette);
    paintTimes(context, layout, view, palette);
    this.panels = this.senders.map((sender, index) => {
      const box = layout.plots[index] as Layout["plots"][number];
      return { sender, scale: { box, view, reach: model.reach(sender) } };
    });
    for (const { sender, scale } of this.panels) {
      const scene = scenes[sender];
      paintBytes(context, scale, sender === 0 ? "client" : "server", layout.ratio, palette);
      context.save();
      context.beginPath();
      context.rect(scale.box.x, scale.box.y, scale.box.width, scale.box.height);
      context.clip();
      const names = paintMarks(context, scene, scale, layout.ratio, palette);
      paintRings(context, model, scale, sender, names, layout.ratio, palette);
      context.restore();
      const notesEdge = scale.reach.edge === "above" && scene.totals.segments > 0;
      paintFrame(context, scale, headingOf(scene, model.noun, sampled), notesEdge, layout.ratio, palette);
    }
    this.stale.marks = false;
    this.paintOver();
  }

  private paintOver(): void {
    const context = this.overlay.getContext("2d");
    const { layout, model, palette } = this;
    if (!context || !layout) return;
    paintOverlay(context, model, layout, this.panels, this.pointer, this.drag, palette);
    this.stale.overlay = false;
  }

  /** A place in CSS pixels, as the canvas counts; null outside of plots and strip. */
  locate(x: number, y: number): Pointer | null {
    const { layout } = this;
    if (!layout) return null;
    const at = { x: x * layout.ratio, y: y * layout.ratio };
    const { strip } = layout;
    if (at.x < strip.x || at.x > strip.x + strip.width) return null;
    const plot = layout.plots.findIndex((box) => at.y >= box.y && at.y <= box.y + box.height);
    const isStrip = at.y >= strip.y && at.y <= strip.y + strip.height;
    return plot >= 0 || isStrip ? { plot, ...at } : null;
  }

  /** The place on the canvas of `x` (CSS pixels), brought into the plots. */
  across(x: number): number {
    const strip = this.layout?.strip ?? { x: 0, width: 1 };
    return Math.min(Math.max(x * (this.layout?.ratio ?? 1), strip.x), strip.x + strip.width);
  }

  /** The moment at a place on the canvas. */
  time(x: number): number {
    return this.layout ? timeAt(this.layout.strip, this.model.view, x) : this.model.view.from;
  }

  /** The plot beside which `y` (CSS pixels) is, left of it or within. */
  plotAt(y: number): number {
    const at = y * (this.layout?.ratio ?? 1);
    return this.layout?.plots.findIndex((box) => at >= box.y && at <= box.y + box.height) ?? -1;
  }

  /** Whether `x` (CSS pixels) is left of the plots, where their bytes are written. */
  isAxis(x: number): boolean {
    return this.layout !== null && x * this.layout.ratio < this.layout.strip.x;
  }

  /** The place on the canvas of `y` (CSS pixels), brought into a plot. */
  upright(plot: number, y: number): number {
    const box = this.layout?.plots[plot] ?? { y: 0, height: 1 };
    return Math.min(Math.max(y * (this.layout?.ratio ?? 1), box.y), box.y + box.height);
  }

  /** Whose data a plot shows, and the byte at a height on the canvas. */
  byte(plot: number, y: number): { sender: Side; byte: number } | null {
    const panel = this.panels[plot];
    return panel ? { sender: panel.sender, byte: bytesAt(panel.scale, y) } : null;
  }

  /** Height of a plot in CSS pixels. */
  heightOf(plot: number): number {
    return (this.layout?.plots[plot]?.height ?? 1) / (this.layout?.ratio ?? 1);
  }

  /** Width of the plots in CSS pixels. */
  get width(): number {
    return this.layout ? this.layout.strip.width / this.layout.ratio : 1;
  }

  /** The packet at the pointer; {@link NONE} where none is near. */
  rowAt(pointer: Pointer): number {
    const panel = this.panels[pointer.plot];
    if (!panel || !this.layout) return NONE;
    return rowNear(this.model.scenes[panel.sender], panel.scale, pointer.x, pointer.y, this.layout.ratio);
  }
}
