import { expect, test } from "vitest";
import { gate } from "../../../../test/helpers.js";
import { inABrowser, minute, put, world } from "./furnished.js";
import { titleOf } from "./world.js";

inABrowser("boards, tracks and keys", () => {
  test("the start page leads to failures and their errors, and markup in an error stays text", async () => {
    const { page } = await world.as("viewer");
    const failures = page.locator("section.panel", { has: page.getByRole("heading", { name: "Failures" }) });
    await failures.getByRole("link", { name: "fails", exact: true }).first().click();
    await page.locator("pre.error", { hasText: "<b>the disk</b> is full" }).first().waitFor();
    expect(await page.locator("main b, main i").count()).toBe(0);
  });

  test("each place of the board is explained there, an empty one too, by mouse and by keyboard", async () => {
    const { page, go } = await world.as("viewer");
    await go("/?by=task");
    const strip = page.getByRole("slider", { name: /^system\/fails/ });
    const row = page.locator("li", { has: strip });
    const box = (await strip.boundingBox())!;
    await strip.click({ position: { x: 20, y: 20 } });
    await row.locator(".badge", { hasText: /no occurrence|before the task/ }).waitFor();
    await strip.focus();
    await page.keyboard.press("Home");
    await row.locator(".badge", { hasText: "enqueued" }).waitFor();
    expect(await strip.getAttribute("aria-valuetext")).toContain("1 failed");
    await page.keyboard.press("ArrowRight");
    await row.locator(".badge", { hasText: "planned" }).waitFor();
    // Now is in the middle.
    const now = (await strip.locator("line.now").boundingBox())!;
    expect(Math.abs(now.x - box.x - box.width / 2)).toBeLessThan(10);
    await page.getByRole("button", { name: "Queues" }).click();
    await page.getByRole("slider", { name: /^q:/ }).focus();
    await page.keyboard.press("Home");
    await page.getByRole("button", { name: /^fails: .*1 failed/ }).click();
    await page.locator(".why .badge", { hasText: "enqueued" }).waitFor();
  });

  test("a range that is dragged on the board, or chosen with Shift, applies to the lists below", async () => {
    await put("calm", { owner: "globex" });
    const { page, go } = await world.as("viewer");
    await go("/?by=task");
    const failures = page.getByRole("heading", { name: /^Failures/ });
    expect(await failures.textContent()).not.toBe("Failures (0)");
    const strip = page.getByRole("slider", { name: /^system\/fails/ });
    await strip.scrollIntoViewIfNeeded();
    const { x, y, width } = (await strip.boundingBox())!;
    await page.mouse.move(x + 10, y + 10);
    await page.mouse.down();
    await page.mouse.move(x + width / 4, y + 10, { steps: 3 });
    await page.mouse.up();
    await page.getByRole("heading", { name: "Failures (0)" }).waitFor();
    await page.getByRole("button", { name: "Show all of the past" }).click();
    await page.getByRole("heading", { name: "Failures (0)" }).waitFor({ state: "detached" });
    await strip.focus();
    await page.keyboard.press("Home");
    await page.keyboard.press("Shift+ArrowRight");
    expect(new URL(page.url()).searchParams.has("from")).toBe(true);
    await page.keyboard.press("Escape");
    expect(new URL(page.url()).search).toBe("?by=task");
    await page.getByRole("button", { name: "Owners" }).click();
    // The freeze of one owner is a band in its row alone.
    const bands = (name: RegExp) =>
      page.locator("li", { has: page.getByRole("slider", { name }) }).locator(".band[data-kind=freeze]");
    await bands(/^globex:/).waitFor();
    expect(await bands(/^acme:/).count()).toBe(0);
    await page.getByText("As a table").click();
    await page.getByRole("rowheader", { name: "globex" }).waitFor();
    await world.client.delete("globex/calm");
  });

  test("every position of the track is explained, even an empty one", async () => {
    const { page, go } = await world.as("viewer");
    await go("/tasks/q/system/fine");
    await page.getByLabel("A time", { exact: false }).fill(`2020-01-01T00:${minute}:00`);
    await page.getByRole("button", { name: "Explain" }).click();
    await page.locator(".badge", { hasText: "before the task" }).waitFor();
    await page.locator(".track svg").click({ position: { x: 200, y: 20 } });
    await page.locator(".badge", { hasText: /no occurrence|planned|enqueued/ }).waitFor();
  });

  test("arrow keys move from tick to tick, and move the range", async () => {
    const { page, go } = await world.as("viewer");
    await go("/tasks/q/system/fails");
    const track = page.getByRole("slider");
    await track.focus();
    await page.keyboard.press("Home");
    await page.locator(".badge", { hasText: "enqueued" }).waitFor();
    expect(await track.getAttribute("aria-valuetext")).toContain("failed");
    await page.keyboard.press("ArrowRight");
    await page.locator(".badge", { hasText: "planned" }).waitFor();
    await page.getByRole("button", { name: "Earlier" }).click();
    await page.getByRole("button", { name: "Around now" }).click();
    expect(new URL(page.url()).searchParams.has("from")).toBe(false);
  });

  test("a change by another person appears at once, without polling", async () => {
    const { page, go } = await world.as("viewer");
    await go("/tasks/q/system/fine");
    await page.locator(".live[data-live=true]").waitFor();
    await world.client.pause("fine", { note: "from elsewhere" });
    // The page polls once a minute while events arrive, which is longer than this waits.
    await page.getByText("from elsewhere").waitFor();
    await world.client.resume("fine");
    await page.getByText("from elsewhere").waitFor({ state: "detached" });
  });

  test("the palette acts on the open task, and finds owners, by keyboard or touch; a viewer gets no action", async () => {
    const { page, go, axe } = await world.as("operator");
    await go("/tasks/q/system/fine");
    await page.getByRole("button", { name: "Run now" }).waitFor();
    await page.keyboard.press("Control+k");
    const palette = page.getByRole("dialog", { name: "Go to, or do" });
    const field = palette.getByRole("combobox");
    const option = (name: string) => palette.getByRole("option", { name, exact: true });
    await field.fill("pau");
    await option("Pause action").waitFor();
    expect(await axe()).toEqual([]);
    await page.keyboard.press("Enter");
    await page.getByRole("dialog", { name: "Pause fine" }).getByLabel("Note", { exact: true }).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Go to, or do" }).click();
    await field.fill("acm");
    await option("acme owner").waitFor();
    await page.keyboard.press("ArrowUp");
    // Tasks that are found later do not take its place.
    await option("acme/paused paused").waitFor();
    expect(await option("acme owner").getAttribute("aria-selected")).toBe("true");
    await page.keyboard.press("Enter");
    await titleOf(page, "Owner acme").waitFor();
    const viewer = await world.as("viewer");
    let arrive = () => {};
    const arrived = new Promise<void>((done) => {
      arrive = done;
    });
    await viewer.page.route("**/assets/palette-*", async (route) => {
      await arrived;
      await route.continue();
    });
    await viewer.go("/tasks/q/system/fine");
    await viewer.page.keyboard.press("Meta+k");
    // Keys that are typed before the code of the palette has arrived.
    for (const key of ["r", "j", "Backspace", "u", "n", "s"]) await viewer.page.keyboard.press(key);
    arrive();
    await viewer.page.getByRole("option", { name: "Runs page", exact: true }).waitFor();
    expect(
      await viewer.page.getByRole("dialog", { name: "Go to, or do" }).getByRole("combobox").inputValue(),
    ).toBe("runs");
    await viewer.page.unroute("**/assets/palette-*");
    await viewer.page.keyboard.press("Escape");
    // Enter before the answer is there opens the first entry when it comes.
    const late = gate();
    await viewer.page.route(/\/tasks\?.*search=sing/, async (route) => {
      await late.promise;
      await route.continue();
    });
    await viewer.page.keyboard.press("Meta+k");
    await viewer.page.getByRole("dialog", { name: "Go to, or do" }).getByRole("combobox").fill("sing");
    await viewer.page.keyboard.press("Enter");
    late.resolve();
    await titleOf(viewer.page, "single").waitFor();
    await viewer.page.keyboard.press("Meta+k");
    expect(await viewer.page.getByRole("option", { name: "action" }).count()).toBe(0);
    await viewer.page.keyboard.press("Escape");
  });

  test("a task names its set, the last apply of it, and who has changed it since", async () => {
    const { page, go } = await world.as("viewer");
    await go("/tasks/q/system/in-set");
    await page.getByText(/Defined as code by the set billing, version 1\.4, applied by deploy 42/).waitFor();
    await page.getByText(/definition was changed by ann .*The next apply of the set undoes that/).waitFor();
    await page.getByText("only when it is triggered").waitFor();
    await go("/settings/sets");
    await page.getByText(/others have changed 1 of its tasks/).waitFor();
    await page.getByRole("link", { name: "billing", exact: true }).click();
    await page.getByRole("link", { name: "in-set", exact: true }).waitFor();
    expect(await page.locator("main [data-row]").count()).toBe(1);
  });

  test("search, help and rows work by keyboard alone", async () => {
    const { page, go } = await world.as("viewer");
    await go("/");
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keys" }).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "hidden" });
    await page.keyboard.press("g");
    await page.keyboard.press("t");
    await titleOf(page, "Tasks").waitFor();
    await page.getByRole("link", { name: "fails", exact: true }).waitFor();
    await page.keyboard.press("j");
    await page.keyboard.press("j");
    expect(await page.evaluate('document.activeElement.hasAttribute("data-row")')).toBe(true);
    await page.keyboard.press("Enter");
    await page.waitForURL(({ pathname }) => pathname.split("/").length === 5);
    await page.keyboard.press("/");
    expect(await page.evaluate("document.activeElement.type")).toBe("search");
  });
});
