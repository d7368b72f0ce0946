/** The packets as a table: only the rows on screen exist. */

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { hasAck, hasWindow } from "../../data/table.ts";
import { count, plural } from "../../text/number.ts";
import { type Model, NONE } from "../model.ts";
import { lineColor } from "../palette.ts";
import { duration, moment } from "../words.ts";
import { flagLetters, inWords, senderOf, waitInWords, waits } from "./describe.ts";
import { bringIntoView, firstRow, ROW, scrolledHeight, scrollFor } from "./window.ts";

const COLUMNS = ["no", "time", "delta", "from", "flags", "seq", "len", "ack", "window", "what"] as const;
/** Rows are drawn for this height, CSS pixels, until it is known how high the table is. */
const FIRST_HEIGHT = 308;
/** The table follows the plot once that has come to rest for so many ms. */
const REST_MS = 140;

export function PacketGrid({ model }: { model: Model }) {
  const rows = model.table.marks.count;
  const scroller = useRef<HTMLDivElement>(null);
  const height = useHeight(scroller);
  const [scrolled, setScrolled] = useState(0);
  const update = useState({})[1];
  const first = firstRow(scrolled, rows, height);

  const scrollToRow = (next: number) => {
    const element = scroller.current;
    if (element) element.scrollTop = scrollFor(next, rows, element.clientHeight);
  };
  const reveal = (row: number) => {
    const element = scroller.current;
    if (!element || row < 0) return;
    const now = firstRow(element.scrollTop, rows, element.clientHeight);
    const next = bringIntoView(row, now, element.clientHeight);
    if (next !== now) scrollToRow(next);
  };
  useEffect(() => follow(model, scroller, reveal, scrollToRow, () => update({})), [model]);
  // A new connection begins at its first packet.
  useLayoutEffect(() => scrollToRow(0), [model]);

  const shown = Math.ceil(height / ROW) + 1;
  const begin = Math.floor(first);
  const visible = Array.from(
    { length: Math.max(0, Math.min(shown, rows - begin)) },
    (_, index) => begin + index,
  );
  return (
    <div
      class="packets"
      role="grid"
      aria-label={`${plural(rows, "packet")}; arrows, Page Up, Page Down, Home and End move`}
      aria-rowcount={rows + 1}
      aria-colcount={COLUMNS.length}
      aria-activedescendant={model.chosen === NONE ? undefined : `packet-row-${model.chosen}`}
      tabIndex={0}
      onKeyDown={(event) => onKey(model, event, Math.floor(height / ROW))}
      onPointerLeave={() => model.point(NONE)}
    >
      <div class="packet-head" role="row" aria-rowindex={1}>
        {COLUMNS.map((name, index) => (
          <div key={name} role="columnheader" class={`cell cell-${name}`} aria-colindex={index + 1}>
            {name === "delta" && model.sampled ? "since above" : name}
          </div>
        ))}
      </div>
      <div
        ref={scroller}
        class="packet-scroll"
        style={{ "--rows-height": `${rows * ROW}px` }}
        onScroll={(event) => setScrolled(event.currentTarget.scrollTop)}
      >
        <div class="packet-room" style={{ "--room": `${scrolledHeight(rows)}px` }}>
          <div class="packet-rows" style={{ "--down": `${Math.round(scrolled - (first - begin) * ROW)}px` }}>
            {visible.map((row) => (
              <PacketRow key={row} model={model} row={row} />
            ))}
          </div>
        </div>
      </div>
    </div>
  );
}

/** The height of the rows' window, CSS pixels, which the style sheet decides. */
function useHeight(scroller: { current: HTMLDivElement | null }): number {
  const [height, setHeight] = useState(FIRST_HEIGHT);
  useLayoutEffect(() => {
    const element = scroller.current as HTMLDivElement;
    const sizes = new ResizeObserver(() => setHeight(element.clientHeight));
    sizes.observe(element);
    return () => sizes.disconnect();
  }, []);
  return height;
}

