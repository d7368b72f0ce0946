import { defineConfig } from "vitest/config";
import { oneFile } from "./build/one-file.ts";

/** What a page may do beyond its own script and style. The report's: nothing. */
const POLICIES: Record<string, string[]> = {
  report: [],
  serve: ["connect-src 'self'"],
};

/** `--mode report` and `--mode serve` build a page each, into one file. */
export default defineConfig(({ mode }) => ({
  plugins: [oneFile(POLICIES[mode] ?? [])],
  build: {
    target: "es2022",
    emptyOutDir: false,
    modulePreload: false,
    cssCodeSplit: false,
    assetsInlineLimit: Number.MAX_SAFE_INTEGER,
    reportCompressedSize: false,
    rolldownOptions: { input: `${mode}.html`, output: { codeSplitting: false } },
  },
  test: { include: ["src/**/*.test.{ts,tsx}", "build/**/*.test.ts"] },
}));
