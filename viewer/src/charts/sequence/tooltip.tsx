/** What the pointer is at, in words. */

import { BARE, hasAck, hasWindow, kindOf } from "../../data/table.ts";
import { count } from "../../text/number.ts";
import { type Model, NONE } from "../model.ts";
import { blocksOf, heldFor, kindInWords, senderOf, waits } from "../packets/describe.ts";
import { lineColor } from "../palette.ts";
import { duration, moment } from "../words.ts";
import { bookedAt } from "./stretches.ts";

/** A packet, or the moment where there is none. */
export function Tooltip({ model, row, time }: { model: Model; row: number; time: number }) {
  return row === NONE ? <Moment model={model} time={time} /> : <Packet model={model} row={row} />;
}

/** Decimals of a second that one pixel can show. */
function digits(model: Model): number {
  const perPixel = (model.view.until - model.view.from) / 1_000;
  return Math.min(9, Math.max(3, Math.ceil(9 - Math.log10(Math.max(1, perPixel)))));
}

function Moment({ model, time }: { model: Model; time: number }) {
  const { bookings } = model.table;
  const row = bookedAt(bookings, time);
  const begin = bookings.from[row] as number;
  const end = bookings.until[row] as number;
  return (
    <>
      <div class="tip-head">{moment(time, digits(model))} s</div>
      {row >= 0 && <Waits all={waits(bookings, begin, end)} title="this wait" />}
    </>
  );
}

function Waits({ all, title }: { all: ReturnType<typeof waits>; title: string }) {
  return (
    <div class="tip-waits">
      {title}:
      {all.slice(0, 4).map(({ line, ns }) => (
        <span key={line} class="tip-wait">
          <i class="swatch" style={{ background: lineColor(line) }} />
          {line} {duration(ns)}
        </span>
      ))}
    </div>
  );
}

function Packet({ model, row }: { model: Model; row: number }) {
  const { marks, bookings } = model.table;
  const what = marks.what[row] as number;
  const at = marks.time[row] as number;
  const before = row > 0 ? (marks.time[row - 1] as number) : at;
  const held = heldFor(model, row);
  const blocks = hasAck(what) ? blocksOf(model, row) : [];
  return (
    <>
      <div class="tip-head">
        <b>#{count(marks.number[row] as number)}</b> {senderOf(what)}: {kindInWords(model, row)}
        {held > 0 && `, held ${duration(held)}`}
      </div>
      <div>
        {moment(at, Math.max(6, digits(model)))} s
        {row > 0 && `, ${duration(at - before)} after the ${model.sampled ? "row above" : "packet before"}`}
      </div>
      <div>{numbers(model, row)}</div>
      {blocks.length > 0 && <div>SACK {blocks.join(", ")}</div>}
      {at > before && <Waits all={waits(bookings, before, at)} title="before it" />}
      {(model.pinsByRow.get(row) ?? []).map((pin) => (
        <div key={pin.finding} class="tip-note">
          {model.findings[pin.finding]?.rule}: {pin.note}
        </div>
      ))}
    </>
  );
}

/** Sequence numbers, ACK and window. */
function numbers({ table: { marks } }: Model, row: number): string {
  const what = marks.what[row] as number;
  const seq = marks.seq[row] as number;
  const len = marks.len[row] as number;
  const parts = [
    kindOf(what) === BARE
      ? `seq ${count(seq)}`
      : `${count(len)} bytes, seq ${count(seq)}–${count(seq + len)}`,
  ];
  if (hasAck(what)) parts.push(`ack ${count(marks.ack[row] as number)}`);
  if (hasWindow(what)) parts.push(`window ${count(marks.window[row] as number)}`);
  return parts.join(" · ");
}
