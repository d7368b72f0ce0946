/** Which packet the pointer is at. */

import { firstAfter, firstAtLeast } from "../search.ts";
import { type Scale, xOf, yOf } from "./layout.ts";
import type { Rows, Scene } from "./scene.ts";

/** How near a mark must be, CSS pixels. */
const NEAR = 14;
/** Of so many marks under the pointer any will do. */
const MOST = 5_000;

/** The row of the mark nearest to a place on the canvas; -1 where none is near. */
export function rowNear(scene: Scene, scale: Scale, x: number, y: number, ratio: number): number {
  const near = NEAR * ratio;
  let best = near * near;
  let found = -1;
  const consider = (rows: Rows, at: number, low: number, high: number) => {
    const dx = xOf(scale, rows.time[at] as number) - x;
    const [top, bottom] = [yOf(scale, high), yOf(scale, low)];
    const dy = y < top ? top - y : y > bottom ? y - bottom : 0;
    const distance = dx * dx + dy * dy;
    if (distance < best) {
      best = distance;
      found = rows.row[at] as number;
    }
  };
  const perPixel = (scale.view.until - scale.view.from) / scale.box.width;
  const time = scale.view.from + (x - scale.box.x) * perPixel;
  const each = (rows: Rows, take: (at: number) => void) => {
    const begin = firstAtLeast(rows.time, time - near * perPixel);
    const end = Math.min(firstAfter(rows.time, time + near * perPixel), begin + MOST);
    for (let at = begin; at < end; at++) take(at);
  };
  for (const sent of [...scene.sent].reverse())
    each(sent, (at) => consider(sent, at, sent.low[at] as number, sent.high[at] as number));
  const { marks, named, acks } = scene;
  each(named, (at) => {
    const seq = marks.seq[named.row[at] as number] as number;
    consider(named, at, seq, seq);
  });
  each(acks, (at) => {
    const ack = marks.ack[acks.row[at] as number] as number;
    consider(acks, at, ack, ack);
  });
  return found;
}
