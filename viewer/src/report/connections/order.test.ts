import { expect, it } from "vitest";
import type { Connection, Finding, LedgerMs } from "../../data/page.ts";
import { LINES } from "../../text/lines.ts";
import { filtered, NO_FILTER, rowsOf, ruleSums, rulesOf, sorted, WORST_FIRST } from "./order.ts";

function ledger(part: Partial<LedgerMs>): LedgerMs {
  return { ...(Object.fromEntries(LINES.map((line) => [line, 0])) as unknown as LedgerMs), ...part };
}

function connection(id: number, client: string, part: Partial<Connection> = {}): Connection {
  return {
    id,
    protocol: "tcp",
    client,
    server: "10.9.9.9:80",
    vantage: "client",
    start_ms: 0,
    duration_ms: 100,
    base_rtt_ms: null,
    ledger_ms: ledger({ network: 100 }),
    packets: { to_server: 1, to_client: 1 },
    bytes: { to_server: 1, to_client: 1 },
    exchanges: null,
    cadence: [],
    small_waits: null,
    ...part,
  };
}

function finding(id: number | null, rule: string, severity: Finding["severity"], cost_ms: number): Finding {
  return {
    rule,
    severity,
    connection: id,
    blame: { side: "server", address: null },
    count: 1,
    cost_ms,
    worst_ms: cost_ms,
    confidence: 1,
    summary: rule,
    evidence: [],
    fixes: [],
  };
}

const rows = rowsOf(
  [
    connection(0, "10.0.0.10:1", { duration_ms: 50 }),
    connection(1, "10.0.0.9:1", { ledger_ms: ledger({ nagle: 30, network: 70 }), base_rtt_ms: 5 }),
    connection(2, "10.0.0.9:22", { protocol: "udp", server_program: { name: "sshd", pid: 812 } }),
    connection(12, "[2001:db8::1]:443"),
  ],
  [
    finding(null, "handshake-per-request", "advice", 9_999),
    finding(0, "slow-start", "advice", 500),
    finding(1, "nagle-delayed-ack", "problem", 30),
    finding(1, "split-write", "problem", 30),
    finding(1, "delayed-ack", "note", 0),
    finding(12, "split-write", "problem", 31),
  ],
);

const ids = (found: typeof rows) => found.map((row) => row.connection.id);
const find = (text: string) => ids(filtered(rows, { ...NO_FILTER, text }));

it("gives each connection its findings, the worst first, equal costs in the report's order", () => {
  expect(rows.map((row) => row.findings.map((placed) => placed.index))).toEqual([[1], [2, 3, 4], [], [5]]);
  expect(rows[1]?.lost).toBe(30);
});

it("filters by words in names, protocols and rules, and by number", () => {
  expect(find("")).toEqual([0, 1, 2, 12]);
  expect(find("10.0.0.9")).toEqual([1, 2]);
  expect(find(" 10.0.0.9  SPLIT ")).toEqual([1]);
  expect(find("udp")).toEqual([2]);
  expect(find("SSHD (812)")).toEqual([2]);
  // Who is at the other end nobody knows.
  expect(find("–")).toEqual([2]);
  expect(find("#1")).toEqual([1]);
  expect(find("#12")).toEqual([12]);
  expect(find("2001:DB8")).toEqual([12]);
  expect(find("(.*")).toEqual([]);
  expect(ids(filtered(rows, { ...NO_FILTER, onlyFindings: true }))).toEqual([0, 1, 12]);
  expect(ids(filtered(rows, { ...NO_FILTER, rule: "split-write" }))).toEqual([1, 12]);
});

it("sorts by severity and then by cost, or by any column", () => {
  expect(ids(sorted(rows, WORST_FIRST))).toEqual([12, 1, 0, 2]);
  expect(ids(sorted(rows, { by: "names", descending: false }))).toEqual([12, 1, 2, 0]);
  expect(ids(sorted(rows, { by: "duration", descending: false }))).toEqual([0, 1, 2, 12]);
  expect(ids(sorted(rows, { by: "lost", descending: true }))).toEqual([1, 0, 2, 12]);
  expect(ids(sorted(rows, { by: "rtt", descending: true }))).toEqual([1, 0, 2, 12]);
  expect(ids(sorted(rows, { by: "id", descending: true }))).toEqual([12, 2, 1, 0]);
  expect(ids(rows)).toEqual([0, 1, 2, 12]);
});

it("sums up rules over connections, and counts a connection once", () => {
  const twice = rowsOf(
    [connection(0, "a:1"), connection(1, "b:1")],
    [
      finding(0, "split-write", "problem", 10),
      finding(0, "split-write", "problem", 30),
      finding(1, "split-write", "problem", 20),
      finding(1, "slow-server", "advice", 900),
      finding(1, "zero-window", "problem", 59),
    ],
  );
  const sums = ruleSums(twice).map(({ rule, worst, connections, cost }) => [
    rule,
    worst.index,
    connections,
    cost,
  ]);
  expect(sums).toEqual([
    ["split-write", 1, 2, 60],
    ["zero-window", 4, 1, 59],
    ["slow-server", 3, 1, 900],
  ]);
  expect(twice.map(rulesOf)).toEqual([["split-write"], ["zero-window", "split-write", "slow-server"]]);
});

it("takes what is about the capture for what is about its only connection", () => {
  const about = [finding(null, "clock-step", "note", 0), finding(7, "rto", "problem", 100)];
  const [only] = rowsOf([connection(7, "10.0.0.7:1")], about);
  expect(only?.findings.map(({ finding: { rule }, index }) => [rule, index])).toEqual([
    ["rto", 1],
    ["clock-step", 0],
  ]);
  const several = rowsOf([connection(7, "10.0.0.7:1"), connection(8, "10.0.0.8:1")], about);
  expect(several.map((row) => row.findings.length)).toEqual([1, 0]);
});
