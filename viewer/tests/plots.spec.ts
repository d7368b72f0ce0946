import { readFileSync } from "node:fs";
import { expect, type Page, test } from "@playwright/test";
import { decodeTable } from "../src/data/table.ts";
import { middle, open, range } from "./plot.ts";
import { pageOf } from "./report.ts";
import { bulk, split, stalled } from "./stories.ts";

/** The last packet of `split(25)`: 20.03 ms of handshake, 25 exchanges of 80.02 ms, 24 pauses of 10 ms, and an ACK after 15 µs. */
const LAST = 2.261;

async function width(page: Page): Promise<number> {
  const [from, until] = await range(page);
  return until - from;
}

/** Whether the plot's canvas has pixels of a colour, of the page's style sheet. */
function hasColor(page: Page, name: string): Promise<boolean> {
  return page
    .locator(".sequence canvas")
    .first()
    .evaluate((canvas: HTMLCanvasElement, name) => {
      const probe = document.body.appendChild(document.createElement("span"));
      probe.style.color = `var(--${name})`;
      const wanted = getComputedStyle(probe).color.match(/\d+/g)?.map(Number);
      probe.remove();
      const { data } = canvas.getContext("2d")?.getImageData(0, 0, canvas.width, canvas.height) ?? {
        data: [],
      };
      for (let at = 0; at < data.length; at += 4)
        if (wanted?.every((value, channel) => data[at + channel] === value)) return true;
      return false;
    }, name);
}

test("the wheel zooms about the pointer, and everything goes back", async ({ page }, info) => {
  await open(page, pageOf(info.outputPath("report.html"), split(25)));
  const [from, until] = await range(page);
  expect([from, until]).toEqual([0, LAST]);
  const at = await middle(page);
  await page.mouse.move(at.x, at.y);
  for (let turn = 0; turn < 5; turn++) await page.mouse.wheel(0, -100);
  await expect.poll(async () => (await range(page))[1]).toBeLessThan(1.5);
  const near = await range(page);
  const inside = (at.x - at.left - 70) / (at.width - 82);
  const pointed = from + inside * (until - from);
  expect(near[0] + inside * (near[1] - near[0])).toBeCloseTo(pointed, 1);
  await expect.poll(() => page.url()).toContain("from=");
  await page.locator(".sequence").focus();
  await page.keyboard.press("Escape");
  await expect.poll(() => range(page)).toEqual([from, until]);
  await expect.poll(() => page.url()).not.toContain("from=");
});

test("a wheel that scrolls the page goes on scrolling over the plot", async ({ page }, info) => {
  await open(page, pageOf(info.outputPath("report.html"), split(25)));
  const taken = (place: string) =>
    page.locator(place).evaluate((element) => {
      const box = element.getBoundingClientRect();
      const where = {
        clientX: box.left + box.width / 2,
        clientY: box.top + 90,
        bubbles: true,
        cancelable: true,
      };
      return !element.dispatchEvent(new WheelEvent("wheel", { ...where, deltaY: -100 }));
    });
  // Turned over the text above, then over the plot: the page keeps the wheel, until it has rested.
  const isTaken = await page.evaluate(() => {
    const plot = document.querySelector(".sequence") as HTMLElement;
    const turn = (element: Element) => {
      const event = new WheelEvent("wheel", { deltaY: -100, clientX: 400, bubbles: true, cancelable: true });
      return !element.dispatchEvent(event);
    };
    return [turn(document.body), turn(plot)];
  });
  expect(isTaken).toEqual([false, false]);
  expect(await range(page)).toEqual([0, LAST]);
  await page.waitForFunction(
    (start) => performance.now() > start + 400,
    await page.evaluate(() => performance.now()),
  );
  expect(await taken(".sequence")).toBe(true);
  await expect.poll(() => range(page)).not.toEqual([0, LAST]);
});

test("a drag shows a stretch, down to microseconds", async ({ page }, info) => {
  await open(page, pageOf(info.outputPath("report.html"), split(25)));
  for (let step = 0; step < 5; step++) {
    const at = await middle(page);
    await page.mouse.move(at.x - 40, at.y);
    await page.mouse.down();
    await page.mouse.move(at.x + 40, at.y, { steps: 3 });
    const before = await width(page);
    await page.mouse.up();
    // The plot glides there.
    await expect.poll(() => width(page)).toBeLessThan(before * 0.2);
  }
  const [from, until] = await range(page);
  expect(until - from).toBeLessThan(50e-6);
  await expect(page.locator(".axis-title").first()).toContainText("µs after");
  await page.mouse.dblclick(...(Object.values(await middle(page)).slice(0, 2) as [number, number]));
  await expect
    .poll(async () => (await range(page))[1] - (await range(page))[0])
    .toBeGreaterThan(until - from);
});

