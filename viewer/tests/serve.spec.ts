import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { expect, type Page, test } from "@playwright/test";

const TCPWHY = process.env.TCPWHY ?? resolve(import.meta.dirname, "../../target/debug/tcpwhy");

/** A conversation as tcpdump prints it: requests in two pieces, the second of which waits for an ACK, or in one. */
function conversation(isSplit: boolean): string {
  const [client, server] = ["10.0.0.1.50000", "10.0.0.2.80"];
  const lines: string[] = [];
  let [now, asked, answered] = [0, 1, 1];
  const say = (from: string, to: string, flags: string, rest: string) => {
    lines.push(`12:00:0${(now / 1e6).toFixed(6)} IP ${from} > ${to}: Flags [${flags}], ${rest}`);
  };
  const ask = (length: number) => {
    say(client, server, "P.", `seq ${asked}:${asked + length}, ack ${answered}, win 502, length ${length}`);
    asked += length;
  };
  say(client, server, "S", "seq 0, win 64240, options [mss 1460], length 0");
  now += 1_000;
  say(server, client, "S.", "seq 0, ack 1, win 65160, options [mss 1460], length 0");
  now += 10;
  say(client, server, ".", "ack 1, win 502, length 0");
  for (let n = 0; n < 20; n++) {
    now += 1_000;
    ask(100);
    if (isSplit) {
      now += 41_000;
      say(server, client, ".", `ack ${asked}, win 509, length 0`);
      now += 15;
      ask(200);
    }
    now += 1_200;
    say(server, client, "P.", `seq ${answered}:${answered + 50}, ack ${asked}, win 509, length 50`);
    answered += 50;
    now += 10;
    say(client, server, ".", `ack ${answered}, win 502, length 0`);
  }
  return `${lines.join("\n")}\n`;
}

let folder: string;
let server: ChildProcess;
let url: string;
let wrong: string[];

test.beforeEach(async ({ page }) => {
  folder = mkdtempSync(join(tmpdir(), "tcpwhy-serve-"));
  writeFileSync(join(folder, "before.txt"), conversation(true));
  server = spawn(TCPWHY, ["serve", folder, "--upload-limit", "1MB"], { stdio: ["ignore", "pipe", "ignore"] });
  const lines = createInterface({ input: server.stdout as NonNullable<typeof server.stdout> });
  [url] = (await once(lines, "line")) as [string];
  wrong = [];
  page.on("pageerror", (error) => wrong.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") wrong.push(message.text());
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(new URL(url).origin)) wrong.push(`asked for ${request.url()}`);
  });
});

test.afterEach(async () => {
  server.kill("SIGTERM");
  const [status] = server.exitCode === null ? await once(server, "exit") : [server.exitCode];
  rmSync(folder, { recursive: true });
  expect(status).toBe(0);
  expect(wrong).toEqual([]);
});

const capture = (page: Page, name: string) =>
  page.locator(".captures-list > li").filter({ has: page.getByText(name, { exact: true }) });
const report = (page: Page, name: string) =>
  page.locator(".reports-list > li").filter({ has: page.getByRole("link", { name, exact: true }) });

/** Opens the printed address, and waits until the token is exchanged for the page. */
async function enter(page: Page): Promise<void> {
  await page.goto(url);
  await expect(page.locator(".folder")).toHaveText(folder);
}

/** Drops a file onto the page as a person would. */
async function drop(page: Page, name: string, content: string): Promise<void> {
  const transfer = await page.evaluateHandle(
    ([name, content]) => {
      const transfer = new DataTransfer();
      transfer.items.add(new File([content], name));
      return transfer;
    },
    [name, content] as const,
  );
  await page.dispatchEvent("body", "dragenter", { dataTransfer: transfer });
  await expect(page.locator(".drop.over")).toBeVisible();
  await page.dispatchEvent("body", "drop", { dataTransfer: transfer });
  await expect(page.locator(".drop.over")).toHaveCount(0);
}

