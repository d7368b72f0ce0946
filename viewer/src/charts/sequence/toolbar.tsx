/** Buttons for what wheel and keys do, whose data is shown, and the findings' packets. */

import { useEffect, useState } from "preact/hooks";
import type { Finding } from "../../data/page.ts";
import type { Side } from "../../data/table.ts";
import { count } from "../../text/number.ts";
import { type Model, NONE, type Pin } from "../model.ts";
import { panned, span, zoomed } from "../view.ts";
import { duration, moment } from "../words.ts";
import { FITTED } from "./bytes.ts";

const DIRECTIONS: { name: string; senders: Side[] }[] = [
  { name: "both", senders: [0, 1] },
  { name: "client → server", senders: [0] },
  { name: "server → client", senders: [1] },
];
/** Buttons zoom and move by so much. */
const ZOOM = 0.5;
const STEP = 0.5;

export function Toolbar({
  model,
  senders,
  choose,
}: {
  model: Model;
  senders: Side[];
  choose: (senders: Side[]) => void;
}) {
  const update = useState({})[1];
  useEffect(() => model.listen((change) => change !== "point" && update({})), [model]);
  const middle = (model.goal.from + model.goal.until) / 2;
  const zoom = (factor: number) => model.glide(zoomed(model.goal, factor, middle, model.all), "button");
  const zoomBytes = (factor: number) =>
    model.glide(model.goal, "button", [model.zoomedBytes(0, factor), model.zoomedBytes(1, factor)]);
  const pan = (share: number) => model.glide(panned(model.goal, share, model.all), "button");
  return (
    <div class="chart-tools">
      <div class="tool-group">
        <Tool label="Zoom in (+)" text="+" act={() => zoom(ZOOM)} />
        <Tool label="Zoom out (−)" text="−" act={() => zoom(1 / ZOOM)} off={model.isWhole} />
        <Tool label="Earlier (←)" text="←" act={() => pan(-STEP)} off={model.isWhole} />
        <Tool label="Later (→)" text="→" act={() => pan(STEP)} off={model.isWhole} />
        <Tool
          label="Back to what was shown before (Escape, double click)"
          text="back"
          act={() => model.back()}
          off={!model.canGoBack}
        />
        <Tool
          label="Show all (0)"
          text="all"
          act={() => model.reset("button all")}
          off={model.isWhole && model.isFitted}
        />
      </div>
      <fieldset class="tool-group">
        <legend class="unseen">Bytes</legend>
        <span class="tool-name" aria-hidden="true">
          bytes
        </span>
        <Tool label="Fewer bytes (y; Shift and wheel; drag upright)" text="+" act={() => zoomBytes(ZOOM)} />
        <Tool label="More bytes (Shift and y)" text="−" act={() => zoomBytes(1 / ZOOM)} />
        <Tool
          label="Fit the bytes to the data (f; double click on the axis)"
          text="fit"
          act={() => model.glide(model.goal, "button fit", FITTED)}
          off={model.isFitted}
        />
      </fieldset>
      <fieldset class="tool-group">
        <legend class="unseen">Whose data</legend>
        {DIRECTIONS.map(({ name, senders: these }) => (
          <button
            key={name}
            type="button"
            class="tool"
            aria-pressed={these.length === senders.length && these[0] === senders[0]}
            onClick={() => choose(these)}
          >
            {name}
          </button>
        ))}
      </fieldset>
      <output class="view-range">{inWords(model)}</output>
      <Evidence model={model} />
    </div>
  );
}

function Tool({
  label,
  text,
  act,
  off = false,
}: {
  label: string;
  text: string;
  act: () => void;
  off?: boolean;
}) {
  return (
    <button type="button" class="tool" title={label} aria-label={label} disabled={off} onClick={act}>
      {text}
    </button>
  );
}

/** `0.100000 – 0.350000 s · 250 ms · client's bytes 100 – 1,200`. */
function inWords({ goal, life, isWhole, bytesGoal }: Model): string {
  const digits = Math.min(9, Math.max(3, Math.ceil(11 - Math.log10(span(goal)))));
  const stretch = isWhole ? life : goal;
  const chosen = bytesGoal.map((range, sender) => {
    const whose = sender === 0 ? "client" : "server";
    return range
      ? ` · ${whose}'s bytes ${count(Math.ceil(range.from))} – ${count(Math.floor(range.until))}`
      : "";
  });
  const time = `${moment(stretch.from, digits)} – ${moment(stretch.until, digits)} s`;
  return `${time} · ${duration(span(stretch))}${chosen.join("")}`;
}

/** A finding's packets as buttons. */
function Evidence({ model }: { model: Model }) {
  if (model.pins.length === 0) return null;
  return (
    <div class="evidence-list">
      {model.findings.map((finding, index) => {
        const pins = model.pins.filter((pin) => pin.finding === index);
        if (pins.length === 0) return null;
        return (
          <div key={index} class="evidence-row">
            <span class={`evidence-rule severity-${finding.severity}`}>{nameOf(finding, model)}</span>
            {pins.map((pin) => (
              <PinButton key={`${pin.packet} ${pin.note}`} model={model} pin={pin} />
            ))}
          </div>
        );
      })}
    </div>
  );
}

/** Its rule; with the side that it blames where there are several of that rule. */
function nameOf({ rule, blame }: Finding, { findings }: Model): string {
  const isOnly = findings.filter((other) => other.rule === rule).length === 1;
  return isOnly ? rule : `${rule}, ${blame.side}`;
}

function PinButton({ model, pin }: { model: Model; pin: Pin }) {
  return (
    <button
      type="button"
      class="pin"
      title={pin.note}
      aria-label={`Packet ${pin.packet}: ${pin.note}`}
      aria-pressed={pin.row !== NONE && pin.row === model.chosen}
      onClick={() => model.choosePin(pin)}
      onPointerEnter={() => model.point(pin.row)}
      onPointerLeave={() => model.point(NONE)}
    >
      {pin.packet}
    </button>
  );
}
