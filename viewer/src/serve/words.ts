import { bytes, count, duration, percent } from "../text/number.ts";
import type { Capture, Change, Cost, Job, Report } from "./api.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** How long ago something was, `now` in ms since 1970: `just now`, `5 min ago`, `3 h ago`, then the date. */
export function ago(then: number, now: number): string {
  const gone = now - then;
  if (gone < MINUTE) return "just now";
  if (gone < HOUR) return `${Math.floor(gone / MINUTE)} min ago`;
  if (gone < DAY) return `${Math.floor(gone / HOUR)} h ago`;
  return date(then).slice(0, 10);
}

/** `2026-03-02 14:05`, by the reader's clock. */
export function date(ms: number): string {
  const at = new Date(ms);
  const two = (n: number) => String(n).padStart(2, "0");
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return `${day} ${two(at.getHours())}:${two(at.getMinutes())}`;
}

/** How far an analysis has come, 0 to 1; undefined where nobody knows. */
export function share(job: Job): number | undefined {
  return job.size > 0 ? Math.min(1, job.bytes / job.size) : undefined;
}

/** What an analysis does: `3.20 MB of 10.0 MB, 41,200 packets`. */
export function doing(job: Job): string {
  switch (job.state) {
    case "waiting":
      return "waits for its turn";
    case "running": {
      // Everything is read, and of many connections the report takes a while.
      if (job.size > 0 && job.bytes >= job.size) return `makes the report of ${count(job.packets)} packets`;
      const again = job.pass > 1 ? "looks again: " : "";
      return `${again}${bytes(job.bytes)} of ${bytes(job.size)}, ${count(job.packets)} packets`;
    }
    case "done":
      return "done";
    case "failed":
      return job.error ?? "failed";
    case "cancelled":
      return "cancelled";
  }
}

/** Whether it goes on. */
export function isUnderway(job: Job): boolean {
  return job.state === "waiting" || job.state === "running";
}

/** The latest analysis of a capture; jobs come with the latest first. */
export function jobOf(capture: Capture, jobs: Job[]): Job | undefined {
  return jobs.find((job) => job.capture === capture.name);
}

/** The latest report of the capture as it is now; reports come with the latest first. */
export function reportOf(capture: Capture, reports: Report[]): Report | undefined {
  return reports.find(
    (report) =>
      report.capture === capture.name &&
      report.size === capture.size &&
      report.modified_ms === capture.modified_ms,
  );
}

/** Two reports to compare, in the order in which they were chosen. */
export type Pair = number[];

/** `pair` after a click on a report's box: a third takes the place of the second. */
export function toggled(pair: Pair, id: number): Pair {
  if (pair.includes(id)) return pair.filter((other) => other !== id);
  return [...pair.slice(0, 1), id];
}

/** What became of a finding. */
export const CHANGES: Record<Change, { word: string; kind: "good" | "bad" | "" }> = {
  gone: { word: "gone", kind: "good" },
  new: { word: "new", kind: "bad" },
  better: { word: "less", kind: "good" },
  worse: { word: "more", kind: "bad" },
  same: { word: "as before", kind: "" },
};

/** What findings cost: for each exchange where there were any, else as a share of the time. */
export function cost(cost: Cost | null): string {
  if (cost === null) return "–";
  if (cost.cost_ms === 0) return `seen ${count(cost.count)}×`;
  const each =
    cost.per_exchange_ms === null
      ? `${percent(cost.share, 1)} of the time`
      : `${duration(cost.per_exchange_ms)} an exchange`;
  return `${each}, ${duration(cost.cost_ms)} in all`;
}

/** Where a hash leads: the list, or a comparison. */
export type Route = { at: "list" } | { at: "compare"; before: number; after: number };

export function routeOf(hash: string): Route {
  const found = /^#\/compare\/(\d+)\/(\d+)$/.exec(hash);
  if (!found) return { at: "list" };
  return { at: "compare", before: Number(found[1]), after: Number(found[2]) };
}

/** The hash of a comparison. */
export function compareHash(before: number, after: number): string {
  return `#/compare/${before}/${after}`;
}
