/** What pointer, wheel and keys do to the plot. */

import type { Side } from "../../data/table.ts";
import { type Model, NONE } from "../model.ts";
import { panned, type Range, zoomed } from "../view.ts";
import { type Bytes, FITTED } from "./bytes.ts";
import { axesOf, CLICK, type Drag, type Point } from "./drag.ts";
import type { Picture } from "./picture.ts";

/** A wheel's step of 100 pixels shows a third more or less. */
const ZOOM_PER_PIXEL = 0.003;
/** A pinch on a touchpad comes as a wheel with Ctrl and small steps. */
const PINCH = 6;
/** Pixels to a line and to a page, for wheels that count those. */
const LINE = 16;
const PAGE = 400;
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
  element.addEventListener(
    "dblclick",
    (event) => {
      if (picture.isAxis(event.clientX - element.getBoundingClientRect().left)) fitBytes(model);
      else model.back();
    },
    { signal },
  );
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
    const place = placeIn(event.currentTarget as HTMLElement, event);
    const across = pixels(event.deltaX, event.deltaMode);
    const down = pixels(event.deltaY, event.deltaMode);
    const isBytes = event.shiftKey || picture.isAxis(place.x);
    const isPan = !isBytes && Math.abs(across) > Math.abs(down);
    const isZooming = event.timeStamp - last < STILL_ZOOMING;
    if (!isZooming && event.timeStamp - scrolled.at < STILL_SCROLLING) {
      scrolled.at = event.timeStamp;
      return;
    }
    // Whoever scrolls the page past a plot that shows everything is not held up.
    const isScroll = !isPan && !isBytes && !event.ctrlKey && down > 0 && model.isWhole && !isZooming;
    if (isScroll) return;
    event.preventDefault();
    if (isPan) {
      model.show(panned(model.goal, across / picture.width, model.all), "pan");
      return;
    }
    last = event.timeStamp;
    // With Shift, some systems turn the wheel's axis.
    const factor = Math.exp((down || across) * ZOOM_PER_PIXEL * (event.ctrlKey ? PINCH : 1));
    if (isBytes) zoomBytesAt(picture, place, factor);
    else {
      const about = picture.time(picture.across(place.x));
      model.show(zoomed(model.goal, factor, about, model.all), "zoom");
    }
  };
}

/** Where an event is in an element, CSS pixels. */
function placeIn(element: HTMLElement, event: MouseEvent): Point {
  const box = element.getBoundingClientRect();
  return { x: event.clientX - box.left, y: event.clientY - box.top };
}

/** Zooms the bytes of the plot at a height, about the byte there. */
function zoomBytesAt(picture: Picture, { y }: Point, factor: number): void {
  const { model } = picture;
  const plot = picture.plotAt(y);
  const at = picture.byte(plot, picture.upright(plot, y));
  if (!at) return;
  const next = model.zoomedBytes(at.sender, factor, at.byte);
  model.show(model.goal, "zoom bytes", model.withBytes(model.goal, at.sender, next));
}

function fitBytes(model: Model): void {
  model.glide(model.goal, "fit", FITTED);
}

/** A button that is held down over the plot. */
interface Held extends Point {
  isPan: boolean;
  isAxis: boolean;
  plot: number;
  view: Range;
  bytes: Bytes;
}

function attachPointer(element: HTMLElement, picture: Picture, moved: () => void, signal: AbortSignal): void {
  const { model } = picture;
  let held: Held | null = null;
  const over = (event: PointerEvent) => {
    const { x, y } = placeIn(element, event);
    picture.pointer = picture.locate(x, y);
    element.classList.toggle("at-axis", picture.isAxis(x) && picture.plotAt(y) >= 0);
    model.point(picture.pointer ? picture.rowAt(picture.pointer) : NONE);
    picture.schedule("overlay");
    moved();
  };
  const down = (event: PointerEvent) => {
    const at = placeIn(element, event);
    const plot = picture.plotAt(at.y);
    const isAxis = picture.isAxis(at.x) && plot >= 0;
    if (event.button > 1 || (!isAxis && !picture.locate(at.x, at.y))) return;
    if (event.button === 1) event.preventDefault();
    model.stop();
    const isPan = event.shiftKey || event.button === 1;
    held = { ...at, isPan, isAxis, plot, view: model.view, bytes: model.bytes };
    element.setPointerCapture(event.pointerId);
  };
  const move = (event: PointerEvent) => {
    if (!held) return over(event);
    const to = placeIn(element, event);
    if (held.isPan) return pan(picture, held, to);
    picture.drag = dragOf(picture, held, to);
    if (picture.drag) picture.pointer = null;
    picture.schedule("overlay");
    moved();
  };
  const up = (event: PointerEvent) => {
    const { drag } = picture;
    const isClick = held !== null && !held.isPan && !held.isAxis && !drag;
    held = null;
    picture.drag = null;
    if (drag) showDragged(picture, drag, `stretch ${event.timeStamp}`);
    over(event);
    if (isClick && model.pointed !== NONE) model.choose(model.pointed);
  };
  const leave = () => {
    held = null;
    picture.drag = null;
    picture.pointer = null;
    model.point(NONE);
    picture.schedule("overlay");
    moved();
  };
  element.addEventListener("pointerdown", down, { signal });
  element.addEventListener("pointermove", move, { signal });
  element.addEventListener("pointerup", up, { signal });
  element.addEventListener("pointercancel", leave, { signal });
  element.addEventListener("pointerleave", () => held ?? leave(), { signal });
}

