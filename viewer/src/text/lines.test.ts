import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { IN_BARS, isLost, LINES } from "./lines.ts";

const source = (path: string) => readFileSync(new URL(`../../../${path}`, import.meta.url), "utf8");

it("has the ledger's lines in the program's order", () => {
  const schema = JSON.parse(source("docs/report.schema.json"));
  expect(LINES).toEqual(schema.$defs.ledger_ms.required);
  expect([...IN_BARS].sort()).toEqual([...LINES].sort());
});

it("calls the same lines lost as the program", () => {
  const rust = source("crates/diagnose/src/report.rs");
  const lost = /fn is_lost.*?matches!\(self, ([^)]*)\)/s.exec(rust)?.[1]?.split("|") ?? [];
  const names = lost.map((name) =>
    name
      .trim()
      .replace(/\B[A-Z]/g, "-$&")
      .toLowerCase(),
  );
  expect(names).toHaveLength(7);
  expect(LINES.filter(isLost).sort()).toEqual(names.sort());
});

it("shows the plots' colours on a light page", () => {
  const rust = source("crates/report/src/plot/style.rs");
  const css = source("viewer/src/style/palette.css").split(":root[data-theme")[0] ?? "";
  // What lies on white in a plot lies on grey cards here: these are a little darker.
  const adjusted = new Set(["Network", "Transfer"]);
  const colors = [...rust.matchAll(/Line::(\w+) => "(#[0-9a-f]{6})"/g)];
  expect(colors).toHaveLength(LINES.length);
  for (const [, line, color] of colors) {
    const name = (line ?? "").replace(/\B[A-Z]/g, "-$&").toLowerCase();
    if (!adjusted.has(line ?? "")) expect(css, name).toContain(`--line-${name}: ${color};`);
  }
});