test("keys move, zoom and go back", async ({ page }, info) => {
  await open(page, pageOf(info.outputPath("report.html"), split(25)));
  await page.locator(".sequence").focus();
  for (const key of ["+", "+", "+"]) await page.keyboard.press(key);
  await expect.poll(async () => (await range(page))[1]).toBeLessThan(1.5);
  await page.keyboard.press("End");
  await expect.poll(async () => (await range(page))[1]).toBeGreaterThan(2.2);
  const end = await range(page);
  await page.keyboard.press("ArrowLeft");
  await expect.poll(async () => (await range(page))[0]).toBeLessThan(end[0]);
  await page.keyboard.press("0");
  await expect.poll(() => range(page)).toEqual([0, LAST]);
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await expect(page.locator(".packet.chosen .cell-no")).toHaveText("2");
  await expect(page.locator(".sequence output")).toContainText("SYN-ACK");
});

test("a row and its mark point at each other", async ({ page }, info) => {
  await open(page, pageOf(info.outputPath("report.html"), split(25)));
  const overlay = () =>
    page.locator(".sequence .overlay").evaluate((canvas: HTMLCanvasElement) => {
      const { data } = canvas.getContext("2d")?.getImageData(0, 0, canvas.width, canvas.height) ?? {
        data: [],
      };
      let sum = 0;
      let many = 0;
      for (let at = 3; at < data.length; at += 4) {
        if (!data[at]) continue;
        sum += ((at - 3) / 4) % canvas.width;
        many++;
      }
      return many === 0 ? null : sum / many / canvas.width;
    });
  const row = page.locator(".packet", { has: page.locator(".cell-no", { hasText: /^11$/ }) });
  await row.hover();
  // Packet 11 is data at 0.170070 s of -0.0226 … 2.2836 s, in a plot that begins 70 pixels from the left.
  const width = (await middle(page)).width;
  const place = (70 + ((0.17007 + 0.0226) / 2.3061) * (width - 82)) / width;
  await row.hover();
  await expect.poll(overlay).toBeGreaterThan(place - 0.01);
  expect(await overlay()).toBeLessThan(place + 0.01);
  const at = await middle(page);
  await page.mouse.move(at.left + place * at.width, at.y);
  // Wherever the pointer is on that column, what it points at is beside it in time.
  for (let y = at.y + 120; y > at.y - 120; y -= 6) {
    await page.mouse.move(at.left + place * at.width, y);
    if ((await page.locator(".packet.pointed").count()) > 0) break;
  }
  const time = Number(await page.locator(".packet.pointed .cell-time").textContent());
  expect(Math.abs(time - 0.17007)).toBeLessThan(0.05);
  await expect(page.locator(".tip")).toContainText("#");
});

test("a finding's packet is chosen, shown near, and told", async ({ page }, info) => {
  await open(
    page,
    pageOf(info.outputPath("report.html"), split(200), {
      shown: [{ rule: "nagle-delayed-ack", packets: [4, 505, 506] }],
    }),
  );
  await page.getByRole("button", { name: "Packet 505: note of packet 505" }).click();
  await expect(page.locator(".packet.chosen .cell-no")).toHaveText("505");
  await expect(page.locator(".packet.chosen .cell-what")).toContainText("note of packet 505");
  await expect.poll(async () => (await range(page))[1] - (await range(page))[0]).toBeLessThan(2);
  const [from, until] = await range(page);
  const time = Number(await page.locator(".packet.chosen .cell-time").textContent());
  expect(time).toBeGreaterThan(from);
  expect(time).toBeLessThan(until);
  await page.locator(".sequence").focus();
  await page.keyboard.press("n");
  await expect(page.locator(".packet.chosen .cell-no")).toHaveText("506");
});

