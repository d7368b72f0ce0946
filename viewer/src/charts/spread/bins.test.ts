import { expect, it } from "vitest";
import { evenBins, growingBins } from "./bins.ts";

const sum = (counts: number[]) => counts.reduce((all, one) => all + one, 0);

it("even bins have round edges and hold every value", () => {
  const { edges, counts } = evenBins([[0, 12, 48, 1_448], [1_448]]);
  expect(edges.slice(0, 3)).toEqual([0, 50, 100]);
  expect([counts[0][0], counts[0][28], sum(counts[0]), sum(counts[1])]).toEqual([3, 1, 4, 1]);
});

it("growing bins put each value between its edges", () => {
  const values = [0, 999, 1_000, 1_584, 1_585, 40e6, 41e6, 9.9e9];
  for (const value of values) {
    const { edges, counts } = growingBins([[value], []], 1_000);
    const bin = counts[0].indexOf(1);
    expect(value, `bin ${bin}`).toBeLessThan(edges[bin + 1] as number);
    if (value >= 1_000) expect(value).toBeGreaterThanOrEqual((edges[bin] as number) * 0.999_999);
    else expect(bin).toBe(0);
  }
  const all = growingBins([values, values], 1_000);
  expect([sum(all.counts[0]), sum(all.counts[1])]).toEqual([8, 8]);
  expect(all.edges.some((edge) => Math.abs(edge - 1e6) < 1)).toBe(true);
});

it("nothing at all is no error", () => {
  expect(sum(evenBins([[], []]).counts[0])).toBe(0);
  expect(sum(growingBins([[], []], 1_000).counts[1])).toBe(0);
});
