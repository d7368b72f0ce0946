import { bytes } from "../text/number.ts";
import { plain } from "../text/plain.ts";
import { analyse, type Capture, cancel, type Job, type State } from "./api.ts";
import type { Server } from "./server.ts";
import { ago, date, doing, isUnderway, jobOf, reportOf, share } from "./words.ts";

/** The captures in the folder, and what is done with them. */
export function Captures({ state, server }: { state: State; server: Server }) {
  const { captures, more } = state.captures;
  return (
    <section class="card" aria-labelledby="captures-title">
      <div class="section-head">
        <h2 id="captures-title">Captures</h2>
        <span class="faint">{captures.length > 0 && `${captures.length} in the folder`}</span>
      </div>
      {captures.length === 0 ? (
        <p class="faint">There is no capture in {plain(state.folder)} yet.</p>
      ) : (
        <ul class="rows captures-list">
          {captures.map((capture) => (
            <CaptureRow key={capture.name} capture={capture} state={state} server={server} />
          ))}
        </ul>
      )}
      {more > 0 && <p class="faint">And {more} more that are not shown.</p>}
    </section>
  );
}

function CaptureRow({ capture, state, server }: { capture: Capture; state: State; server: Server }) {
  const job = jobOf(capture, state.jobs);
  const report = reportOf(capture, state.reports.reports);
  const name = plain(capture.name);
  const again = report || job?.state === "failed" || job?.state === "cancelled";
  return (
    <li>
      <span class="file-name">{name}</span>
      <span class="number faint">{bytes(capture.size)}</span>
      <span class="number faint" title={date(capture.modified_ms)}>
        {ago(capture.modified_ms, Date.now())}
      </span>
      {job && isUnderway(job) ? (
        <Underway job={job} name={name} cancel={() => server.act(() => cancel(job.id))} />
      ) : (
        <span class="doing">
          {job?.state === "failed" && <span class="why">{plain(doing(job))}</span>}
          {report && (
            <a href={`/reports/${report.id}`} aria-label={`Report of ${name}`}>
              Report
            </a>
          )}
          <button
            type="button"
            class={again ? "quiet" : ""}
            aria-label={`Analyse ${name}${again ? " again" : ""}`}
            onClick={() => server.act(() => analyse(capture.name))}
          >
            {again ? "Again" : "Analyse"}
          </button>
        </span>
      )}
    </li>
  );
}

function Underway({ job, name, cancel }: { job: Job; name: string; cancel(): void }) {
  const done = share(job);
  return (
    <span class="doing">
      <span class="faint number">{doing(job)}</span>
      {job.state === "running" && (
        <progress value={done} max={1} aria-label={`Analysis of ${name}`}>
          {done === undefined ? "" : `${Math.round(100 * done)} %`}
        </progress>
      )}
      <button type="button" class="quiet" onClick={cancel} aria-label={`Cancel the analysis of ${name}`}>
        Cancel
      </button>
    </span>
  );
}
