import { expect, type Page, test } from "@playwright/test";
import { open } from "./plot.ts";
import { pageOf } from "./report.ts";
import { split } from "./stories.ts";

async function boxes(page: Page) {
  const [plot, packets] = await Promise.all(
    [".sequence", ".packets"].map((place) => page.locator(place).boundingBox()),
  );
  if (!plot || !packets) throw new Error("the plot or the table is not there");
  return { plot, packets };
}

test("the packets are beside the plot where there is room, and below it where not", async ({
  page,
}, info) => {
  await page.setViewportSize({ width: 1280, height: 900 });
  await open(page, pageOf(info.outputPath("report.html"), split(25)));
  const below = await boxes(page);
  expect(below.packets.y).toBeGreaterThan(below.plot.y + below.plot.height);
  await expect(page.getByRole("columnheader", { name: "seq" })).toBeVisible();
  for (const width of [1500, 2560]) {
    await page.setViewportSize({ width, height: 900 });
    await expect
      .poll(async () => {
        const { plot, packets } = await boxes(page);
        return packets.x - plot.x - plot.width;
      })
      .toBeGreaterThan(0);
    const beside = await boxes(page);
    const ends = [beside.plot, beside.packets].map(({ y, height }) => y + height);
    expect(Math.abs((ends[0] as number) - (ends[1] as number))).toBeLessThan(2);
    expect(beside.plot.width).toBeGreaterThan(700);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(width);
  }
});

test("beside the plot, too, rows and marks point at each other", async ({ page }, info) => {
  await page.setViewportSize({ width: 1600, height: 900 });
  await open(page, pageOf(info.outputPath("report.html"), split(25)));
  await page.locator(".charts").scrollIntoViewIfNeeded();
  // More rows are in sight than below the plot, down to the table's end.
  const rows = page.locator(".packet");
  expect(await rows.count()).toBeGreaterThan(20);
  const painted = () =>
    page.locator(".overlay").evaluate((canvas: HTMLCanvasElement) =>
      canvas
        .getContext("2d")
        ?.getImageData(0, 0, canvas.width, canvas.height)
        .data.some((value) => value > 0),
    );
  expect(await painted()).toBe(false);
  await rows.nth(18).hover();
  await expect.poll(painted).toBe(true);
  await page.getByRole("grid").focus();
  await page.keyboard.press("End");
  await expect(page.locator(".packet.chosen .cell-no")).toHaveText("128");
  await expect(page.locator(".packet.chosen")).toBeInViewport({ ratio: 0.95 });
  // From the plot: whatever mark is found beside the last one is a row in sight.
  await page.locator(".sequence").focus();
  const { plot, packets } = await boxes(page);
  for (let y = plot.y + 30; y < plot.y + plot.height / 2; y += 6) {
    await page.mouse.move(plot.x + 120, y);
    if ((await page.locator(".packet.pointed").count()) > 0) break;
  }
  const row = await page.locator(".packet.pointed").boundingBox();
  expect(row?.y).toBeGreaterThan(packets.y);
  expect((row?.y ?? 0) + (row?.height ?? 0)).toBeLessThanOrEqual(packets.y + packets.height);
});
