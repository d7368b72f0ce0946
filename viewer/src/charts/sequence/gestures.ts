/** What pointer, wheel and keys do to the plot. */

import { type Model, NONE } from "../model.ts";
import { panned, zoomed } from "../view.ts";
import type { Picture } from "./picture.ts";

/** A wheel's step of 100 pixels shows a third more or less. */
const ZOOM_PER_PIXEL = 0.003;
/** A pinch on a touchpad comes as a wheel with Ctrl and small steps. */
const PINCH = 6;
/** Pixels to a line and to a page, for wheels that count those. */
const LINE = 16;
const PAGE = 400;
/** Less than this, in CSS pixels, is a click. */
const CLICK = 4;
/** A key zooms and moves by so much. */
const KEY_ZOOM = 0.6;
const KEY_STEP = 0.2;
/** After zooming out all the way, a wheel that goes on so soon does not scroll the page, ms. */
const STILL_ZOOMING = 700;
/** A wheel that turned elsewhere so recently, ms, scrolls the page: a plot that comes under the pointer does not stop that. */
const STILL_SCROLLING = 300;

/** The pixels that a wheel moved, whatever it counts in. */
function pixels(delta: number, mode: number): number {
  return delta * (mode === 1 ? LINE : mode === 2 ? PAGE : 1);
}

/** Attaches all gestures to `element`; `moved` is told where the pointer is. Returns how to detach them. */
export function attach(element: HTMLElement, picture: Picture, moved: () => void): () => void {
  const { model } = picture;
  const stop = new AbortController();
  const { signal } = stop;
  const scrolled = { at: Number.NEGATIVE_INFINITY };
  const noteScroll = (event: Event) => {
    if (!element.contains(event.target as Node)) scrolled.at = event.timeStamp;
  };
  addEventListener("wheel", noteScroll, { signal, passive: true });
  element.addEventListener("wheel", onWheel(picture, scrolled), { signal, passive: false });
  attachPointer(element, picture, moved, signal);
  element.addEventListener("dblclick", () => model.back(), { signal });
  element.addEventListener(
    "keydown",
    (event) => {
      if (!onKey(model, event)) return;
      event.preventDefault();
      event.stopPropagation();
    },
    { signal },
  );
  return () => stop.abort();
}

function onWheel(picture: Picture, scrolled: { at: number }): (event: WheelEvent) => void {
  const { model } = picture;
  let last = Number.NEGATIVE_INFINITY;
  return (event) => {
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    const across = pixels(event.deltaX, event.deltaMode);
    const down = pixels(event.deltaY, event.deltaMode);
    const isPan = event.shiftKey || Math.abs(across) > Math.abs(down);
    const isZooming = event.timeStamp - last < STILL_ZOOMING;
    if (!isZooming && event.timeStamp - scrolled.at < STILL_SCROLLING) {
      scrolled.at = event.timeStamp;
      return;
    }
    // Whoever scrolls the page past a plot that shows everything is not held up.
    const isScroll = !isPan && !event.ctrlKey && down > 0 && model.isWhole && !isZooming;
    if (isScroll) return;
    event.preventDefault();
    if (isPan) {
      model.show(panned(model.goal, (across || down) / picture.width, model.all), "pan");
      return;
    }
    last = event.timeStamp;
    const factor = Math.exp(down * ZOOM_PER_PIXEL * (event.ctrlKey ? PINCH : 1));
    const about = picture.time(picture.across(event.clientX - box.left));
    model.show(zoomed(model.goal, factor, about, model.all), "zoom");
  };
}

