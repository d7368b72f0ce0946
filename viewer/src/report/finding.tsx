import type { Evidence, Finding, Page } from "../data/page.ts";
import { count, duration, moment, percent, plural } from "../text/number.ts";
import { fix, likeness, sentence } from "../text/what-if.ts";
import { InLanguage } from "./languages.tsx";
import { Markup } from "./markup.tsx";
import { hrefOf } from "./route.ts";
import { blamed, Sign } from "./severity.tsx";

/** Where a packet can be looked at; nothing where there is no such place. */
export type Jump = (evidence: Evidence) => string | undefined;

/** To the packets of findings about several connections or the whole capture: to whichever connection has them. */
export function jumpTo(page: Page, capture: number): Jump {
  const places = page.captures[capture]?.shared_evidence;
  return ({ packet }) => {
    const place = places?.find((other) => other.packet === packet);
    return place && hrefOf(capture, place.connection, packet);
  };
}

/** A finding in a few lines: what, whose, what it costs, and what helps best. `to` opens or closes it. */
export function FindingHead({ finding, to, open }: { finding: Finding; to?: string; open: boolean }) {
  const content = (
    <>
      <Sign severity={finding.severity} />
      <span class="finding-rule">{finding.rule}</span>
      <span class="finding-blame">{blamed(finding.blame)}</span>
      <span class="finding-cost">{finding.cost_ms > 0 ? duration(finding.cost_ms) : ""}</span>
      {!open && <span class="finding-summary">{finding.summary}</span>}
      {!open && <BestFix finding={finding} />}
    </>
  );
  if (to === undefined) return <div class="finding-head">{content}</div>;
  return (
    <a class="finding-head" href={to} aria-expanded={open}>
      {content}
    </a>
  );
}

/** What helps best against a finding, in a few words. */
export function BestFix({ finding }: { finding: Finding }) {
  const [best] = finding.fixes;
  if (!best) return null;
  return (
    <span class="finding-fix">
      <span class="for-readers">Fix: </span>
      {codes(best.title)}
    </span>
  );
}

interface BodyProps {
  finding: Finding;
  page: Page;
  jump: Jump;
  /** The packet that is looked at. */
  at?: number;
  /** Its rule's text stands above already. */
  again?: boolean;
}

/** A finding in full: what, why, evidence, fixes, what they would save, and its rule's own text. */
export function FindingBody({ finding, page, jump, at, again = false }: BodyProps) {
  const rule = again ? undefined : page.rules[finding.rule];
  return (
    <div class="finding-body">
      <p class="finding-told">{finding.summary}</p>
      <Figures finding={finding} />
      <div class="finding-columns">
        <div>
          <EvidenceList evidence={finding.evidence} jump={jump} at={at} />
          <WhatIfBox finding={finding} />
        </div>
        <div>
          <Fixes finding={finding} />
          {!again && <InLanguage rule={finding.rule} page={page} />}
        </div>
      </div>
      {rule && (
        <details class="rule-text">
          <summary>
            What <b>{finding.rule}</b> means, how it is detected, what to do
          </summary>
          <Markup html={rule.html} />
        </details>
      )}
    </div>
  );
}

function Figures({ finding }: { finding: Finding }) {
  const figures: [string, string][] = [["blames", blamed(finding.blame)]];
  if (finding.cost_ms > 0) figures.push(["costs", duration(finding.cost_ms)]);
  if (finding.count > 1) figures.push(["seen", plural(finding.count, "time")]);
  if (finding.count > 1 && finding.worst_ms > 0) figures.push(["worst", duration(finding.worst_ms)]);
  figures.push(["confidence", percent(finding.confidence, 1)]);
  return (
    <dl class="figures">
      {figures.map(([what, value]) => (
        <div key={what}>
          <dt>{what}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function EvidenceList({ evidence, jump, at }: { evidence: Evidence[]; jump: Jump; at: number | undefined }) {
  if (evidence.length === 0) return null;
  return (
    <section>
      <h4>Evidence</h4>
      <ol class="evidence">
        {evidence.map((item) => {
          const to = jump(item);
          const packet = `packet ${count(item.packet)}`;
          return (
            <li key={`${item.capture} ${item.packet} ${item.note}`} class={item.packet === at ? "at" : ""}>
              {to ? <a href={to}>{packet}</a> : <span>{packet}</span>}
              <span class="number faint">{moment(item.time_ms)}</span>
              <span>{item.note}</span>
            </li>
          );
        })}
      </ol>
    </section>
  );
}

function Fixes({ finding }: { finding: Finding }) {
  if (finding.fixes.length === 0) return null;
  return (
    <section>
      <h4>{finding.fixes.length === 1 ? "Fix" : "Fixes, the best first"}</h4>
      <ol class="fixes">
        {finding.fixes.map(({ title, how }) => (
          <li key={title}>
            <b>{codes(title)}</b>
            <p>{codes(how)}</p>
          </li>
        ))}
      </ol>
    </section>
  );
}

/** What stands between backquotes is code. */
function codes(text: string) {
  return text.split("`").map((part, at) => (at % 2 === 1 ? <code key={part}>{part}</code> : part));
}

function WhatIfBox({ finding }: { finding: Finding }) {
  const whatIf = finding.what_if;
  if (!whatIf) return null;
  const { unchanged, with_it } = whatIf;
  const longest = Math.max(unchanged.total_ms, with_it.total_ms, 0.001);
  return (
    <section class="what-if">
      <h4>What if</h4>
      <p>
        <b>{fix(whatIf)}</b> {sentence(whatIf)}
      </p>
      <table>
        <caption class="for-readers">The connection played again</caption>
        <tbody>
          {(
            [
              ["as it was", unchanged.total_ms],
              ["with it", with_it.total_ms],
            ] as const
          ).map(([what, ms]) => (
            <tr key={what}>
              <th scope="row">{what}</th>
              <td class="number">{duration(ms)}</td>
              <td class="what-if-bar" aria-hidden="true">
                <span
                  class={what === "with it" ? "good" : ""}
                  style={{ width: `${(100 * ms) / longest}%` }}
                />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <p class="faint">{likeness(whatIf)}</p>
    </section>
  );
}