test("marks have their colours, light and dark", async ({ page }, info) => {
  await page.emulateMedia({ colorScheme: "light" });
  await open(page, pageOf(info.outputPath("lossy.html"), bulk(3_000)));
  for (const name of ["data", "retransmission", "acked", "sacked", "window"])
    expect(await hasColor(page, name), name).toBe(true);
  expect(await hasColor(page, "probe")).toBe(false);
  await page.emulateMedia({ colorScheme: "dark" });
  await expect(page.locator("html")).toHaveAttribute("data-theme", "dark");
  expect(await hasColor(page, "data")).toBe(true);
  expect(await hasColor(page, "surface")).toBe(true);
  await open(page, pageOf(info.outputPath("stalled.html"), stalled()));
  expect(await hasColor(page, "probe")).toBe(true);
});

test("pictures have words, and the table is a grid that keys move in", async ({ page }, info) => {
  await open(page, pageOf(info.outputPath("report.html"), split(25)));
  await expect(page.locator("figure", { has: page.locator(".sequence") })).toContainText(
    "1.60 kB in 50 segments",
  );
  await expect(page.getByRole("img", { name: /Histogram of gaps.*client: 49 gaps/ })).toBeVisible();
  await expect(
    page.getByRole("img", { name: /Exchanges over time. 25 exchanges in view: 80.0 ms at least/ }),
  ).toBeVisible();
  await expect(page.getByRole("img", { name: /Round trips over time/ })).toBeVisible();
  const grid = page.getByRole("grid", { name: /128 packets/ });
  await expect(grid).toHaveAttribute("aria-rowcount", "129");
  await grid.focus();
  await page.keyboard.press("End");
  await expect(page.locator(".packet.chosen .cell-no")).toHaveText("128");
  await expect(page.locator(".packet.chosen")).toBeInViewport();
  await page.keyboard.press("PageUp");
  await page.keyboard.press("ArrowDown");
  await expect(page.locator(".packet.chosen .cell-no")).toHaveText("115");
  await expect(grid).toHaveAttribute(
    "aria-activedescendant",
    (await page.locator(".packet.chosen").getAttribute("id")) ?? "",
  );
});

test("a click on an exchange goes to its request", async ({ page }, info) => {
  await open(page, pageOf(info.outputPath("report.html"), split(25)));
  const chart = page.locator(".detail", { hasText: "Exchanges" }).locator(".u-over");
  await chart.scrollIntoViewIfNeeded();
  const box = await chart.boundingBox();
  if (!box) throw new Error("no chart");
  // The second of 25 exchanges began at 110.065 ms and took 80.02 ms; the axis ends 8 % above that.
  const x = box.x + ((0.110065 + 0.0226) / 2.3061) * box.width;
  const y = box.y + (1 - 1 / 1.08) * box.height;
  await page.mouse.move(x, y);
  await expect(page.locator(".detail", { hasText: "Exchanges" }).locator(".near")).toContainText(
    "#9 exchange 80.0 ms",
  );
  await page.mouse.click(x, y);
  await expect(page.locator(".packet.chosen .cell-no")).toHaveText("9");
});

test("a table that is cut is one sentence", async ({ page }, info) => {
  const url = pageOf(info.outputPath("report.html"), split(2), { cut: 60 });
  await page.goto(`${url}#/c/0/0`);
  await expect(page.getByText("the packet table is cut or damaged: it cannot be unpacked")).toBeVisible();
});

test("a link shows its stretch, and a packet that it names", async ({ page }, info) => {
  const url = pageOf(info.outputPath("report.html"), split(25));
  await open(page, url, "?from=500.25&to=750.75");
  // A quarter of a second is told to the ms.
  await expect.poll(() => range(page)).toEqual([0.5, 0.751]);
  expect(page.url()).toContain("?from=500.25&to=750.75");
  await page.goto("about:blank");
  await open(page, url, "?packet=100");
  await expect(page.locator(".packet.chosen .cell-no")).toHaveText("100");
});

test("a page with some of the packets says so, and shows no gaps", async ({ page }, info) => {
  await open(page, pageOf(info.outputPath("report.html"), split(25), { every: 4 }));
  await expect(page.locator(".sequence-figure")).toContainText("Of 512 packets, one in 4 is drawn");
  await expect(page.locator(".sequence-figure")).toContainText("ACKs that a receiver held are not marked.");
  await expect(page.locator(".sequence-figure")).toContainText("neighbouring ones are put together");
  await expect(page.getByRole("img", { name: /Histogram of sizes/ })).toBeVisible();
  await expect(page.getByRole("img", { name: /Histogram of gaps/ })).toHaveCount(0);
  await expect(page.getByRole("columnheader", { name: "since above" })).toBeVisible();
});

