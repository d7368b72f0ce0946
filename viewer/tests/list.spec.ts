import type { Page } from "@playwright/test";
import { expect, test } from "./browser.ts";
import { manyConnections } from "./captures.ts";
import { capture, pageOf } from "./pages.ts";

const url = () => pageOf(capture("many.txt", manyConnections(900)));
const rows = (page: Page) => page.locator(".grid-body .grid-row");
const status = (page: Page) => page.locator("span[role=status]");
const active = (page: Page) =>
  page.evaluate(() => {
    const grid = document.querySelector("[role=grid]");
    const id = grid?.getAttribute("aria-activedescendant") ?? "";
    return document.getElementById(id)?.getAttribute("aria-rowindex");
  });

test("a long list draws the rows in sight, the worst first", async ({ page }) => {
  await page.goto(url());
  await expect(status(page)).toHaveText("900");
  await expect(page.getByRole("grid")).toHaveAttribute("aria-rowcount", "901");
  await expect(rows(page).first()).toContainText("slow-server");
  expect(await rows(page).count()).toBeLessThan(60);
  await page.keyboard.press("End");
  await expect(page.locator(`.grid-row[aria-rowindex="901"]`)).toBeInViewport();
  expect(await rows(page).count()).toBeLessThan(60);
});

test("it filters by text, rule and findings", async ({ page }) => {
  await page.goto(url());
  await page.getByLabel("Filter by address, program, number or rule").fill("10.0.1.7:");
  await expect(status(page)).toHaveText("1 of 900");
  await expect(rows(page)).toHaveCount(1);
  await expect(rows(page)).toContainText("10.0.1.7:40256");
  await page.getByLabel("Filter by address, program, number or rule").fill("nobody");
  await expect(page.getByText("No connection passes this filter.")).toBeVisible();
  await page.getByRole("button", { name: "Show all" }).click();
  await expect(status(page)).toHaveText("900");
  await page.getByLabel("Rule", { exact: true }).selectOption("slow-server");
  await expect(status(page)).toHaveText("90 of 900");
  await page.getByLabel("Rule", { exact: true }).selectOption("");
  await page.getByLabel("with findings").check();
  await expect(status(page)).toHaveText("90 of 900");
});

test("it sorts by each heading, both ways", async ({ page }) => {
  await page.goto(url());
  const first = rows(page).locator(".cell-id").first();
  const heading = (name: string) => page.getByRole("button", { name: `sort by ${name}` });
  await heading("order of appearance").click();
  await expect(first).toHaveText("0");
  await expect(page.getByRole("columnheader", { name: "order of appearance" })).toHaveAttribute(
    "aria-sort",
    "ascending",
  );
  await heading("order of appearance").click();
  await expect(first).toHaveText("899");
  await heading("first packet to last").click();
  await expect(rows(page).locator(".cell-duration").first()).toHaveText(/30\d\sms/);
  await heading("first packet to last").click();
  await expect(rows(page).locator(".cell-duration").first()).toHaveText(/8\.\d+\sms/);
  await heading("names").click();
  await expect(rows(page).first()).toContainText("10.0.0.1:40000");
});

test("keys alone reach everything", async ({ page }) => {
  await page.goto(url());
  await page.keyboard.press("Tab");
  await expect(page.getByRole("button", { name: "Skip to the content" })).toBeFocused();
  await page.keyboard.press("Enter");
  await expect(page.locator("main")).toBeFocused();

  await page.keyboard.press("/");
  await page.keyboard.type("10.0.2.");
  await expect(status(page)).toHaveText("250 of 900");
  const grid = page.getByRole("grid");
  for (let n = 0; n < 20 && !(await grid.evaluate((it) => it === document.activeElement)); n++) {
    await page.keyboard.press("Tab");
  }
  await expect(grid).toBeFocused();
  await expect.poll(() => active(page)).toBe("2");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("j");
  await expect.poll(() => active(page)).toBe("4");
  await page.keyboard.press("End");
  await expect.poll(() => active(page)).toBe("251");
  await page.keyboard.press("Home");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");

  const heading = page.getByRole("heading", { level: 1 });
  await expect(heading).toBeFocused();
  const second = await heading.textContent();
  expect(second).toContain("10.0.2.");
  await page.keyboard.press("]");
  await expect(heading).not.toHaveText(second ?? "");
  await page.keyboard.press("[");
  await expect(heading).toHaveText(second ?? "");
  await page.keyboard.press("n");
  await expect(page.locator(".finding.open")).toHaveCount(1);
  await page.keyboard.press("u");
  await expect(status(page)).toHaveText("250 of 900");
  await expect(page.locator(".current")).toHaveAttribute("aria-rowindex", "3");

  await page.keyboard.press("?");
  await expect(page.getByRole("dialog", { name: "Keys" })).toBeVisible();
  await page.keyboard.press("Escape");
  await expect(page.getByRole("dialog")).toHaveCount(0);
});

test("the way back finds the list as it was left", async ({ page }) => {
  await page.goto(url());
  await page.getByRole("button", { name: "sort by order of appearance" }).click();
  await page.evaluate(() => scrollTo(0, 9_000));
  await page.locator(`.grid-row[aria-rowindex="170"] a`).click();
  await expect(page.getByRole("heading", { level: 1 })).toContainText("#168");
  expect(await page.evaluate(() => scrollY)).toBe(0);
  await page.goBack();
  await expect(page.locator(`.grid-row[aria-rowindex="170"]`)).toBeInViewport();
});
