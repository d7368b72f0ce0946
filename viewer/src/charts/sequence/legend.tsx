/** What the marks and colours mean, with the time each line of the ledger has in the view. */

import type { Side } from "../../data/table.ts";
import { LINES, MEANING } from "../../text/lines.ts";
import { percent } from "../../text/number.ts";
import type { Model } from "../model.ts";
import { lineColor } from "../palette.ts";
import { useSettled } from "../rest.ts";
import { duration } from "../words.ts";
import { sumsOf } from "./stretches.ts";

type Look = "bar" | "line" | "box";

export function Legend({ model, senders }: { model: Model; senders: Side[] }) {
  useSettled(model, "bytes");
  const sums = sumsOf(model.table.bookings, model.view);
  const all = sums.reduce((sum, ns) => sum + ns, 0);
  return (
    <div class="chart-legend">
      <ul aria-label="marks">
        {marksOf(model, senders).map(([look, color, text]) => (
          <li key={text}>
            <i class={`sample sample-${look}`} style={{ background: `var(--${color})` }} />
            {text}
          </li>
        ))}
      </ul>
      <ul aria-label="lines of the ledger in view">
        {LINES.map((line, index) => ({ line, ns: sums[index] as number }))
          .filter(({ ns }) => ns > 0)
          .map(({ line, ns }) => (
            <li key={line} title={MEANING[line]}>
              <i class="sample sample-box" style={{ background: lineColor(line) }} />
              {line} {duration(ns)} <span class="faint">{percent(ns, all)}</span>
            </li>
          ))}
      </ul>
    </div>
  );
}

/** The marks that there are. */
function marksOf(model: Model, senders: Side[]): [Look, string, string][] {
  const scenes = senders.map((sender) => model.scenes[sender]);
  const any = (has: (scene: (typeof scenes)[number]) => boolean) => scenes.some(has);
  const all: [boolean, Look, string, string][] = [
    [any(({ sent }) => sent[0].row.length > 0), "bar", "data", "data"],
    [any(({ sent }) => sent[1].row.length > 0), "bar", "retransmission", "sent again"],
    [any(({ sent }) => sent[2].row.length > 0), "bar", "probe", "probe"],
    [any(({ acks }) => acks.row.length > 0), "line", "acked", "ACKed; a tick: the same ACK again"],
    [senders.some((sender) => model.reach(sender).edge === "shown"), "line", "window", "window's edge"],
    [any(({ blocks }) => blocks.time.length > 0), "bar", "sacked", "SACKed"],
    [any(({ holes }) => holes.length > 0), "box", "hole", "missing"],
    [any(({ holds }) => holds.length > 0), "line", "held", "ACK held"],
  ];
  return all.filter(([is]) => is).map(([, look, color, text]) => [look, color, text]);
}
