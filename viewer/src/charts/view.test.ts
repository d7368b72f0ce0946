import { describe, expect, it } from "vitest";
import {
  between,
  History,
  panned,
  type Range,
  SHORTEST,
  showing,
  span,
  whole,
  within,
  zoomed,
} from "./view.ts";

const all = whole(0, 1e9);

describe("zoomed", () => {
  it("keeps the moment under the pointer where it is", () => {
    const range = { from: 100, until: 1_000_100 };
    const next = zoomed(range, 0.25, 400_100, { from: 0, until: 1e9 });
    expect((400_100 - next.from) / span(next)).toBeCloseTo(0.4, 9);
    expect(span(next)).toBe(250_000);
  });

  it("goes to a µs and no further, and back out to all", () => {
    let range = all;
    for (let step = 0; step < 100; step++) range = zoomed(range, 0.5, 123_456_789, all);
    expect(span(range)).toBe(SHORTEST);
    expect(range.from <= 123_456_789 && range.until >= 123_456_789).toBe(true);
    for (let step = 0; step < 100; step++) range = zoomed(range, 2, 123_456_789, all);
    expect(range).toEqual(all);
  });

  it("is all again, to the last bit", () => {
    // 0.1 + (0.7 - 0.1) is not 0.7.
    const odd = { from: 0.1, until: 0.7 };
    expect(within(odd, odd, 0)).toBe(odd);
    expect(zoomed({ from: 0.2, until: 0.3 }, 100, 0.25, odd, 0)).toBe(odd);
    // Its last moment is near its edge; around it there is no more to see.
    for (const last of [0.69, 0.695, 0.6999]) expect(showing(odd, last, odd, 0)).toBe(odd);
  });

  it("stays exact a day into a capture", () => {
    const day = whole(0, 86_400e9);
    const range = zoomed({ from: 86_399e9, until: 86_399e9 + 2_000 }, 0.5, 86_399e9 + 1_000, day);
    expect(range).toEqual({ from: 86_399e9 + 500, until: 86_399e9 + 1_500 });
  });
});

it("pans without leaving what there is", () => {
  const range = { from: 0, until: 1e8 };
  expect(panned(range, 0.5, all)).toEqual({ from: 5e7, until: 1.5e8 });
  expect(panned(range, -10, all).from).toBe(all.from);
  expect(panned(range, 100, all).until).toBe(all.until);
});

it("moves to show a moment only if it is not shown", () => {
  const range = { from: 0, until: 1e8 };
  expect(showing(range, 5e7, all)).toBe(range);
  expect(showing(range, 5e8, all)).toEqual({ from: 4.5e8, until: 5.5e8 });
});

it("goes from one range to another by equal factors", () => {
  const far = between({ from: 0, until: 1e9 }, { from: 4e8, until: 4e8 + 1e3 }, 0.5);
  expect(span(far)).toBeCloseTo(1e6, 3);
  expect(between({ from: 0, until: 10 }, { from: 10, until: 20 }, 0.5)).toEqual({ from: 5, until: 15 });
  expect(between({ from: 0, until: 10 }, { from: 3, until: 4 }, 1)).toEqual({ from: 3, until: 4 });
});

it("does not invent a range where a file has one packet", () => {
  expect(span(whole(5, 5))).toBeGreaterThanOrEqual(SHORTEST);
  expect(span(within({ from: 0, until: 1e12 }, all))).toBe(span(all));
});

describe("History", () => {
  const range = (from: number): Range => ({ from, until: from + 1 });
  it("takes a turn of the wheel as one step", () => {
    const history = new History<Range>();
    for (let event = 0; event < 20; event++) history.remember(range(event), "zoom", event * 50);
    history.remember(range(50), "drag", 1_010);
    expect(history.length).toBe(2);
    expect(history.back()).toEqual(range(50));
    expect(history.back()).toEqual(range(0));
    expect(history.back()).toBeUndefined();
  });
  it("begins a new step after a pause, and after going back", () => {
    const history = new History<Range>();
    history.remember(range(1), "zoom", 0);
    history.remember(range(2), "zoom", History.TOGETHER + 1);
    expect(history.length).toBe(2);
    history.back();
    history.remember(range(3), "zoom", History.TOGETHER + 2);
    expect(history.length).toBe(2);
  });
});
