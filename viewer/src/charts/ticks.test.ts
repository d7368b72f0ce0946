import { describe, expect, it } from "vitest";
import { axisTitle } from "./sequence/axes.ts";
import { byteTicks, timeTicks } from "./ticks.ts";

const labels = (from: number, until: number, most: number) =>
  timeTicks(from, until, most).ticks.map((tick) => tick.label);

describe("timeTicks", () => {
  it("changes its unit with the span", () => {
    expect(labels(0, 5e9, 5)).toEqual(["0", "1", "2", "3", "4", "5"]);
    expect(timeTicks(0, 5e9, 5).unit).toBe("s");
    expect(labels(0, 1e9, 4)).toEqual(["0", "500", "1000"]);
    expect(timeTicks(0, 1e9, 4).unit).toBe("ms");
    expect(labels(0, 1_000_000, 5)).toEqual(["0", "200", "400", "600", "800", "1000"]);
    expect(timeTicks(0, 1_000_000, 5).unit).toBe("µs");
  });

  it("is right to the ns an hour into a capture", () => {
    const hour = 3_600_010_250_000;
    const { ticks, unit, base } = timeTicks(hour, hour + 1_000, 5);
    expect([unit, base?.label]).toEqual(["µs", "3600.0102 s"]);
    expect(base?.value).toBe(3_600_010_200_000);
    expect(ticks.map((tick) => tick.label)).toEqual(["+50.0", "+50.2", "+50.4", "+50.6", "+50.8", "+51.0"]);
    expect(ticks.map((tick) => tick.value - hour)).toEqual([0, 200, 400, 600, 800, 1_000]);
  });

  it("has labels that add up with their base to the tick's time", () => {
    const sizes: Record<string, number> = { µs: 1e3, ms: 1e6, s: 1e9, min: 6e10 };
    for (const from of [0, 12_345_678, 1_403_911_222, 86_399_123_456_789]) {
      for (let width = 1_000; width < 1e13; width *= 7.3) {
        const { ticks, unit, base } = timeTicks(from, from + width, 8);
        expect(ticks.length, `${from} ${width}`).toBeGreaterThanOrEqual(2);
        expect(new Set(ticks.map((tick) => tick.label)).size).toBe(ticks.length);
        for (const { value, label } of ticks) {
          const told = (base?.value ?? 0) + Number(label) * (sizes[unit] as number);
          expect(Math.abs(told - value), `${label} ${unit} after ${base?.label}`).toBeLessThan(0.51);
          expect(label.length).toBeLessThanOrEqual(8);
        }
        if (base) expect(Math.round(Number(base.label.replace(" s", "")) * 1e9)).toBe(base.value);
      }
    }
  });

  it("says what its labels mean", () => {
    expect(axisTitle(timeTicks(0, 1e9, 5))).toBe("ms since the capture's first packet");
    expect(axisTitle(timeTicks(3.6e12, 3.6e12 + 1e4, 5))).toBe("µs after 3600.000 s");
  });
});

describe("byteTicks", () => {
  it("has whole bytes and round units", () => {
    expect(byteTicks(-0.1, 1.1, 6).ticks.map((tick) => tick.label)).toEqual(["0", "1"]);
    const { ticks, unit } = byteTicks(0, 19e6, 4);
    expect([unit, ticks.map((tick) => tick.label)]).toEqual(["MB", ["0", "5", "10", "15"]]);
    expect(byteTicks(0, 1_500, 3).ticks.map((tick) => tick.label)).toEqual(["0", "500", "1,000", "1,500"]);
  });
});
