import { expect, it } from "vitest";
import { bringIntoView, firstRow, ROW, scrolledHeight, scrollFor } from "./window.ts";

it("scrolls to where it says it is", () => {
  for (const rows of [1, 10, 200_000, 1_048_576]) {
    for (const share of [0, 0.3, 0.999, 1]) {
      const first = share * Math.max(0, rows - 352 / ROW);
      expect(firstRow(scrollFor(first, rows, 352), rows, 352)).toBeCloseTo(first, 4);
    }
  }
});

it("shows the last row at the end, however many there are", () => {
  const rows = 1_048_576;
  expect(scrolledHeight(rows)).toBeLessThan(17_000_000);
  expect(firstRow(scrolledHeight(rows) - 352, rows, 352) + 352 / ROW).toBeCloseTo(rows, 3);
});

it("moves as little as needed, and far rows to the middle", () => {
  expect(bringIntoView(12, 10, 352)).toBe(10);
  expect(bringIntoView(9, 10, 352)).toBe(9);
  expect(bringIntoView(26, 10, 352)).toBe(11);
  expect(bringIntoView(1_000, 10, 352)).toBe(992);
});
