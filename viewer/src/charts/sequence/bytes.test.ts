import { beforeEach, describe, expect, it, vi } from "vitest";
import { bulk, split, stalled } from "../../../tests/stories.ts";
import { Model } from "../model.ts";
import { span } from "../view.ts";
import { FEWEST, FITTED, following } from "./bytes.ts";

describe("following", () => {
  it("goes no further than it takes to show the data", () => {
    const data = { from: 1_000, until: 2_000 };
    expect(following({ from: 1_200, until: 1_300 }, data)).toEqual({ from: 1_200, until: 1_300 });
    expect(following({ from: 0, until: 100 }, data)).toEqual({ from: 1_000, until: 1_100 });
    expect(following({ from: 5_000, until: 5_100 }, data)).toEqual({ from: 1_900, until: 2_000 });
    // Where more is shown than there is, all of it is shown.
    expect(following({ from: 0, until: 3_000 }, data)).toEqual({ from: 0, until: 3_000 });
    expect(following({ from: 1_500, until: 4_500 }, data)).toEqual({ from: 1_000, until: 4_000 });
  });
});

describe("the bytes of a model", () => {
  // Jumps are at once.
  beforeEach(() => {
    vi.stubGlobal("matchMedia", () => ({ matches: true }));
    return () => vi.unstubAllGlobals();
  });

  /** A client that wrote 1,600 bytes, all in view. */
  const model = () => new Model(split(25), [], false);
  const zoom = (one: Model, factor: number, byte: number) =>
    one.show(one.goal, "test", one.withBytes(one.goal, 0, one.zoomedBytes(0, factor, byte)));

  it("zoom about a byte, which stays where it is, and not below a few", () => {
    const one = model();
    const { low, high } = one.reach(0);
    zoom(one, 0.5, 400);
    const near = one.reach(0);
    expect(near.high - near.low).toBeCloseTo((high - low) / 2, 6);
    expect((400 - near.low) / (near.high - near.low)).toBeCloseTo((400 - low) / (high - low), 9);
    for (let turn = 0; turn < 30; turn++) zoom(one, 0.5, 400);
    expect(one.reach(0).high - one.reach(0).low).toBe(FEWEST);
    // The other side's are as they were.
    expect(one.bytes[1]).toBeNull();
  });

  it("stop at what fits on the way out, then go on to the window's edge", () => {
    const one = model();
    expect(one.reach(0).edge).toBe("above");
    zoom(one, 0.5, 400);
    zoom(one, 4, 400);
    expect(one.bytes).toEqual(FITTED);
    for (let turn = 0; turn < 20; turn++) zoom(one, 4, 400);
    // The server's window of 65,152 bytes, beyond the last of the 1,600.
    expect(one.reach(0)).toMatchObject({ edge: "shown" });
    expect(one.reach(0).high).toBeGreaterThan(1_601 + 65_152);
    expect(one.reach(0).high).toBeLessThan(1.1 * (1_601 + 65_152));
  });

  it("do not grow where there are few to zoom into", () => {
    // A server without data: its SYN and its ACKs alone.
    const one = new Model(stalled(), [], false);
    const { low, high } = one.reach(1);
    expect(high - low).toBeLessThan(FEWEST);
    expect(one.zoomedBytes(1, 0.5)).toBeNull();
  });

  it("follow the data when time moves, and go back with it", () => {
    const one = model();
    one.show({ from: 0, until: 0.5e9 }, "begin");
    zoom(one, 0.25, 100);
    const before = one.bytes;
    one.show({ from: 1.7e9, until: 2.2e9 }, "move");
    const data = new Model(split(25), [], false);
    data.show({ from: 1.7e9, until: 2.2e9 }, "move");
    const there = one.reach(0);
    expect(there.high - there.low).toBeCloseTo(span(before[0] as { from: number; until: number }), 6);
    expect(there.low).toBeGreaterThanOrEqual(data.reach(0).low - 1e-6);
    one.back();
    expect(one.bytes).toEqual(before);
    expect(one.view).toEqual({ from: 0, until: 0.5e9 });
    one.reset("all");
    expect([one.isWhole, one.isFitted]).toEqual([true, true]);
  });

  it("move to the packet that is chosen", () => {
    const one = new Model(bulk(3_000), [], false);
    one.show(one.all, "box", one.withBytes(one.all, 1, { from: 0, until: 20_000 }));
    const { marks } = one.table;
    const row = marks.count - 200;
    one.reveal(row);
    const byte = (marks.what[row] as number) & 1 ? (marks.seq[row] as number) : (marks.ack[row] as number);
    expect(byte).toBeGreaterThan(1e6);
    expect(one.reach(1).low).toBeLessThan(byte);
    expect(one.reach(1).high).toBeGreaterThan(byte);
    expect(one.reach(1).high - one.reach(1).low).toBeCloseTo(20_000, 3);
  });
});
