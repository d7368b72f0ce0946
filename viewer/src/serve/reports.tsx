import { LedgerBar, lostOf } from "../report/ledger.tsx";
import { Sign } from "../report/severity.tsx";
import { duration, plural } from "../text/number.ts";
import { plain } from "../text/plain.ts";
import { forget, type Report, type State } from "./api.ts";
import type { Server } from "./server.ts";
import { ago, compareHash, date, type Pair, toggled } from "./words.ts";

interface Props {
  state: State;
  server: Server;
  pair: Pair;
  setPair(pair: Pair): void;
}

/** The reports that are kept, two of which can be chosen. */
export function Reports({ state, server, pair: chosen, setPair }: Props) {
  const { reports, more } = state.reports;
  // One that was chosen may have been deleted since, here or in another window.
  const pair = chosen.filter((id) => reports.some((report) => report.id === id));
  return (
    <section class="card" aria-labelledby="reports-title">
      <div class="section-head">
        <h2 id="reports-title">Reports</h2>
        {reports.length > 1 && (
          <>
            <span class="faint">Tick two to compare them: first before, then after.</span>
            <CompareLink pair={pair} />
          </>
        )}
      </div>
      {reports.length === 0 ? (
        <p class="faint">None yet. Analyse a capture below, or drop one here.</p>
      ) : (
        <ul class="rows reports-list">
          {reports.map((report) => (
            <ReportRow
              key={report.id}
              report={report}
              place={pair.indexOf(report.id)}
              toggle={() => setPair(toggled(pair, report.id))}
              remove={() => {
                const question = `Delete the report of ${plain(report.capture)}? The capture itself stays.`;
                if (confirm(question)) server.act(() => forget(report.id));
              }}
            />
          ))}
        </ul>
      )}
      {more > 0 && <p class="faint">And {more} earlier ones.</p>}
    </section>
  );
}

function CompareLink({ pair: [before, after] }: { pair: Pair }) {
  if (before === undefined || after === undefined) {
    return (
      <button type="button" class="main-button compare-link" disabled>
        Compare
      </button>
    );
  }
  return (
    <a class="main-button compare-link" href={compareHash(before, after)}>
      Compare
    </a>
  );
}

const PLACES = ["before", "after"];

interface RowProps {
  report: Report;
  /** 0 before, 1 after, -1 not chosen. */
  place: number;
  toggle(): void;
  remove(): void;
}

function ReportRow({ report, place, toggle, remove }: RowProps) {
  const { id, summary, made_ms } = report;
  const name = plain(report.capture);
  return (
    <li class={place >= 0 ? "chosen" : ""}>
      <label class="choice">
        <input
          type="checkbox"
          checked={place >= 0}
          onChange={toggle}
          aria-label={`Compare the report of ${name} made ${date(made_ms)}`}
        />
        <span class="place">{PLACES[place] ?? ""}</span>
      </label>
      <div class="report-main">
        <p class="report-head">
          <a class="file-name" href={`/reports/${id}`}>
            {name}
          </a>
          <span class="faint number" title={date(made_ms)}>
            {ago(made_ms, Date.now())}
          </span>
          <span class="faint number">
            {plural(summary.connections, "connection")}, {plural(summary.packets, "packet")}
          </span>
        </p>
        <p class="report-verdict">{plain(summary.verdict)}</p>
        <Rules summary={summary} />
      </div>
      <div class="report-ledger">
        <LedgerBar ledger={summary.ledger_ms} />
        <span class="faint number">{lostOf(summary.ledger_ms)}</span>
      </div>
      <button type="button" class="quiet" onClick={remove} aria-label={`Delete the report of ${name}`}>
        Delete
      </button>
    </li>
  );
}

function Rules({ summary: { rules, more_rules } }: { summary: Report["summary"] }) {
  if (rules.length === 0) return null;
  return (
    <ul class="rules">
      {rules.map(({ rule, severity, cost_ms }) => (
        <li key={rule}>
          <Sign severity={severity} /> {plain(rule)}
          {cost_ms > 0 && <span class="faint"> {duration(cost_ms)}</span>}
        </li>
      ))}
      {more_rules > 0 && <li class="faint">and {more_rules} more</li>}
    </ul>
  );
}
