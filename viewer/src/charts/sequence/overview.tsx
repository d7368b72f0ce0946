/** The whole connection's ledger as a narrow strip, with the stretch in view marked on it; dragging moves the view. */

import { useLayoutEffect, useRef } from "preact/hooks";
import type { Model } from "../model.ts";
import { onPaletteChange, type Palette, paletteOf } from "../palette.ts";
import { span } from "../view.ts";
import { eachShare, stretches } from "./stretches.ts";

/** The mark of a very short view is so wide, CSS pixels. */
const LEAST = 6;

export function Overview({ model }: { model: Model }) {
  const frame = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const brush = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const [element, drawn, mark] = [frame.current, canvas.current, brush.current];
    if (!element || !drawn || !mark) return;
    const place = () => placeBrush(model, mark, element.clientWidth);
    const draw = () => {
      const ratio = devicePixelRatio || 1;
      drawn.width = Math.round(element.clientWidth * ratio);
      drawn.height = Math.round(element.clientHeight * ratio);
      paint(drawn, model, paletteOf(element));
      place();
    };
    const sizes = new ResizeObserver(draw);
    sizes.observe(element);
    const stops = [onPaletteChange(draw), model.listen((change) => change === "view" && place())];
    return () => {
      sizes.disconnect();
      for (const stop of stops) stop();
    };
  }, [model]);
  const go = (event: PointerEvent) => {
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    const middle = model.all.from + ((event.clientX - box.left) / box.width) * span(model.all);
    const half = span(model.goal) / 2;
    model.show({ from: middle - half, until: middle + half }, "overview");
  };
  return (
    <div
      ref={frame}
      class="overview-strip"
      title="the whole connection; click or drag to move what is shown below"
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        go(event);
      }}
      onPointerMove={(event) => event.currentTarget.hasPointerCapture(event.pointerId) && go(event)}
    >
      <canvas ref={canvas} />
      <div ref={brush} class="overview-brush" />
    </div>
  );
}

function placeBrush(model: Model, mark: HTMLElement, width: number): void {
  const scale = width / span(model.all);
  const wide = Math.max(LEAST, span(model.view) * scale);
  const middle = ((model.view.from + model.view.until) / 2 - model.all.from) * scale;
  const left = Math.min(Math.max(0, middle - wide / 2), width - wide);
  mark.style.transform = `translateX(${left}px)`;
  mark.style.width = `${wide}px`;
}

/** The ledger, and a tick for each packet that shows a finding. */
function paint(canvas: HTMLCanvasElement, model: Model, palette: Palette): void {
  const context = canvas.getContext("2d", { alpha: false });
  if (!context) return;
  context.fillStyle = palette.background;
  context.fillRect(0, 0, canvas.width, canvas.height);
  for (const stretch of stretches(model.table.bookings, model.all, canvas.width)) {
    let y = canvas.height;
    eachShare(stretch, (line, share) => {
      y -= canvas.height * share;
      context.fillStyle = palette.lines[line] as string;
      context.fillRect(stretch.from, y, stretch.until - stretch.from, canvas.height * share);
    });
  }
  const scale = canvas.width / span(model.all);
  context.fillStyle = palette.ink;
  for (const pin of model.pins)
    context.fillRect(Math.round((pin.time - model.all.from) * scale), 0, 2, canvas.height / 3);
}
