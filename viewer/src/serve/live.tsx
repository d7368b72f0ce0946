import { useState } from "preact/hooks";
import { bytes, duration } from "../text/number.ts";
import { plain } from "../text/plain.ts";
import { beginLive, endLive, type Live, type LiveRunning } from "./api.ts";
import type { Server } from "./server.ts";

/** Captures on an interface of the server's machine, where it may. */
export function LivePanel({ live, server }: { live: Live; server: Server }) {
  if (live.interfaces.length === 0) return null;
  return (
    <section class="card live" aria-labelledby="live-title">
      <h2 id="live-title">Or capture now</h2>
      {live.running ? (
        <Capturing running={live.running} server={server} />
      ) : (
        <Begin interfaces={live.interfaces} server={server} />
      )}
      {live.error && !live.running && (
        <p class="why" role="alert">
          {plain(live.error)}
        </p>
      )}
    </section>
  );
}

function Begin({ interfaces, server }: { interfaces: string[]; server: Server }) {
  const [wanted, setWanted] = useState({ interface: "any", filter: "" });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        server.act(() => beginLive(wanted));
      }}
    >
      <label>
        Interface
        <select
          value={wanted.interface}
          onChange={({ currentTarget: { value } }) => setWanted({ ...wanted, interface: value })}
        >
          {interfaces.map((name) => (
            <option key={name} value={name}>
              {plain(name)}
            </option>
          ))}
        </select>
      </label>
      <label class="filter">
        Filter
        <input
          type="text"
          value={wanted.filter}
          placeholder="port 8080"
          spellcheck={false}
          autocomplete="off"
          onInput={({ currentTarget: { value } }) => setWanted({ ...wanted, filter: value })}
        />
      </label>
      <button type="submit" class="main-button">
        Start
      </button>
      <p class="faint">
        Headers only, for an hour at most; the report comes when you stop. Needs the right to capture.
      </p>
    </form>
  );
}

function Capturing({ running, server }: { running: LiveRunning; server: Server }) {
  return (
    <>
      <p>
        <span class="dot" aria-hidden="true" /> {plain(running.interface)}
        {running.filter && <code> {plain(running.filter)}</code>}
        <span class="faint number">
          {" "}
          · {duration(running.seconds * 1_000)} · {bytes(running.bytes)} written
        </span>
      </p>
      <button type="button" class="main-button" disabled={running.ending} onClick={() => server.act(endLive)}>
        {running.ending ? "Stopping…" : "Stop and report"}
      </button>
    </>
  );
}
