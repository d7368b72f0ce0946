/** Packet tables made up for tests, and the encoder that writes them as the program does. */

import type { Bookings, Exchanges, Held, Marks, RoundTrips, Sacks, Side, Table } from "../src/data/table.ts";
import { LINES, type LineName } from "../src/text/lines.ts";

export const FLAGS = { FIN: 1, SYN: 2, RST: 4, PSH: 8, ACK: 16 };

interface Packet {
  from: Side;
  kind?: 0 | 1 | 2 | 3;
  flags?: number;
  time: number;
  seq: number;
  len?: number;
  ack?: number;
  window?: number;
}

/** Rows to columns, with frame numbers in steps of `every`. */
export class TableWriter {
  private readonly packets: Packet[] = [];
  private readonly sacks: { from: Side; time: number; ack: number; left: number; right: number }[] = [];
  private readonly bookings: { line: number; side: number; from: number; until: number }[] = [];
  private readonly held: { sender: Side; from: number; until: number; acked: number }[] = [];
  private readonly exchanges: { start: number; end: number; number: number }[] = [];
  private readonly trips: { from: Side; time: number; rtt: number }[] = [];

  /** Adds a packet and returns its frame number. */
  packet(packet: Packet): number {
    this.packets.push(packet);
    return this.packets.length;
  }
  sack(from: Side, time: number, ack: number, left: number, right: number): void {
    this.sacks.push({ from, time, ack, left, right });
  }
  book(line: LineName, side: number, from: number, until: number): void {
    const last = this.bookings.at(-1);
    const index = LINES.indexOf(line);
    if (until <= from) return;
    if (last && last.line === index && last.side === side && last.until === from) last.until = until;
    else this.bookings.push({ line: index, side, from, until });
  }
  hold(sender: Side, from: number, until: number, acked: number): void {
    this.held.push({ sender, from, until, acked });
  }
  exchange(start: number, end: number, number: number): void {
    this.exchanges.push({ start, end, number });
  }
  trip(from: Side, time: number, rtt: number): void {
    this.trips.push({ from, time, rtt });
  }

  table(): Table {
    const column = <T>(rows: T[], pick: (row: T) => number) => Float64Array.from(rows, pick);
    const small = <T>(rows: T[], pick: (row: T) => number) => Uint8Array.from(rows, pick);
    const { packets, sacks, bookings, held, exchanges, trips } = this;
    const marks: Marks = {
      count: packets.length,
      what: Uint16Array.from(packets, whatOf),
      number: Float64Array.from(packets.keys(), (index) => index + 1),
      time: column(packets, (p) => p.time),
      seq: column(packets, (p) => p.seq),
      len: column(packets, (p) => p.len ?? 0),
      ack: column(packets, (p) => p.ack ?? 0),
      window: column(packets, (p) => p.window ?? 0),
    };
    return {
      marks,
      sacks: {
        count: sacks.length,
        from: small(sacks, (s) => s.from),
        time: column(sacks, (s) => s.time),
        ack: column(sacks, (s) => s.ack),
        left: column(sacks, (s) => s.left),
        right: column(sacks, (s) => s.right),
      } satisfies Sacks,
      bookings: {
        count: bookings.length,
        line: small(bookings, (b) => b.line),
        side: small(bookings, (b) => b.side),
        from: column(bookings, (b) => b.from),
        until: column(bookings, (b) => b.until),
      } satisfies Bookings,
      held: {
        count: held.length,
        sender: small(held, (h) => h.sender),
        from: column(held, (h) => h.from),
        until: column(held, (h) => h.until),
        acked: column(held, (h) => h.acked),
      } satisfies Held,
      exchanges: {
        count: exchanges.length,
        start: column(exchanges, (e) => e.start),
        end: column(exchanges, (e) => e.end),
        number: column(exchanges, (e) => e.number),
      } satisfies Exchanges,
      roundTrips: {
        count: trips.length,
        from: small(trips, (t) => t.from),
        time: column(trips, (t) => t.time),
        rtt: column(trips, (t) => t.rtt),
      } satisfies RoundTrips,
    };
  }
}

function whatOf({ from, kind, flags, len, ack, window }: Packet): number {
  const bits = (flags ?? 0) | (ack === undefined ? 0 : FLAGS.ACK);
  const carries = kind ?? (len ? 0 : 3);
  return from | (carries << 1) | (ack === undefined ? 0 : 8) | (window === undefined ? 0 : 16) | (bits << 5);
}

/** The bytes of a table before they are packed. */
export function encodeTable(table: Table): Uint8Array {
  const bytes: number[] = [];
  const column = (values: ArrayLike<number>) => {
    let before = 0n;
    for (let row = 0; row < values.length; row++) {
      const value = BigInt(values[row] as number);
      const difference = value - before;
      let rest = difference < 0n ? -difference * 2n - 1n : difference * 2n;
      before = value;
      do {
        bytes.push(Number(rest & 127n) | (rest > 127n ? 128 : 0));
        rest >>= 7n;
      } while (rest > 0n);
    }
  };
  const { marks, sacks, bookings, held, exchanges, roundTrips } = table;
  const parts = [marks, sacks, bookings, held, exchanges, roundTrips];
  column(parts.map((part) => part.count));
  for (const part of parts) {
    for (const [name, values] of Object.entries(part))
      if (name !== "count") column(values as ArrayLike<number>);
  }
  return Uint8Array.from(bytes);
}
