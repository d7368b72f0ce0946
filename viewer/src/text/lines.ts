import type { LedgerMs } from "../generated/report.ts";

export type LineName = keyof LedgerMs;

/** In the order of `Line::ALL`, by which tables of packets number them. */
export const LINES: LineName[] = [
  "handshake",
  "client-app",
  "server-app",
  "idle",
  "network",
  "queueing",
  "nagle",
  "delayed-ack",
  "cwnd",
  "rwnd",
  "recovery",
  "rto",
  "transfer",
  "unexplained",
];

/** As bars show them: time that TCP withholds first, so that bars below each other compare; programs last. */
export const IN_BARS: LineName[] = [
  "nagle",
  "delayed-ack",
  "cwnd",
  "rwnd",
  "recovery",
  "rto",
  "queueing",
  "unexplained",
  "handshake",
  "transfer",
  "network",
  "server-app",
  "client-app",
  "idle",
];

const LOST: ReadonlySet<LineName> = new Set([
  "queueing",
  "nagle",
  "delayed-ack",
  "cwnd",
  "rwnd",
  "recovery",
  "rto",
]);

/** What a connection is waiting for. */
export const MEANING: Record<LineName, string> = {
  handshake: "SYN, SYN-ACK and ACK travel",
  "client-app": "waiting for the client's program",
  "server-app": "waiting for the server's program",
  idle: "nobody waits for anything",
  network: "data or its ACK travels",
  queueing: "the round trip beyond the base one",
  nagle: "a small segment is held for an ACK",
  "delayed-ack": "the ACK that would free it is held",
  cwnd: "the congestion window is full",
  rwnd: "the receiver's window is full",
  recovery: "a lost segment is being repaired",
  rto: "a timer has to expire first",
  transfer: "bytes flow back to back",
  unexplained: "none of the above could be shown",
};

/** Whether time on this line is time that TCP makes programs wait. */
export function isLost(line: LineName): boolean {
  return LOST.has(line);
}

/** The time of all lines, in ms. */
export function total(ledger: LedgerMs): number {
  return LINES.reduce((sum, line) => sum + ledger[line], 0);
}

/** The time that TCP made the programs wait, in ms. */
export function lost(ledger: LedgerMs): number {
  return LINES.filter(isLost).reduce((sum, line) => sum + ledger[line], 0);
}

/** The lines with time on them, the biggest first. */
export function booked(ledger: LedgerMs): [LineName, number][] {
  return LINES.map((line): [LineName, number] => [line, ledger[line]])
    .filter(([, ms]) => ms > 0)
    .sort((a, b) => b[1] - a[1]);
}
