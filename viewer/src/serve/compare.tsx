import { useEffect, useState } from "preact/hooks";
import { LedgerBar, lostOf } from "../report/ledger.tsx";
import { Sign } from "../report/severity.tsx";
import { count, duration, plural } from "../text/number.ts";
import { plain } from "../text/plain.ts";
import type { Amount, Comparison, FindingPair, ServicePair, State } from "./api.ts";
import { compare } from "./api.ts";
import { CHANGES, compareHash, cost, date } from "./words.ts";

/** A bar that is shorter than this, as a share of the longest, has no room for names. */
const ROOM_FOR_NAMES = 0.3;

/** Two reports beside each other: the same service before and after. */
export function Compare({ before, after, state }: { before: number; after: number; state: State }) {
  const compared = useComparison(before, after);
  useEffect(() => {
    document.title = "before and after – tcpwhy";
    return () => {
      document.title = "tcpwhy";
    };
  }, []);
  return (
    <>
      <nav class="way">
        <a href="#/">← All reports</a>
        <a href={compareHash(after, before)}>Swap before and after</a>
      </nav>
      <h1>
        <Title id={before} state={state} /> <span class="faint">→</span> <Title id={after} state={state} />
      </h1>
      {typeof compared === "string" ? (
        <p class="alert">{plain(compared)}</p>
      ) : (
        compared && <Compared {...compared} />
      )}
    </>
  );
}

function useComparison(before: number, after: number): Comparison | string | undefined {
  const [compared, setCompared] = useState<Comparison | string>();
  useEffect(() => {
    let isWanted = true;
    const set = (value: Comparison | string) => isWanted && setCompared(value);
    setCompared(undefined);
    compare(before, after).then(set, (error: Error) => set(error.message));
    return () => {
      isWanted = false;
    };
  }, [before, after]);
  return compared;
}

function Title({ id, state }: { id: number; state: State }) {
  const report = state.reports.reports.find((report) => report.id === id);
  if (!report) return <>report {id}</>;
  return (
    <a href={`/reports/${id}`} title={`Report made ${date(report.made_ms)}`}>
      {plain(report.capture)}
    </a>
  );
}

function Compared({ verdict, before, after, services, findings }: Comparison) {
  const both = services.filter(({ matched }) => matched !== null);
  const alone = services.filter(({ matched }) => matched === null);
  return (
    <>
      <section class={`verdict ${mood(services)}`} aria-label="Verdict">
        <p class="verdict-head">{plain(verdict)}</p>
      </section>
      {both.map((pair) => (
        <Service key={pair.before?.server} pair={pair} />
      ))}
      {services.length !== 1 && (
        <section class="card" aria-labelledby="whole-title">
          <h2 id="whole-title">All connections together</h2>
          <Sides before={before} after={after} />
          <Findings pairs={findings} />
        </section>
      )}
      {services.length === 1 && findings.length > 0 && (
        <section class="card" aria-labelledby="captures-title">
          <h2 id="captures-title">The captures as a whole</h2>
          <Findings pairs={findings} />
        </section>
      )}
      {alone.length > 0 && <Alone pairs={alone} />}
    </>
  );
}

/** How the verdict is coloured: by what problems did. */
export function mood(services: ServicePair[]): "good" | "problem" | "" {
  const problems = services
    .flatMap(({ findings }) => findings)
    .filter(({ severity }) => severity === "problem");
  if (problems.some(({ change }) => change === "new" || change === "worse")) return "problem";
  return problems.some(({ change }) => change === "gone" || change === "better") ? "good" : "";
}

const RECOGNISED = { address: "", port: "recognised by its port", only: "the only service of each" };

function Service({ pair: { before, after, matched, findings } }: { pair: ServicePair }) {
  if (!before || !after) return null;
  const [was, is] = [plain(before.server ?? ""), plain(after.server ?? "")];
  return (
    <section class="card" aria-label={`Service ${is}`}>
      <div class="section-head">
        <h2>{was === is ? is : `${was} → ${is}`}</h2>
        <span class="faint">{matched && RECOGNISED[matched]}</span>
      </div>
      <Sides before={before} after={after} />
      <Findings pairs={findings} />
    </section>
  );
}

