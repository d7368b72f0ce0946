import { expect, type Page, test } from "@playwright/test";
import { middle, open, range } from "./plot.ts";
import { pageOf } from "./report.ts";
import { bulk, split } from "./stories.ts";

/** The bytes of a side that are shown, where some were chosen. */
async function bytes(page: Page, whose: string): Promise<[number, number] | null> {
  const text = ((await page.locator(".view-range").textContent()) ?? "").replaceAll("−", "-");
  const found = new RegExp(`${whose}'s bytes (-?[\\d,]+) – (-?[\\d,]+)`).exec(text);
  const [from, until] = (found ?? []).slice(1).map((number) => Number(number.replaceAll(",", "")));
  return from === undefined || until === undefined ? null : [from, until];
}

async function drag(page: Page, from: [number, number], until: [number, number]): Promise<void> {
  await page.mouse.move(...from);
  await page.mouse.down();
  await page.mouse.move(...until, { steps: 3 });
  await page.mouse.up();
}

test("a box shows a stretch of time and of bytes, and Escape goes back", async ({ page }, info) => {
  await open(page, pageOf(info.outputPath("report.html"), split(25)));
  const at = await middle(page);
  const all = await range(page);
  await drag(page, [at.x - 60, at.y - 50], [at.x + 60, at.y + 50]);
  await expect.poll(() => bytes(page, "client")).not.toBeNull();
  // A tenth of the plot's width of 2.3 s; a hundred of its pixels of 1,600 bytes and a margin.
  const [from, until] = await range(page);
  expect((until - from) / 2.3061).toBeCloseTo(120 / (at.width - 82), 2);
  const [low, high] = (await bytes(page, "client")) as [number, number];
  expect(high - low).toBeGreaterThan(300);
  expect(high - low).toBeLessThan(1_400);
  expect(await bytes(page, "server")).toBeNull();
  await page.locator(".sequence").focus();
  await page.keyboard.press("Escape");
  await expect.poll(() => range(page)).toEqual(all);
  expect(await bytes(page, "client")).toBeNull();
});

test("an upright drag and the axis are for bytes alone", async ({ page }, info) => {
  await open(page, pageOf(info.outputPath("report.html"), split(25)));
  const at = await middle(page);
  const all = await range(page);
  await drag(page, [at.x, at.y - 40], [at.x + 5, at.y + 40]);
  await expect.poll(() => bytes(page, "client")).not.toBeNull();
  expect(await range(page)).toEqual(all);
  await page.mouse.dblclick(at.left + 40, at.y);
  await expect.poll(() => bytes(page, "client")).toBeNull();
  await page.mouse.move(at.left + 40, at.y);
  await page.mouse.wheel(0, -200);
  await expect.poll(() => bytes(page, "client")).not.toBeNull();
  expect(await range(page)).toEqual(all);
});

test("Shift and the wheel zoom about the byte under the pointer", async ({ page }, info) => {
  await open(page, pageOf(info.outputPath("report.html"), split(25)));
  const at = await middle(page);
  const sizes: number[] = [];
  const shares: number[] = [];
  await page.mouse.move(at.x, at.y);
  await page.keyboard.down("Shift");
  for (let turn = 0; turn < 3; turn++) {
    await page.mouse.wheel(0, -150);
    await expect.poll(async () => ((await bytes(page, "client")) ?? [0, 0]).join()).not.toBe(sizes.join());
    const [low, high] = (await bytes(page, "client")) as [number, number];
    sizes.splice(0, 2, low, high);
    shares.push(high - low);
  }
  await page.keyboard.up("Shift");
  // 150 pixels of the wheel show e^-0.45 of what was shown; whole bytes are told.
  expect((shares[1] as number) / (shares[0] as number)).toBeCloseTo(Math.exp(-0.45), 1);
  expect(await page.locator(".sequence").evaluate(() => scrollX)).toBe(0);
  expect(await range(page)).toEqual([0, 2.261]);
});

test("keys zoom, move and fit the bytes, and what is chosen is seen", async ({ page }, info) => {
  await open(page, pageOf(info.outputPath("report.html"), bulk(3_000)));
  await page.locator(".sequence").focus();
  for (const key of ["y", "y", "y", "y"]) await page.keyboard.press(key);
  await expect.poll(() => bytes(page, "server")).not.toBeNull();
  const before = (await bytes(page, "server")) as [number, number];
  await page.keyboard.press("Shift+ArrowUp");
  await expect.poll(async () => (await bytes(page, "server"))?.[0]).toBeGreaterThan(before[0]);
  await page.keyboard.press("Shift+Y");
  await expect
    .poll(async () => {
      const [low, high] = (await bytes(page, "server")) ?? [0, 0];
      return high - low;
    })
    .toBeGreaterThan((before[1] - before[0]) * 1.5);
  await page.getByRole("grid").focus();
  await page.keyboard.press("End");
  const last = Number((await page.locator(".packet.chosen .cell-seq").textContent())?.replaceAll(",", ""));
  await expect.poll(async () => (await bytes(page, "server"))?.[1]).toBeGreaterThan(last);
  await page.getByRole("button", { name: /^Fit the bytes/ }).click();
  await expect.poll(() => bytes(page, "server")).toBeNull();
  await expect(page.getByRole("button", { name: /^Fit the bytes/ })).toBeDisabled();
  await page.locator("body").press("?");
  await expect(page.locator("dialog")).toContainText("fit the bytes to the data");
});
