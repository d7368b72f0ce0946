/** For what is too much to draw anew in every frame of a gesture. */

import { useEffect, useState } from "preact/hooks";
import type { Change, Model } from "./model.ts";
import type { Range } from "./view.ts";

/** A view that has not changed for so long has come to rest, ms. */
const REST_MS = 250;

/** The stretch of time in view, once it has come to rest. */
export function useRest(model: Model): Range {
  const [range, setRange] = useState(model.view);
  useEffect(() => {
    setRange(model.view);
    return onceSettled(model, "view", () => setRange(model.view));
  }, [model]);
  return range;
}

/** Draws whoever uses it anew once `what` has changed and come to rest. */
export function useSettled(model: Model, what: Change): void {
  const update = useState({})[1];
  useEffect(() => onceSettled(model, what, () => update({})), [model, what]);
}

/** Calls `act` each time that `what` has changed and come to rest. Returns how to stop that. */
function onceSettled(model: Model, what: Change, act: () => void): () => void {
  let timer = 0;
  const stop = model.listen((change) => {
    if (change !== what) return;
    clearTimeout(timer);
    timer = window.setTimeout(act, REST_MS);
  });
  return () => {
    stop();
    clearTimeout(timer);
  };
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
