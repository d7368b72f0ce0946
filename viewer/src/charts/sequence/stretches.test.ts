import { expect, it } from "vitest";
import { TableWriter } from "../../../tests/tables.ts";
import { LINES } from "../../text/lines.ts";
import { bookedAt, eachShare, stretches, sumsOf } from "./stretches.ts";

/** 100 ns of Nagle, then 30 times 1 ns of others, then 50 ns for a window. */
function ledger() {
  const to = new TableWriter();
  to.book("nagle", 1, 0, 100);
  for (let n = 0; n < 30; n++) to.book(n % 2 ? "nagle" : "delayed-ack", 1, 100 + n, 101 + n);
  to.book("cwnd", 1, 130, 180);
  return to.table().bookings;
}

it("wide intervals are exact and narrow ones share a pixel", () => {
  // A pixel is 10 ns.
  const all = stretches(ledger(), { from: 0, until: 180 }, 18);
  expect([all[0]?.from, all[0]?.until]).toEqual([0, 10]);
  expect([all.at(-1)?.from, all.at(-1)?.until]).toEqual([13, 18]);
  const sums = new Map<string, number>();
  for (const stretch of all) {
    let whole = 0;
    eachShare(stretch, (line, share) => {
      whole += share;
      const name = LINES[line] as string;
      sums.set(name, (sums.get(name) ?? 0) + share * (stretch.until - stretch.from));
    });
    expect(whole).toBeCloseTo(1, 9);
  }
  expect(sums.get("nagle")).toBeCloseTo(11.5, 6);
  expect(sums.get("delayed-ack")).toBeCloseTo(1.5, 6);
  expect(all.length).toBeLessThanOrEqual(6);
});

it("what is outside of the view is left out", () => {
  const bookings = ledger();
  expect(stretches(bookings, { from: 140, until: 160 }, 100).map((s) => [s.from, s.until])).toEqual([
    [0, 100],
  ]);
  expect(sumsOf(bookings, { from: 50, until: 140 })[LINES.indexOf("nagle")]).toBe(65);
  expect(sumsOf(bookings, { from: 50, until: 140 })[LINES.indexOf("cwnd")]).toBe(10);
  expect(LINES[bookings.line[bookedAt(bookings, 135)] as number]).toBe("cwnd");
  expect([bookedAt(bookings, -1), bookedAt(bookings, 180)]).toEqual([-1, -1]);
});