/** Two ledgers below each other. Of exchanges, bars are as long as one takes on average. */
function Sides({ before, after }: { before: Amount; after: Amount }) {
  const longest = Math.max(before.exchanges?.mean_ms ?? 0, after.exchanges?.mean_ms ?? 0);
  const hasExchanges = before.exchanges !== null && after.exchanges !== null;
  return (
    <>
      {hasExchanges && (
        <table class="sides">
          <caption>One exchange, on average</caption>
          <tbody>
            <ExchangeRow name="before" amount={before} longest={longest} />
            <ExchangeRow name="after" amount={after} longest={longest} />
          </tbody>
        </table>
      )}
      <table class="sides">
        <caption>All their time, as shares</caption>
        <tbody>
          <TimeRow name="before" amount={before} />
          <TimeRow name="after" amount={after} />
        </tbody>
      </table>
    </>
  );
}

function ExchangeRow({ name, amount, longest }: { name: string; amount: Amount; longest: number }) {
  const { exchanges } = amount;
  if (!exchanges) return null;
  const share = exchanges.mean_ms / longest;
  return (
    <tr>
      <th scope="row">{name}</th>
      <td class="side-bar">
        <div style={{ width: `${100 * share}%` }}>
          <LedgerBar ledger={exchanges.ledger_ms} named={share > ROOM_FOR_NAMES} />
        </div>
      </td>
      <td class="number">
        <b>{duration(exchanges.mean_ms)}</b>
        <span class="faint">
          , slowest {duration(exchanges.max_ms)}, {count(exchanges.count)} of them
        </span>
      </td>
    </tr>
  );
}

function TimeRow({ name, amount }: { name: string; amount: Amount }) {
  return (
    <tr>
      <th scope="row">{name}</th>
      <td class="side-bar">
        <LedgerBar ledger={amount.ledger_ms} named />
      </td>
      <td class="number">
        {plural(amount.connections, "connection")}
        <span class="faint">, {lostOf(amount.ledger_ms)}</span>
      </td>
    </tr>
  );
}

function Findings({ pairs }: { pairs: FindingPair[] }) {
  if (pairs.length === 0) return <p class="faint">Nothing was found in either.</p>;
  return (
    <table class="changes">
      <thead>
        <tr>
          <th scope="col">finding</th>
          <th scope="col">change</th>
          <th scope="col">before</th>
          <th scope="col">after</th>
        </tr>
      </thead>
      <tbody>
        {pairs.map((pair) => (
          <FindingRow key={pair.rule} pair={pair} />
        ))}
      </tbody>
    </table>
  );
}

function FindingRow({ pair: { rule, severity, change, before, after } }: { pair: FindingPair }) {
  // That advice is gone, or a note new, is neither good nor bad.
  const kind = change && severity === "problem" ? CHANGES[change].kind : "";
  return (
    <tr>
      <th scope="row">
        <Sign severity={severity} /> {plain(rule)}
      </th>
      <td>{change && <span class={`change ${kind}`}>{CHANGES[change].word}</span>}</td>
      <td class="number">{cost(before)}</td>
      <td class="number">{cost(after)}</td>
    </tr>
  );
}

/** Services that only one of the reports has: nothing is said of what changed there. */
function Alone({ pairs }: { pairs: ServicePair[] }) {
  return (
    <section class="card" aria-labelledby="alone-title">
      <h2 id="alone-title">Only in one of them</h2>
      <table class="sides">
        <tbody>
          {pairs.map(({ before, after }) => {
            const amount = before ?? after;
            return (
              amount && (
                <tr key={`${amount.server} ${before ? 0 : 1}`}>
                  <th scope="row">
                    {before ? "before" : "after"} <span class="file-name">{plain(amount.server ?? "")}</span>
                  </th>
                  <td class="side-bar">
                    <LedgerBar ledger={amount.ledger_ms} />
                  </td>
                  <td class="number">
                    {plural(amount.connections, "connection")}
                    <span class="faint">, {lostOf(amount.ledger_ms)}</span>
                  </td>
                </tr>
              )
            );
          })}
        </tbody>
      </table>
    </section>
  );
}