/** Keeps the table where the plot is. Returns how to stop that. */
function follow(
  model: Model,
  scroller: { current: HTMLDivElement | null },
  reveal: (row: number) => void,
  scrollToRow: (row: number) => void,
  update: () => void,
): () => void {
  let rest = 0;
  let frame = 0;
  const isUsed = () => scroller.current?.closest(".packets")?.matches(":hover, :focus-within") ?? false;
  const stop = model.listen((change) => {
    if (change === "choose") reveal(model.chosen);
    if (change === "point" && !isUsed()) reveal(model.pointed);
    if (change === "bytes") return;
    if (change === "view") {
      clearTimeout(rest);
      rest = window.setTimeout(() => {
        const { from, until } = model.view;
        const chosen = model.table.marks.time[model.chosen];
        const isChosenShown = chosen !== undefined && chosen >= from && chosen <= until;
        if (!isUsed() && !isChosenShown) scrollToRow(model.rowAt(from));
        update();
      }, REST_MS);
      return;
    }
    frame ||= requestAnimationFrame(() => {
      frame = 0;
      update();
    });
  });
  return () => {
    stop();
    clearTimeout(rest);
    cancelAnimationFrame(frame);
  };
}

function onKey(model: Model, event: KeyboardEvent, page: number): void {
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  const last = model.table.marks.count - 1;
  const now = model.chosen === NONE ? model.rowAt(model.view.from) - 1 : model.chosen;
  const target = {
    ArrowUp: now - 1,
    ArrowDown: now + 1,
    PageUp: now - page,
    PageDown: now + page,
    Home: 0,
    End: last,
  }[event.key];
  if (target === undefined) return;
  event.preventDefault();
  model.choose(Math.min(Math.max(target, 0), last));
}

function PacketRow({ model, row }: { model: Model; row: number }) {
  const { marks } = model.table;
  const what = marks.what[row] as number;
  const time = marks.time[row] as number;
  const isOut = time < model.view.from || time > model.view.until;
  const states = [
    row === model.chosen && "chosen",
    row === model.pointed && "pointed",
    isOut && "out",
    model.pinsByRow.has(row) && "evidence",
    what & 1 ? "from-server" : "from-client",
  ];
  const cells = [
    count(marks.number[row] as number),
    moment(time),
    <Delta model={model} row={row} />,
    senderOf(what),
    flagLetters(what),
    count(marks.seq[row] as number),
    count(marks.len[row] as number),
    hasAck(what) ? count(marks.ack[row] as number) : "",
    hasWindow(what) ? count(marks.window[row] as number) : "",
    inWords(model, row),
  ];
  return (
    <div
      id={`packet-row-${row}`}
      class={`packet ${states.filter(Boolean).join(" ")}`}
      role="row"
      aria-rowindex={row + 2}
      aria-selected={row === model.chosen}
      onPointerEnter={() => model.point(row)}
      onClick={() => model.choose(row)}
    >
      {cells.map((cell, index) => (
        <div
          key={COLUMNS[index]}
          role="gridcell"
          aria-colindex={index + 1}
          class={`cell cell-${COLUMNS[index]}`}
          title={index === 9 ? String(cell) : undefined}
        >
          {cell}
        </div>
      ))}
    </div>
  );
}

/** The time since the packet before, with the colour of what most of it went to. */
function Delta({ model, row }: { model: Model; row: number }) {
  if (row === 0) return null;
  const { marks, bookings } = model.table;
  const before = marks.time[row - 1] as number;
  const at = marks.time[row] as number;
  const [most] = at > before ? waits(bookings, before, at) : [];
  return (
    <span title={most && waitInWords(bookings, before, at)}>
      {most && <i class="swatch" style={{ background: lineColor(most.line) }} />}
      {duration(at - before)}
    </span>
  );
}
