import { expect, it } from "vitest";
import { TableWriter } from "../../../tests/tables.ts";
import { holesOf } from "./holes.ts";

const CLIENT = 0;
const SERVER = 1;

/** ACKs of the server at times, and the blocks it reports. */
function holes(acks: [number, number][], sacks: [number, number, number, number][]) {
  const to = new TableWriter();
  for (const [time, ack] of acks) to.packet({ from: SERVER, time, seq: 1, ack });
  for (const [time, ack, left, right] of sacks) to.sack(SERVER, time, ack, left, right);
  const { marks, sacks: blocks } = to.table();
  return holesOf(CLIENT, marks, blocks).map(({ left, right, from, until }) => [left, right, from, until]);
}

it("holes last until they are filled", () => {
  // 100 is lost, then 300: as in the program's own test of its plots.
  const acks: [number, number][] = [
    [0, 100],
    [10, 100],
    [20, 100],
    [50, 300],
    [60, 500],
    [70, 600],
  ];
  const sacks: [number, number, number, number][] = [
    [10, 100, 200, 300],
    [20, 100, 400, 500],
  ];
  expect(holes(acks, sacks)).toEqual([
    [100, 200, 10, 50],
    [300, 400, 20, 60],
  ]);
});

it("a block that closes a hole ends it, and what came twice is none", () => {
  expect(
    holes(
      [
        [10, 100],
        [20, 100],
        [30, 500],
      ],
      [
        [10, 100, 200, 300],
        [20, 100, 100, 250],
      ],
    ),
  ).toEqual([[100, 200, 10, 20]]);
  expect(
    holes(
      [[10, 1_000]],
      [
        [10, 1_000, 500, 700],
        [10, 1_000, 900, 100],
      ],
    ),
  ).toEqual([]);
});

it("hostile blocks take neither memory nor time", () => {
  const sacks = Array.from({ length: 20_000 }, (_, n): [number, number, number, number] => [
    n,
    0,
    n * 10 + 1,
    n * 10 + 5,
  ]);
  const acks = Array.from({ length: 20_000 }, (_, n): [number, number] => [n, 0]);
  const start = performance.now();
  expect(holes(acks, sacks).length).toBeLessThanOrEqual(60_000);
  // 256 holes looked at for each ACK take some 0.1 s; without that bound it would be 100 times as many.
  expect(performance.now() - start).toBeLessThan(5_000);
});
