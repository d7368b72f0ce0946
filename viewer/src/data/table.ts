/** Packet tables: what the page knows of one connection's packets. docs/page.md has the form. */

import { LINES } from "../text/lines.ts";

/** One packet a row, in the order in which they passed. */
export interface Marks {
  count: number;
  /** Who sent it, what it carries and its flags, as bits; see the functions below. */
  what: Uint16Array;
  /** Frame number in the capture, from 1. */
  number: Float64Array;
  /** ns since the capture's first packet. */
  time: Float64Array;
  /** Relative sequence number in the sender's direction. */
  seq: Float64Array;
  /** Payload bytes. */
  len: Float64Array;
  /** Relative; 0 where there is none. */
  ack: Float64Array;
  /** Bytes; 0 where it is not known. */
  window: Float64Array;
}

/** Ranges of bytes that a receiver has beyond its ACK, or got twice. */
export interface Sacks {
  count: number;
  /** Who says so; the bytes are the other side's. */
  from: Uint8Array;
  time: Float64Array;
  ack: Float64Array;
  left: Float64Array;
  right: Float64Array;
}

/** The ledger, interval by interval. */
export interface Bookings {
  count: number;
  /** Index into LINES of text/lines.ts. */
  line: Uint8Array;
  /** 0 nobody's, 1 the client's, 2 the server's. */
  side: Uint8Array;
  /** ns since the capture's first packet. */
  from: Float64Array;
  until: Float64Array;
}

/** ACKs that their sender held back. */
export interface Held {
  count: number;
  /** Whose data it was that was not ACKed. */
  sender: Uint8Array;
  from: Float64Array;
  until: Float64Array;
  /** Which byte was expected next meanwhile. */
  acked: Float64Array;
}

/** Requests with their answers. */
export interface Exchanges {
  count: number;
  start: Float64Array;
  end: Float64Array;
  /** Frame number of the request's first packet. */
  number: Float64Array;
}

/** Round trips as the analysis measured them. */
export interface RoundTrips {
  count: number;
  /** Whose data was ACKed. */
  from: Uint8Array;
  time: Float64Array;
  rtt: Float64Array;
}

export interface Table {
  marks: Marks;
  sacks: Sacks;
  bookings: Bookings;
  held: Held;
  exchanges: Exchanges;
  roundTrips: RoundTrips;
}

export const CLIENT = 0;
export const SERVER = 1;
/** {@link CLIENT} or {@link SERVER}. */
export type Side = 0 | 1;

export const DATA = 0;
export const RETRANSMISSION = 1;
export const PROBE = 2;
export const BARE = 3;

/** TCP's flags as the header has them. */
export const FLAG = { FIN: 1, SYN: 2, RST: 4, PSH: 8, ACK: 16, URG: 32, ECE: 64, CWR: 128 } as const;

const HAS_ACK = 8;
const HAS_WINDOW = 16;

export const sideOf = (what: number): Side => (what & 1) as Side;
/** {@link DATA}, {@link RETRANSMISSION}, {@link PROBE} or {@link BARE}. */
export const kindOf = (what: number): number => (what >> 1) & 3;
export const hasAck = (what: number): boolean => (what & HAS_ACK) !== 0;
export const hasWindow = (what: number): boolean => (what & HAS_WINDOW) !== 0;
/** The flags byte; see {@link FLAG}. */
export const flagsOf = (what: number): number => (what >> 5) & 0xff;

/** A table that is cut, or not one at all. */
export class TableError extends Error {}

/** No place of the page can use more rows, and the program writes fewer. */
const MOST_ROWS = 1 << 24;
/** Bits of a number that are kept apart, so that each half stays exact. */
const LOW_BITS = 28;
/** Bytes of the longest number: 56 bits hold every difference of two numbers below 2^53. */
const MOST_BYTES = 8;

