import { describe, expect, it } from "vitest";
import { split } from "../../../tests/stories.ts";
import {
  axisFor,
  dotsIn,
  exchangeDots,
  figuresOf,
  gapDots,
  heightOn,
  nearest,
  roundTripDots,
  slowestOf,
} from "./dots.ts";

const MS = 1e6;

it("takes durations from the table", () => {
  const table = split(3);
  const exchanges = exchangeDots(table);
  expect([...exchanges.value]).toEqual([80.02 * MS, 80.02 * MS, 80.02 * MS]);
  expect([...exchanges.packet]).toEqual([4, 9, 14]);
  expect([...roundTripDots(table).value]).toEqual([20 * MS, 20 * MS, 20 * MS]);
  expect([...gapDots(table, 0).value]).toEqual(
    [60.02, 30, 60.02, 30, 60.02].map((ms) => Math.round(ms * MS)),
  );
});

it("puts what is out of order in order", () => {
  const table = split(3);
  table.exchanges.start.reverse();
  table.exchanges.end.reverse();
  table.exchanges.number.reverse();
  expect([...exchangeDots(table).packet]).toEqual([4, 9, 14]);
});

it("finds the slowest, the first of equals first", () => {
  const dots = exchangeDots(split(6));
  dots.value.set([5, 9, 1, 9, 7, 8]);
  expect(slowestOf(dots, 0, 6, 3)).toEqual([1, 3, 5]);
  expect(slowestOf(dots, 2, 5, 9)).toEqual([3, 4, 2]);
  expect(slowestOf(dots, 2, 2, 9)).toEqual([]);
});

it("tells figures by hand", () => {
  const values = Float64Array.from([5, 1, 4, 2, 3]);
  expect(figuresOf(values)).toEqual({ count: 5, least: 1, median: 3, p99: 5, most: 5 });
  expect(figuresOf(new Float64Array(0))).toBeNull();
});

describe("an axis", () => {
  it("begins at 0 unless values differ by much", () => {
    const near = axisFor({ count: 2, least: 20 * MS, median: 0, p99: 0, most: 30 * MS }, null);
    expect([near.low, near.isLog]).toEqual([0, false]);
    const wide = axisFor({ count: 2, least: 20_000, median: 0, p99: 0, most: 30 * MS }, null);
    expect([wide.low, wide.isLog]).toEqual([10_000, true]);
    expect(heightOn(wide, 10_000)).toBe(0);
    expect(heightOn(wide, 0)).toBe(0);
    expect(heightOn(wide, wide.high)).toBeCloseTo(1, 9);
  });
  it("has something on it where there is nothing to show", () => {
    expect(axisFor(null, null)).toEqual({ low: 0, high: 1e6, isLog: false });
  });
  it("shows the line too", () => {
    expect(axisFor({ count: 1, least: 1, median: 1, p99: 1, most: MS }, 5 * MS).high).toBeGreaterThan(5 * MS);
  });
});

it("finds the dot at the pointer, and none where there is none", () => {
  const dots = exchangeDots(split(3));
  const view = { from: 0, until: 200 * MS };
  const place = (index: number) => ({ x: (dots.time[index] as number) / MS, y: 50 });
  expect(nearest(dots, view, { x: 112, y: 52 }, place, MS, 10)).toBe(1);
  expect(nearest(dots, view, { x: 60, y: 52 }, place, MS, 10)).toBe(-1);
  expect(dotsIn(dots, { from: 20.03 * MS, until: 110.05 * MS })).toEqual([0, 2]);
});
