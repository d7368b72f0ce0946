import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { bulk, split } from "../../tests/stories.ts";
import { encodeTable } from "../../tests/tables.ts";
import { readTable } from "./inflate.ts";
import {
  decodeTable,
  flagsOf,
  hasAck,
  hasWindow,
  kindOf,
  RETRANSMISSION,
  sideOf,
  type Table,
  TableError,
} from "./table.ts";

/** The table that the program's own test writes. */
const vector = JSON.parse(readFileSync(new URL("../../../tests/page/table.json", import.meta.url), "utf8"));
const raw = Uint8Array.from(Buffer.from(vector.raw, "hex"));

/** Parts by the names of the vector, without the counts. */
function plainly(table: Table): Record<string, Record<string, number[]>> {
  const parts = { ...table, round_trips: table.roundTrips } as Record<string, object>;
  delete parts.roundTrips;
  return Object.fromEntries(
    Object.entries(parts).map(([name, part]) => {
      const columns = Object.entries(part).filter(([column]) => column !== "count");
      return [name, Object.fromEntries(columns.map(([column, values]) => [column, [...values]]))];
    }),
  );
}

describe("decodeTable", () => {
  it("reads what the program writes", () => {
    const { raw: _raw, packed: _packed, ...expected } = vector;
    expect(plainly(decodeTable(raw))).toEqual(expected);
  });

  it("unpacks it from the page", async () => {
    const { raw: _raw, packed, ...expected } = vector;
    expect(plainly(await readTable(packed))).toEqual(expected);
  });

  it("knows the bits of a packet", () => {
    const { what } = decodeTable(raw).marks;
    const [syn = 0, synAck = 0, , again = 0] = what;
    expect([sideOf(syn), hasAck(syn), hasWindow(syn), flagsOf(syn)]).toEqual([0, false, true, 2]);
    expect([sideOf(synAck), hasAck(synAck), flagsOf(synAck)]).toEqual([1, true, 0x12]);
    expect(kindOf(again)).toBe((vector.marks.what[3] >> 1) & 3);
    expect(kindOf(0b010)).toBe(RETRANSMISSION);
  });

  it("gives back what a table was made of", () => {
    for (const table of [split(20), bulk(2_000)]) expect(decodeTable(encodeTable(table))).toEqual(table);
  });

  it("says in words that a table is cut, wherever it is", () => {
    for (let length = 0; length < raw.length; length++)
      expect(() => decodeTable(raw.subarray(0, length)), `${length} bytes`).toThrow(TableError);
  });

  it("never gives anything but a table or a TableError", () => {
    for (let index = 0; index < raw.length; index++) {
      for (const value of [0, 1, 127, 128, 255]) {
        const bytes = raw.slice();
        bytes[index] = value;
        try {
          expect(decodeTable(bytes).marks.count).toBeGreaterThanOrEqual(0);
        } catch (error) {
          expect(error).toBeInstanceOf(TableError);
        }
      }
    }
  });

  it("gives no memory to counts that the bytes cannot have", () => {
    // 2^23 packets in six bytes.
    const bytes = Uint8Array.from([0x80, 0x80, 0x80, 0x08, 0, 0, 0, 0, 0]);
    expect(() => decodeTable(bytes)).toThrow("the packet table ends in the middle");
  });

  it("refuses what is not one", async () => {
    const tooLong = Uint8Array.from([0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]);
    expect(() => decodeTable(tooLong)).toThrow("a number that is too long");
    expect(() => decodeTable(Uint8Array.from([...raw, 0]))).toThrow("goes on after its end");
    // One booking on line 14, where there are 14 lines from 0.
    expect(() => decodeTable(Uint8Array.from([0, 0, 2, 1, 0, 0, 28, 0, 0, 2]))).toThrow("out of range");
    await expect(readTable("no base64!")).rejects.toThrow("it is not base64");
    await expect(readTable(btoa("no zlib"))).rejects.toThrow("it cannot be unpacked");
    await expect(readTable(vector.packed.slice(0, 40))).rejects.toThrow(TableError);
  });

  it("refuses times that go back, which no search would survive", () => {
    const table = split(2);
    table.marks.time[3] = 0;
    expect(() => decodeTable(encodeTable(table))).toThrow("times out of order");
  });
});
