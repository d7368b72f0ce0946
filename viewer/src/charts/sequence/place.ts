/** Puts the tooltip beside the pointer, inside of the plot. */

import type { Pointer } from "./overlay.ts";

/** From the pointer to the tooltip, CSS pixels. */
const GAP = 14;

export function placeTip(tip: HTMLElement, frame: HTMLElement, pointer: Pointer, ratio: number): void {
  const x = pointer.x / ratio;
  const y = pointer.y / ratio;
  const isRight = x + GAP + tip.offsetWidth > frame.clientWidth;
  const isLow = y + GAP + tip.offsetHeight > frame.clientHeight;
  const left = isRight ? Math.max(0, x - GAP - tip.offsetWidth) : x + GAP;
  const top = isLow ? Math.max(0, y - GAP - tip.offsetHeight) : y + GAP;
  tip.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
}
