import { expect, it } from "vitest";
import { bytes, count, duration, moment, percent, plural } from "./number.ts";

const glued = (text: string) => text.replaceAll(" ", "\u00a0");

// The same cases as in crates/report/src/number.rs: page and terminal show the same numbers.
it("gives durations three digits and changes the unit after rounding", () => {
  const cases: [number, string][] = [
    [0, "0 ms"],
    [0.001, "1 µs"],
    [0.9994, "999 µs"],
    [0.9996, "1.00 ms"],
    [9.994, "9.99 ms"],
    [9.996, "10.0 ms"],
    [142.4, "142 ms"],
    [999.4, "999 ms"],
    [999.6, "1.00 s"],
    [63_940, "63.9 s"],
    [99_960, "100 s"],
    [119_400, "119 s"],
    [119_600, "2 min 00 s"],
    [125_000, "2 min 05 s"],
    [3_599_400, "59 min 59 s"],
    [3_599_600, "1 h 00 min"],
    [11_220_000, "3 h 07 min"],
    [172_800_000, "2 d 00 h"],
    [-40, "-40.0 ms"],
    [Number.NaN, "?"],
  ];
  for (const [ms, text] of cases) expect(duration(ms)).toBe(glued(text));
});

it("never rounds a share to all or nothing", () => {
  const cases: [number, string][] = [
    [0, "0 %"],
    [0.0004, "<1 %"],
    [0.99, "<1 %"],
    [1, "1 %"],
    [63.4, "63 %"],
    [98.6, "99 %"],
    [99.4, "99 %"],
    [99.96, ">99 %"],
    [99.9999999999, "100 %"],
    [100, "100 %"],
  ];
  for (const [part, text] of cases) expect(percent(part, 100)).toBe(glued(text));
  expect(percent(0, 0)).toBe("?");
});

it("writes counts, bytes and moments as the terminal does", () => {
  expect([0, 999, 1_000, 4_812, 1_234_567].map(count)).toEqual(["0", "999", "1,000", "4,812", "1,234,567"]);
  expect([plural(1, "packet"), plural(0, "packet")]).toEqual(["1 packet", "0 packets"]);
  expect([0, 999, 10_010, 999_600, 1_650_000_000].map(bytes)).toEqual(
    ["0 B", "999 B", "10.0 kB", "1.00 MB", "1.65 GB"].map(glued),
  );
  expect(moment(1_234.567)).toBe(glued("1.234567 s"));
});
