import { beforeAll, expect, test } from "vitest";
import { furnishAll, inABrowser, pages, world } from "./furnished.js";
import { losing, settled } from "./late.js";

inABrowser("all pages, when answers are lost", () => {
  beforeAll(furnishAll);

  test("each page comes although the first answer to each of its questions is lost", async () => {
    const { page } = await world.as("admin", "again");
    const lost = await losing(page);
    for (const [name, path] of Object.entries(pages)) {
      await page.goto(world.url + path, { waitUntil: "commit" });
      expect([name, await settled(page)]).toEqual([name, "whole"]);
    }
    await page.locator(".live[data-live=true]").waitFor();
    expect(lost.size).toBeGreaterThan(Object.keys(pages).length);
    await page.unrouteAll({ behavior: "ignoreErrors" });
  });
});
