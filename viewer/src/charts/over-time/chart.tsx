/** Dots over time on uPlot's axes. Dragging shows a stretch, a click goes to the packet. */

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { count } from "../../text/number.ts";
import type { Model } from "../model.ts";
import { onPaletteChange, type Palette, paletteOf } from "../palette.ts";
import { axisTitle } from "../sequence/axes.ts";
import { roundStep, timeTicks } from "../ticks.ts";
import type { Range } from "../view.ts";
import { duration, moment } from "../words.ts";
import { type Axis, axisFor, type Dots, type Figures, heightOn, nearest } from "./dots.ts";
import { paintDots } from "./paint.ts";

/** CSS pixels. */
const HEIGHT = 220;
const NEAR = 16;
/** Less than this is a click. */
const CLICK = 3;
/** As many labels as the widest of these axes has. */
const MOST_TICKS = 8;
/** Room for a label, CSS pixels. */
const ACROSS = 84;
const UPRIGHT = 34;

export interface OverTimeProps {
  model: Model;
  dots: Dots;
  view: Range;
  /** Those of the dots in view. */
  figures: Figures | null;
  /** A value to draw a line at, ns: the base round trip, the period. */
  line: number | null;
  /** What a dot is, for the one under the pointer. */
  name: string;
  /** Read out instead of the picture. */
  label: string;
}

export function OverTime({ model, dots, view, figures, line, name, label }: OverTimeProps) {
  const frame = useRef<HTMLDivElement>(null);
  const chart = useRef<DotChart | null>(null);
  const [near, setNear] = useState(-1);
  const axis = useMemo(() => axisFor(figures, line), [figures, line]);
  useLayoutEffect(() => {
    const made = new DotChart(frame.current as HTMLDivElement, model, dots, line, setNear);
    chart.current = made;
    return () => made.stop();
  }, [model, dots, line]);
  useEffect(() => chart.current?.show(view, axis), [view, axis, dots, line]);
  return (
    <div class="over-time" role="img" aria-label={label}>
      <div ref={frame} />
      <div class="axis-title">{axisTitle(timeTicks(view.from, view.until, MOST_TICKS))}</div>
      <output class="near">
        {near >= 0 && (
          <>
            {(dots.packet[near] as number) > 0 && `#${count(dots.packet[near] as number)} `}
            {name} {duration(dots.value[near] as number)} at {moment(dots.time[near] as number)} s
          </>
        )}
      </output>
    </div>
  );
}

class DotChart {
  private palette: Palette;
  private readonly plot: uPlot;
  private view: Range;
  private axis: Axis = { low: 0, high: 1, isLog: false };
  private near = -1;
  /** Whether the pointer's button was just used to drag. */
  private dragged = false;
  private readonly stops: (() => void)[];

  constructor(
    private readonly frame: HTMLElement,
    private readonly model: Model,
    private readonly dots: Dots,
    private readonly line: number | null,
    private readonly tell: (near: number) => void,
  ) {
    this.palette = paletteOf(frame);
    this.view = model.view;
    this.plot = new uPlot(
      this.options(),
      [
        [0, 1],
        [null, null],
      ],
      frame,
    );
    this.plot.over.addEventListener("click", () => this.jump());
    const sizes = new ResizeObserver(() => this.plot.setSize({ width: frame.clientWidth, height: HEIGHT }));
    sizes.observe(frame);
    this.stops = [
      () => sizes.disconnect(),
      onPaletteChange(() => {
        this.palette = paletteOf(frame);
        this.plot.redraw();
      }),
    ];
  }

  stop(): void {
    for (const stop of this.stops) stop();
    this.plot.destroy();
  }

  show(view: Range, axis: Axis): void {
    this.view = view;
    this.axis = axis;
    this.plot.batch(() => {
      this.plot.setScale("x", { min: view.from, max: view.until });
      this.plot.setScale("y", { min: 0, max: 1 });
    });
    this.plot.redraw();
  }