/** How many boxes the next frame of the plot is made of, nearly all packets in view. */
function boxesDrawn(page: Page): Promise<number> {
  return page.evaluate(async () => {
    const plot = document.querySelector(".sequence") as HTMLElement;
    const fill = CanvasRenderingContext2D.prototype.fillRect;
    let many = 0;
    CanvasRenderingContext2D.prototype.fillRect = function (...box) {
      many++;
      fill.apply(this, box);
    };
    const { left, top, width } = plot.getBoundingClientRect();
    const where = { clientX: left + width / 2, clientY: top + 80, bubbles: true, cancelable: true };
    plot.dispatchEvent(new WheelEvent("wheel", { ...where, deltaY: -1 }));
    await new Promise(requestAnimationFrame);
    await new Promise(requestAnimationFrame);
    CanvasRenderingContext2D.prototype.fillRect = fill;
    return many;
  });
}

/** How long the frames of zooming in and out took, ms, the shortest first. */
function framesOf(page: Page, shiftKey: boolean): Promise<number[]> {
  return page.evaluate(async (shiftKey) => {
    const plot = document.querySelector(".sequence") as HTMLElement;
    const box = plot.getBoundingClientRect();
    const where = {
      clientX: box.left + box.width * 0.6,
      clientY: box.top + box.height * 0.7,
      shiftKey,
      bubbles: true,
      cancelable: true,
    };
    const deltas: number[] = [];
    let last = await new Promise<number>(requestAnimationFrame);
    for (let turn = 0; turn < 60; turn++) {
      plot.dispatchEvent(new WheelEvent("wheel", { ...where, deltaY: turn < 30 ? -90 : 90 }));
      const now = await new Promise<number>(requestAnimationFrame);
      deltas.push(now - last);
      last = now;
    }
    return deltas.sort((one, other) => one - other);
  }, shiftKey);
}

test("200,000 packets open and zoom", async ({ page }, info) => {
  test.setTimeout(60_000);
  const url = pageOf(info.outputPath("large.html"), bulk(200_000));
  const start = Date.now();
  await open(page, url);
  await expect(page.getByRole("grid", { name: /200,\d{3} packets/ })).toBeVisible();
  const opened = Date.now() - start;
  const at = await middle(page);
  await page.mouse.move(at.x, at.y);
  for (const [what, shiftKey] of [
    ["time", false],
    ["bytes", true],
  ] as const) {
    const times = await framesOf(page, shiftKey);
    const median = times[30] as number;
    const fps = 60_000 / times.reduce((sum, delta) => sum + delta, 0);
    const words = `opened in ${opened} ms; zooming in ${what} ${fps.toFixed(0)} frames/s, median ${median.toFixed(1)} ms, worst ${times.at(-1)?.toFixed(0)} ms`;
    info.annotations.push({ type: "200,000 packets", description: words });
    console.log(`200,000 packets: ${words}`);
    // Some ten times what a two-core machine without a graphics card takes while it has other work.
    expect(median).toBeLessThan(150);
  }
  // As many as the picture has room for; the packets would be ten times as many.
  const boxes = await boxesDrawn(page);
  expect(boxes).toBeGreaterThan(1_000);
  expect(boxes).toBeLessThan(20_000);
  expect(opened).toBeLessThan(20_000);
});

test("the largest numbers that a table can have break nothing", async ({ page }, info) => {
  const raw = JSON.parse(readFileSync(new URL("../../tests/page/table.json", import.meta.url), "utf8")).raw;
  const table = decodeTable(Uint8Array.from(Buffer.from(raw, "hex")));
  await open(page, pageOf(info.outputPath("report.html"), table));
  await page.locator(".sequence").focus();
  for (const key of ["+", "y", "y", "End", "Shift+ArrowUp", "Home", "+", "ArrowDown", "Shift+Y", "n", "y"])
    await page.keyboard.press(key);
  const at = await middle(page);
  await page.mouse.move(at.x, at.y);
  for (let turn = 0; turn < 60; turn++) await page.mouse.wheel(0, -400);
  await expect.poll(() => page.url()).toContain("from=");
  await expect(page.locator(".packet").first()).toBeVisible();
});
