import { readFileSync, writeFileSync } from "node:fs";
import { expect, test } from "./browser.ts";
import { stalled } from "./captures.ts";
import { capture, pageOf } from "./pages.ts";

const ATTACKS = [
  "<img/src=x/onerror=alert(1)>",
  "</script><script>alert(2)</script>",
  "<!--<script>",
  "$&$'$`$1",
  "{{7*7}}$" + "{alert(3)}",
  "javascript:alert(4)",
  "\"onmouseover='alert(5)'x=\"",
  "a\u202egpj.exe\u2066\u200b",
  "%3Cscript%3Ealert(7)",
  "W".repeat(200),
];
const HIDDEN = /[\u200b\u202e\u2066]/;

test("hosts, files and prose are names and nothing else, whatever they are called", async ({ page }) => {
  const talks = ATTACKS.map((attack, n) => stalled(`[${attack}].${1033 + n}`, "[server].80"));
  const lines = talks.flatMap((talk) => talk.trim().split("\n")).sort();
  const [, endsScript = ""] = ATTACKS;
  const url = pageOf(
    capture("<img src=x onerror=alert(6)>\u202e.txt", `What ${endsScript} did:\n\n${lines.join("\n")}\n`),
    capture("other.txt", stalled("10.0.0.1.1033", "10.0.0.2.80")),
  );
  await page.goto(url);
  await expect(page.locator(".verdict")).toHaveCount(2);
  await page.goto(`${url}#/c/0`);
  await expect(page.getByRole("status")).toHaveText(String(ATTACKS.length));
  for (const attack of ATTACKS) {
    // What hides is shown; the rest stands there letter by letter.
    const shown = attack.replace(new RegExp(HIDDEN, "g"), (c) => `\\u{${c.codePointAt(0)?.toString(16)}}`);
    const row = page.locator(".grid-body .grid-row", { hasText: shown });
    await expect(row).toHaveCount(1);
    await row.locator("a").click();
    await expect(page.getByRole("heading", { level: 1 })).toContainText(shown);
    await page.keyboard.press("n");
    await expect(page.locator(".finding.open")).toContainText(shown.slice(0, 15));
    await expect(page.locator(".charts")).toBeVisible();
    const made = await page.evaluate(() => ({
      images: document.images.length,
      scripts: [...document.scripts].filter((it) => it.type === "module" || it.type === "").length,
      handlers: document.querySelectorAll("[onmouseover], [onerror]").length,
      links: [...document.links].filter((it) => it.protocol === "javascript:").length,
      width: document.documentElement.scrollWidth,
    }));
    expect(made, attack).toEqual({ images: 0, scripts: 1, handlers: 0, links: 0, width: 1280 });
    expect(await page.locator("main").textContent()).not.toMatch(HIDDEN);
    await page.keyboard.press("u");
  }
});

test("a page that lost its report says so", async ({ page }) => {
  const whole = pageOf(capture("plain.txt", stalled("10.0.0.1.1033", "10.0.0.2.80"))).replace("file://", "");
  const text = readFileSync(whole, "utf8");
  const cases: [string, string, RegExp][] = [
    [
      "none.html",
      text.replace(/<script type="application\/json" id="tcpwhy-report">.*?<\/script>/s, ""),
      /no report in it/,
    ],
    [
      "half.html",
      text.replace(/(id="tcpwhy-report">.{200}).*?<\/script>/s, "$1</script>"),
      /This file is damaged/,
    ],
    ["next.html", text.replace("tcpwhy-report/2", "tcpwhy-report/3"), /reads tcpwhy-report\/2/],
  ];
  for (const [name, html, says] of cases) {
    expect(html).not.toBe(text);
    const path = whole.replace(/[^/]*$/, name);
    writeFileSync(path, html);
    await page.goto(`file://${path}`);
    await expect(page.locator("#page")).toContainText(says);
  }
});

test("a packet table that is damaged is told in words, and the rest stays", async ({ page }) => {
  const whole = pageOf(capture("plain.txt", stalled("10.0.0.1.1033", "10.0.0.2.80"))).replace("file://", "");
  const path = whole.replace(/[^/]*$/, "table.html");
  writeFileSync(
    path,
    readFileSync(whole, "utf8").replace(/(id="tcpwhy-packets-0">.{40}).*?<\/script>/s, "$1</script>"),
  );
  await page.goto(`file://${path}`);
  await expect(page.getByText(/packet table is/)).toBeVisible();
  await expect(page.locator(".verdict")).toBeVisible();
});
