import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import type { Place } from "./app.tsx";
import type { Row } from "./connections/order.ts";
import { go, href, hrefOf } from "./route.ts";

const KEYS: [keys: string[], what: string][] = [
  [["?"], "show these keys"],
  [["/"], "filter the connections"],
  [["↓", "↑"], "in the list: next, previous connection (also j and k; Page, Home, End)"],
  [["Enter"], "open the connection or finding"],
  [["u"], "up: from a connection to the list"],
  [["]", "["], "next, previous connection, as the list is sorted"],
  [["n", "p"], "next, previous finding of the connection"],
  [["Tab"], "to the next link, switch or picture"],
];

const PLOT_KEYS: [keys: string[], what: string][] = [
  [["+", "-"], "zoom, as the wheel does; 0 shows all"],
  [["←", "→"], "move; Home and End to the ends"],
  [["y", "⇧ y"], "zoom in bytes, out, as Shift and the wheel do; a drag upright or across a box"],
  [["⇧ ↑", "⇧ ↓"], "move to more, fewer bytes"],
  [["f"], "fit the bytes to the data, as a double click on their axis does"],
  [["↑", "↓"], "previous, next packet"],
  [["n", "p"], "next, previous packet of a finding"],
  [["Esc"], "back to what was shown before"],
];

interface Context {
  place: Place | undefined;
  /** The list that the connection is in, as its reader sorted it. */
  around: Row[];
  help(): void;
}

/** The page's own keys. Where something is typed, and with Ctrl, Alt or Meta, they are not ours. */
export function useKeys({ place, around, help }: Context): void {
  // With the layout: a key that comes right after a page was drawn is meant for that page.
  useLayoutEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey || isTyped(event.target))
        return;
      const to = destination(event.key, place, around);
      if (event.key === "?") help();
      else if (event.key === "/") (document.getElementById("filter") ?? document.body).focus();
      else if (to !== undefined) go(to);
      else return;
      event.preventDefault();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  });
}

function isTyped(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    target.closest(
      "input:not([type=radio], [type=checkbox]), select, textarea, dialog, [contenteditable]",
    ) !== null
  );
}

/** Where a key leads to from a place. */
function destination(key: string, place: Place | undefined, around: Row[]): string | undefined {
  if (!place) return undefined;
  const { index, row, rows, finding } = place;
  if (key === "u") return row || finding !== undefined ? href({ at: "capture", capture: index }) : "#/";
  const shown = row === "missing" ? undefined : (row ?? (rows.length === 1 ? rows[0] : undefined));
  if (!shown) return undefined;
  const step = { "]": 1, "[": -1, n: 1, p: -1 }[key];
  if (step === undefined) return undefined;
  if (key === "n" || key === "p") {
    const at = shown.findings.findIndex((placed) => placed.index === finding);
    const next = shown.findings[at === -1 && step < 0 ? shown.findings.length - 1 : at + step];
    return next && href({ at: "finding", capture: index, finding: next.index, focus: {} });
  }
  const at = around.findIndex(({ connection }) => connection.id === shown.connection.id);
  const next = at === -1 ? undefined : around[at + step];
  return next && hrefOf(index, next.connection.id);
}

/** Which keys there are. */
export function Help({ close }: { close(): void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} class="help" aria-labelledby="help" onClose={close}>
      <form method="dialog">
        <h2 id="help">Keys</h2>
        <KeyList keys={KEYS} />
        <h3>In the plot of the packets</h3>
        <KeyList keys={PLOT_KEYS} />
        <button type="submit">Close</button>
      </form>
    </dialog>
  );
}

function KeyList({ keys }: { keys: typeof KEYS }) {
  return (
    <dl>
      {keys.map(([names, what]) => (
        <div key={what}>
          <dt>
            {names.map((name) => (
              <kbd key={name}>{name}</kbd>
            ))}
          </dt>
          <dd>{what}</dd>
        </div>
      ))}
    </dl>
  );
}
