import { expect, test } from "./browser.ts";
import { stalled } from "./captures.ts";
import { capture, file, pageOf } from "./pages.ts";

const NETREK = "examples/netrek-tcp-10.txt";

test("a report opens from disk with the verdict first", async ({ page }) => {
  await page.goto(pageOf(file(NETREK)));
  await expect(page).toHaveTitle("Netrek over TCP, 10 updates asked per second – tcpwhy");
  await expect(page.getByRole("heading", { level: 1 })).toHaveText(
    "Netrek over TCP, 10 updates asked per second",
  );
  await expect(page.locator(".verdict")).toContainText(
    "The server nestor:4566 makes this connection wait 1.58 s of 1.99 s",
  );
  await expect(page.getByText("24 packets · 1.27 kB · 1.99 s")).toBeVisible();
  await expect(page.getByRole("img", { name: "Ledger: delayed-ack 79 %, server-app 21 %" })).toBeVisible();
  const legend = page.getByRole("row", { name: /^delayed-ack/ });
  await expect(legend).toContainText("the ACK that would free it is held");
});

test("a finding in full says why and how, and leads to its packets", async ({ page }) => {
  await page.goto(pageOf(file(NETREK)));
  await page
    .getByRole("link", { name: /merged-updates/ })
    .first()
    .click();
  await expect(page).toHaveURL(/#\/f\/0\/\d+$/);
  const finding = page.locator(".finding.open");
  await expect(finding).toContainText("confidence");
  await expect(finding).toContainText("TCP_QUICKACK");
  await finding.getByText("means, how it is detected").click();
  await expect(finding.getByRole("heading", { name: "How it is detected" })).toBeVisible();
  await expect(finding.getByText("RFC 896;")).toBeVisible();

  const evidence = finding.getByRole("link", { name: /^packet \d+$/ }).first();
  const number = ((await evidence.textContent()) ?? "").replace("packet ", "");
  await evidence.click();
  await expect(page).toHaveURL(new RegExp(`packet=${number}\\b`));
  await expect(finding.locator(".evidence .at")).toContainText(`packet ${number}`);
  const packet = page.locator(`.packets [role="row"][aria-selected="true"]`);
  await expect(page.locator(".sequence-figure")).toBeInViewport();
  await expect(packet.locator("> *").first()).toHaveText(number);
});

test("a link to a finding, a packet or nowhere shows what it says", async ({ page }) => {
  const url = pageOf(file(NETREK));
  await page.goto(`${url}#/f/0/0?packet=23`);
  await expect(page.locator(".finding.open")).toHaveCount(1);
  await expect(page.locator(`.packets [aria-selected="true"]`)).toContainText("23");
  await page.goto(`${url}#/c/0/77`);
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("There is no connection #77 here.");
  await page.getByRole("link", { name: "To the connections" }).click();
  await expect(page.locator(".verdict")).toBeVisible();
  await page.goto(`${url}#/<img src=x>`);
  await expect(page.locator(".verdict")).toBeVisible();
});

test("it follows the system's colours until somebody chooses", async ({ page }) => {
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await page.emulateMedia({ colorScheme: "light" });
  await page.goto(pageOf(file(NETREK)));
  const light = await ground();
  await page.emulateMedia({ colorScheme: "dark" });
  await expect.poll(ground).not.toBe(light);
  await page.getByText("Light", { exact: true }).click();
  await expect.poll(ground).toBe(light);
  await page.reload();
  expect(await ground()).toBe(light);
  await page.getByText("Dark", { exact: true }).click();
  await expect.poll(ground).not.toBe(light);
});

test("several captures are one report", async ({ page }) => {
  await page.goto(pageOf(file("examples/netrek-mail.txt")));
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("4 captures");
  await expect(page.locator(".verdict")).toHaveCount(4);
  await page.getByRole("link", { name: "Netrek over UDP, 10 updates asked per second" }).click();
  await expect(page).toHaveURL(/#\/c\/2$/);
  await expect(page.getByRole("heading", { level: 1 })).toHaveText(
    "Netrek over UDP, 10 updates asked per second",
  );
  await page
    .getByLabel("Capture", { exact: true })
    .selectOption({ label: "Netrek over TCP, 5 updates asked per second" });
  await expect(page.getByRole("heading", { level: 1 })).toHaveText(
    "Netrek over TCP, 5 updates asked per second",
  );
  await page.goBack();
  await page.goBack();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("4 captures");
});

test("both sides of a proxy are told together", async ({ page }) => {
  const hops = ["before", "behind"].map((place) => file(`tests/relay/updates-plain-${place}.pcapng.zst`));
  await page.goto(pageOf(...hops));
  const panel = page.locator("section", {
    has: page.getByRole("heading", { name: "Seen on both sides of a proxy" }),
  });
  await expect(panel).toContainText("merges what passes through it");
  await expect(panel).toContainText("relay-merge");
  await panel
    .getByRole("link", { name: /^packet/ })
    .first()
    .click();
  await expect(page).toHaveURL(/#\/c\/[01]\/0\?packet=\d+$/);
});

test("evidence of several connections leads to the connection that has it", async ({ page }) => {
  const url = pageOf(file("tests/corpus/connection-each-20ms-client.pcapng.zst"));
  await page.goto(url);
  await page.getByRole("link", { name: /handshake-per-request/ }).click();
  const links = page.locator(".evidence").getByRole("link");
  await expect(links).toHaveCount(await page.locator(".evidence li").count());
  const number = ((await links.nth(1).textContent()) ?? "").replace("packet ", "");
  await links.nth(1).click();
  await expect(page).toHaveURL(new RegExp(`#/c/0/\\d+\\?packet=${number}$`));
  await expect(page.locator(".packet.chosen .cell-no")).toHaveText(number);
  await expect(page.locator(".packet.chosen .cell-what")).toContainText("SYN: a handshake of");
  await expect(page.locator(".evidence-row")).toContainText("handshake-per-request");
});

test("a clock that ran backwards is told where there is one connection", async ({ page }) => {
  const lines = stalled("client.40000", "server.80").split("\n");
  // The first exchange, earlier than the handshake before it by a tenth of a second.
  lines.splice(3, 0, ...lines.splice(8, 5));
  await page.goto(pageOf(capture("backwards.txt", lines.join("\n"))));
  await page.getByRole("link", { name: /clock-step/ }).click();
  const finding = page.locator(".finding.open");
  await expect(finding).toContainText("ran backwards");
  await finding.getByRole("link", { name: /^packet/ }).click();
  await expect(page.locator(".packet.chosen .cell-what")).toContainText("stamped");
});

test("a finding shows what its fix would have saved, and the fix in the reader's language", async ({
  page,
}) => {
  await page.goto(`${pageOf(file("tests/corpus/split-both-20ms-client.pcapng.zst"))}#/f/0/0`);
  const finding = page.locator(".finding.open");
  await expect(finding.locator(".what-if")).toContainText(/would have saved 1\.\d\d\ss of 4\.\d\d\ss/);
  await expect(finding.locator(".languages")).toContainText("writev(fd, parts, 2);");
  await finding.getByLabel("Language").selectOption("Python");
  await expect(finding.locator(".languages")).toContainText("socket.TCP_NODELAY, 1)");
  await page.reload();
  await expect(finding.getByLabel("Language")).toHaveValue("Python");
});

test("a recording shows the lines that wrote", async ({ page }) => {
  await page.goto(pageOf(file("fuzz/seeds/calls/packets.pcapng")));
  const calls = page.locator("section", {
    has: page.getByRole("heading", { name: "What the programs wrote" }),
  });
  await expect(calls).toContainText("5 of 5 messages written in pieces");
  await expect(calls).toContainText("10 + 10 + 10 + 10 + 10 + 10 bytes");
  await expect(calls.locator(".stack li").first()).toHaveText("split.c:6flush_chain/src/split.c");
  await expect(calls).toContainText("TCP_NODELAY was never set on this socket, only on the other side's.");
  // Where nothing but calls was recorded, they are the page.
  await page.goto(pageOf(file("fuzz/seeds/calls/calls.pcapng")));
  await expect(page.locator(".verdict")).toContainText("There is no TCP or UDP traffic");
  await expect(calls).toContainText("TCP_NODELAY was set only after 6 writes.");
});

test("nothing overflows a narrow window", async ({ page }) => {
  await page.setViewportSize({ width: 700, height: 900 });
  for (const url of [
    pageOf(file(NETREK)),
    `${pageOf(file(NETREK))}#/f/0/0`,
    pageOf(file("examples/netrek-mail.txt")),
  ]) {
    await page.goto(url);
    await expect(page.locator(".verdict").first()).toBeVisible();
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(700);
  }
});
