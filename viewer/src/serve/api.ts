import type { LedgerMs } from "../data/page.ts";
import type { Severity } from "../report/severity.tsx";

/** What `GET /api/state` says: crates/cli/src/serve/routes.rs. */
export interface State {
  version: string;
  folder: string;
  /** Bytes of the largest capture that the server takes. */
  upload_limit: number;
  captures: { captures: Capture[]; more: number };
  reports: { reports: Report[]; more: number };
  jobs: Job[];
  live: Live;
}

/** What changes while something goes on: `GET /api/jobs`. */
export type Progress = Pick<State, "jobs" | "live">;

export interface Capture {
  name: string;
  size: number;
  modified_ms: number;
}

export interface Report {
  id: number;
  capture: string;
  size: number;
  modified_ms: number;
  made_ms: number;
  version: string;
  summary: Summary;
}

export interface Summary {
  verdict: string;
  packets: number;
  bytes: number;
  connections: number;
  connected_ms: number;
  ledger_ms: LedgerMs;
  rules: RuleTotal[];
  more_rules: number;
}

export interface RuleTotal {
  rule: string;
  severity: Severity;
  findings: number;
  count: number;
  cost_ms: number;
}

export interface Job {
  id: number;
  capture: string;
  state: "waiting" | "running" | "done" | "failed" | "cancelled";
  bytes: number;
  size: number;
  packets: number;
  pass: number;
  report: number | null;
  error: string | null;
}

export interface Live {
  interfaces: string[];
  running: LiveRunning | null;
  error: string | null;
}

export interface LiveRunning {
  interface: string;
  filter: string;
  capture: string;
  seconds: number;
  bytes: number;
  ending: boolean;
}

/** `tcpwhy-comparison/1`: crates/report/src/comparison. */
export interface Comparison {
  verdict: string;
  before: Amount;
  after: Amount;
  services: ServicePair[];
  findings: FindingPair[];
}

export interface Amount {
  server: string | null;
  connections: number;
  connected_ms: number;
  ledger_ms: LedgerMs;
  exchanges: { count: number; mean_ms: number; max_ms: number; ledger_ms: LedgerMs } | null;
}

export interface ServicePair {
  matched: "address" | "port" | "only" | null;
  before: Amount | null;
  after: Amount | null;
  findings: FindingPair[];
}

export type Change = "gone" | "new" | "better" | "worse" | "same";

export interface FindingPair {
  rule: string;
  severity: Severity;
  change: Change | null;
  before: Cost | null;
  after: Cost | null;
}

export interface Cost {
  findings: number;
  count: number;
  cost_ms: number;
  share: number;
  per_exchange_ms: number | null;
}

/** Said where nobody answers. */
export const AWAY =
  "The server does not answer: tcpwhy serve has ended, or was started again with another address.";

/** Asks the server; throws what is to be said where it cannot be done. */
async function ask<T>(method: string, path: string, body?: unknown): Promise<T> {
  const init: RequestInit = { method, credentials: "same-origin" };
  if (body !== undefined) init.body = JSON.stringify(body);
  const answer = await fetch(path, init).catch(() => {
    throw new Error(AWAY);
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(problem(answer.status, text));
  return (text === "" ? undefined : JSON.parse(text)) as T;
}

/** Why the server did not do it, in its own words where it has some. */
export function problem(status: number, text: string): string {
  if (status === 401) return AWAY;
  try {
    const { error } = JSON.parse(text) as { error?: unknown };
    if (typeof error === "string" && error !== "") return error;
  } catch {
    // Not from tcpwhy, or not whole.
  }
  return `The server could not do that (${status}).`;
}

export const state = () => ask<State>("GET", "/api/state");
export const progress = () => ask<Progress>("GET", "/api/jobs");
export const analyse = (capture: string) => ask<{ job: number }>("POST", "/api/jobs", { capture });
export const cancel = (job: number) => ask<void>("DELETE", `/api/jobs/${job}`);
export const forget = (report: number) => ask<void>("DELETE", `/api/reports/${report}`);
export const beginLive = (wanted: { interface: string; filter: string }) =>
  ask<void>("POST", "/api/live", wanted);
export const endLive = () => ask<void>("DELETE", "/api/live");
export const compare = (before: number, after: number) =>
  ask<Comparison>("GET", `/api/comparison/${before}/${after}`);

/** An upload on its way. */
export interface Sending {
  /** The name that it has in the folder. */
  done: Promise<string>;
  abort(): void;
}

/** Sends a file; `told` hears how many bytes are gone. `fetch` would not tell. */
export function upload(file: File, told: (bytes: number) => void): Sending {
  const request = new XMLHttpRequest();
  const done = new Promise<string>((resolve, reject) => {
    request.upload.onprogress = ({ loaded }) => told(loaded);
    request.onload = () => {
      if (request.status !== 200) reject(new Error(problem(request.status, request.responseText)));
      else resolve((JSON.parse(request.responseText) as { name: string }).name);
    };
    // A server that refuses a body closes the connection, which may be all that the browser sees.
    request.onerror = () => reject(new Error("The upload broke off: the server refused it, or has ended."));
    request.onabort = () => reject(new Error("stopped"));
  });
  request.open("PUT", `/api/captures/${encodeURIComponent(file.name)}`);
  request.send(file);
  return { done, abort: () => request.abort() };
}
