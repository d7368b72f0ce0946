import { useEffect, useRef, useState } from "preact/hooks";
import { ConnectionView } from "../charts/index.ts";
import { readTable } from "../data/inflate.ts";
import type { Page, PageCapture, Report } from "../data/page.ts";
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
  const { connection, findings } = row;
  const section = useRef<HTMLElement>(null);
  const number = known.tables.find((info) => info.connection === connection.id)?.table;
  const { table, trouble } = useTable(number);
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
          findings={findings.map(({ finding }) => finding)}
          onRange={(range) => note(routeOf(range ? { ...focus, range } : { packet: focus.packet }))}
        />
      )}
    </section>
  );
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
