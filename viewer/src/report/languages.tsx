import { useEffect, useState } from "preact/hooks";
import { LANGUAGES, type Language, RECIPES } from "../text/languages.ts";

const STORED = "tcpwhy-language";
const listeners = new Set<(language: Language) => void>();

/** A rule's fixes as the reader's language writes them. */
export function InLanguage({ rule }: { rule: string }) {
  const [language, choose] = useLanguage();
  const recipes = RECIPES[rule];
  if (!recipes) return null;
  const here = recipes.filter(({ code }) => code[language] !== undefined);
  return (
    <section class="languages">
      <div class="languages-head">
        <h4>In code</h4>
        <select
          aria-label="Language"
          value={language}
          onChange={({ currentTarget: { value } }) => choose(value as Language)}
        >
          {LANGUAGES.map((name) => (
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
function useLanguage(): [Language, (language: Language) => void] {
  const [language, set] = useState(stored);
  useEffect(() => {
    listeners.add(set);
    return () => {
      listeners.delete(set);
    };
  }, []);
  return [language, choose];
}

function choose(language: Language): void {
  try {
    localStorage.setItem(STORED, language);
  } catch {
    // As long as the page is open, then.
  }
  for (const listener of listeners) listener(language);
}

function stored(): Language {
  try {
    const found = localStorage.getItem(STORED);
    return LANGUAGES.find((language) => language === found) ?? "C";
  } catch {
    return "C";
  }
}
