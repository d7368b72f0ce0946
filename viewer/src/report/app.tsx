import { useEffect, useMemo, useState } from "preact/hooks";
import type { Loaded } from "../data/load.ts";
import type { Capture, PageCapture } from "../data/page.ts";
import { AppBar } from "./bar.tsx";
import {
  ConnectionBody,
  ConnectionHead,
  ConnectionLedger,
  Ends,
  Facts,
  NoConnection,
} from "./connection.tsx";
import type { View } from "./connections/list.tsx";
import { filtered, NO_FILTER, type Row, rowsOf, sorted, WORST_FIRST } from "./connections/order.ts";
import { FindingBody, FindingHead, jumpTo } from "./finding.tsx";
import { HopsPanel } from "./hops.tsx";
import { Help, useKeys } from "./keys.tsx";
import { CaptureHead, Captures, Notes, Overview } from "./overview.tsx";
import { type Focus, href, type Route, useRoute } from "./route.ts";
import { useScroll } from "./scroll.ts";

const NEW_VIEW: View = { filter: NO_FILTER, sorting: WORST_FIRST, current: undefined };

/** The whole page. */
export function App({ loaded, printing }: { loaded: Loaded; printing: boolean }) {
  const { report, page } = loaded;
  const route = useRoute();
  const [views, setViews] = useState<Record<number, View>>({});
  const [help, setHelp] = useState(false);
  const rows = useMemo(() => report.captures.map((it) => rowsOf(it.connections, it.findings)), [report]);
  const place = placeOf(route, report.captures, rows);
  const view = (place && views[place.index]) ?? NEW_VIEW;
  const around = place ? sorted(filtered(place.rows, view.filter), view.sorting) : [];
  useScroll(pageOf(place));
  useKeys({ place, around, help: () => setHelp(true) });
  useEffect(() => {
    document.title = `${place?.capture.name ?? "report"} – tcpwhy`;
  }, [place]);

  return (
    <>
      <button type="button" class="skip" onClick={() => document.getElementById("content")?.focus()}>
        Skip to the content
      </button>
      <AppBar report={report} at={place?.index} help={() => setHelp(true)} />
      <main id="content" tabIndex={-1}>
        {place === undefined ? (
          <Captures captures={report.captures} page={page} />
        ) : (
          <PlacePart
            loaded={loaded}
            place={place}
            view={view}
            setView={(next) => setViews({ ...views, [place.index]: next })}
            around={around}
            printing={printing}
          />
        )}
        {report.hops && (place === undefined || report.captures.length === 1) && (
          <HopsPanel hops={report.hops} page={page} />
        )}
      </main>
      <footer class="faint">
        tcpwhy {report.version} · this file loads nothing and sends nothing
        <span class="on-screen">
          {" "}
          · <kbd>?</kbd> shows the keys
        </span>
      </footer>
      {help && <Help close={() => setHelp(false)} />}
    </>
  );
}

/** What scrolls as one page: findings of a connection unfold on its page. */
function pageOf(place: Place | undefined): string {
  if (!place) return "start";
  if (place.rows.length === 1) return String(place.index);
  return `${place.index} ${place.connection ?? ""} ${place.row ? "" : (place.finding ?? "")}`;
}

/** What a route leads to. */
export interface Place {
  index: number;
  capture: Capture;
  rows: Row[];
  /** The connection, `missing` where there is no such; undefined where the whole capture is meant. */
  row: Row | "missing" | undefined;
  /** The number asked for. */
  connection: number | undefined;
  /** The finding's place in the capture's list. */
  finding: number | undefined;
  focus: Focus;
}

/** Nothing where a report of several captures is meant as a whole. */
export function placeOf(route: Route, captures: Capture[], rowsOf: Row[][]): Place | undefined {
  if (route.at === "start" && captures.length !== 1) return undefined;
  const index = route.at === "start" ? 0 : route.capture;
  const [capture, rows] = [captures[index], rowsOf[index]];
  if (!capture || !rows) return undefined;
  const focus = "focus" in route ? route.focus : {};
  const finding = route.at === "finding" ? route.finding : undefined;
  const connection =
    route.at === "connection"
      ? route.connection
      : ((finding === undefined ? undefined : capture.findings[finding]?.connection) ?? undefined);
  const found = rows.find((row) => row.connection.id === connection);
  const row = connection === undefined ? undefined : (found ?? "missing");
  return { index, capture, rows, row, connection, finding, focus };
}

interface PlaceProps {
  loaded: Loaded;
  place: Place;
  view: View;
  setView(view: View): void;
  around: Row[];
  printing: boolean;
}

function PlacePart({ loaded, place, view, setView, around, printing }: PlaceProps) {
  const { report, page } = loaded;
  const { index, capture, rows, row, finding, focus } = place;
  const known = page.captures[index] as PageCapture;
  const [only] = rows;
  const body = { report, page, capture: index, open: finding, focus, printing };
  if (row === "missing") return <NoConnection capture={index} connection={place.connection ?? 0} />;
  if (only && rows.length === 1 && known.connections === 1) {
    return <Alone {...body} capture={capture} index={index} known={known} row={only} />;
  }
  if (row) {
    return (
      <>
        <ConnectionHead capture={index} row={row} around={around} />
        <ConnectionLedger connection={row.connection} />
        <ConnectionBody {...body} row={row} />
      </>
    );
  }
  const about = finding === undefined ? undefined : capture.findings[finding];
  if (about) return <AboutCapture index={index} capture={capture} finding={about} page={page} />;
  return <Overview {...{ index, capture, known, page, rows, view, setView, printing }} />;
}

/** A capture of one connection has no list: everything is on one page. */
function Alone(props: {
  report: Loaded["report"];
  page: Loaded["page"];
  index: number;
  capture: Capture;
  known: PageCapture;
  row: Row;
  open: number | undefined;
  focus: Focus;
  printing: boolean;
}) {
  const { capture, known, row, index } = props;
  return (
    <>
      <CaptureHead capture={capture} known={known} />
      <Notes notes={capture.notes} />
      <header>
        <h2 class="ends">
          <Ends connection={row.connection} />
        </h2>
        <Facts connection={row.connection} />
      </header>
      <ConnectionLedger connection={row.connection} />
      <ConnectionBody {...props} capture={index} />
    </>
  );
}

function AboutCapture(props: {
  index: number;
  capture: Capture;
  finding: Capture["findings"][number];
  page: Loaded["page"];
}) {
  const { index, capture, finding, page } = props;
  return (
    <>
      <nav class="way">
        <a href={href({ at: "capture", capture: index })}>← {capture.name}</a>
      </nav>
      <section class="card">
        <article class="finding open">
          <h1>
            <FindingHead finding={finding} open />
          </h1>
          <FindingBody finding={finding} page={page} jump={jumpTo(page, index)} />
        </article>
      </section>
    </>
  );
}