  private options(): uPlot.Options {
    const { frame } = this;
    const axis = { stroke: () => this.palette.faint, font: `11px ${this.palette.font}` };
    const grid = { stroke: () => this.palette.grid, width: 1 };
    return {
      width: frame.clientWidth,
      height: HEIGHT,
      padding: [8, 12, 0, 0],
      legend: { show: false },
      cursor: {
        y: false,
        points: { show: false },
        drag: { x: true, y: false, setScale: false },
        bind: { dblclick: () => () => this.back() },
      },
      // The scale of y is a share of the height: its values are spread by `heightOn`.
      scales: { x: { time: false, auto: false }, y: { auto: false, range: [0, 1] } },
      series: [{}, { points: { show: false }, paths: () => null }],
      axes: [
        {
          ...axis,
          grid,
          ticks: { ...grid, size: 4 },
          size: 26,
          splits: () => this.times().ticks.map((tick) => tick.value),
          values: () => this.times().ticks.map((tick) => tick.label),
        },
        {
          ...axis,
          grid,
          ticks: { ...grid, size: 4 },
          size: 66,
          splits: () => this.levels().map((value) => heightOn(this.axis, value)),
          values: () => this.levels().map(duration),
        },
      ],
      hooks: {
        draw: [() => this.paint()],
        setCursor: [() => this.point()],
        setSelect: [() => this.select()],
      },
    };
  }

  private times() {
    return timeTicks(
      this.view.from,
      this.view.until,
      Math.min(MOST_TICKS, (this.frame.clientWidth - 80) / ACROSS),
    );
  }

  /** Round durations on the upright axis. */
  private levels(): number[] {
    const { low, high, isLog } = this.axis;
    const levels: number[] = [];
    if (isLog) {
      for (let value = low; value <= high; value *= 10) levels.push(value);
      return levels;
    }
    const step = roundStep((high - low) / (HEIGHT / UPRIGHT));
    for (let value = 0; value <= high; value += step) levels.push(value);
    return levels;
  }

  private paint(): void {
    const { ctx, bbox } = this.plot;
    const box = { x: bbox.left, y: bbox.top, width: bbox.width, height: bbox.height };
    paintDots(ctx, this.dots, this.view, this.axis, box, this.line, this.near, this.palette);
  }

  private place(index: number): { x: number; y: number } {
    const { over } = this.plot;
    const share = ((this.dots.time[index] as number) - this.view.from) / (this.view.until - this.view.from);
    const height = heightOn(this.axis, this.dots.value[index] as number);
    return { x: share * over.clientWidth, y: (1 - height) * over.clientHeight };
  }

  private point(): void {
    const { left = -1, top = -1 } = this.plot.cursor;
    const perPixel = (this.view.until - this.view.from) / this.plot.over.clientWidth;
    const at = { x: left, y: top };
    const near =
      left < 0 ? -1 : nearest(this.dots, this.view, at, (index) => this.place(index), perPixel, NEAR);
    if (near === this.near) return;
    this.near = near;
    this.tell(near);
    this.plot.redraw(false);
  }

  private back(): null {
    this.model.back();
    return null;
  }

  /** The end of a drag. */
  private select(): void {
    const { left, width } = this.plot.select;
    if (width > CLICK) {
      this.dragged = true;
      const [from, until] = [left, left + width].map((x) => this.plot.posToVal(x, "x")) as [number, number];
      this.plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
      this.model.glide({ from, until }, `stretch ${performance.now()}`);
    }
  }

  /** Goes to the packet of the dot under the pointer. */
  private jump(): void {
    const wasDrag = this.dragged;
    this.dragged = false;
    if (wasDrag || this.near < 0) return;
    const packet = this.dots.packet[this.near] as number;
    if (packet > 0 && this.model.choosePacket(packet)) return;
    this.model.reveal(this.model.rowAt(this.dots.time[this.near] as number));
  }
}
