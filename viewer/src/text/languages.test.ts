import { readdirSync } from "node:fs";
import { expect, it } from "vitest";
import { LANGUAGES, RECIPES } from "./languages.ts";

it("has recipes for rules that there are", () => {
  const rules = readdirSync(new URL("../../../docs/rules", import.meta.url)).map((file) =>
    file.replace(/\.md$/, ""),
  );
  for (const rule of Object.keys(RECIPES)) expect(rules).toContain(rule);
});

it("has something to show for each rule in each language, but for what a language cannot do", () => {
  const without = Object.entries(RECIPES).flatMap(([rule, recipes]) =>
    LANGUAGES.filter((language) => recipes.every(({ code }) => code[language] === undefined)).map(
      (language) => `${rule} in ${language}`,
    ),
  );
  expect(without.sort()).toEqual(
    [
      "delayed-ack in C#",
      "delayed-ack in Node.js",
      "small-receive-window in Node.js",
      "small-receive-window in Rust",
      "small-send-buffer in Node.js",
      "small-send-buffer in Rust",
    ].sort(),
  );
});
