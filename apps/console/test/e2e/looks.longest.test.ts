import { eventually } from "@carillon/testing";
import { beforeAll, expect, test } from "vitest";
import { furnishAll, inABrowser, pages, world } from "./furnished.js";
import { Stall, unsaid } from "./late.js";
import { lookAt } from "./looks.js";
import { disguise } from "./markup.js";

/** Pages that show no text of users. */
const WITHOUT = ["task", "durations", "set", "load", "resume", "backfills", "alerts", "tokens"];

inABrowser("all pages", () => {
  beforeAll(furnishAll);

  test("no page has serious axe findings in either theme, is too wide, or has texts that overlap or times of the server", async () => {
    expect(await lookAt(await world.as("admin"), pages)).toEqual([]);
  });

  test("markup in any text of any answer stays text", async () => {
    const { page, go } = await world.as("admin", "again");
    const look = await disguise(page);
    const shows: string[] = [];
    for (const [name, path] of Object.entries(pages)) {
      await go(path);
      if (!WITHOUT.includes(name))
        await eventually(async () => expect([name, (await look()).shown]).toEqual([name, true]));
      const { injected, shown } = await look();
      expect([name, injected]).toEqual([name, 0]);
      if (shown) shows.push(name);
    }
    expect(Object.keys(pages).filter((name) => !shows.includes(name))).toEqual(WITHOUT);
    await page.unrouteAll({ behavior: "ignoreErrors" });
  });

  test("while answers are late, no page shows or counts what is not so, and nothing of a former question can be acted on", async () => {
    const { page, go } = await world.as("admin", "again");
    const stall = await Stall.on(page);
    const wrong: string[] = [];
    await go(pages["now"] as string);
    for (const [name, path] of Object.entries(pages)) {
      wrong.push(
        ...(await unsaid(stall, name, () =>
          page.evaluate(`history.pushState(null, "", ${JSON.stringify(path)})`),
        )),
      );
      // A choice belongs to the rows that it was made on.
      const box = page.getByRole("checkbox", { name: /^Select (?!the )/ }).first();
      if ((await box.count()) > 0) await box.check();
      const chips = page.locator("main button.chip[aria-pressed=false]:not(form *)");
      for (const chip of (await chips.allTextContents()).slice(0, 3))
        wrong.push(
          ...(await unsaid(stall, `${name}, ${chip}`, () =>
            page.getByRole("main").getByRole("button", { name: chip, exact: true }).first().click(),
          )),
        );
    }
    expect(wrong).toEqual([]);
    await stall.end();
  });
});
