/** Pages that the real program makes, each once a run. */

import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const ROOT = resolve(import.meta.dirname, "../..");
const TCPWHY = process.env.TCPWHY ?? join(ROOT, "target/debug/tcpwhy");
const FOLDER = mkdtempSync(join(tmpdir(), "tcpwhy-pages-"));
process.on("exit", () => rmSync(FOLDER, { recursive: true, force: true }));
const made = new Map<string, string>();

/** A file of the repository. */
export function file(path: string): string {
  return join(ROOT, path);
}

/** Writes a capture of one's own; its name is told in the report. */
export function capture(name: string, text: string): string {
  const folder = join(FOLDER, "captures");
  mkdirSync(folder, { recursive: true });
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

/** The URL of the page that `tcpwhy FILES --html` writes. */
export function pageOf(...args: string[]): string {
  const key = args.join("\0");
  const known = made.get(key);
  if (known) return known;
  const out = join(FOLDER, `${made.size}.html`);
  // Exit status 1 is a report with something found where that was asked for; it is not asked for here.
  execFileSync(TCPWHY, [...args, "--html", out], { stdio: ["ignore", "ignore", "pipe"] });
  const url = `file://${out}`;
  made.set(key, url);
  return url;
}
