/** What the packets of the view amount to: round trips, exchanges, rhythm, gaps and sizes. */

import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import type { Connection } from "../data/page.ts";
import { CLIENT, kindOf, type Marks, PROBE, SERVER, type Side, sideOf } from "../data/table.ts";
import { count, plural } from "../text/number.ts";
import type { Model } from "./model.ts";
import { OverTime } from "./over-time/chart.tsx";
import {
  type Dots,
  dotsIn,
  exchangeDots,
  type Figures,
  figuresOf,
  gapDots,
  roundTripDots,
  slowestOf,
} from "./over-time/dots.ts";
import { firstAfter, firstAtLeast } from "./search.ts";
import { evenBins, growingBins } from "./spread/bins.ts";
import { Histogram } from "./spread/histogram.tsx";
import type { Range } from "./view.ts";
import { duration } from "./words.ts";

const NS_PER_MS = 1e6;
/** Gaps below this are one bin: packets that leave together, ns. */
const TOGETHER = 1_000;
/** Slowest exchanges that are named. */
const MOST_SLOWEST = 4;

export interface DetailsProps {
  model: Model;
  connection: Connection;
  view: Range;
}

/** Each picture only where there is something to see. */
export function Details(props: DetailsProps) {
  const { table } = props.model;
  const gaps = useMemo(() => [gapDots(table, CLIENT), gapDots(table, SERVER)] as const, [table]);
  const figures = [useFigures(gaps[0], props.view), useFigures(gaps[1], props.view)] as const;
  return (
    <div class="details">
      <RoundTrips {...props} />
      <Exchanges {...props} />
      {props.connection.cadence.map((cadence) => {
        const from = cadence.from === "client" ? CLIENT : SERVER;
        return (
          <Cadence
            key={from}
            {...props}
            from={from}
            dots={gaps[from]}
            figures={figures[from]}
            period={cadence.period_ms * NS_PER_MS}
          />
        );
      })}
      <Gaps {...props} gaps={gaps} figures={figures} />
      <Sizes {...props} />
    </div>
  );
}

function Card({
  title,
  caption,
  sides,
  children,
}: {
  title: string;
  caption: string;
  sides?: boolean;
  children: ComponentChildren;
}) {
  return (
    <figure class="detail">
      <h3>
        {title}
        {sides && (
          <span class="sides">
            <i class="sample side-client" /> client <i class="sample side-server" /> server
          </span>
        )}
      </h3>
      {children}
      <figcaption>{caption}</figcaption>
    </figure>
  );
}

/** The dots of the view in numbers; sorting them is what takes time, so it is done once for each view. */
function useFigures(dots: Dots, view: Range): Figures | null {
  return useMemo(() => figuresOf(dots.value.subarray(...dotsIn(dots, view))), [dots, view]);
}

function inNumbers(figures: Figures | null, noun: string): string {
  if (!figures) return `no ${noun} in view`;
  const { count: many, least, median, p99, most } = figures;
  return `${plural(many, noun)} in view: ${duration(least)} at least, median ${duration(median)}, p99 ${duration(p99)}, ${duration(most)} at most`;
}

function RoundTrips({ model, connection, view }: DetailsProps) {
  const dots = useMemo(() => roundTripDots(model.table), [model]);
  const figures = useFigures(dots, view);
  if (dots.time.length === 0) return null;
  const base = connection.base_rtt_ms;
  const line = base === null ? null : base * NS_PER_MS;
  const caption = `${inNumbers(figures, "round trip")}${line === null ? "" : `; base (dashed) ${duration(line)}`}.`;
  return (
    <Card title="Round-trip times" caption={caption} sides>
      <OverTime
        model={model}
        dots={dots}
        view={view}
        figures={figures}
        line={line}
        name="round trip"
        label={`Round trips over time. ${caption}`}
      />
    </Card>
  );
}

function Exchanges({ model, view }: DetailsProps) {
  const dots = useMemo(() => exchangeDots(model.table), [model]);
  const figures = useFigures(dots, view);
  if (dots.time.length === 0) return null;
  const caption = `${inNumbers(figures, "exchange")}, from a request's first byte to its answer's last.${figures ? " A click goes to the request." : ""}`;
  return (
    <Card title="Exchanges" caption={caption}>
      <OverTime
        model={model}
        dots={dots}
        view={view}
        figures={figures}
        line={null}
        name="exchange"
        label={`Exchanges over time. ${caption}`}
      />
      {figures && <Slowest model={model} dots={dots} view={view} />}
    </Card>
  );
}

