import { useEffect, useRef, useState } from "preact/hooks";
import { ThemeChoice } from "../report/bar.tsx";
import { plain } from "../text/plain.ts";
import type { State } from "./api.ts";
import { Captures } from "./captures.tsx";
import { Compare } from "./compare.tsx";
import { DropZone } from "./drop.tsx";
import { LivePanel } from "./live.tsx";
import { Reports } from "./reports.tsx";
import { type Server, useServer } from "./server.ts";
import { type Pair, type Route, routeOf } from "./words.ts";

export function App() {
  const server = useServer();
  const route = useRoute();
  const [pair, setPair] = useState<Pair>([]);
  const { state, trouble } = server;
  return (
    <>
      <button type="button" class="skip" onClick={() => document.getElementById("content")?.focus()}>
        Skip to the content
      </button>
      <div class="app-bar">
        <a class="brand" href="#/">
          tcp<b>why</b>
        </a>
        <span class="folder faint" title="The folder of captures">
          {state ? plain(state.folder) : ""}
        </span>
        <ThemeChoice />
      </div>
      <main id="content" tabIndex={-1}>
        <p class={trouble ? "alert" : "for-readers"} role="status">
          {trouble ? plain(trouble) : ""}
        </p>
        {state === undefined ? (
          <p class="faint">{trouble ? "" : "Looking into the folder…"}</p>
        ) : route.at === "compare" ? (
          <Compare before={route.before} after={route.after} state={state} />
        ) : (
          <Lists state={state} server={server} pair={pair} setPair={setPair} />
        )}
      </main>
      {state && <footer class="faint">tcpwhy {plain(state.version)}</footer>}
    </>
  );
}

interface ListsProps {
  state: State;
  server: Server;
  pair: Pair;
  setPair(pair: Pair): void;
}

function Lists({ state, server, pair, setPair }: ListsProps) {
  return (
    <>
      <h1 class="for-readers">Captures and their reports</h1>
      <div class="sources">
        <DropZone state={state} server={server} />
        <LivePanel live={state.live} server={server} />
      </div>
      <Reports state={state} server={server} pair={pair} setPair={setPair} />
      <Captures state={state} server={server} />
    </>
  );
}

/** Where the address leads; a new place begins at its top. */
function useRoute(): Route {
  const [hash, setHash] = useState(location.hash);
  const last = useRef(hash);
  useEffect(() => {
    const changed = () => setHash(location.hash);
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  useEffect(() => {
    if (last.current === hash) return;
    last.current = hash;
    scrollTo(0, 0);
    document.getElementById("content")?.focus();
  }, [hash]);
  return routeOf(hash);
}
