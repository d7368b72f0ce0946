import { expect, it } from "vitest";
import { inSight } from "./window.ts";

it("draws the rows in sight and some beyond", () => {
  expect(inSight(2_000, 50, 500, 1_000)).toEqual({ first: 0, end: 22 });
  expect(inSight(2_000, 50, -50_000, 1_000)).toEqual({ first: 988, end: 1_032 });
  expect(inSight(2_000, 50, -99_500, 1_000)).toEqual({ first: 1_978, end: 2_000 });
  expect(inSight(3, 50, -99_500, 1_000)).toEqual({ first: 3, end: 3 });
  expect(inSight(0, 50, 0, 1_000)).toEqual({ first: 0, end: 0 });
});
