import type { Evidence, Page } from "../data/page.ts";
import type { Hop, Hops, Pair, Passed } from "../generated/report.ts";
import { bytes, count, duration, plural } from "../text/number.ts";
import { baseName } from "./bar.tsx";
import { FindingBody, FindingHead, jumpTo } from "./finding.tsx";
import { hrefOf } from "./route.ts";

/** What is kept no longer than this is passed on at once, ms. */
const AT_ONCE = 1;
/** Clocks that differ by less go alike, ppm. */
const NO_DRIFT = 0.1;

/** Conversations that were seen on both sides of a proxy. */
export function HopsPanel({ hops, page }: { hops: Hops; page: Page }) {
  return (
    <section class="card" aria-labelledby="hops">
      <h2 id="hops">Seen on both sides of a proxy</h2>
      {hops.pairs.length > 0 && <p class="hops-verdict">{verdict(hops)}</p>}
      {hops.pairs.map((pair) => (
        <PairPart key={`${pair.first.capture} ${pair.first.connection}`} pair={pair} page={page} />
      ))}
      {hops.notes.length > 0 && (
        <ul class="faint">
          {hops.notes.map((note) => (
            <li key={note}>{note}</li>
          ))}
        </ul>
      )}
    </section>
  );
}

function verdict({ pairs }: Hops): string {
  const findings = pairs.flatMap((pair) => pair.findings).sort((a, b) => b.cost_ms - a.cost_ms);
  const [worst] = findings;
  if (!worst) return "✔ The proxy merges nothing.";
  const whose = worst.blame.address === null ? "" : ` ${worst.blame.address}`;
  return `✖ The proxy${whose} merges what passes through it: ${duration(worst.cost_ms)} of waiting.`;
}

function PairPart({ pair, page }: { pair: Pair; page: Page }) {
  const jump = (evidence: Evidence) => {
    const { capture, packet } = evidence;
    const hop = [pair.first, pair.second].find((hop) => hop.capture === capture);
    if (!hop) return undefined;
    // In one capture of both hops, the packet itself tells which of them it is on.
    return pair.first.capture === pair.second.capture
      ? jumpTo(page, hop.capture)(evidence)
      : hrefOf(hop.capture, hop.connection, packet);
  };
  const placed = (item: Evidence): Evidence => {
    const hop = { [pair.first.capture]: "before", [pair.second.capture]: "behind" }[item.capture ?? -1];
    return pair.first.capture === pair.second.capture || !hop
      ? item
      : { ...item, note: `${hop}: ${item.note}` };
  };
  return (
    <article class="pair">
      <h3>
        <bdi>{pair.first.client}</bdi> → proxy → <bdi>{pair.second.server}</bdi>
      </h3>
      <dl class="pairs">
        <dt>before</dt>
        <dd>
          <HopLink hop={pair.first} />
        </dd>
        <dt>behind</dt>
        <dd>
          <HopLink hop={pair.second} />
        </dd>
        <dt>clocks</dt>
        <dd>{clocks(pair)}</dd>
        <dt>→ to the server</dt>
        <dd>{through(pair.to_server)}</dd>
        <dt>← to the client</dt>
        <dd>{through(pair.to_client)}</dd>
      </dl>
      {pair.findings.map((finding) => (
        <div class="finding open" key={finding.summary}>
          <FindingHead finding={finding} open />
          <FindingBody
            finding={{ ...finding, evidence: finding.evidence.map(placed) }}
            page={page}
            jump={jump}
          />
        </div>
      ))}
    </article>
  );
}

function HopLink({ hop }: { hop: Hop }) {
  return (
    <>
      <a href={hrefOf(hop.capture, hop.connection)}>
        <bdi>{hop.client}</bdi> → <bdi>{hop.server}</bdi>
      </a>{" "}
      <span class="faint">
        #{hop.connection} of {baseName(hop.name)}
      </span>
    </>
  );
}

function clocks({ first, second, clock_ahead_ms, clock_drift_ppm: ppm }: Pair): string {
  const [least = null, most = null] = clock_ahead_ms;
  if (first.capture === second.capture) return "one for both";
  const drift =
    Math.abs(ppm) < NO_DRIFT
      ? ""
      : `, and going ${Math.abs(ppm).toFixed(1)} ppm ${ppm > 0 ? "faster" : "slower"}`;
  if (least === null || most === null) return `not comparable: data went one way only${drift}`;
  return `the one behind is ahead by ${duration(least)} to ${duration(most)}${drift}`;
}

/** `804 B: 59 pieces came, 32 left; they stayed for 13.8 ms (median), 213 ms at most`. */
function through(passed: Passed): string {
  if (passed === null) return "nothing";
  const { came, left, fastest_ms, age_p50_ms, age_max_ms } = passed;
  const stayed =
    age_max_ms < AT_ONCE
      ? `all passed on at once; they differ by ${duration(age_max_ms)}`
      : `they stayed for ${duration(age_p50_ms)} (median), ${duration(age_max_ms)} at most`;
  const least =
    fastest_ms !== null && fastest_ms >= AT_ONCE
      ? `all took ${duration(fastest_ms)} at least; beyond that `
      : "";
  return `${bytes(passed.bytes)}: ${plural(came, "piece")} came, ${count(left)} left; ${least}${stayed}`;
}
