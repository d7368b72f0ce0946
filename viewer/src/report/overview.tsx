import type { Capture, Page, PageCapture } from "../data/page.ts";
import { bytes, count, duration, plural } from "../text/number.ts";
import { CallsPanel } from "./calls.tsx";
import { Connections, type View } from "./connections/list.tsx";
import { type Placed, type Row, ruleSums, worstFirst } from "./connections/order.ts";
import { BestFix, FindingBody, FindingHead, type Jump } from "./finding.tsx";
import { inWords, Ledger, LedgerBar, lostOf } from "./ledger.tsx";
import { href } from "./route.ts";
import { Sign } from "./severity.tsx";

interface Props {
  index: number;
  capture: Capture;
  known: PageCapture;
  page: Page;
  rows: Row[];
  view: View;
  setView(view: View): void;
  printing: boolean;
}

/** A capture: the verdict first, then where its time went, what was found, and its connections. */
export function Overview({ index, capture, known, page, rows, view, setView, printing }: Props) {
  const about = capture.findings
    .map((finding, at): Placed => ({ finding, index: at }))
    .filter(({ finding }) => finding.connection === null)
    .sort(worstFirst);
  return (
    <>
      <CaptureHead capture={capture} known={known} />
      <Notes notes={capture.notes} />
      {known.connections > 0 && (
        <section class="card" aria-labelledby="ledger">
          <div class="section-head">
            <h2 id="ledger">Where the time went</h2>
            <span class="faint">{lostOf(capture.ledger_ms)}</span>
          </div>
          <Ledger ledger={capture.ledger_ms} of={all(known.connections)} />
        </section>
      )}
      <ByRule
        index={index}
        rows={rows}
        here={capture.findings.length}
        known={known}
        page={page}
        view={view}
        setView={setView}
      />
      <AboutCapture index={index} findings={about} page={page} printing={printing} />
      {printing && <PrintedFindings rows={rows} page={page} />}
      {capture.calls && <CallsPanel calls={capture.calls} sockets={capture.calls.sockets} />}
      {rows.length > 0 && (
        <Connections
          capture={index}
          rows={rows}
          known={known}
          view={view}
          setView={setView}
          printing={printing}
        />
      )}
    </>
  );
}

function all(connections: number): string {
  return connections === 1 ? "the connection" : `all ${count(connections)} connections`;
}

/** What the capture is, and the verdict on it. */
export function CaptureHead({ capture, known }: { capture: Capture; known: PageCapture }) {
  return (
    <header class="capture-head">
      <h1>{capture.name}</h1>
      <p class="facts">{facts(capture, known).join(" · ")}</p>
      <Verdict known={known} />
    </header>
  );
}

/** The verdict with its sign, both as the terminal has them. */
export function Verdict({ known }: { known: PageCapture }) {
  const kind = known.sign ?? "unclear";
  const [head, detail] = firstSentence(known.verdict);
  return (
    <div class={`verdict ${kind}`}>
      <span class="verdict-sign" aria-hidden="true">
        {{ problem: "✖", advice: "▲", note: "○", good: "✔", unclear: "?" }[kind]}
      </span>
      <p>
        <b>{head}</b>
        {detail}
      </p>
    </div>
  );
}

/** The sentence that says it, and those that explain it. A number's point has no space behind it. */
export function firstSentence(text: string): [string, string] {
  const end = text.search(/[.:?!] (?=\S)/);
  return end < 0 ? [text, ""] : [text.slice(0, end + 1), text.slice(end + 1)];
}

function facts({ kind, packets, bytes: size, duration_ms, start }: Capture, known: PageCapture): string[] {
  const began = start === null ? [] : [`from ${start.replace("T", " ").replace("Z", " UTC")}`];
  return [
    kind,
    plural(packets, "packet"),
    bytes(size),
    duration(duration_ms),
    plural(known.connections, "connection"),
    ...began,
  ];
}

/** What to know before trusting the rest. */
export function Notes({ notes }: { notes: string[] }) {
  if (notes.length === 0) return null;
  return (
    <aside class="notes" aria-label="Notes">
      <ul>
        {notes.map((note) => (
          <li key={note}>{note}</li>
        ))}
      </ul>
    </aside>
  );
}

interface ByRuleProps {
  index: number;
  rows: Row[];
  /** Findings that the file has, those about the capture among them. */
  here: number;
  known: PageCapture;
  page: Page;
  view: View;
  setView(view: View): void;
}

