import { useEffect, useRef } from "preact/hooks";
import type { Connection, Evidence, Page, Report } from "../data/page.ts";
import type { Calls } from "../generated/report.ts";
import { booked, total } from "../text/lines.ts";
import { bytes, count, duration, percent, plural } from "../text/number.ts";
import { shortened } from "../text/plain.ts";
import { programsOf } from "../text/programs.ts";
import { CallsPanel } from "./calls.tsx";
import type { Row } from "./connections/order.ts";
import { FindingBody, FindingHead } from "./finding.tsx";
import { Ledger, lostOf } from "./ledger.tsx";
import { Packets } from "./packets.tsx";
import { type Focus, href, hrefOf } from "./route.ts";

/** Longest host name (RFC 1035 2.3.4) and port fit; what is longer is not a name. */
const LONGEST_NAME = 261;

interface Props {
  report: Report;
  page: Page;
  /** Index into the report's captures. */
  capture: number;
  row: Row;
  /** The finding that is open: its place in the capture's list. */
  open: number | undefined;
  focus: Focus;
  printing: boolean;
}

/** What is known of one connection below its headline: its findings, and its packets. */
export function ConnectionBody({ report, page, capture, row, open, focus, printing }: Props) {
  return (
    <>
      <Findings page={page} capture={capture} row={row} open={open} focus={focus} printing={printing} />
      <PacketsAt report={report} page={page} capture={capture} row={row} open={open} focus={focus} />
      <CallsOf connection={row.connection} calls={report.captures[capture]?.calls} />
    </>
  );
}

/** The way back and to the neighbours, and what the connection is. */
export function ConnectionHead({ capture, row, around }: { capture: number; row: Row; around: Row[] }) {
  const { connection } = row;
  const heading = useRef<HTMLHeadingElement>(null);
  // Who comes from the list by keyboard goes on reading here.
  useEffect(() => heading.current?.focus({ preventScroll: true }), [capture, connection.id]);
  return (
    <header class="connection-head">
      <Way capture={capture} row={row} around={around} />
      <h1 ref={heading} tabIndex={-1}>
        <span class="faint">#{connection.id}</span> <Ends connection={connection} />
      </h1>
      <Facts connection={connection} />
    </header>
  );
}

/** Client and server; a name from a capture does not turn the text around it. */
export function Ends({ connection: { client, server } }: { connection: Connection }) {
  return (
    <>
      <bdi>{shortened(client, LONGEST_NAME)}</bdi> → <bdi>{shortened(server, LONGEST_NAME)}</bdi>
    </>
  );
}

/** The programs at its ends, its figures, its exchanges and its rhythms, in a line each. */
export function Facts({ connection }: { connection: Connection }) {
  const lines = [
    figures(connection),
    exchangeFigures(connection),
    ...rhythms(connection),
    ...smallWaits(connection),
  ];
  const programs = programsOf(connection);
  return (
    <>
      {programs && (
        <p class="facts">
          <bdi>{programs[0]}</bdi> → <bdi>{programs[1]}</bdi>
        </p>
      )}
      {lines
        .filter((line) => line.length > 0)
        .map((line) => (
          <p class="facts" key={line.join()}>
            {line.join(" · ")}
          </p>
        ))}
    </>
  );
}

export function ConnectionLedger({ connection }: { connection: Connection }) {
  return (
    <section class="card" aria-labelledby="connection-ledger">
      <div class="section-head">
        <h2 id="connection-ledger">Where the time went</h2>
        <span class="faint">{lostOf(connection.ledger_ms)}</span>
      </div>
      <Ledger ledger={connection.ledger_ms} of={`connection #${connection.id}`} />
    </section>
  );
}

function Way({ capture, row, around }: { capture: number; row: Row; around: Row[] }) {
  const at = around.findIndex(({ connection }) => connection.id === row.connection.id);
  const [before, after] = [around[at - 1], around[at + 1]];
  return (
    <nav class="way" aria-label="Connections">
      <a href={href({ at: "capture", capture })}>← all connections</a>
      <span class="way-steps">
        {before && (
          <a href={hrefOf(capture, before.connection.id)} rel="prev">
            ‹ previous
          </a>
        )}
        {at >= 0 && (
          <span class="faint">
            {count(at + 1)} of {count(around.length)}
          </span>
        )}
        {after && (
          <a href={hrefOf(capture, after.connection.id)} rel="next">
            next ›
          </a>
        )}
      </span>
    </nav>
  );
}

