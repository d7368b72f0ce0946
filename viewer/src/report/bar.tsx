import type { Report } from "../data/page.ts";
import { go, href } from "./route.ts";
import { type Choice, choose, useTheme } from "./theme.ts";

/** More captures, or longer names in all, are chosen from a list. */
const MOST_TABS = 5;
const MOST_LETTERS = 90;

/** The bar at the page's top: the captures, and what is done with the page as a whole. */
export function AppBar({ report, at, help }: { report: Report; at: number | undefined; help(): void }) {
  return (
    <header class="app-bar">
      <a class="brand" href="#/">
        tcp<b>why</b>
      </a>
      {report.captures.length > 1 ? <CaptureChoice report={report} at={at} /> : <span class="app-bar-gap" />}
      <ThemeChoice />
      <button type="button" class="quiet" onClick={() => print()}>
        Print
      </button>
      <button type="button" class="quiet" onClick={help} aria-label="Keys" aria-haspopup="dialog">
        ?
      </button>
    </header>
  );
}

function CaptureChoice({ report, at }: { report: Report; at: number | undefined }) {
  const { captures } = report;
  const names = captures.map(({ name }) => baseName(name));
  if (captures.length > MOST_TABS || names.join("").length > MOST_LETTERS) {
    return (
      <select
        class="capture-choice"
        aria-label="Capture"
        value={at === undefined ? "" : String(at)}
        onChange={({ currentTarget: { value } }) =>
          go(value === "" ? "#/" : href({ at: "capture", capture: Number(value) }))
        }
      >
        <option value="">All {captures.length} captures</option>
        {captures.map(({ name }, index) => (
          <option key={index} value={index}>
            {name}
          </option>
        ))}
      </select>
    );
  }
  return (
    <nav class="capture-tabs" aria-label="Captures">
      <a href="#/" aria-current={at === undefined ? "page" : undefined}>
        All captures
      </a>
      {captures.map(({ name }, index) => (
        <a
          key={index}
          href={href({ at: "capture", capture: index })}
          aria-current={at === index ? "page" : undefined}
          title={name}
        >
          {names[index]}
        </a>
      ))}
    </nav>
  );
}

/** A file without its folders. */
export function baseName(name: string): string {
  return name.split(/[/\\]/).at(-1) || name;
}

const THEMES: [Choice, string][] = [
  ["auto", "Auto"],
  ["light", "Light"],
  ["dark", "Dark"],
];

export function ThemeChoice() {
  const { choice } = useTheme();
  return (
    <fieldset class="themes">
      <legend class="for-readers">Colours</legend>
      {THEMES.map(([theme, name]) => (
        <label key={theme} class={choice === theme ? "chosen" : ""}>
          <input
            class="for-readers"
            type="radio"
            name="theme"
            checked={choice === theme}
            onChange={() => choose(theme)}
          />
          {name}
        </label>
      ))}
    </fieldset>
  );
}
