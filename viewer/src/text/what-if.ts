import type { WhatIf } from "../generated/report.ts";
import { duration } from "./number.ts";

/** Fewer packets more or less than this share are the same number. */
const SAME = 0.005;
/** Times are compared no more exactly than this share. */
const LEAST_WITHIN = 0.01;

/** What the fix would have saved, and its price: as `crates/report/src/what_if.rs` says it. */
export function sentence(whatIf: WhatIf): string {
  const { unchanged, with_it } = whatIf;
  const median = `${duration(unchanged.p50_ms)} → ${duration(with_it.p50_ms)}`;
  const amount = `${saved(whatIf)} of ${duration(unchanged.total_ms)}`;
  if (whatIf.kind === "updates") {
    return `would have kept updates from being late for ${amount} (median of an update's way ${median})${price(whatIf)}.`;
  }
  // The time of one exchange is the whole.
  const exchange = whatIf.likeness.compared === 1 ? "" : ` (median exchange ${median})`;
  return `would have saved ${amount}${exchange}${price(whatIf)}.`;
}

/** How well the unchanged replay matches the capture. */
export function likeness({ likeness, kind }: WhatIf): string {
  const whole = `Predicted: the unchanged replay is ${share(likeness.total)} off the capture`;
  if (likeness.compared === 1) return `${whole}.`;
  return `${whole}, nine in ten ${kind} within ${share(Math.max(likeness.latency_p90, LEAST_WITHIN))}.`;
}

/** The fix, as a sentence begins with it: `TCP_NODELAY on the server`. */
export function fix({ title, side }: WhatIf): string {
  const capitalized = title.charAt(0).toUpperCase() + title.slice(1);
  return side === null ? capitalized : `${capitalized} on the ${side}`;
}

function saved({ saved_ms, saved_ms_bounds }: WhatIf): string {
  const [least, most] = (saved_ms_bounds ?? [saved_ms, saved_ms]).map(duration);
  return least !== most ? `${least} to ${most}` : duration(saved_ms);
}

function price({ unchanged, more_packets }: WhatIf): string {
  if (unchanged.packets === null || more_packets === null) return "";
  const more = more_packets / Math.max(unchanged.packets, 1);
  if (Math.abs(more) < SAME) return ", for the same number of packets";
  return more > 0 ? `, for ${share(more)} more packets` : `, with ${share(-more)} fewer packets`;
}

/** A share (0.05 is 5 %) with a digit behind the point where that matters. */
function share(of: number): string {
  const percent = of * 100;
  return `${percent.toFixed(percent >= 0.05 && percent < 9.95 ? 1 : 0)}\u00a0%`;
}
