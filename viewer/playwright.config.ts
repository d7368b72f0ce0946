import { existsSync } from "node:fs";
import { defineConfig } from "@playwright/test";

/** Debian's. */
const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
const there = existsSync(CHROMIUM);
if (!there) console.error(`\n*** SKIPPED: the page's tests in a browser; there is no ${CHROMIUM}. ***\n`);

export default defineConfig({
  testDir: "tests",
  testMatch: there ? "**/*.spec.ts" : [],
  workers: 1,
  // A browser on a busy machine is slow, and late once in a while; a fault of the page is there every time. What passed
  // only when it was repeated is named as flaky.
  timeout: 60_000,
  expect: { timeout: 15_000 },
  retries: 2,
  reporter: "list",
  use: {
    viewport: { width: 1280, height: 800 },
    launchOptions: {
      executablePath: CHROMIUM,
      // Chromium's sandbox does not work for root.
      args: process.getuid?.() === 0 ? ["--no-sandbox"] : [],
    },
  },
});