function attachPointer(element: HTMLElement, picture: Picture, moved: () => void, signal: AbortSignal): void {
  const { model } = picture;
  let start: { x: number; isPan: boolean; view: Model["view"] } | null = null;
  const place = (event: PointerEvent) => {
    const box = element.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  const over = (event: PointerEvent) => {
    const { x, y } = place(event);
    picture.pointer = picture.locate(x, y);
    model.point(picture.pointer ? picture.rowAt(picture.pointer) : NONE);
    picture.schedule("overlay");
    moved();
  };
  element.addEventListener(
    "pointerdown",
    (event) => {
      const { x, y } = place(event);
      if (event.button > 1 || !picture.locate(x, y)) return;
      if (event.button === 1) event.preventDefault();
      model.stop();
      start = { x, isPan: event.shiftKey || event.button === 1, view: model.view };
      element.setPointerCapture(event.pointerId);
    },
    { signal },
  );
  element.addEventListener(
    "pointermove",
    (event) => {
      if (!start) return over(event);
      const { x } = place(event);
      if (start.isPan) {
        model.show(panned(start.view, (start.x - x) / picture.width, model.all), "drag");
      } else if (Math.abs(x - start.x) >= CLICK) {
        picture.drag = { from: picture.across(start.x), until: picture.across(x) };
        picture.schedule("overlay");
      }
    },
    { signal },
  );
  element.addEventListener(
    "pointerup",
    (event) => {
      const { drag } = picture;
      const isClick = start !== null && !start.isPan && !drag;
      start = null;
      picture.drag = null;
      if (drag) {
        const [from, until] = [drag.from, drag.until].map((x) => picture.time(x)) as [number, number];
        model.glide(
          { from: Math.min(from, until), until: Math.max(from, until) },
          `stretch ${event.timeStamp}`,
        );
      }
      over(event);
      if (isClick && model.pointed !== NONE) model.choose(model.pointed);
    },
    { signal },
  );
  const leave = () => {
    start = null;
    picture.drag = null;
    picture.pointer = null;
    model.point(NONE);
    picture.schedule("overlay");
    moved();
  };
  element.addEventListener("pointercancel", leave, { signal });
  element.addEventListener(
    "pointerleave",
    () => {
      if (!start) leave();
    },
    { signal },
  );
}

/** Does what a key stands for; false where it stands for nothing. */
export function onKey(model: Model, event: KeyboardEvent): boolean {
  if (event.ctrlKey || event.altKey || event.metaKey) return false;
  const { goal, all } = model;
  const middle = (goal.from + goal.until) / 2;
  const chosen = model.table.marks.time[model.chosen];
  // Keys zoom about the packet that was chosen, if it is in view.
  const about = chosen !== undefined && chosen >= goal.from && chosen <= goal.until ? chosen : middle;
  const width = goal.until - goal.from;
  const actions: Record<string, () => void> = {
    "+": () => model.glide(zoomed(goal, KEY_ZOOM, about, all), "key"),
    "-": () => model.glide(zoomed(goal, 1 / KEY_ZOOM, about, all), "key"),
    ArrowLeft: () => model.glide(panned(goal, -KEY_STEP, all), "key"),
    ArrowRight: () => model.glide(panned(goal, KEY_STEP, all), "key"),
    ArrowUp: () => step(model, -1),
    ArrowDown: () => step(model, 1),
    Home: () => model.glide({ from: all.from, until: all.from + width }, "key"),
    End: () => model.glide({ from: all.until - width, until: all.until }, "key"),
    "0": () => model.glide(all, "key 0"),
    n: () => nextPin(model, 1),
    p: () => nextPin(model, -1),
    Escape: () => model.back(),
  };
  const action = actions[event.key === "=" ? "+" : event.key === "_" ? "-" : event.key];
  // At the start, Escape is for whoever is around the plot.
  if (!action || (event.key === "Escape" && !model.canGoBack)) return false;
  action();
  return true;
}

/** The packet before or after the chosen one; the first in view if there is none. */
function step(model: Model, by: number): void {
  const { count } = model.table.marks;
  const next = model.chosen === NONE ? model.rowAt(model.goal.from) : model.chosen + by;
  model.choose(Math.min(Math.max(next, 0), count - 1));
}

/** The finding's packet after (1) or before (−1) the chosen one, around the end. */
function nextPin(model: Model, by: 1 | -1): void {
  const pins = by > 0 ? model.pins : [...model.pins].reverse();
  const now = model.chosen === NONE ? model.goal.from : (model.table.marks.time[model.chosen] as number);
  const next = pins.find((pin) => (pin.time - now) * by > 0 && pin.row !== model.chosen) ?? pins[0];
  if (next) model.choosePin(next);
}
