/** Connections made up for tests: a bulk transfer with losses, and small writes that Nagle's algorithm holds. */

import type { Table } from "../src/data/table.ts";
import { FLAGS, TableWriter } from "./tables.ts";

const MS = 1e6;
const SEGMENT = 1448;
const CLIENT = 0;
const SERVER = 1;

/** SYN, SYN-ACK and ACK over `rtt` ns, as the client sees them. Returns when that is over. */
function handshake(to: TableWriter, rtt: number): number {
  to.packet({ from: CLIENT, flags: FLAGS.SYN, time: 0, seq: 0, window: 64_240 });
  to.packet({ from: SERVER, flags: FLAGS.SYN, time: rtt, seq: 0, ack: 1, window: 65_160 });
  to.packet({ from: CLIENT, time: rtt + 30_000, seq: 1, ack: 1, window: 64_256 });
  to.book("handshake", 0, 0, rtt + 30_000);
  return rtt + 30_000;
}

/** A server sends so many packets' worth of data (with its ACKs); one flight in ten loses a segment. */
export function bulk(packets: number): Table {
  const to = new TableWriter();
  const rtt = 20 * MS;
  let now = handshake(to, rtt);
  let seq = 1;
  let count = 3;
  let flight = 10;
  for (let round = 0; count < packets; round++) {
    const lost = round % 10 === 9 ? Math.floor(flight / 3) : -1;
    const begin = now;
    const first = seq;
    let acked = seq;
    for (let n = 0; n < flight && count < packets; n++) {
      const at = begin + n * 100_000;
      const hole = first + lost * SEGMENT;
      if (n !== lost) to.packet({ from: SERVER, time: at, seq, len: SEGMENT, ack: 1, window: 65_160 });
      seq += SEGMENT;
      count += n === lost ? 0 : 1;
      if (n % 2 === 1 || n === flight - 1) {
        acked = lost >= 0 && n >= lost ? hole : seq;
        if (lost >= 0 && n > lost) to.sack(CLIENT, at + 5_000, hole, hole + SEGMENT, seq);
        to.packet({
          from: CLIENT,
          time: at + 5_000,
          seq: 1,
          ack: acked,
          window: 3_000_000 - (round % 7) * 300_000,
        });
        count++;
      }
    }
    const end = begin + flight * 100_000;
    to.book("transfer", 2, begin, end);
    now = Math.max(end, begin + rtt);
    to.book("cwnd", 2, end, now);
    to.trip(SERVER, now, rtt + (round % 13) * 300_000);
    if (lost >= 0) {
      const hole = first + lost * SEGMENT;
      to.packet({
        from: SERVER,
        kind: 1,
        time: now + 50_000,
        seq: hole,
        len: SEGMENT,
        ack: 1,
        window: 65_160,
      });
      to.packet({ from: CLIENT, time: now + 60_000, seq: 1, ack: seq, window: 3_000_000 });
      count += 2;
      to.book("recovery", 2, now, now + 60_000);
      now += 60_000;
      flight = Math.max(10, flight >> 1);
    } else flight = Math.min(180, flight + 12);
  }
  to.packet({ from: SERVER, flags: FLAGS.FIN, time: now, seq, ack: 1, window: 65_160 });
  return to.table();
}

/** A client writes each request in two pieces; the second waits for an ACK that the server delays by 40 ms. */
export function split(requests: number): Table {
  const to = new TableWriter();
  const rtt = 20 * MS;
  let now = handshake(to, rtt);
  let up = 1;
  let down = 1;
  for (let n = 0; n < requests; n++) {
    const start = now;
    const number = to.packet({
      from: CLIENT,
      flags: FLAGS.PSH,
      time: now,
      seq: up,
      len: 16,
      ack: down,
      window: 64_256,
    });
    const held = now + rtt + 40 * MS;
    to.packet({ from: SERVER, time: held, seq: down, ack: up + 16, window: 65_152 });
    to.book("nagle", 1, now, now + rtt);
    to.book("delayed-ack", 1, now + rtt, held);
    to.hold(CLIENT, now + rtt, held, up);
    to.packet({
      from: CLIENT,
      flags: FLAGS.PSH,
      time: held + 20_000,
      seq: up + 16,
      len: 48,
      ack: down,
      window: 64_256,
    });
    const answer = held + 20_000 + rtt;
    to.packet({
      from: SERVER,
      flags: FLAGS.PSH,
      time: answer,
      seq: down,
      len: 200,
      ack: up + 64,
      window: 65_152,
    });
    to.packet({ from: CLIENT, time: answer + 15_000, seq: up + 64, ack: down + 200, window: 64_256 });
    to.book("network", 1, held, answer);
    to.trip(CLIENT, answer, rtt);
    to.exchange(start, answer, number);
    up += 64;
    down += 200;
    now = answer + 10 * MS;
    to.book("client-app", 1, answer, now);
  }
  return to.table();
}

/** A receiver whose program stops reading: its window closes, and the sender probes. */
export function stalled(): Table {
  const to = new TableWriter();
  const rtt = 10 * MS;
  let now = handshake(to, rtt);
  let seq = 1;
  const window = 64_000;
  for (; seq + SEGMENT < window; seq += SEGMENT) {
    to.packet({ from: CLIENT, time: now, seq, len: SEGMENT, ack: 1, window: 64_256 });
    to.packet({
      from: SERVER,
      time: now + rtt,
      seq: 1,
      ack: seq + SEGMENT,
      window: Math.max(0, window - seq - SEGMENT),
    });
    to.book("transfer", 1, now, now + rtt);
    now += rtt;
  }
  to.packet({ from: SERVER, time: now, seq: 1, ack: seq, window: 0 });
  const begin = now;
  for (let n = 0; n < 4; n++) {
    now += 200 * MS * 2 ** n;
    to.packet({ from: CLIENT, kind: 2, time: now, seq: seq - 1, len: 1, ack: 1, window: 64_256 });
    to.packet({ from: SERVER, time: now + rtt, seq: 1, ack: seq, window: 0 });
  }
  now += 100 * MS;
  to.packet({ from: SERVER, time: now, seq: 1, ack: seq, window: 64_000 });
  to.book("rwnd", 1, begin, now);
  for (let n = 0; n < 10; n++, seq += SEGMENT, now += MS)
    to.packet({ from: CLIENT, time: now, seq, len: SEGMENT, ack: 1, window: 64_256 });
  to.packet({ from: SERVER, flags: FLAGS.RST, time: now, seq: 1, ack: seq, window: 0 });
  to.book("transfer", 1, now - 10 * MS, now);
  return to.table();
}
