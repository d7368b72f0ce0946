import { describe, expect, it } from "vitest";
import { bulk, split, stalled } from "../../../tests/stories.ts";
import type { Finding } from "../../data/page.ts";
import { Model } from "../model.ts";
import { flagLetters, inWords, kindInWords, waitInWords } from "./describe.ts";

const GLUE = "\u00a0";

describe("a packet in words", () => {
  it("tells handshake, data, ACKs and what a finding says", () => {
    const note = "<b>pure</b> ACK";
    const finding = { rule: "nagle", evidence: [{ packet: 5, time_ms: 80.03, note }] } as unknown as Finding;
    const model = new Model(split(2), [finding], false);
    const words = [0, 1, 2, 3, 4].map((row) => inWords(model, row));
    expect(words).toEqual(["SYN", "SYN-ACK", "ACK", "data", `ACK, held 40.0${GLUE}ms; ${note}`]);
    expect([0, 1, 3].map((row) => flagLetters(model.table.marks.what[row] as number))).toEqual([
      "S",
      "S.",
      "P.",
    ]);
  });

  it("tells losses", () => {
    const model = new Model(bulk(1_500), [], false);
    const all = Array.from({ length: model.table.marks.count }, (_, row) => kindInWords(model, row));
    expect(all.filter((word) => word === "sent again").length).toBe(model.scenes[1].totals.again);
    expect(all).toContain("same ACK again");
    const row = all.indexOf("same ACK again");
    expect(inWords(model, row)).toMatch(/^same ACK again; SACK [\d,]+–[\d,]+$/);
  });

  it("tells a closed window, probes, and that it opens", () => {
    const model = new Model(stalled(), [], false);
    const all = Array.from({ length: model.table.marks.count }, (_, row) => kindInWords(model, row));
    expect(all).toContain("probe");
    expect(all).toContain("ACK, window full");
    expect(all).toContain("window update");
    expect(all.at(-1)).toBe("RST");
  });
});

it("tells what time went to", () => {
  const { bookings } = split(2);
  expect(waitInWords(bookings, 20_030_000, 80_030_000)).toBe(
    `delayed-ack 40.0${GLUE}ms, nagle 20.0${GLUE}ms`,
  );
});
