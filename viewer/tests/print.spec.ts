import { execFileSync, spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { expect, test } from "./browser.ts";
import { manyConnections } from "./captures.ts";
import { capture, file, pageOf } from "./pages.ts";

/** Text and pages of a PDF; nothing where nobody can tell. */
function read(path: string): { text: string; pages: number } | undefined {
  if (spawnSync("pdftotext", ["-v"]).error) {
    console.error("*** SKIPPED: what printed pages say; there is no pdftotext (poppler-utils). ***");
    return undefined;
  }
  const text = execFileSync("pdftotext", ["-layout", path, "-"], { encoding: "utf8" });
  // Each page ends with a form feed.
  return { text: text.replace(/\s+/g, " "), pages: text.split("\f").length - 1 };
}

test("on paper findings are unfolded and the page is light", async ({ page }, info) => {
  await page.emulateMedia({ colorScheme: "dark" });
  await page.goto(pageOf(file("examples/netrek-tcp-10.txt")));
  await expect(page.locator(".finding.open")).toHaveCount(0);
  const path = info.outputPath("report.pdf");
  writeFileSync(path, await page.pdf({ format: "A4" }));
  const printed = read(path);
  if (printed) {
    expect(printed.pages).toBeGreaterThanOrEqual(2);
    expect(printed.pages).toBeLessThan(8);
    for (const words of [
      "makes this connection wait 1.58 s",
      "Where the time went",
      "delayed-ack",
      "Set TCP_NODELAY",
      "packet 22",
    ]) {
      expect(printed.text).toContain(words);
    }
    expect(printed.text).not.toContain("shows the keys");
  }
  // Back on the screen it is as it was.
  await expect(page.locator(".finding.open")).toHaveCount(0);
  await expect(page.locator("html")).toHaveAttribute("data-theme", "dark");
});

test("a long list is printed as far as anybody reads", async ({ page }, info) => {
  await page.goto(pageOf(capture("many.txt", manyConnections(900))));
  const path = info.outputPath("many.pdf");
  writeFileSync(path, await page.pdf({ format: "A4" }));
  const printed = read(path);
  if (!printed) return;
  expect(printed.pages).toBeLessThan(40);
  expect(printed.text).toContain("And 800 more.");
});
