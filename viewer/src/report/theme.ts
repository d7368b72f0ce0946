import { useEffect, useState } from "preact/hooks";

export type Theme = "light" | "dark";
/** What the reader chose; `auto` is what the system has. */
export type Choice = Theme | "auto";

const STORED = "tcpwhy-theme";
const dark = matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set<() => void>();
let choice: Choice = stored();
let printing = false;

/** Paper is white. */
function theme(): Theme {
  if (printing) return "light";
  return choice === "auto" ? (dark.matches ? "dark" : "light") : choice;
}

function apply(): void {
  document.documentElement.dataset.theme = theme();
  for (const listener of listeners) listener();
}

/** Keeps the document's theme in step with the system, the reader and the printer. */
export function followTheme(): void {
  dark.addEventListener("change", apply);
  apply();
}

/** While it is printed, the page is light. */
export function setPrinting(is: boolean): void {
  printing = is;
  apply();
}

export function choose(next: Choice): void {
  choice = next;
  try {
    localStorage.setItem(STORED, next);
  } catch {
    // A file opened from disk may have no storage: the choice lasts as long as the page then.
  }
  apply();
}

function stored(): Choice {
  try {
    const found = localStorage.getItem(STORED);
    return found === "light" || found === "dark" ? found : "auto";
  } catch {
    return "auto";
  }
}

/** The theme that is shown and the choice behind it. */
export function useTheme(): { theme: Theme; choice: Choice } {
  const [, update] = useState({});
  useEffect(() => {
    const changed = () => update({});
    listeners.add(changed);
    return () => {
      listeners.delete(changed);
    };
  }, []);
  return { theme: theme(), choice };
}
