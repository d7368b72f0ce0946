/** Times in ns as people read them; the page's other numbers are in text/number.ts. */

import { duration as ofMs } from "../text/number.ts";

/** Keeps a number and its unit on one line. */
const GLUE = "\u00a0";
const NS_PER_MS = 1e6;
/** Below this, whole µs would hide what packets of fast links differ by. */
const FINE = 9_995;

/** A length of time in ns: `40 ns`, `2.10 µs`, and from there on as everywhere in the page. */
export function duration(ns: number): string {
  if (ns < 0) return `−${duration(-ns)}`;
  if (ns > 0 && ns < 999.5) return `${ns.toFixed(0)}${GLUE}ns`;
  if (ns > 0 && ns < FINE) return `${(ns / 1e3).toFixed(2)}${GLUE}µs`;
  return ofMs(ns / NS_PER_MS);
}

/** A moment in ns since the capture's first packet as seconds, with `digits` decimals. */
export function moment(ns: number, digits = 6): string {
  const sign = ns < 0 ? "−" : "";
  // Whole seconds and their rest apart: a division would lose the last digits of a long capture.
  const units = Math.round(Math.abs(ns) / 10 ** (9 - digits));
  const perSecond = 10 ** digits;
  const rest = digits > 0 ? `.${String(units % perSecond).padStart(digits, "0")}` : "";
  return `${sign}${Math.floor(units / perSecond)}${rest}`;
}
