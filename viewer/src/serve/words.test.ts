import { expect, it } from "vitest";
import type { Capture, Job, Report } from "./api.ts";
import { problem } from "./api.ts";
import { ago, compareHash, cost, doing, jobOf, reportOf, routeOf, share, toggled } from "./words.ts";

const job: Job = {
  id: 1,
  capture: "a.pcap",
  state: "running",
  bytes: 3_200_000,
  size: 12_800_000,
  packets: 41_200,
  pass: 1,
  report: null,
  error: null,
};

it("says how long ago something was", () => {
  const now = Date.parse("2026-03-02T12:00:00Z");
  const minute = 60_000;
  expect(ago(now - 59_000, now)).toBe("just now");
  // A clock that was set back.
  expect(ago(now + minute, now)).toBe("just now");
  expect(ago(now - 5 * minute, now)).toBe("5 min ago");
  expect(ago(now - 119 * minute, now)).toBe("1 h ago");
  expect(ago(now - 72 * 60 * minute, now)).toMatch(/^2026-02-2\d$/);
});

it("says how far an analysis has come", () => {
  expect(share(job)).toBe(0.25);
  // A file that grows meanwhile.
  expect(share({ ...job, bytes: 13_000_000 })).toBe(1);
  expect(share({ ...job, size: 0 })).toBeUndefined();
  const said = (changed: Partial<Job>) => doing({ ...job, ...changed }).replaceAll("\u00a0", " ");
  expect(said({})).toBe("3.20 MB of 12.8 MB, 41,200 packets");
  expect(said({ pass: 2 })).toBe("looks again: 3.20 MB of 12.8 MB, 41,200 packets");
  expect(said({ bytes: 12_800_000 })).toBe("makes the report of 41,200 packets");
  expect(said({ state: "failed", error: "empty" })).toBe("empty");
});

it("knows which report is of the capture as it is now", () => {
  const capture: Capture = { name: "a.pcap", size: 10, modified_ms: 5 };
  const of = (id: number, changed: Partial<Report>): Report =>
    ({ id, capture: "a.pcap", size: 10, modified_ms: 5, ...changed }) as Report;
  expect(reportOf(capture, [of(3, { size: 11 }), of(2, {}), of(1, {})])?.id).toBe(2);
  expect(reportOf(capture, [of(3, { modified_ms: 6 }), of(2, { capture: "b.pcap" })])).toBeUndefined();
  expect(jobOf(capture, [{ ...job, id: 9 }, job])?.id).toBe(9);
});

it("keeps the first of two reports when a third is chosen", () => {
  expect(toggled([], 1)).toEqual([1]);
  expect(toggled([1], 2)).toEqual([1, 2]);
  expect(toggled([1, 2], 3)).toEqual([1, 3]);
  expect(toggled([1, 2], 1)).toEqual([2]);
});

it("tells costs by what can be compared", () => {
  const some = { findings: 1, count: 10, cost_ms: 400, share: 0.25, per_exchange_ms: 40 };
  const said = (changed: Partial<typeof some> | { per_exchange_ms: null }) =>
    cost({ ...some, ...changed }).replaceAll("\u00a0", " ");
  expect(said({})).toBe("40.0 ms an exchange, 400 ms in all");
  expect(said({ per_exchange_ms: null })).toBe("25 % of the time, 400 ms in all");
  expect(said({ cost_ms: 0 })).toBe("seen 10×");
  expect(cost(null)).toBe("–");
});

it("reads only addresses that it writes", () => {
  expect(routeOf(compareHash(3, 12))).toEqual({ at: "compare", before: 3, after: 12 });
  for (const hash of ["", "#/", "#/compare/1", "#/compare/1/x", "#/compare/-1/2", "#/compare/1/2/3"]) {
    expect(routeOf(hash)).toEqual({ at: "list" });
  }
});

it("passes on why the server would not", () => {
  expect(problem(413, '{"error":"Larger than 2 GB."}')).toBe("Larger than 2 GB.");
  expect(problem(502, "<html>")).toBe("The server could not do that (502).");
  expect(problem(500, '{"error":5}')).toBe("The server could not do that (500).");
});
