/** A histogram of two senders: the client's upwards, the server's downwards. */

import { count } from "../../text/number.ts";
import type { Bins } from "./bins.ts";

/** Of the drawing, in its own units. */
const WIDTH = 560;
const HEIGHT = 150;
const LEFT = 60;
const RIGHT = 12;
const LABELS = 18;
/** Labels need so much room. */
const APART = 64;
/** A bin with anything in it can be seen. */
const LEAST = 2.5;

const SIDES = ["client", "server"];

interface Props {
  bins: Bins;
  /** An edge in words. */
  edge: (value: number) => string;
  /** Whether labels stand at powers of ten. */
  isLog: boolean;
  label: string;
}

export function Histogram({ bins, edge, isLog, label }: Props) {
  const { edges, counts } = bins;
  const size = Math.max(1, edges.length - 1);
  const wide = (WIDTH - LEFT - RIGHT) / size;
  const tallest = counts.map((own) => Math.max(0, ...own)) as [number, number];
  // A server that is alone goes upwards too.
  const upper = tallest[0] > 0 ? 0 : 1;
  const [up, down] = [tallest[upper] as number, upper === 0 ? tallest[1] : 0];
  const room = HEIGHT - LABELS;
  const scale = room / Math.max(1, up + down);
  const zero = up * scale;
  return (
    <svg class="histogram" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={label}>
      {counts.map((own, side) =>
        own.map((many, index) => {
          if (many === 0) return null;
          const height = Math.max(LEAST, many * scale);
          return (
            <rect
              key={`${side} ${index}`}
              class={side === 0 ? "bar-client" : "bar-server"}
              x={LEFT + index * wide + 0.5}
              width={Math.max(0.5, wide - 1)}
              y={side === upper ? zero - height : zero}
              height={height}
            >
              <title>
                {SIDES[side]}: {count(many)} from {edge(edges[index] as number)} to{" "}
                {edge(edges[index + 1] as number)}
              </title>
            </rect>
          );
        }),
      )}
      <line class="zero" x1={LEFT} x2={WIDTH - RIGHT} y1={zero} y2={zero} />
      {tallest.map(
        (most, side) =>
          most > 0 && (
            <text key={SIDES[side]} x={LEFT - 6} y={side === upper ? 11 : room - 2} text-anchor="end">
              {count(most)}
            </text>
          ),
      )}
      {labelled(edges, wide, isLog).map((index) => (
        <g key={index} class="tick">
          <line x1={LEFT + index * wide} x2={LEFT + index * wide} y1={0} y2={room + 3} />
          <text x={LEFT + index * wide} y={HEIGHT - 4} text-anchor={anchor(index, size)}>
            {edge(edges[index] as number)}
          </text>
        </g>
      ))}
    </svg>
  );
}

const anchor = (index: number, size: number) => (index === size ? "end" : "middle");

/** The edges that have a label. */
function labelled(edges: number[], wide: number, isLog: boolean): number[] {
  const candidates = [...edges.keys()].filter((index) => {
    if (!isLog) return true;
    const power = Math.log10(edges[index] as number);
    return Math.abs(power - Math.round(power)) < 1e-6;
  });
  const chosen: number[] = [];
  const step = Math.max(1, Math.ceil((APART / wide) * (isLog ? 0.2 : 1)));
  candidates.forEach((index, order) => {
    if (order % step === 0) chosen.push(index);
  });
  return chosen;
}
