import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ConnectionView } from "../charts/index.ts";
import { readTable } from "../data/inflate.ts";
import type { Capture, Finding, Page, PageCapture, Report } from "../data/page.ts";
import type { Table } from "../data/table.ts";
import { plain } from "../text/plain.ts";
import type { Row } from "./connections/order.ts";
import { type Focus, note, type Route } from "./route.ts";

interface Props {
  report: Report;
  page: Page;
  capture: number;
  known: PageCapture;
  row: Row;
  focus: Focus;
  /** The route of another focus on the same place. */
  routeOf(focus: Focus): Route;
}

/** A table that was read, `undefined` while it is read; `trouble` where it is damaged. */
interface Read {
  table?: Table | null;
  trouble?: string;
}

/** The packets of a connection, where the page has them, or why it has not. */
export function Packets({ report, page, capture, known, row, focus, routeOf }: Props) {
  const { connection } = row;
  const section = useRef<HTMLElement>(null);
  const number = known.tables.find((info) => info.connection === connection.id)?.table;
  const { table, trouble } = useTable(number);
  const shown = useMemo(
    () => findingsOf(row, report.captures[capture], known),
    [row, report, capture, known],
  );
  useEffect(() => {
    if (focus.packet !== undefined && table) section.current?.scrollIntoView({ block: "start" });
  }, [focus.packet, table]);
  return (
    <section class="card" ref={section} aria-labelledby="packets">
      <h2 id="packets">Packets</h2>
      {trouble !== undefined && <p class="trouble-here">{trouble}</p>}
      {trouble === undefined && table === undefined && <p class="faint">Reading the packets…</p>}
      {table !== undefined && (
        <ConnectionView
          report={report}
          page={page}
          capture={capture}
          connection={connection}
          table={table}
          focus={focus}
          findings={shown}
          onRange={(range) => note(routeOf(range ? { ...focus, range } : { packet: focus.packet }))}
        />
      )}
    </section>
  );
}

/** Those of the connection, and what its packets show of findings about several connections or the whole capture. */
function findingsOf(row: Row, capture: Capture | undefined, known: PageCapture): Finding[] {
  const own = row.findings.map(({ finding }) => finding);
  const places = known.shared_evidence.filter(({ connection }) => connection === row.connection.id);
  const here = new Set(places.map(({ packet }) => packet));
  const shared = (capture?.findings ?? [])
    .filter((finding) => finding.connection === null && !own.includes(finding))
    .map((finding) => ({ ...finding, evidence: finding.evidence.filter(({ packet }) => here.has(packet)) }))
    .filter(({ evidence }) => evidence.length > 0);
  return [...own, ...shared];
}

/** Reads a table when its connection is looked at; those of the others stay packed. */
function useTable(number: number | undefined): Read {
  const [read, setRead] = useState<Read & { of?: number }>({});
  useEffect(() => {
    if (number === undefined) return;
    let current = true;
    const put = (read: Read) => current && setRead({ ...read, of: number });
    readTable(document.getElementById(`tcpwhy-packets-${number}`)?.textContent ?? "").then(
      (table) => put({ table }),
      (error) => put({ trouble: plain(error instanceof Error ? error.message : String(error)) }),
    );
    return () => {
      current = false;
    };
  }, [number]);
  if (number === undefined) return { table: null };
  return read.of === number ? read : {};
}
