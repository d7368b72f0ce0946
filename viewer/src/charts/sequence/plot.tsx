/** The time-sequence plot: canvases, tooltip, and what is read out instead. */

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Side } from "../../data/table.ts";
import { type Model, NONE } from "../model.ts";
import { spoken } from "../packets/describe.ts";
import { onPaletteChange } from "../palette.ts";
import { attach } from "./gestures.ts";
import { Picture } from "./picture.ts";
import { placeTip } from "./place.ts";
import { Tooltip } from "./tooltip.tsx";

export function Plot({ model, senders, label }: { model: Model; senders: Side[]; label: string }) {
  const frame = useRef<HTMLDivElement>(null);
  const base = useRef<HTMLCanvasElement>(null);
  const overlay = useRef<HTMLCanvasElement>(null);
  const tip = useRef<HTMLDivElement>(null);
  const picture = useRef<Picture | null>(null);
  const [pointed, setPointed] = useState<{ row: number; time: number } | null>(null);
  const [told, setTold] = useState("");

  useLayoutEffect(() => {
    const element = frame.current as HTMLDivElement;
    const drawn = new Picture(model, base.current as HTMLCanvasElement, overlay.current as HTMLCanvasElement);
    picture.current = drawn;
    const moved = () => {
      const { pointer } = drawn;
      setPointed(pointer && { row: model.pointed, time: drawn.time(pointer.x) });
      if (pointer && tip.current) placeTip(tip.current, element, pointer, devicePixelRatio || 1);
    };
    const stops = [
      attach(element, drawn, moved),
      onPaletteChange(() => drawn.recolor()),
      model.listen((change) => {
        const hasMoved = change === "view" || change === "bytes";
        drawn.schedule(hasMoved ? "marks" : "overlay");
        // What was under the pointer is somewhere else now.
        if (hasMoved) setPointed(null);
        if (change === "choose" && model.chosen !== NONE) setTold(spoken(model, model.chosen));
      }),
    ];
    const sizes = new ResizeObserver(() => drawn.resize(element.clientWidth, element.clientHeight));
    sizes.observe(element);
    return () => {
      sizes.disconnect();
      drawn.stop();
      for (const stop of stops) stop();
    };
  }, [model]);

  useEffect(() => picture.current?.choose(senders), [senders]);

  return (
    <div
      ref={frame}
      class={senders.length > 1 ? "sequence" : "sequence sequence-one"}
      tabIndex={0}
      role="application"
      aria-roledescription="time-sequence plot"
      aria-label={label}
    >
      <canvas ref={base} />
      <canvas ref={overlay} class="overlay" />
      <div ref={tip} class="tip" hidden={!pointed}>
        {pointed && <Tooltip model={model} row={pointed.row} time={pointed.time} />}
      </div>
      <output class="unseen" aria-live="polite">
        {told}
      </output>
    </div>
  );
}
