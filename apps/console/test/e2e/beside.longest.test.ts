import { eventually } from "@carillon/testing";
import type { Page } from "playwright-core";
import { beforeAll, expect, test } from "vitest";
import { inABrowser, put, settled, world } from "./furnished.js";
import { titleOf } from "./world.js";

const IDS = ["row-1", "row-2", "row-3"];
const LIST = "/tasks?search=row-";

const panel = (page: Page) => page.getByRole("region", { name: "The chosen row" });
const shown = (page: Page, name: string) =>
  panel(page).getByRole("heading", { name, exact: true, level: 2 }).waitFor();
/** The row that has the focus, and whether it is the chosen one. */
const focused = (page: Page) =>
  page.evaluate<string>(
    "document.activeElement.textContent + ' ' + document.activeElement.getAttribute('aria-current')",
  );

inABrowser("a page beside a list, menus, rows", () => {
  beforeAll(async () => {
    for (const id of IDS) await put(id);
  });

  test("j and k show the page of each row beside the list, which keeps the focus; a reload keeps it; Enter opens it, Esc closes it", async () => {
    const { page, go, axe } = await world.as("viewer");
    await go(LIST);
    await page.getByRole("link", { name: "row-1" }).waitFor();
    for (const name of ["row-1", "row-2"]) {
      await page.keyboard.press("j");
      await shown(page, name);
      expect(await focused(page)).toBe(`${name} true`);
    }
    expect(await page.locator("main [aria-current]").count()).toBe(1);
    expect(await page.title()).toMatch(/Tasks · Carillon$/);
    expect(await axe()).toEqual([]);
    const { hash, search } = new URL(page.url());
    expect([search, hash]).toEqual(["?search=row-", "#/tasks/q/system/row-2"]);

    await page.reload();
    await shown(page, "row-2");
    await eventually(async () => expect(await focused(page)).toBe("row-2 true"));
    await page.keyboard.press("k");
    await shown(page, "row-1");
    // Letters in a field are no keys of the list.
    await page.getByRole("combobox", { name: "Queue" }).focus();
    await page.keyboard.press("j");
    await page.keyboard.press("Backspace");
    await shown(page, "row-1");
    await page.getByRole("link", { name: "row-1" }).first().focus();
    await page.keyboard.press("Escape");
    await panel(page).waitFor({ state: "detached" });
    expect(await focused(page)).toBe("row-1 null");
    expect(new URL(page.url()).hash).toBe("");

    await page.keyboard.press("j");
    await shown(page, "row-2");
    await page.keyboard.press("Enter");
    await titleOf(page, "row-2").waitFor();
    await page.goBack();
    await shown(page, "row-2");
    // A click beside the link chooses the row too.
    await page.getByRole("row", { name: "row-3" }).getByText("ok · q").click();
    await shown(page, "row-3");
    // Another question begins without it.
    await page.getByRole("button", { name: "Scheduled" }).click();
    await panel(page).waitFor({ state: "detached" });
  });

  test("keys open what the buttons of the chosen row open, and act no further; a viewer's do nothing", async () => {
    const { page, go } = await world.as("admin");
    const dialog = page.getByRole("dialog");
    await go(`${LIST}#/tasks/q/system/row-2`);
    for (const [key, title] of [
      ["r", "Run row-2 now"],
      ["p", "Pause row-2"],
      ["f", "Freeze tasks"],
    ] as const) {
      await panel(page).getByRole("button", { name: "Run now" }).waitFor();
      await page.keyboard.press(key);
      await page.getByRole("dialog", { name: title }).getByRole("button", { name: "Close" }).waitFor();
      // A letter that is typed in it is no key of the list.
      await page.keyboard.press("j");
      await shown(page, "row-2");
      await page.keyboard.press("Escape");
      await dialog.waitFor({ state: "detached" });
      expect(await focused(page)).toBe("row-2 true");
    }
    expect((await world.client.get("row-2")).state).toBe("scheduled");
    expect(await world.client.runs.list("row-2")).toEqual([]);

    await page.keyboard.press("p");
    await dialog.getByLabel("Note", { exact: true }).fill("by its key");
    await dialog.getByRole("button", { name: "Pause" }).click();
    await dialog.waitFor({ state: "detached" });
    await panel(page).getByText("by its key").first().waitFor();
    expect((await world.client.get("row-2")).state).toBe("paused");
    await panel(page).getByRole("button", { name: "Resume" }).waitFor();
    await page.keyboard.press("p");
    await dialog.getByRole("button", { name: "Resume" }).click();
    await dialog.waitFor({ state: "detached" });
    expect((await world.client.get("row-2")).state).toBe("scheduled");
    await page.keyboard.press("e");
    await page.getByLabel("Description").waitFor();
    expect(new URL(page.url()).pathname).toBe("/tasks/q/system/row-2/edit");

    const viewer = await world.as("viewer");
    await viewer.go(`${LIST}#/tasks/q/system/row-2`);
    await shown(viewer.page, "row-2");
    await panel(viewer.page).getByRole("heading", { name: "Definition" }).waitFor();
    for (const key of ["r", "p", "e", "f"]) await viewer.page.keyboard.press(key);
    expect(await viewer.page.getByRole("dialog").count()).toBe(0);
    await shown(viewer.page, "row-2");
  });

  test("runs stand beside their list too, and what they lead to; on a narrow screen a row is only a link", async () => {
    await put("ran", { type: "bad" });
    await world.client.trigger("ran");
    await settled("ran");
    const { page, go, show } = await world.as("operator");
    await go("/runs?task=ran");
    await page.getByRole("link", { name: "ran", exact: true }).waitFor();
    await page.keyboard.press("j");
    await shown(page, "Run of ran");
    await panel(page).getByRole("button", { name: "Run again" }).waitFor();
    await page.keyboard.press("r");
    await page.getByRole("dialog", { name: "Run ran again" }).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    // Its task comes into the same place, with the explanation of that time, and the list keeps its filter.
    await panel(page).getByRole("link", { name: "ran", exact: true }).click();
    await shown(page, "ran");
    await page.goBack();
    await shown(page, "Run of ran");
    expect(new URL(page.url()).search).toBe("?task=ran");
    await go("/errors?by=task");
    await page.getByRole("link", { name: "ran", exact: true }).waitFor();
    await page.keyboard.press("j");
    await panel(page).getByRole("heading", { level: 2 }).first().waitFor();

    await show({ size: "phone" });
    await panel(page).waitFor({ state: "detached" });
    await go("/runs?task=ran");
    await page.getByRole("link", { name: "ran", exact: true }).waitFor();
    await page.keyboard.press("j");
    expect(new URL(page.url()).hash).toBe("");
    await page.keyboard.press("Enter");
    await titleOf(page, "Run of ran").waitFor();
    await show({ size: "desktop" });
    await world.client.delete("ran");
  });

  test("the menu of a page is used by keyboard, and what loses something is its last item", async () => {
    const { page, go, axe } = await world.as("admin");
    await go("/tasks/q/system/row-1");
    const button = page.getByRole("button", { name: "More to do" });
    const item = () => page.evaluate<string>("document.activeElement.textContent");
    const press = async (keys: readonly string[]) => {
      for (const key of keys) await page.keyboard.press(key);
      return item();
    };
    await button.focus();
    expect(await press(["ArrowUp"])).toBe("Delete");
    expect(await page.getByRole("menuitem").allTextContents()).toEqual([
      ...["Pause", "Freeze", "Backfill", "Edit", "Duplicate", "Delete"],
    ]);
    expect(await axe()).toEqual([]);
    expect(await press(["ArrowDown"])).toBe("Pause");
    expect(await press(["ArrowUp", "ArrowUp"])).toBe("Duplicate");
    expect(await press(["Home"])).toBe("Pause");
    expect(await press(["End"])).toBe("Delete");
    // Its letters choose an item: those of the pages are not heard meanwhile.
    expect(await press(["f"])).toBe("Freeze");
    await page.keyboard.press("Escape");
    expect(await page.getByRole("menu").count()).toBe(0);
    await page.locator("button:focus[aria-haspopup]").waitFor();
    expect(await press(["Enter"])).toBe("Pause");
    await page.keyboard.press("Tab");
    expect(await page.getByRole("menu").count()).toBe(0);
    await button.focus();
    expect(await press(["ArrowDown"])).toBe("Pause");
    await page.keyboard.press("Enter");
    await page.getByRole("dialog", { name: "Pause row-1" }).getByLabel("Note", { exact: true }).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.locator("button:focus[aria-haspopup]").waitFor();
  });

  test("rows are dense if the browser was told so", async () => {
    const { page, go } = await world.as("viewer");
    await go(LIST);
    const row = page.locator("tr.vrow").first();
    const height = async () => (await row.boundingBox())?.height;
    expect(await height()).toBe(48);
    await page.getByRole("combobox", { name: "Rows" }).selectOption("dense");
    await eventually(async () => expect(await height()).toBe(34));
    await page.reload();
    await row.waitFor();
    expect(await height()).toBe(34);
    await page.getByRole("combobox", { name: "Rows" }).selectOption("roomy");
    await eventually(async () => expect(await height()).toBe(48));
  });

  test("a row fades once when its state changes, not when it comes or moves, nor for those who want no motion", async () => {
    const { page, go } = await world.as("viewer");
    await page.emulateMedia({ reducedMotion: "no-preference" });
    await page.addInitScript(`
      window.faded = [];
      const { animate } = Element.prototype;
      Element.prototype.animate = function (...given) {
        window.faded.push(this.querySelector("[data-row]").textContent);
        return animate.apply(this, given);
      };`);
    const faded = () => page.evaluate<string[]>("window.faded");
    const paused = (id: string) => page.getByRole("row", { name: id }).getByText("paused by").last();
    await go(LIST);
    await page.locator(".live[data-live=true]").waitFor();
    for (const order of ["next", "name"]) {
      await page.getByRole("combobox", { name: "Order" }).selectOption(order);
      await page.locator("main [aria-busy=true]").waitFor({ state: "detached" });
    }
    expect(await faded()).toEqual([]);
    await world.client.pause("row-3", { by: "ann" });
    await paused("row-3").waitFor();
    await eventually(async () => expect(await faded()).toEqual(["row-3"]));
    await page.emulateMedia({ reducedMotion: "reduce" });
    await world.client.pause("row-1", { by: "ann" });
    await paused("row-1").waitFor();
    expect(await faded()).toEqual(["row-3"]);
  });
});
