import { test as base, expect } from "@playwright/test";

export { expect };

/** A browser in which nothing may go wrong unseen: no error, no question to any network, no dialog. */
export const test = base.extend({
  page: async ({ page }, use) => {
    const wrong: string[] = [];
    page.on("console", (message) => {
      if (message.type() === "error" || message.type() === "warning") wrong.push(message.text());
    });
    page.on("pageerror", (error) => wrong.push(String(error)));
    page.on("dialog", (dialog) => {
      wrong.push(`a dialog: ${dialog.message()}`);
      dialog.dismiss();
    });
    page.on("request", (request) => {
      const url = request.url();
      if (!url.startsWith("file://") || request.resourceType() !== "document") wrong.push(`asked for ${url}`);
    });
    await use(page);
    expect(wrong).toEqual([]);
  },
});