function figures({
  protocol,
  packets,
  bytes: size,
  vantage,
  base_rtt_ms,
  duration_ms,
}: Connection): string[] {
  const place = {
    client: "captured at the client",
    server: "captured at the server",
    middle: "captured between the two",
    unknown: "place of capture unknown",
  };
  return [
    protocol.toUpperCase(),
    duration(duration_ms),
    ...(base_rtt_ms === null ? [] : [`base RTT ${duration(base_rtt_ms)}`]),
    `→ ${plural(packets.to_server, "packet")}, ${bytes(size.to_server)}`,
    `← ${plural(packets.to_client, "packet")}, ${bytes(size.to_client)}`,
    place[vantage],
  ];
}

/** Latencies, and the three lines that most of their time went to. */
function exchangeFigures({ exchanges }: Connection): string[] {
  if (exchanges === null) return [];
  const { count: n, p50_ms, p99_ms, max_ms, ledger_ms, slowest } = exchanges;
  const name = slowest === null ? "" : ` (${slowest})`;
  const all = total(ledger_ms);
  const shares = booked(ledger_ms)
    .slice(0, 3)
    .map(([line, ms]) => `${line} ${percent(ms, all)}`);
  const times =
    n === 1
      ? [`1 exchange in ${duration(max_ms)}${name}`]
      : [
          plural(n, "exchange"),
          `p50 ${duration(p50_ms)}`,
          `p99 ${duration(p99_ms)}`,
          `max ${duration(max_ms)}${name}`,
        ];
  return shares.length > 0 ? [...times, shares.join(", ")] : times;
}

/** Time that was lost to TCP and that no finding owns. */
function smallWaits({ small_waits: small }: Connection): string[][] {
  if (small === null) return [];
  const worst = small.count > 1 ? `, worst ${duration(small.worst_ms)}` : "";
  return [
    [`small waits that no finding owns: ${count(small.count)}`, `${duration(small.total_ms)} in all${worst}`],
  ];
}

/** `client sends 10.0/s, one every 100 ms, evenly`. */
function rhythms({ cadence }: Connection): string[][] {
  return cadence.map(({ from, per_second, period_ms, evenness }) => {
    const rate = per_second < 100 ? per_second.toFixed(1) : count(Math.round(per_second));
    const how = evenness >= 0.8 ? ", evenly" : evenness < 0.5 ? ", unevenly" : "";
    return [`${from} sends ${rate}/s, one every ${duration(period_ms)}${how}`];
  });
}

function Findings({ page, capture, row, open, focus, printing }: Omit<Props, "report">) {
  const { connection, findings } = row;
  if (findings.length === 0) return null;
  return (
    <section class="card" aria-labelledby="connection-findings">
      <h2 id="connection-findings">{plural(findings.length, "finding")}</h2>
      {findings.map(({ finding, index }, nth) => {
        const again = printing && findings.slice(0, nth).some((other) => other.finding.rule === finding.rule);
        const isOpen = printing || index === open;
        const jump = ({ packet }: Evidence) =>
          href({ at: "finding", capture, finding: index, focus: { packet } });
        const to = isOpen
          ? hrefOf(capture, connection.id)
          : href({ at: "finding", capture, finding: index, focus: {} });
        return (
          <article key={index} class={isOpen ? "finding open" : "finding"}>
            <h3>
              <FindingHead finding={finding} to={to} open={isOpen} />
            </h3>
            {isOpen && (
              <FindingBody finding={finding} page={page} jump={jump} at={focus.packet} again={again} />
            )}
          </article>
        );
      })}
    </section>
  );
}

function PacketsAt({ report, page, capture, row, open, focus }: Omit<Props, "printing">) {
  const known = page.captures[capture];
  if (!known) return null;
  return (
    <Packets
      report={report}
      page={page}
      capture={capture}
      known={known}
      row={row}
      focus={focus}
      routeOf={(next) =>
        open === undefined
          ? { at: "connection", capture, connection: row.connection.id, focus: next }
          : { at: "finding", capture, finding: open, focus: next }
      }
    />
  );
}

/** What was recorded of the programs at its ends. */
function CallsOf({ connection: { client, server }, calls }: { connection: Connection; calls?: Calls }) {
  const sockets = calls?.sockets.filter(
    ({ local, peer }) => (local === client && peer === server) || (local === server && peer === client),
  );
  if (!calls || !sockets || sockets.length === 0) return null;
  return <CallsPanel calls={calls} sockets={sockets} />;
}

/** What a report says where its reader asks for a connection that it has not. */
export function NoConnection({ capture, connection }: { capture: number; connection: number }) {
  return (
    <section class="card">
      <h1>There is no connection #{connection} here.</h1>
      <p>
        A page has the connections with findings and the busiest of the others, not always all of a capture.
      </p>
      <p>
        <a href={href({ at: "capture", capture })}>To the connections of this capture</a>
      </p>
    </section>
  );
}
