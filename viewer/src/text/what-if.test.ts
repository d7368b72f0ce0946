import { expect, it } from "vitest";
import type { WhatIf } from "../generated/report.ts";
import { fix, likeness, sentence } from "./what-if.ts";

const played = (total_ms: number, p50_ms: number) => ({
  total_ms,
  p50_ms,
  p99_ms: p50_ms,
  packets: 100,
  bytes: 1_000,
});

const nodelay: WhatIf = {
  fix: "nodelay",
  title: "TCP_NODELAY",
  side: "server",
  kind: "exchanges",
  saved_ms: 1_800,
  saved_ms_bounds: null,
  unchanged: played(2_000, 80),
  with_it: played(200, 20),
  more_packets: 45,
  more_bytes: 0,
  likeness: { compared: 30, latency_p50: 0, latency_p90: 0.045, total: 0.007, segments: 0, packets: 0 },
};

const spaced = (text: string) => text.replaceAll("\u00a0", " ");

// As in crates/report/src/what_if.rs.
it("says what a fix would have saved, and its price", () => {
  expect(fix(nodelay)).toBe("TCP_NODELAY on the server");
  expect(spaced(sentence(nodelay))).toBe(
    "would have saved 1.80 s of 2.00 s (median exchange 80.0 ms → 20.0 ms), for 45 % more packets.",
  );
  expect(spaced(likeness(nodelay))).toBe(
    "Predicted: the unchanged replay is 0.7 % off the capture, nine in ten exchanges within 4.5 %.",
  );
});

it("says what is not known exactly, and leaves out what is not known", () => {
  const bounds: WhatIf = { ...nodelay, kind: "updates", saved_ms_bounds: [1_700, 1_900], more_packets: null };
  expect(spaced(sentence(bounds))).toBe(
    "would have kept updates from being late for 1.70 s to 1.90 s of 2.00 s (median of an update's way 80.0 ms → 20.0 ms).",
  );
  const one: WhatIf = {
    ...nodelay,
    side: null,
    likeness: { ...nodelay.likeness, compared: 1 },
    more_packets: -5,
  };
  expect(spaced(sentence(one))).toBe("would have saved 1.80 s of 2.00 s, with 5.0 % fewer packets.");
  expect(spaced(likeness(one))).toBe("Predicted: the unchanged replay is 0.7 % off the capture.");
  expect(fix({ ...one, title: "no loss" })).toBe("No loss");
});
