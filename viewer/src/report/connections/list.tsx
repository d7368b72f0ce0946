import { useEffect, useRef, useState } from "preact/hooks";
import type { PageCapture } from "../../data/page.ts";
import { bytes, count, duration, percent } from "../../text/number.ts";
import { programsOf } from "../../text/programs.ts";
import { LedgerBar } from "../ledger.tsx";
import { go, hrefOf } from "../route.ts";
import { Sign } from "../severity.tsx";
import {
  type Column,
  type Filter,
  filtered,
  NO_FILTER,
  type Row,
  rulesOf,
  type Sorting,
  sorted,
} from "./order.ts";
import { inSight, type Slice } from "./window.ts";

/** What its reader made of a list; it outlives the list, so that the way back from a connection finds it as it was. */
export interface View {
  filter: Filter;
  sorting: Sorting;
  /** The row that arrow keys move from: a connection's id. */
  current: number | undefined;
}

/** Height of a row in px, as style/list.css has it. */
const ROW_HEIGHT = 52;
/** Rows on paper; the file has them all. */
const PRINTED = 100;

interface Heading {
  column: Column;
  name: string;
  title: string;
}

const HEADINGS: Heading[] = [
  { column: "worst", name: "", title: "the worst findings first" },
  { column: "id", name: "#", title: "order of appearance" },
  { column: "names", name: "client → server", title: "names" },
  { column: "lost", name: "where the time went", title: "time lost to TCP" },
  { column: "duration", name: "time", title: "first packet to last" },
  { column: "rtt", name: "RTT", title: "shortest round trip" },
  { column: "exchanges", name: "exchange", title: "median time of an exchange" },
  { column: "packets", name: "packets", title: "packets both ways" },
  { column: "bytes", name: "bytes", title: "payload both ways" },
];
/** Columns that are read from the top of the alphabet or the first packet. */
const ASCENDING: ReadonlySet<Column> = new Set(["id", "names"]);

interface Props {
  capture: number;
  rows: Row[];
  known: PageCapture;
  view: View;
  setView(view: View): void;
  printing: boolean;
}

/** The connections of a capture, to sort and filter; only the rows in sight are drawn. */
export function Connections({ capture, rows, known, view, setView, printing }: Props) {
  const shown = sorted(filtered(rows, view.filter), view.sorting);
  const rules = [...new Set(rows.flatMap((row) => row.findings.map(({ finding }) => finding.rule)))].sort();
  return (
    <section aria-labelledby="connections">
      <div class="section-head">
        <h2 id="connections">Connections</h2>
        <span class="faint" role="status">
          {shownOf(shown.length, rows.length, known.connections)}
        </span>
      </div>
      <Toolbar view={view} setView={setView} rules={rules} />
      <Grid capture={capture} rows={shown} view={view} setView={setView} printing={printing} />
    </section>
  );
}

/** `12 of 340`, and how many more the capture has than this file. */
function shownOf(shown: number, here: number, inAll: number): string {
  const some = shown === here ? count(here) : `${count(shown)} of ${count(here)}`;
  return inAll > here ? `${some} in this file, ${count(inAll)} in the capture` : some;
}