/** The slowest exchanges in view, for who does not click on dots. */
function Slowest({ model, dots, view }: { model: Model; dots: Dots; view: Range }) {
  const [begin, end] = dotsIn(dots, view);
  const slowest = slowestOf(dots, begin, end, MOST_SLOWEST);
  return (
    <div class="slowest">
      slowest:
      {slowest.map((index) => {
        const packet = dots.packet[index] as number;
        const words = duration(dots.value[index] as number);
        return (
          <button
            key={index}
            type="button"
            class="pin"
            aria-label={`Exchange of ${words}, request in packet ${packet}`}
            onClick={() => model.choosePacket(packet)}
          >
            {words} #{count(packet)}
          </button>
        );
      })}
    </div>
  );
}

interface CadenceProps extends DetailsProps {
  from: Side;
  dots: Dots;
  figures: Figures | null;
  /** ns */
  period: number;
}

function Cadence({ model, view, from, dots, figures, period }: CadenceProps) {
  if (dots.time.length === 0 || model.sampled) return null;
  const sender = from === CLIENT ? "client" : "server";
  const caption = `${inNumbers(figures, "gap")}; period (dashed) ${duration(period)}.`;
  return (
    <Card title={`Rhythm of the ${sender}: gaps between its updates`} caption={caption}>
      <OverTime
        model={model}
        dots={dots}
        view={view}
        figures={figures}
        line={period}
        name="gap"
        label={`Gaps over time. ${caption}`}
      />
    </Card>
  );
}

interface GapsProps extends DetailsProps {
  gaps: readonly [Dots, Dots];
  figures: readonly [Figures | null, Figures | null];
}

function Gaps({ model, view, gaps, figures }: GapsProps) {
  const bins = useMemo(() => {
    const values = gaps.map((dots) => dots.value.subarray(...dotsIn(dots, view)));
    return growingBins(values as [Float64Array, Float64Array], TOGETHER);
  }, [gaps, view]);
  // Between packets that were left out there are no gaps to see.
  if (model.sampled || gaps.every(({ time }) => time.length === 0)) return null;
  const caption = `${sidesInNumbers(figures, duration, "gap")}. From one of a side's packets with data to its next; each bin is 1.6 times as wide as the one before.`;
  return (
    <Card title="Gaps" caption={caption} sides>
      <Histogram bins={bins} edge={duration} isLog label={`Histogram of gaps. ${caption}`} />
    </Card>
  );
}

function Sizes({ model, view }: DetailsProps) {
  const { marks } = model.table;
  const { bins, figures } = useMemo(() => {
    const values = [sizesOf(marks, CLIENT, view), sizesOf(marks, SERVER, view)] as const;
    return { bins: evenBins(values), figures: [figuresOf(values[0]), figuresOf(values[1])] as const };
  }, [marks, view]);
  if (figures.every((own) => own === null)) return null;
  const caption = `${sidesInNumbers(figures, inBytes, "packet")} with data.`;
  return (
    <Card title="Sizes" caption={caption} sides>
      <Histogram bins={bins} edge={inBytes} isLog={false} label={`Histogram of sizes. ${caption}`} />
    </Card>
  );
}

/** Sizes to the byte: what they differ by matters. */
const inBytes = (size: number): string => `${count(size)}\u00a0B`;

/** Payload of a side's packets with data in view. */
function sizesOf(marks: Marks, side: Side, view: Range): Float64Array {
  const begin = firstAtLeast(marks.time, view.from);
  const end = firstAfter(marks.time, view.until);
  const sizes = new Float64Array(end - begin);
  let many = 0;
  for (let row = begin; row < end; row++) {
    const what = marks.what[row] as number;
    const len = marks.len[row] as number;
    if (sideOf(what) === side && len > 0 && kindOf(what) !== PROBE) sizes[many++] = len;
  }
  return sizes.subarray(0, many);
}

/** `client: 50 packets, median 48 B; server: …`. */
function sidesInNumbers(
  both: readonly [Figures | null, Figures | null],
  inWords: (value: number) => string,
  noun: string,
): string {
  const parts = both.map((figures, side) => {
    if (!figures) return "";
    const range = `${inWords(figures.least)} to ${inWords(figures.most)}, median ${inWords(figures.median)}`;
    return `${side === CLIENT ? "client" : "server"}: ${count(figures.count)} ${noun}${figures.count === 1 ? "" : "s"}, ${range}`;
  });
  return parts.filter((part) => part !== "").join("; ");
}