/** Moves what was shown when the button went down; the bytes only where some were chosen. */
function pan(picture: Picture, held: Held, to: Point): void {
  const { model } = picture;
  const view = panned(held.view, (held.x - to.x) / picture.width, model.all);
  const sender = picture.byte(held.plot, 0)?.sender;
  const chosen = sender === undefined ? null : held.bytes[sender];
  if (sender === undefined || !chosen) {
    model.show(view, "drag");
    return;
  }
  const share = (to.y - held.y) / picture.heightOf(held.plot);
  model.show(view, "drag", model.withBytes(view, sender, model.pannedBytes(sender, share, chosen)));
}

/** What is being dragged; null while it may still be a click. */
function dragOf(picture: Picture, held: Held, to: Point): Drag | null {
  const onAxis = Math.abs(to.y - held.y) < CLICK ? null : "bytes";
  const axes = held.isAxis ? onAxis : axesOf(held, held.plot < 0 ? { x: to.x, y: held.y } : to);
  const place = ({ x, y }: Point) => ({ x: picture.across(x), y: picture.upright(held.plot, y) });
  return axes && { plot: held.plot, from: place(held), until: place(to), axes };
}

function showDragged(picture: Picture, { plot, from, until, axes }: Drag, gesture: string): void {
  const { model } = picture;
  const range = (one: number, other: number): Range => ({
    from: Math.min(one, other),
    until: Math.max(one, other),
  });
  const time = axes === "bytes" ? model.goal : range(picture.time(from.x), picture.time(until.x));
  const [one, other] = [picture.byte(plot, from.y), picture.byte(plot, until.y)];
  const bytes =
    axes === "time" || !one || !other
      ? undefined
      : model.withBytes(time, one.sender, range(one.byte, other.byte));
  model.glide(time, gesture, bytes);
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
  const bytes = (of: (sender: Side) => Range | null) => model.glide(goal, "key bytes", [of(0), of(1)]);
  const actions: Record<string, () => void> = {
    "+": () => model.glide(zoomed(goal, KEY_ZOOM, about, all), "key"),
    "-": () => model.glide(zoomed(goal, 1 / KEY_ZOOM, about, all), "key"),
    ArrowLeft: () => model.glide(panned(goal, -KEY_STEP, all), "key"),
    ArrowRight: () => model.glide(panned(goal, KEY_STEP, all), "key"),
    ArrowUp: () => step(model, -1),
    ArrowDown: () => step(model, 1),
    Home: () => model.glide({ from: all.from, until: all.from + width }, "key"),
    End: () => model.glide({ from: all.until - width, until: all.until }, "key"),
    "0": () => model.reset("key 0"),
    y: () => bytes((sender) => model.zoomedBytes(sender, KEY_ZOOM)),
    "Shift y": () => bytes((sender) => model.zoomedBytes(sender, 1 / KEY_ZOOM)),
    "Shift ArrowUp": () => bytes((sender) => model.pannedBytes(sender, KEY_STEP)),
    "Shift ArrowDown": () => bytes((sender) => model.pannedBytes(sender, -KEY_STEP)),
    f: () => fitBytes(model),
    n: () => nextPin(model, 1),
    p: () => nextPin(model, -1),
    Escape: () => model.back(),
  };
  const action = actions[nameOf(event)];
  // At the start, Escape is for whoever is around the plot.
  if (!action || (event.key === "Escape" && !model.canGoBack)) return false;
  action();
  return true;
}

/** A key as {@link onKey} calls it. Which keys need Shift for `+` and `-` is the keyboard's affair. */
function nameOf({ key, shiftKey }: KeyboardEvent): string {
  if (key === "=" || key === "_") return key === "=" ? "+" : "-";
  const isBytes = /^([yY]|ArrowUp|ArrowDown)$/.test(key);
  return isBytes && shiftKey ? `Shift ${key === "Y" ? "y" : key}` : key;
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