function Toolbar({ view, setView, rules }: { view: View; setView(view: View): void; rules: string[] }) {
  const set = (change: Partial<Filter>) => setView({ ...view, filter: { ...view.filter, ...change } });
  const { text, rule, onlyFindings } = view.filter;
  const isFiltered = text !== "" || rule !== "" || onlyFindings;
  return (
    <search class="toolbar">
      <label class="for-readers" for="filter">
        Filter by address, program, number or rule
      </label>
      <input
        id="filter"
        type="search"
        placeholder="Filter: address, program, #number, rule"
        value={text}
        autocomplete="off"
        spellcheck={false}
        onInput={(event) => set({ text: event.currentTarget.value })}
      />
      {rules.length > 0 && (
        <>
          <label class="for-readers" for="filter-rule">
            Rule
          </label>
          <select
            id="filter-rule"
            value={rule}
            onChange={(event) => set({ rule: event.currentTarget.value })}
          >
            <option value="">any rule</option>
            {rules.map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
          <label class="check">
            <input
              type="checkbox"
              checked={onlyFindings}
              onChange={(event) => set({ onlyFindings: event.currentTarget.checked })}
            />
            with findings
          </label>
        </>
      )}
      {isFiltered && (
        <button type="button" onClick={() => setView({ ...view, filter: NO_FILTER })}>
          Show all
        </button>
      )}
    </search>
  );
}

interface GridProps {
  capture: number;
  rows: Row[];
  view: View;
  setView(view: View): void;
  printing: boolean;
}

function Grid({ capture, rows, view, setView, printing }: GridProps) {
  const body = useRef<HTMLDivElement>(null);
  const slice = useSlice(body, rows.length, printing);
  const at = rows.findIndex((row) => row.connection.id === view.current);
  const open = (row: Row) => go(hrefOf(capture, row.connection.id));

  const keyDown = (event: KeyboardEvent) => {
    const current = rows[at];
    if (event.key === "Enter" && current) return open(current);
    const next = destination(event, at, rows.length);
    const row = next === undefined ? undefined : rows[next];
    if (next === undefined || !row) return;
    event.preventDefault();
    setView({ ...view, current: row.connection.id });
    if (body.current) reveal(body.current, next);
  };

  return (
    <div
      class="grid"
      role="grid"
      tabIndex={0}
      aria-labelledby="connections"
      aria-rowcount={rows.length + 1}
      aria-activedescendant={at >= 0 ? `row-${view.current}` : undefined}
      onKeyDown={keyDown}
      onFocus={() => {
        if (at < 0 && rows[0]) setView({ ...view, current: rows[0].connection.id });
      }}
    >
      <Headings sorting={view.sorting} sort={(sorting) => setView({ ...view, sorting })} />
      <div
        class="grid-body"
        role="rowgroup"
        ref={body}
        style={{ height: `${(printing ? Math.min(rows.length, PRINTED) : rows.length) * ROW_HEIGHT}px` }}
      >
        {rows.slice(slice.first, slice.end).map((row, i) => (
          <GridRow
            key={row.connection.id}
            capture={capture}
            row={row}
            index={slice.first + i}
            current={row.connection.id === view.current}
          />
        ))}
      </div>
      {rows.length === 0 && <p class="empty">No connection passes this filter.</p>}
      {printing && rows.length > PRINTED && <p class="faint">And {count(rows.length - PRINTED)} more.</p>}
    </div>
  );
}

/** The row that a key leads to. */
function destination(event: KeyboardEvent, at: number, rows: number): number | undefined {
  if (event.ctrlKey || event.metaKey || event.altKey) return undefined;
  const page = Math.max(1, Math.floor(innerHeight / ROW_HEIGHT) - 3);
  const steps: Record<string, number> = {
    ArrowDown: 1,
    j: 1,
    ArrowUp: -1,
    k: -1,
    PageDown: page,
    PageUp: -page,
  };
  if (event.key === "Home") return 0;
  if (event.key === "End") return rows - 1;
  const step = steps[event.key];
  return step === undefined ? undefined : Math.min(Math.max(at + step, 0), rows - 1);
}

/** Scrolls the page just so far that a row is in sight below the bars at its top. */
function reveal(body: HTMLElement, index: number): void {
  const top = body.getBoundingClientRect().top + index * ROW_HEIGHT;
  const covered = 120;
  if (top < covered) scrollBy({ top: top - covered });
  else if (top + ROW_HEIGHT > innerHeight) scrollBy({ top: top + ROW_HEIGHT + 8 - innerHeight });
}

function useSlice(body: { current: HTMLElement | null }, rows: number, printing: boolean): Slice {
  const [slice, setSlice] = useState<Slice>({ first: 0, end: 40 });
  useEffect(() => {
    const update = () => {
      const top = body.current?.getBoundingClientRect().top ?? 0;
      const next = inSight(rows, ROW_HEIGHT, top, innerHeight);
      setSlice((last) => (last.first === next.first && last.end === next.end ? last : next));
    };
    update();
    addEventListener("scroll", update, { passive: true });
    addEventListener("resize", update);
    return () => {
      removeEventListener("scroll", update);
      removeEventListener("resize", update);
    };
  }, [rows]);
  return printing ? { first: 0, end: Math.min(rows, PRINTED) } : slice;
}

function Headings({ sorting, sort }: { sorting: Sorting; sort(sorting: Sorting): void }) {
  return (
    <div class="grid-head" role="rowgroup">
      <div class="grid-row" role="row" tabIndex={-1} aria-rowindex={1}>
        {HEADINGS.map(({ column, name, title }) => {
          const isBy = sorting.by === column;
          const descending = isBy ? !sorting.descending : !ASCENDING.has(column);
          return (
            <div
              key={column}
              class={`cell-${column}`}
              role="columnheader"
              tabIndex={-1}
              aria-sort={isBy ? (sorting.descending ? "descending" : "ascending") : "none"}
            >
              <button
                type="button"
                title={`Sort by ${title}`}
                aria-label={`${name} sort by ${title}`}
                onClick={() => sort({ by: column, descending })}
                onKeyDown={(event) => event.stopPropagation()}
              >
                {name || "!"}
                <span class="sort-mark" aria-hidden="true">
                  {isBy ? (sorting.descending ? "▾" : "▴") : ""}
                </span>
              </button>
            </div>
          );
        })}
      </div>
    </div>
  );
}

interface GridRowProps {
  capture: number;
  row: Row;
  index: number;
  current: boolean;
}

function GridRow({ capture, row, index, current }: GridRowProps) {
  const { connection, findings, lost } = row;
  const { id, client, server, protocol, ledger_ms, duration_ms, base_rtt_ms, exchanges, packets } =
    connection;
  const worst = findings[0]?.finding;
  const about = [...(protocol === "udp" ? ["UDP"] : []), ...rulesOf(row)].join(", ");
  const programs = programsOf(connection);
  return (
    <div
      id={`row-${id}`}
      class={`grid-row ${current ? "current" : ""}`}
      role="row"
      tabIndex={-1}
      aria-rowindex={index + 2}
      style={{ top: `${index * ROW_HEIGHT}px` }}
    >
      <Cell column="worst">{worst && <Sign severity={worst.severity} />}</Cell>
      <Cell column="id">{id}</Cell>
      <Cell column="names">
        <a class="names" href={hrefOf(capture, id)} tabIndex={-1} title={`${client} → ${server}`}>
          <bdi>{client}</bdi> → <bdi>{server}</bdi>
        </a>
        {(programs || about) && (
          <span class="rules">
            {about}
            {programs && (
              <>
                {about && " · "}
                <bdi>{programs[0]}</bdi> → <bdi>{programs[1]}</bdi>
              </>
            )}
          </span>
        )}
      </Cell>
      <Cell column="lost">
        <LedgerBar ledger={ledger_ms} />
        <span class="lost-part">
          {lost > 0 ? `${duration(lost)} lost, ${percent(lost, duration_ms)}` : ""}
        </span>
      </Cell>
      <Cell column="duration">{duration(duration_ms)}</Cell>
      <Cell column="rtt">{base_rtt_ms === null ? "–" : duration(base_rtt_ms)}</Cell>
      <Cell column="exchanges">{exchanges ? `${duration(exchanges.p50_ms)}` : "–"}</Cell>
      <Cell column="packets">{count(packets.to_server + packets.to_client)}</Cell>
      <Cell column="bytes">{bytes(connection.bytes.to_server + connection.bytes.to_client)}</Cell>
    </div>
  );
}

function Cell({ column, children }: { column: Column; children: preact.ComponentChildren }) {
  return (
    <span class={`cell-${column}`} role="gridcell" tabIndex={-1}>
      {children}
    </span>
  );
}
