import { eventually } from "@carillon/testing";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { Front } from "./front.js";
import { problems, startWorld, titleOf, type Visit, type World } from "./world.js";

const binary = process.env["CARILLON_CHROMIUM"];
const AWAY = "The console does not answer.";

describe.skipIf(!binary)("an open page while the console", () => {
  let world: World;
  let front: Front;
  beforeAll(async () => {
    world = await startWorld(binary!, {
      async behind(url) {
        front = new Front(url);
        await front.start();
        return front.url;
      },
    });
    await world.client.put({ id: "a", queue: "q", type: "ok", schedule: { at: "2099-01-01T00:00:00Z" } });
  });
  afterAll(async () => {
    await world?.stop();
    await front?.stop();
  });
  afterEach(() => expect(problems.splice(0)).toEqual([]));

  /** Opens a page that fetches its further parts only when they are shown. */
  const late = async ({ page, go }: Visit, path: string) => {
    await page.addInitScript("window.requestIdleCallback = () => 0");
    await go(path);
  };

  test("restarts keeps its dialogs and pages, says so once, and tries again", async () => {
    const { page, go } = await world.as("admin");
    await go("/tasks/q/system/a");
    await eventually(() =>
      page.evaluate<boolean>(
        // The last part that is fetched.
        "performance.getEntriesByType('resource').some(({ name, responseEnd }) => responseEnd > 0 && name.includes('duration-plot'))",
      ),
    );
    await front.stop();
    await page.getByRole("button", { name: "Run now" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("button", { name: "Run now" }).click();
    await dialog.getByText(AWAY).waitFor();
    await page.locator("main .note", { hasText: AWAY }).waitFor();
    expect(await page.locator("main").getByText(AWAY).count()).toBe(1);
    await front.start();
    await dialog.getByRole("button", { name: "Run now" }).click();
    await titleOf(page, "Run of a").waitFor();
    await front.stop();
    await page.getByRole("link", { name: "Load", exact: true }).click();
    await titleOf(page, "Load").waitFor();
    await front.start();
    await page.locator("main .note", { hasText: AWAY }).waitFor({ state: "detached" });
    await page.locator("main .loading").first().waitFor({ state: "detached" });
  });

  test("is away shows a part that it could not fetch as soon as it is back", async () => {
    const visit = await world.as("viewer");
    const { page } = visit;
    await late(visit, "/");
    await front.stop();
    await page.getByRole("link", { name: "Tasks", exact: true }).click();
    const reload = page.getByRole("button", { name: "Reload" });
    await reload.click();
    await page.locator(".notices", { hasText: AWAY }).waitFor();
    expect(await page.locator(".live").getAttribute("data-live")).toBe("false");
    await front.start();
    await titleOf(page, "Tasks").waitFor();
    await page.locator(".live[data-live=true]").waitFor();
    expect(await page.getByRole("main").getByText(AWAY).count()).toBe(0);
  });

  test("is replaced by a release reloads itself once, and opens the next page", async () => {
    const visit = await world.as("operator");
    const { page } = visit;
    await late(visit, "/");
    front.release();
    await page.getByRole("link", { name: "Tasks", exact: true }).click();
    await page.getByRole("link", { name: "a", exact: true }).waitFor();
    expect(await page.evaluate("performance.getEntriesByType('navigation')[0].type")).toBe("reload");
    expect(
      await page.evaluate(
        "performance.getEntriesByType('resource').some(({ name }) => name.includes('-next.'))",
      ),
    ).toBe(true);
  });
});