function ByRule({ index, rows, here, known, page, view, setView }: ByRuleProps) {
  const sums = ruleSums(rows);
  if (sums.length === 0) return null;
  const show = (rule: string) => {
    setView({ ...view, filter: { ...view.filter, rule } });
    document.getElementById("connections")?.scrollIntoView();
  };
  return (
    <section class="card" aria-labelledby="findings">
      <div class="section-head">
        <h2 id="findings">Findings</h2>
        <span class="faint">
          {known.findings > here
            ? `${count(here)} in this file, ${count(known.findings)} in the capture`
            : count(here)}
        </span>
      </div>
      <table class="by-rule">
        <thead>
          <tr>
            <th>rule</th>
            <th>connections</th>
            <th>costs</th>
            <th>worst</th>
          </tr>
        </thead>
        <tbody>
          {sums.map(({ rule, worst, connections, cost }) => (
            <tr key={rule}>
              <th scope="row">
                <Sign severity={worst.finding.severity} /> {rule}
                <span class="faint">{page.rules[rule]?.summary}</span>
                <BestFix finding={worst.finding} />
              </th>
              <td>
                {rows.length > 1 ? (
                  <button type="button" onClick={() => show(rule)} title={`Show them in the list below`}>
                    {count(connections)}
                  </button>
                ) : (
                  count(connections)
                )}
              </td>
              <td class="number">{cost > 0 ? duration(cost) : "–"}</td>
              <td>
                <a href={href({ at: "finding", capture: index, finding: worst.index, focus: {} })}>
                  #{worst.finding.connection}
                  {worst.finding.cost_ms > 0 ? ` with ${duration(worst.finding.cost_ms)}` : ""}
                </a>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

/** Findings about several connections or the whole capture. */
function AboutCapture(props: { index: number; findings: Placed[]; page: Page; printing: boolean }) {
  const { index, findings, page, printing } = props;
  if (findings.length === 0) return null;
  return (
    <section class="card" aria-labelledby="about-capture">
      <h2 id="about-capture">About the whole capture</h2>
      {findings.map(({ finding, index: at }) => (
        <article class="finding" key={at}>
          <FindingHead
            finding={finding}
            to={href({ at: "finding", capture: index, finding: at, focus: {} })}
            open={printing}
          />
          {printing && <FindingBody finding={finding} page={page} jump={nowhere} />}
        </article>
      ))}
    </section>
  );
}

const nowhere: Jump = () => undefined;
/** Findings in full on paper, the worst. */
const PRINTED = 20;

function PrintedFindings({ rows, page }: { rows: Row[]; page: Page }) {
  const placed = rows.flatMap((row) => row.findings).sort(worstFirst);
  return (
    <section>
      {placed.slice(0, PRINTED).map(({ finding, index }, nth) => (
        <article class="finding open" key={index}>
          <h3>#{finding.connection}</h3>
          <FindingHead finding={finding} open />
          <FindingBody
            finding={finding}
            page={page}
            jump={nowhere}
            again={placed.slice(0, nth).some((other) => other.finding.rule === finding.rule)}
          />
        </article>
      ))}
      {placed.length > PRINTED && <p class="faint">And {plural(placed.length - PRINTED, "more finding")}.</p>}
    </section>
  );
}

/** More captures than this have a bar each, and no legend. */
const MOST_IN_FULL = 3;

/** A card for each capture of a report that has several. */
export function Captures({ captures, page }: { captures: Capture[]; page: Page }) {
  return (
    <section class="captures">
      <h1>{plural(captures.length, "capture")}</h1>
      {captures.length === 0 && <p>What tcpwhy was given had no packets that it could read.</p>}
      {captures.map((capture, index) => {
        const known = page.captures[index];
        return (
          known && (
            <article class="card" key={index}>
              <h2>
                <a href={href({ at: "capture", capture: index })}>{capture.name}</a>
              </h2>
              <p class="facts">{facts(capture, known).join(" · ")}</p>
              <Verdict known={known} />
              {captures.length <= MOST_IN_FULL ? (
                <Ledger ledger={capture.ledger_ms} of={all(known.connections)} />
              ) : (
                <>
                  <LedgerBar ledger={capture.ledger_ms} />
                  <p class="faint">{inWords(capture.ledger_ms)}</p>
                </>
              )}
            </article>
          )
        );
      })}
    </section>
  );
}
