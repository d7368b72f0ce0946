/** Reports around made-up packet tables, written as a page into a folder of the test. */

import { readFileSync, writeFileSync } from "node:fs";
import { deflateSync } from "node:zlib";
import { sumsOf } from "../src/charts/sequence/stretches.ts";
import type { Table } from "../src/data/table.ts";
import { LINES } from "../src/text/lines.ts";
import { encodeTable } from "./tables.ts";

const NS_PER_MS = 1e6;

/** Packets that a finding names. */
export interface Shown {
  rule: string;
  packets: number[];
}

/** What is special about a page. */
interface Options {
  shown?: Shown[];
  /** The table ends after so many characters. */
  cut?: number;
  /** One of so many packets is in the table. */
  every?: number;
}

/** Writes the page of one connection with `table` and returns its URL. */
export function pageOf(file: string, table: Table, { shown = [], cut, every = 1 }: Options = {}): string {
  const template = readFileSync(new URL("../dist/report.html", import.meta.url), "utf8");
  const packed = deflateSync(encodeTable(table)).toString("base64");
  const data = [
    script("application/json", "tcpwhy-report", safe(reportOf(table, shown))),
    script("application/json", "tcpwhy-page", safe(aboutOf(table, shown, every))),
    script("text/plain", "tcpwhy-packets-0", packed.slice(0, cut)),
  ];
  writeFileSync(file, template.split("<!--tcpwhy:data-->").join(data.join("\n")));
  return `file://${file}`;
}

const script = (type: string, id: string, text: string) =>
  `<script type="${type}" id="${id}">${text}</script>`;

const safe = (value: unknown) =>
  JSON.stringify(value).replace(
    /[<>&\u2028\u2029]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );

function aboutOf(table: Table, shown: Shown[], every: number) {
  const isThinned = every > 1;
  const tables = [
    {
      connection: 0,
      table: 0,
      packets: table.marks.count * every,
      every,
      without_held: isThinned,
      coarse_ledger: isThinned,
    },
  ];
  const rules = Object.fromEntries(
    shown.map(({ rule }) => [rule, { summary: rule, html: "<p>A rule.</p>" }]),
  );
  const none = Object.fromEntries(LINES.map((line) => [line, 0]));
  const capture = {
    verdict: "A made-up connection.",
    sign: "problem",
    connections: 1,
    findings: shown.length,
    others_ledger_ms: none,
    tables,
    no_packets: null,
    shared_evidence: [],
  };
  return { format: "tcpwhy-page/1", captures: [capture], rules };
}

function reportOf(table: Table, shown: Shown[]) {
  const { marks, bookings } = table;
  const last = marks.time[marks.count - 1] as number;
  const sums = sumsOf(bookings, { from: 0, until: last + 1 });
  const ledger_ms = Object.fromEntries(
    LINES.map((line, index) => [line, (sums[index] as number) / NS_PER_MS]),
  );
  const duration_ms = last / NS_PER_MS;
  const connection = {
    id: 0,
    protocol: "tcp",
    client: "192.0.2.17:40000",
    server: "192.0.2.80:443",
    vantage: "client",
    start_ms: 0,
    duration_ms,
    base_rtt_ms: 20,
    ledger_ms,
    packets: { to_server: Math.ceil(marks.count / 2), to_client: Math.floor(marks.count / 2) },
    bytes: { to_server: 1, to_client: 1 },
    exchanges: null,
    cadence: [{ from: "client", messages: 50, per_second: 10, period_ms: 100, evenness: 0.9 }],
    small_waits: null,
  };
  const findings = shown.map(({ rule, packets }) => ({
    rule,
    severity: "problem",
    connection: 0,
    blame: { side: "client", address: "192.0.2.17:40000" },
    count: 1,
    cost_ms: 60,
    worst_ms: 60,
    confidence: 0.9,
    summary: "Something waits.",
    evidence: packets.map((packet) => {
      const time_ms = (marks.time[packet - 1] as number) / NS_PER_MS;
      return { packet, time_ms, note: `note of packet ${packet}` };
    }),
    fixes: [],
  }));
  const capture = {
    name: "made-up.pcap",
    kind: "pcap",
    packets: marks.count,
    bytes: 1_000,
    start: null,
    duration_ms,
    notes: [],
    ledger_ms,
    connections: [connection],
    findings,
  };
  return { format: "tcpwhy-report/2", version: "0", captures: [capture] };
}
