import { plain, plainAll } from "../text/plain.ts";
import type { Page, Report } from "./page.ts";

/** A report with what the page knows beside it. Texts of the capture are plain. */
export interface Loaded {
  report: Report;
  page: Page;
}

/** Reads what was written into the document, or says in one sentence why it cannot. */
export function load(document: Document): Loaded | string {
  try {
    const report = element<Report>(document, "tcpwhy-report", "tcpwhy-report/2");
    const page = element<Page>(document, "tcpwhy-page", "tcpwhy-page/1");
    if (page.captures.length !== report.captures.length) return "This file is damaged: its two parts differ.";
    return { report: plainAll(report), page: { ...page, captures: plainAll(page.captures) } };
  } catch (error) {
    return error instanceof Missing ? error.message : `This file is damaged: ${plain(String(error))}`;
  }
}

class Missing extends Error {}

function element<T extends { format: string }>(document: Document, id: string, format: T["format"]): T {
  const text = document.getElementById(id)?.textContent;
  if (!text) throw new Missing("This file has no report in it. `tcpwhy FILE --html report.html` writes one.");
  const value: T = JSON.parse(text);
  if (value.format !== format) {
    throw new Missing(`This page reads ${format}, and the report is ${plain(String(value.format))}.`);
  }
  return value;
}