test("a capture of the folder, one that is dropped, their reports, and what is different", async ({
  page,
}) => {
  await enter(page);
  // The token is not left in the address, where it would be sent on and remembered.
  await expect(page).toHaveURL(`${new URL(url).origin}/`);
  await capture(page, "before.txt").getByRole("button", { name: "Analyse before.txt" }).click();
  await expect(report(page, "before.txt")).toContainText("split-write");

  await drop(page, "after.txt", conversation(false));
  await expect(report(page, "after.txt")).toBeVisible();
  expect(readdirSync(folder).sort()).toEqual([".tcpwhy", "after.txt", "before.txt"]);

  await report(page, "before.txt").getByRole("checkbox").check();
  await report(page, "after.txt").getByRole("checkbox").check();
  await expect(report(page, "after.txt")).toContainText("after");
  await page.getByRole("link", { name: "Compare", exact: true }).click();
  await expect(page.locator(".verdict")).toContainText("Gone:");
  const gone = page.locator(".changes tr", { hasText: "split-write" });
  await expect(gone.locator(".change.good")).toHaveText("gone");
  // The bar of what is faster is shorter, as it is faster.
  const widths = await page
    .locator(".sides")
    .first()
    .locator(".side-bar > div")
    .evaluateAll((bars) => bars.map((bar) => bar.getBoundingClientRect().width));
  expect((widths[0] ?? 0) / (widths[1] ?? 1)).toBeGreaterThan(15);
  await page.getByRole("link", { name: "Swap before and after" }).click();
  await expect(page.locator(".verdict")).toContainText("New:");
  await page.getByRole("link", { name: "← All reports" }).click();

  page.once("dialog", (dialog) => dialog.accept());
  await report(page, "after.txt").getByRole("button", { name: "Delete" }).click();
  await expect(report(page, "after.txt")).toHaveCount(0);
});

test("a report opens, stays apart from the server, and survives being loaded again", async ({ page }) => {
  await enter(page);
  await page.getByRole("button", { name: "Analyse before.txt" }).press("Enter");
  await report(page, "before.txt").getByRole("link").click();
  await expect(page.locator("#page")).toContainText("split-write");
  await page.reload();
  await expect(page.locator("#page")).toContainText("split-write");
  const apart = await page.evaluate(async () => {
    const asked = await fetch("/api/state").then(
      (answer) => answer.status,
      () => "refused",
    );
    return { origin: self.origin, asked };
  });
  expect(apart).toEqual({ origin: "null", asked: "refused" });
  // That refusal is what was asked for.
  wrong = wrong.filter((text) => !text.includes("Content Security Policy") && !text.includes("/api/state"));
  await page.goBack();
  await expect(report(page, "before.txt")).toBeVisible();
});

test("what cannot be taken is said", async ({ page }) => {
  await enter(page);
  await drop(page, "large.pcap", "x".repeat(1_000_001));
  const failed = page.locator(".uploads .failed");
  await expect(failed).toContainText("--upload-limit");
  await failed.getByRole("button").click();
  await expect(failed).toHaveCount(0);
  await drop(page, "notes.md", "# nothing");
  await expect(failed).toContainText("Neither a capture");
  wrong = wrong.filter((text) => !text.includes("415"));
  await drop(page, "lie.pcap", "nothing");
  await expect(capture(page, "lie.pcap")).toContainText("neither a capture");
});

test("names of files are names and nothing else", async ({ page }) => {
  const name = "<img src=x onerror=alert(1)>\u202e.txt";
  writeFileSync(join(folder, name), conversation(true));
  page.on("dialog", () => wrong.push("a dialog"));
  await enter(page);
  const shown = name.replace("\u202e", "\\u{202e}");
  await page.getByRole("button", { name: `Analyse ${shown}` }).click();
  await expect(report(page, shown)).toBeVisible();
  expect(await page.locator("main img").count()).toBe(0);
  expect(await page.locator("body").textContent()).not.toContain("\u202e");
  await report(page, shown).getByRole("link").click();
  await expect(page.locator("#page")).toContainText("split-write");
  expect(await page.locator("img").count()).toBe(0);
});

test("a server that is gone is noticed, and the page is dark where people like that", async ({ page }) => {
  await page.emulateMedia({ colorScheme: "dark" });
  await enter(page);
  await expect(page.locator("html")).toHaveAttribute("data-theme", "dark");
  await expect(capture(page, "before.txt")).toBeVisible();
  server.kill("SIGTERM");
  await once(server, "exit");
  await page.getByRole("button", { name: "Analyse before.txt" }).click();
  await expect(page.getByRole("status").first()).toContainText("does not answer");
  wrong = wrong.filter((text) => !text.includes("ERR_CONNECTION_REFUSED"));
});
