import type { LedgerMs } from "../data/page.ts";
import { booked, IN_BARS, isLost, type LineName, lost, MEANING, total } from "../text/lines.ts";
import { duration, percent } from "../text/number.ts";

/** Below this share a line has no place of its own in a bar, as in the terminal. */
const SMALL = 0.01;
/** From this share on there is room for a line's name in a bar over the whole page. */
const ROOM_FOR_NAME = 0.1;

/** A ledger in words, for who does not see the bar: `delayed-ack 79 %, server-app 21 %`. */
export function inWords(ledger: LedgerMs): string {
  const all = total(ledger);
  const parts = booked(ledger).filter(([, ms]) => ms / all >= SMALL);
  return parts.map(([line, ms]) => `${line} ${percent(ms, all)}`).join(", ") || "no time";
}

/** A ledger as a bar. Time that TCP withholds is hatched: it shows without colour. */
export function LedgerBar({ ledger, named = false }: { ledger: LedgerMs; named?: boolean }) {
  const all = total(ledger);
  const parts = IN_BARS.filter((line) => ledger[line] / all >= SMALL);
  return (
    <div class={named ? "bar bar-named" : "bar"} role="img" aria-label={`Ledger: ${inWords(ledger)}`}>
      {parts.map((line) => (
        <span
          key={line}
          class={`line line-${line}`}
          style={{ flexGrow: String(ledger[line] / all) }}
          title={`${line}: ${duration(ledger[line])}, ${percent(ledger[line], all)} – ${MEANING[line]}`}
        >
          {named && ledger[line] / all >= ROOM_FOR_NAME && <span class="bar-name">{line}</span>}
        </span>
      ))}
    </div>
  );
}

/** A ledger as a bar over the page's width, with what its lines mean. */
export function Ledger({ ledger, of }: { ledger: LedgerMs; of: string }) {
  const all = total(ledger);
  const lines = booked(ledger);
  if (lines.length === 0) return <p class="faint">No time passed on {of}: there is nothing to book.</p>;
  const rows = lines.filter(([, ms]) => ms / all >= SMALL);
  const small = lines.filter(([, ms]) => ms / all < SMALL);
  return (
    <>
      <LedgerBar ledger={ledger} named />
      <table class="legend">
        <caption class="for-readers">Where the time of {of} went</caption>
        <thead class="for-readers">
          <tr>
            <th>line</th>
            <th>time</th>
            <th>share</th>
            <th>waiting because</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(([line, ms]) => (
            <LegendRow key={line} line={line} ms={ms} all={all} />
          ))}
        </tbody>
      </table>
      {small.length > 0 && (
        <p class="faint legend-rest">
          Below 1 %: {small.map(([line, ms]) => `${line} ${duration(ms)}`).join(", ")}
        </p>
      )}
    </>
  );
}

function LegendRow({ line, ms, all }: { line: LineName; ms: number; all: number }) {
  return (
    <tr class={isLost(line) ? "lost" : ""}>
      <th scope="row">
        <span class={`swatch line line-${line}`} aria-hidden="true" />
        {line}
      </th>
      <td class="number">{duration(ms)}</td>
      <td class="number">{percent(ms, all)}</td>
      <td class="meaning">{MEANING[line]}</td>
    </tr>
  );
}

/** `1.58 s of 1.99 s (79 %) lost to TCP`. */
export function lostOf(ledger: LedgerMs): string {
  const [gone, all] = [lost(ledger), total(ledger)];
  if (gone <= 0) return "no time lost to TCP";
  return `${duration(gone)} of ${duration(all)} lost to TCP (${percent(gone, all)})`;
}
