import { expect, it } from "vitest";
import { duration, moment } from "./words.ts";

it("keeps what packets of fast links differ by", () => {
  const cases: [number, string][] = [
    [0, "0 ms"],
    [40, "40 ns"],
    [2_100, "2.10 µs"],
    [12_000, "12 µs"],
    [1_230_000, "1.23 ms"],
    [-40e6, "−40.0 ms"],
  ];
  for (const [ns, text] of cases) expect(duration(ns)).toBe(text.replace(" ", "\u00a0"));
});

it("tells moments exactly, a day into a capture too", () => {
  expect(moment(1_403_911_222)).toBe("1.403911");
  expect(moment(86_399_123_456_789, 9)).toBe("86399.123456789");
  expect(moment(999_999_999, 3)).toBe("1.000");
  expect(moment(-22_600_000, 3)).toBe("−0.023");
});
