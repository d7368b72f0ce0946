import { expect, it } from "vitest";
import { bulk, split, stalled } from "../../../tests/stories.ts";
import { TableWriter } from "../../../tests/tables.ts";
import { inView, reachOf, scenesOf } from "./scene.ts";

const CLIENT = 0;
const SERVER = 1;

it("counts what each side sent, and what again", () => {
  const table = split(25);
  expect(scenesOf(table)[CLIENT].totals).toEqual({ segments: 50, again: 0, bytes: 25 * 64 });
  expect(scenesOf(table)[SERVER].totals).toEqual({ segments: 25, again: 0, bytes: 25 * 200 });
  const lossy = scenesOf(bulk(3_000))[SERVER];
  expect(lossy.totals.again).toBeGreaterThan(0);
  expect(lossy.holes.length).toBe(lossy.totals.again);
});

it("the ACK line never goes back, and the window's edge is where it was announced", () => {
  const to = new TableWriter();
  const acks: [number, number | undefined][] = [
    [1, 100],
    [500, 100],
    [300, 100],
    [500, undefined],
    [500, undefined],
    [700, 0],
  ];
  acks.forEach(([ack, window], time) => {
    to.packet({ from: SERVER, time, seq: 1, ack, window });
  });
  const scene = scenesOf(to.table())[CLIENT];
  expect([...scene.acks.top]).toEqual([1, 500, 500, 500, 500, 700]);
  expect([...scene.acks.edge]).toEqual([101, 600, 400, Number.NaN, Number.NaN, 700]);
  expect([...scene.acks.again]).toEqual([0, 0, 0, 0, 1, 0]);
});

it("the axis reaches over all data and ACKs in view, and over the window only where it is near", () => {
  const scene = scenesOf(stalled())[CLIENT];
  const all = reachOf(scene, { from: 0, until: 1e12 });
  expect(all.edge).toBe("shown");
  expect(all.low).toBeLessThan(1);
  for (const segments of scene.sent) for (const high of segments.high) expect(high).toBeLessThan(all.high);
  const far = scenesOf(split(25))[CLIENT];
  expect(reachOf(far, { from: 0, until: 1e12 }).edge).toBe("above");
  // Between two packets, there is still the line that they left.
  const quiet = reachOf(far, { from: 30e6, until: 40e6 });
  expect(quiet.low <= 1 && quiet.high >= 1).toBe(true);
});

it("finds what is in view", () => {
  const { sent } = scenesOf(split(3))[CLIENT];
  const [begin, end] = inView(sent[0], { from: 80e6, until: 200e6 });
  expect([...sent[0].time.subarray(begin, end)]).toEqual([80_050_000, 110_050_000, 170_070_000]);
});
