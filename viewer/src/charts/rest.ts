/** For what is too much to draw anew in every frame of a gesture. */

import { useEffect, useState } from "preact/hooks";
import type { Model } from "./model.ts";
import type { Range } from "./view.ts";

/** A view that has not changed for so long has come to rest, ms. */
const REST_MS = 250;

/** The stretch of time in view, once it has come to rest. */
export function useRest(model: Model): Range {
  const [range, setRange] = useState(model.view);
  useEffect(() => {
    let timer = 0;
    setRange(model.view);
    const stop = model.listen((change) => {
      if (change !== "view") return;
      clearTimeout(timer);
      timer = window.setTimeout(() => setRange(model.view), REST_MS);
    });
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, [model]);
  return range;
}

/** Whether the first frame is on the screen: what can come after it does not hold it up. */
export function useDrawn(): boolean {
  const [isDrawn, setDrawn] = useState(false);
  useEffect(() => {
    let timer = 0;
    const frame = requestAnimationFrame(() => {
      timer = window.setTimeout(() => setDrawn(true));
    });
    return () => {
      cancelAnimationFrame(frame);
      clearTimeout(timer);
    };
  }, []);
  return isDrawn;
}
