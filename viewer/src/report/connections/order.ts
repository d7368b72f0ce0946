import type { Connection, Finding } from "../../data/page.ts";
import { lost } from "../../text/lines.ts";
import { programsOf } from "../../text/programs.ts";

/** A connection as a row of the list. */
export interface Row {
  connection: Connection;
  /** Its findings with their place in the capture's list, the worst first. */
  findings: Placed[];
  /** Time that TCP made it wait, ms. */
  lost: number;
}

export interface Placed {
  finding: Finding;
  index: number;
}

export type Column =
  | "worst"
  | "id"
  | "names"
  | "lost"
  | "duration"
  | "rtt"
  | "exchanges"
  | "packets"
  | "bytes";

export interface Sorting {
  by: Column;
  descending: boolean;
}

export interface Filter {
  /** Words, each of which must be in the names, the programs, the number or a rule's name. */
  text: string;
  rule: string;
  onlyFindings: boolean;
}

export const NO_FILTER: Filter = { text: "", rule: "", onlyFindings: false };
export const WORST_FIRST: Sorting = { by: "worst", descending: true };

const SEVERITIES = { problem: 3, advice: 2, note: 1 } as const;

/** Problems before advice before notes, the costliest first. */
export function worstFirst(a: Placed, b: Placed): number {
  return (
    SEVERITIES[b.finding.severity] - SEVERITIES[a.finding.severity] ||
    b.finding.cost_ms - a.finding.cost_ms ||
    a.index - b.index
  );
}

/** A row for each connection, with its findings. Where there is but one, what is about the capture is about it. */
export function rowsOf(connections: Connection[], findings: Finding[]): Row[] {
  const byConnection = new Map<number, Placed[]>();
  const only = connections.length === 1 ? connections[0]?.id : undefined;
  findings.forEach((finding, index) => {
    const id = finding.connection ?? only;
    if (id === undefined) return;
    const placed = byConnection.get(id) ?? [];
    placed.push({ finding, index });
    byConnection.set(id, placed);
  });
  return connections.map((connection) => ({
    connection,
    findings: (byConnection.get(connection.id) ?? []).sort(worstFirst),
    lost: lost(connection.ledger_ms),
  }));
}

/** The rows that pass the filter. */
export function filtered(rows: Row[], filter: Filter): Row[] {
  const words = filter.text.toLowerCase().split(/\s+/).filter(Boolean);
  return rows.filter(({ connection, findings }) => {
    if (filter.onlyFindings && findings.length === 0) return false;
    if (filter.rule && !findings.some(({ finding }) => finding.rule === filter.rule)) return false;
    if (words.length === 0) return true;
    const { id, client, server, protocol } = connection;
    const rules = findings.map(({ finding }) => finding.rule);
    const names = [client, server, ...(programsOf(connection) ?? [])];
    const text = [`#${id} `, ...names, protocol, ...rules].join(" ").toLowerCase();
    return words.every((word) => text.includes(word.startsWith("#") ? `${word} ` : word));
  });
}

/** A copy in order; equal rows stay in the order of appearance. */
export function sorted(rows: Row[], { by, descending }: Sorting): Row[] {
  const compare = ORDERS[by];
  const sign = descending ? -1 : 1;
  return [...rows].sort((a, b) => sign * compare(a, b) || a.connection.id - b.connection.id);
}

const ORDERS: Record<Column, (a: Row, b: Row) => number> = {
  worst: (a, b) => {
    const [x, y] = [a.findings[0], b.findings[0]];
    if (!x || !y) return Number(Boolean(x)) - Number(Boolean(y)) || a.lost - b.lost;
    return (
      SEVERITIES[x.finding.severity] - SEVERITIES[y.finding.severity] ||
      x.finding.cost_ms - y.finding.cost_ms ||
      a.lost - b.lost
    );
  },
  id: by((row) => row.connection.id),
  names: (a, b) => NAMES.compare(names(a), names(b)),
  lost: by((row) => row.lost),
  duration: by((row) => row.connection.duration_ms),
  rtt: by((row) => row.connection.base_rtt_ms ?? -1),
  exchanges: by((row) => row.connection.exchanges?.p50_ms ?? -1),
  packets: by(({ connection: { packets } }) => packets.to_server + packets.to_client),
  bytes: by(({ connection: { bytes } }) => bytes.to_server + bytes.to_client),
};

/** 10.0.0.9 before 10.0.0.10. */
const NAMES = new Intl.Collator("en", { numeric: true });

function names({ connection }: Row): string {
  return `${connection.client} ${connection.server}`;
}

function by(figure: (row: Row) => number): (a: Row, b: Row) => number {
  return (a, b) => figure(a) - figure(b);
}

/** What a rule found on all connections. */
export interface RuleSum {
  rule: string;
  worst: Placed;
  /** Connections that have such findings; one may have several. */
  connections: number;
  /** ms. */
  cost: number;
}

/** The findings on connections by rule, the costliest of the gravest severity first. */
export function ruleSums(rows: Row[]): RuleSum[] {
  const sums = new Map<string, RuleSum>();
  for (const row of rows) {
    for (const rule of rulesOf(row)) {
      const found = row.findings.filter(({ finding }) => finding.rule === rule);
      const [worst] = found as [Placed];
      const sum = sums.get(rule) ?? { rule, worst, connections: 0, cost: 0 };
      sum.connections += 1;
      sum.cost += found.reduce((cost, { finding }) => cost + finding.cost_ms, 0);
      if (worstFirst(worst, sum.worst) < 0) sum.worst = worst;
      sums.set(rule, sum);
    }
  }
  const whole = (sum: RuleSum): Placed => ({
    ...sum.worst,
    finding: { ...sum.worst.finding, cost_ms: sum.cost },
  });
  return [...sums.values()].sort((a, b) => worstFirst(whole(a), whole(b)));
}

/** The rules that found something on a connection, each once, the worst first. */
export function rulesOf(row: Row): string[] {
  return [...new Set(row.findings.map(({ finding }) => finding.rule))];
}
