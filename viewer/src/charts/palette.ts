/** The colours of the page's style sheet, as a canvas can use them. */

import { LINES, type LineName } from "../text/lines.ts";

export interface Palette {
  background: string;
  ink: string;
  faint: string;
  frame: string;
  grid: string;
  data: string;
  again: string;
  probe: string;
  acked: string;
  window: string;
  sacked: string;
  hole: string;
  held: string;
  accent: string;
  /** The families of the page's text. */
  font: string;
  /** By index of the ledger's line. */
  lines: string[];
}

const NAMES = {
  background: "--surface",
  ink: "--ink",
  faint: "--faint",
  frame: "--strong-frame",
  grid: "--grid",
  data: "--data",
  again: "--retransmission",
  probe: "--probe",
  acked: "--acked",
  window: "--window",
  sacked: "--sacked",
  hole: "--hole",
  held: "--held",
  accent: "--accent",
} as const;

/**
 * How strongly a line's time is shaded over the height of the plot, 0 to 1: what TCP withholds is, what programs and the
 * path take is not. As in the program's own plots.
 */
const SHADES: Partial<Record<LineName, number>> = {
  handshake: 0.15,
  queueing: 0.28,
  nagle: 0.28,
  "delayed-ack": 0.4,
  cwnd: 0.28,
  rwnd: 0.22,
  recovery: 0.28,
  rto: 0.2,
};
export const SHADE: readonly number[] = LINES.map((line) => SHADES[line] ?? 0);

/** The name of the style sheet's variable for a line of the ledger. */
export const lineColor = (line: string): string => `var(--line-${line})`;

/** The colours in force for `element`. */
export function paletteOf(element: HTMLElement): Palette {
  // A variable's value may be an expression; a colour that was computed is one.
  const probe = document.createElement("span");
  probe.hidden = true;
  element.append(probe);
  const style = getComputedStyle(probe);
  const resolve = (name: string): string => {
    probe.style.color = `var(${name})`;
    return style.color;
  };
  const entries = Object.entries(NAMES).map(([key, name]) => [key, resolve(name)]);
  const lines = LINES.map((line) => resolve(`--line-${line}`));
  const font = style.fontFamily;
  probe.remove();
  return { ...Object.fromEntries(entries), font, lines } as Palette;
}

/** Calls `change` when the page's theme changes, also for paper. Returns how to stop that. */
export function onPaletteChange(change: () => void): () => void {
  const observer = new MutationObserver(change);
  observer.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  return () => observer.disconnect();
}
