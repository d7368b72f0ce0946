import { expect, it } from "vitest";
import { firstAfter, firstAtLeast, rowOf } from "./search.ts";

it("finds what a walk would find", () => {
  const column = Float64Array.from([1, 3, 3, 3, 7, 9]);
  for (let value = 0; value <= 10; value++) {
    const walk = (wanted: (other: number) => boolean) => {
      const found = column.findIndex(wanted);
      return found < 0 ? column.length : found;
    };
    expect(firstAtLeast(column, value)).toBe(walk((other) => other >= value));
    expect(firstAfter(column, value)).toBe(walk((other) => other > value));
    expect(rowOf(column, value)).toBe(column.indexOf(value));
  }
  expect(firstAtLeast([], 1)).toBe(0);
});
