import type { Calls, Pattern, Place, Socket, Write } from "../generated/report.ts";
import { count, duration, plural } from "../text/number.ts";

/** Sockets shown before somebody asks for the others. */
const FIRST = 3;

/** What programs' calls on some `sockets` tell, where they were recorded beside the packets. */
export function CallsPanel({ calls, sockets }: { calls: Calls; sockets: Socket[] }) {
  const { recorder, programs, lost, interrupted, fix, unseen, no_packets } = calls;
  const notes = [
    fix === null ? "" : `With --fix ${fix}.`,
    unseen ?? "",
    no_packets ?? "",
    lost > 0 ? `${plural(lost, "call")} not recorded: the recording was full.` : "",
    interrupted > 0 ? `${plural(interrupted, "call")} of signal handlers not recorded.` : "",
  ].filter(Boolean);
  return (
    <section class="card" aria-labelledby="calls">
      <div class="section-head">
        <h2 id="calls">What the programs wrote</h2>
        <span class="faint">
          {recorder}: {plural(calls.calls, "call")} on {plural(calls.sockets.length, "TCP socket")} in{" "}
          {plural(programs, "program")}
        </span>
      </div>
      {notes.map((note) => (
        <p key={note}>{note}</p>
      ))}
      {sockets.slice(0, FIRST).map(socketPart)}
      {sockets.length > FIRST && (
        <details>
          <summary>{plural(sockets.length - FIRST, "more socket")}</summary>
          {sockets.slice(FIRST).map(socketPart)}
        </details>
      )}
    </section>
  );
}

function socketPart(socket: Socket, index: number) {
  return <SocketPart key={index} socket={socket} />;
}

function SocketPart({ socket }: { socket: Socket }) {
  const { local, peer, accepted, processes, calls, messages, split, patterns, unseen_bytes } = socket;
  return (
    <article class="socket">
      <h3>
        <bdi>{local ?? "?"}</bdi> → <bdi>{peer ?? "?"}</bdi>
        <span class="faint">
          {accepted ? "accepted · " : ""}
          {processes.length === 1 ? "process" : "processes"} {processes.join(", ")} · {plural(calls, "call")}
        </span>
      </h3>
      <p>
        {split === 0
          ? `${plural(messages, "message")} written, each in one piece.`
          : `${count(split)} of ${plural(messages, "message")} written in pieces${waits(socket)}.`}
        {unseen_bytes > 0 &&
          ` ${count(unseen_bytes)} more bytes were written by calls that cannot be seen (stdio on a socket, io_uring, …).`}
      </p>
      {patterns.map((pattern) => (
        <PatternPart key={JSON.stringify(pattern)} pattern={pattern} />
      ))}
      <NodelayPart socket={socket} />
    </article>
  );
}

function waits({ wait_after_split_ms: split, wait_after_others_ms: others }: Socket): string {
  if (split === null) return "";
  const rest = others === null ? "" : `, after the others ${duration(others)}`;
  return `; data came after ${duration(split)} (median)${rest}`;
}

function PatternPart({ pattern }: { pattern: Pattern }) {
  const { messages, pieces, sizes, writes } = pattern;
  const more = pieces > sizes.length ? " + …" : "";
  return (
    <div class="pattern">
      <p>
        {plural(messages, "message")}, as {sizes.map(count).join(" + ")}
        {more} bytes, by
      </p>
      <ul>
        {writes.map((write) => (
          <li key={JSON.stringify(write)}>
            <WritePart write={write} />
          </li>
        ))}
      </ul>
    </div>
  );
}

function WritePart({ write: { call, count: times, stack } }: { write: Write }) {
  return (
    <>
      <code>{call}()</code> {times === 1 ? "once" : `${count(times)} times`} a message
      {stack.length === 0 ? ", whose stack was not kept" : ", from"}
      <ScriptStack stack={stack} />
    </>
  );
}

/** A script's lines, and folded below them how its interpreter came to the call. */
function ScriptStack({ stack }: { stack: Place[] }) {
  const first = stack.findIndex((place) => place.script);
  if (first <= 0) return <Stack stack={stack} />;
  return (
    <>
      <Stack stack={stack.slice(first)} />
      <details>
        <summary class="faint">through {plural(first, "function")} of the interpreter</summary>
        <Stack stack={stack.slice(0, first)} />
      </details>
    </>
  );
}

function Stack({ stack }: { stack: Place[] }) {
  if (stack.length === 0) return null;
  return (
    <ol class="stack">
      {stack.map((place, depth) => (
        <li key={depth} class={place.script ? "script" : ""}>
          {place.file !== null && place.line !== null && (
            <b title={place.file}>
              {place.file.split("/").at(-1)}:{place.line}
            </b>
          )}
          <span>{place.function ?? "no symbols"}</span>
          <span class="faint">{place.file ?? place.module}</span>
        </li>
      ))}
    </ol>
  );
}

function NodelayPart({ socket: { nodelay } }: { socket: Socket }) {
  const before = nodelay.writes_before ?? 0;
  const told = {
    never: "TCP_NODELAY was never set on this socket.",
    "other-side": "TCP_NODELAY was never set on this socket, only on the other side's.",
    beginning: "TCP_NODELAY was on from the beginning.",
    fix: "TCP_NODELAY was set by --fix.",
    off: "TCP_NODELAY was switched off.",
    set: `TCP_NODELAY was set ${before === 0 ? "before the first write" : `only after ${plural(before, "write")}`}.`,
  }[nodelay.state];
  return (
    <div class="nodelay">
      <p>{told}</p>
      {nodelay.stack.length > 0 && (
        <details>
          <summary>Where</summary>
          <Stack stack={nodelay.stack} />
        </details>
      )}
    </div>
  );
}
