import { useEffect, useState } from "preact/hooks";
import type { Page } from "../data/page.ts";

const STORED = "tcpwhy-language";
const listeners = new Set<(language: string) => void>();

/** A rule's fixes as the reader's language writes them. */
export function InLanguage({ rule, page: { languages, rules } }: { rule: string; page: Page }) {
  const [language, choose] = useLanguage(languages);
  const recipes = rules[rule]?.recipes ?? [];
  if (recipes.length === 0) return null;
  const here = recipes.filter(({ code }) => code[language] !== undefined);
  return (
    <section class="languages">
      <div class="languages-head">
        <h4>In code</h4>
        <select
          aria-label="Language"
          value={language}
          onChange={({ currentTarget: { value } }) => choose(value)}
        >
          {languages.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </div>
      {here.length === 0 && <p class="faint">{language} has no way to do it: see the other fixes.</p>}
      {here.map(({ title, code }) => (
        <figure key={title}>
          <figcaption>{title}</figcaption>
          <pre>
            <code>{code[language]}</code>
          </pre>
        </figure>
      ))}
    </section>
  );
}

/** One choice for all findings. */
function useLanguage(languages: string[]): [string, (language: string) => void] {
  const [chosen, set] = useState(stored);
  useEffect(() => {
    listeners.add(set);
    return () => {
      listeners.delete(set);
    };
  }, []);
  const known = chosen !== null && languages.includes(chosen);
  return [known ? chosen : (languages[0] ?? ""), choose];
}

function choose(language: string): void {
  try {
    localStorage.setItem(STORED, language);
  } catch {
    // As long as the page is open, then.
  }
  for (const listener of listeners) listener(language);
}

function stored(): string | null {
  try {
    return localStorage.getItem(STORED);
  } catch {
    return null;
  }
}