/** Reads numbers that are written as differences. */
class Reader {
  private at = 0;
  constructor(private readonly bytes: Uint8Array) {}

  get left(): number {
    return this.bytes.length - this.at;
  }

  /** The next difference: 7 bits a byte, lowest first; the lowest of all is the sign. */
  private difference(): number {
    let low = 0;
    let high = 0;
    for (let index = 0; index < MOST_BYTES; index++) {
      const byte = this.bytes[this.at++];
      if (byte === undefined) throw new TableError("the packet table ends in the middle");
      if (index < LOW_BITS / 7) low |= (byte & 127) << (7 * index);
      else high += (byte & 127) * 2 ** (7 * index - LOW_BITS);
      if (byte < 128) {
        const size = (low >>> 1) + high * 2 ** (LOW_BITS - 1);
        return low & 1 ? -size - 1 : size;
      }
    }
    throw new TableError("the packet table has a number that is too long");
  }

  /** A column of numbers from `least` to `most`. */
  column<T extends Float64Array | Uint16Array | Uint8Array>(into: T, least: number, most: number): T {
    let value = 0;
    for (let row = 0; row < into.length; row++) {
      value += this.difference();
      if (value < least || value > most) throw new TableError("the packet table has a number out of range");
      into[row] = value;
    }
    return into;
  }
}

const LARGEST = Number.MAX_SAFE_INTEGER;
const COLUMNS = [7, 5, 4, 4, 3, 3] as const;

/** The table in `bytes`, or a {@link TableError} in words where they are cut or not a table. */
export function decodeTable(bytes: Uint8Array): Table {
  const reader = new Reader(bytes);
  const counts = reader.column(new Float64Array(COLUMNS.length), 0, MOST_ROWS);
  const least = COLUMNS.reduce<number>((sum, columns, index) => sum + columns * (counts[index] ?? 0), 0);
  // Each number takes a byte at least: what claims to be longer is not given the memory for it.
  if (least > reader.left) throw new TableError("the packet table ends in the middle");
  const [marks = 0, sacks = 0, bookings = 0, held = 0, exchanges = 0, roundTrips = 0] = counts;
  const any = (count: number) => reader.column(new Float64Array(count), -LARGEST, LARGEST);
  const natural = (count: number) => reader.column(new Float64Array(count), 0, LARGEST);
  const times = (count: number) => inOrder(any(count));
  const choice = (count: number, most: number) => reader.column(new Uint8Array(count), 0, most);
  // The columns are read in the order in which they stand here.
  const table: Table = {
    marks: {
      count: marks,
      what: reader.column(new Uint16Array(marks), 0, (1 << 13) - 1),
      number: natural(marks),
      time: times(marks),
      seq: any(marks),
      len: natural(marks),
      ack: any(marks),
      window: natural(marks),
    },
    sacks: {
      count: sacks,
      from: choice(sacks, 1),
      time: times(sacks),
      ack: any(sacks),
      left: any(sacks),
      right: any(sacks),
    },
    bookings: {
      count: bookings,
      line: choice(bookings, LINES.length - 1),
      side: choice(bookings, 2),
      from: times(bookings),
      until: times(bookings),
    },
    held: { count: held, sender: choice(held, 1), from: any(held), until: any(held), acked: any(held) },
    exchanges: { count: exchanges, start: any(exchanges), end: any(exchanges), number: natural(exchanges) },
    roundTrips: {
      count: roundTrips,
      from: choice(roundTrips, 1),
      time: any(roundTrips),
      rtt: natural(roundTrips),
    },
  };
  if (reader.left > 0) throw new TableError("the packet table goes on after its end");
  return table;
}

/** Whoever looks for a time searches by halves, which only works in order. */
function inOrder(times: Float64Array): Float64Array {
  for (let row = 1; row < times.length; row++) {
    if ((times[row] as number) < (times[row - 1] as number))
      throw new TableError("the packet table has times out of order");
  }
  return times;
}
