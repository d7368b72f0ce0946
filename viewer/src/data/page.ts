import type { LedgerMs, TcpwhyReport2 } from "../generated/report.ts";

export type { Capture, Connection, Evidence, Finding, LedgerMs } from "../generated/report.ts";
export type Report = TcpwhyReport2;

/** What the page knows beside the report, `tcpwhy-page/1`. */
export interface Page {
  format: "tcpwhy-page/1";
  /** In the report's order. */
  captures: PageCapture[];
  /** That recipes may be in, in the order in which they are offered. */
  languages: string[];
  /** Of the rules that occur, by name. */
  rules: Record<string, Rule>;
}

export type VerdictSign = "problem" | "advice" | "note" | "good" | "unclear";

export interface PageCapture {
  /** One sentence. */
  verdict: string;
  /** What it says at a glance. */
  sign: VerdictSign | null;
  /** In the capture in all; the report in the page may have fewer. */
  connections: number;
  findings: number;
  /** The ledgers of the connections that are not in the page, added up. */
  others_ledger_ms: LedgerMs;
  tables: TableInfo[];
  /** Why there are no packets; null where there are some. */
  no_packets: string | null;
  /** Whose packets show findings about several connections or the whole capture, of those that the page has. */
  shared_evidence: EvidencePlace[];
}

export interface EvidencePlace {
  packet: number;
  /** The connection's id. */
  connection: number;
}

export interface TableInfo {
  /** The connection's id. */
  connection: number;
  /** N of the element `tcpwhy-packets-N`. */
  table: number;
  /** Packets of the connection in all. */
  packets: number;
  /** 1: all are in the table; 4: every fourth, and all near evidence. */
  every: number;
  /** Held ACKs were not looked for, since packets are left out. */
  without_held: boolean;
  /** Neighbouring intervals of the ledger were put together: their sums are right, their order is not. */
  coarse_ledger: boolean;
}

export interface Rule {
  summary: string;
  /** Made from the project's own text: the only HTML that the page inserts. */
  html: string;
  /** Its fixes in a program's own code, the best first. */
  recipes: Recipe[];
}

/** One fix as each language writes it. */
export interface Recipe {
  title: string;
  /** By language; a language that cannot do it is not there. */
  code: Record<string, string>;
}
