/** The plot of a page, as its reader sees it. */

import { expect, type Page } from "@playwright/test";

/** Opens the page of a connection; anything that goes wrong in it fails the test. */
export async function open(page: Page, url: string, focus = ""): Promise<void> {
  page.on("pageerror", (error) => {
    throw error;
  });
  page.on("console", (message) => expect(message.type(), message.text()).not.toBe("error"));
  await page.goto(`${url}#/c/0/0${focus}`);
  await expect(page.locator(".sequence canvas").first()).toBeVisible();
}

/** The stretch of time that is shown, s: what the page says beside the buttons. */
export async function range(page: Page): Promise<[number, number]> {
  const text = ((await page.locator(".view-range").textContent()) ?? "").replaceAll("−", "-");
  const [, from, until] = /(-?[\d.]+) – (-?[\d.]+) s/.exec(text) ?? [];
  return [Number(from), Number(until)];
}

/** The middle of the plot in the browser's window. */
export async function middle(page: Page): Promise<{ x: number; y: number; left: number; width: number }> {
  const plot = page.locator(".sequence");
  await plot.scrollIntoViewIfNeeded();
  const box = await plot.boundingBox();
  if (!box) throw new Error("the plot is not there");
  return { x: box.x + box.width / 2, y: box.y + box.height / 4, left: box.x, width: box.width };
}
