import { describe, expect, it } from "vitest";
import { axesOf, type Drag, marked } from "./drag.ts";

const from = { x: 300, y: 200 };
const axes = (across: number, down: number) => axesOf(from, { x: from.x + across, y: from.y + down });

describe("axesOf", () => {
  it("takes a hand that is not steady for time, and what does not move for a click", () => {
    expect([axes(0, 0), axes(3, -3), axes(-2, 20)]).toEqual([null, null, null]);
    expect([axes(4, 0), axes(-200, 23), axes(400, -115)]).toEqual(["time", "time", "time"]);
  });

  it("takes what goes down for bytes, and what goes both ways for a box", () => {
    expect([axes(0, 24), axes(-20, -90)]).toEqual(["bytes", "bytes"]);
    expect([axes(60, 60), axes(250, -80), axes(-30, 80)]).toEqual(["both", "both", "both"]);
  });
});

describe("marked", () => {
  const plots = [
    { x: 70, y: 24, width: 500, height: 100 },
    { x: 70, y: 150, width: 500, height: 200 },
  ];
  const drag: Drag = { plot: 1, from: { x: 300, y: 300 }, until: { x: 200, y: 160 }, axes: "both" };

  it("is time in all plots, and bytes in one", () => {
    expect(marked({ ...drag, axes: "time" }, plots)).toEqual([
      { x: 200, y: 24, width: 100, height: 100 },
      { x: 200, y: 150, width: 100, height: 200 },
    ]);
    expect(marked({ ...drag, axes: "bytes" }, plots)).toEqual([{ x: 70, y: 160, width: 500, height: 140 }]);
    expect(marked(drag, plots)).toEqual([{ x: 200, y: 160, width: 100, height: 140 }]);
    expect(marked({ ...drag, plot: -1 }, plots)).toEqual([]);
  });
});
