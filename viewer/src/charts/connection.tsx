/** Everything of one connection that needs its packets. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Connection, Finding, Page, Report, TableInfo } from "../data/page.ts";
import type { Side, Table } from "../data/table.ts";
import { count, plural } from "../text/number.ts";
import "./charts.css";
import { Details } from "./details.tsx";
import { Model } from "./model.ts";
import { PacketGrid } from "./packets/grid.tsx";
import { useDrawn, useRest } from "./rest.ts";
import { headingOf } from "./sequence/axes.ts";
import { Legend } from "./sequence/legend.tsx";
import { Overview } from "./sequence/overview.tsx";
import { Plot } from "./sequence/plot.tsx";
import { Toolbar } from "./sequence/toolbar.tsx";
import { span, within } from "./view.ts";
import { duration } from "./words.ts";

const NS_PER_MS = 1e6;

export interface ConnectionViewProps {
  report: Report;
  page: Page;
  /** Index into the report's captures. */
  capture: number;
  connection: Connection;
  /** Its packets; null where the page has none. */
  table: Table | null;
  /** A packet (its frame number) to choose, or a stretch of time to show, ms since the capture's first packet. */
  focus?: { packet?: number; range?: [number, number] };
  /** Called with the stretch that is shown, ms, once it has come to rest; null for all of it. */
  onRange: (range: [number, number] | null) => void;
  /** Those of this connection. */
  findings: Finding[];
}

/** The pane of one connection below its header. */
export function ConnectionView(props: ConnectionViewProps) {
  const { page, capture, connection, table } = props;
  const about = page.captures[capture];
  if (!table || table.marks.count === 0) {
    const reason =
      about?.no_packets ?? "they are not in this page. `--html-packets` puts in more connections.";
    return <p class="faint charts-none">No pictures of its packets: {reason}</p>;
  }
  const info = about?.tables.find((other) => other.connection === connection.id);
  return <Charts {...props} table={table} info={info} />;
}

type ChartsProps = ConnectionViewProps & { table: Table; info: TableInfo | undefined };

function Charts({ connection, table, findings, focus, onRange, info }: ChartsProps) {
  const every = info?.every ?? 1;
  const noun = connection.protocol === "udp" ? "datagram" : "segment";
  const same = useSame(findings);
  const model = useMemo(() => new Model(table, same, every > 1, noun), [table, same, every, noun]);
  const [senders, setSenders] = useState<Side[]>([0, 1]);
  const rest = useRest(model);
  const isDrawn = useDrawn();
  const [from, until] = focus?.range ?? [];
  useEffect(() => {
    if (from === undefined || until === undefined) return;
    const wanted = within({ from: from * NS_PER_MS, until: until * NS_PER_MS }, model.all);
    // What the page itself has just told is shown already, but for rounding.
    const off = Math.abs(wanted.from - model.goal.from) + Math.abs(wanted.until - model.goal.until);
    if (off > span(wanted) * 1e-3) model.glide(wanted, "address");
  }, [model, from, until]);
  useEffect(() => {
    if (focus?.packet !== undefined) model.choosePacket(focus.packet);
  }, [model, focus?.packet]);
  const hasTold = useRef(false);
  useEffect(() => {
    // Before anybody has zoomed there is nothing to tell.
    if (rest === model.all && !hasTold.current) return;
    hasTold.current = true;
    onRange(model.isWhole ? null : [rest.from / NS_PER_MS, rest.until / NS_PER_MS]);
  }, [rest]);
  const label = `Time-sequence plot. ${summary(model)} Keys: plus and minus zoom, left and right move, up and down go from packet to packet, n to the next packet of a finding, y and Shift and y zoom in bytes, f fits them, Escape goes back, 0 shows all.`;
  return (
    <div class="charts">
      <Toolbar model={model} senders={senders} choose={setSenders} />
      <div class="plot-and-packets">
        <figure class="sequence-figure">
          <Overview model={model} />
          <Plot model={model} senders={senders} label={label} />
          <Legend model={model} senders={senders} />
          <figcaption>
            {summary(model)}
            {leftOut(info)}
            <span class="on-screen">
              {" "}
              The wheel or a drag zooms, a click chooses a packet, ? shows the keys.
            </span>
          </figcaption>
        </figure>
        <PacketGrid model={model} />
      </div>
      {isDrawn && <Details model={model} connection={connection} view={rest} />}
    </div>
  );
}

/** The array of before, if the present one has the same things in it: nothing is made anew for a copy then. */
function useSame<T>(things: T[]): T[] {
  const before = useRef(things);
  const isSame =
    before.current.length === things.length &&
    things.every((thing, index) => thing === before.current[index]);
  if (!isSame) before.current = things;
  return before.current;
}

/** What is not there of a connection that is too large for its place in the page; one sentence or two. */
function leftOut(info: TableInfo | undefined): string {
  if (!info) return "";
  const { every, packets, coarse_ledger, without_held } = info;
  const drawn =
    every > 1 &&
    `Of ${plural(packets, "packet")}, one in ${count(every)} is drawn, and all near evidence${without_held ? "; ACKs that a receiver held are not marked" : ""}.`;
  const coarse =
    coarse_ledger &&
    "It has more waits than fit in here: neighbouring ones are put together, so that their sums are right and their order is not.";
  return [drawn, coarse]
    .filter((part) => part !== false)
    .map((part) => ` ${part}`)
    .join("");
}

/** What the plot shows, in numbers. */
function summary(model: Model): string {
  const { scenes, sampled, table, life } = model;
  const directions = scenes.map((scene) => headingOf(scene, model.noun, sampled).replace("→", "to"));
  return `${plural(table.marks.count, "packet")} in ${duration(span(life))}; ${directions.join("; ")}.`;
}
