import { operatorOf } from "@carillon/ops";
import { eventually } from "@carillon/testing";
import { expect, test } from "vitest";
import { inABrowser, put, world } from "./furnished.js";
import { asked, pick, staying, titleOf } from "./world.js";

inABrowser("forms", () => {
  test("a calendar task is put with a preview, and fires", async () => {
    const { page, go } = await world.as("admin");
    await go("/tasks/new");
    await page.getByLabel("Id").fill("made-here");
    await page.getByLabel("Queue").fill("q");
    await page.getByLabel("Type").fill("ok");
    await page.getByLabel("Kind").selectOption("calendar");
    await page.getByLabel("Calendar event", { exact: false }).last().fill("*-*-* *:*:0/2");
    await page.getByText("every 2 seconds").first().waitFor();
    expect(await page.locator("table tbody tr").count()).toBe(10);
    await page.getByRole("button", { name: "Save" }).click();
    await titleOf(page, "made-here").waitFor();
    await page.locator("main .rows li", { hasText: "succeeded" }).first().waitFor();
    await world.client.delete("made-here");
  });

  test("a task is duplicated for another owner", async () => {
    await put("mine", { payload: { day: 1 }, tags: ["copied"], description: "one of many" });
    const { page, go } = await world.as("admin");
    await go("/tasks/q/system/mine");
    await pick(page, "Duplicate");
    await page.getByLabel("Id").fill("yours");
    await page.getByLabel("Owner").fill("acme");
    await page.getByRole("button", { name: "Save" }).click();
    await titleOf(page, "acme/yours").waitFor();
    const { id, owner, ...copy } = await world.client.get("acme/yours");
    const { payload, tags, description, schedule, type } = await world.client.get("mine");
    expect([id, owner]).toEqual(["yours", "acme"]);
    expect(copy).toMatchObject({ payload, tags, description, schedule, type });
    await world.client.delete("acme/yours");
    await world.client.delete("mine");
  });

  test("an admin runs a task once with another payload; hidden values stay on the server", async () => {
    await put("own", { payload: { day: 1 } });
    const { page, go } = await world.as("admin");
    const dialog = page.getByRole("dialog");
    const field = dialog.getByRole("textbox");
    const ask = async () => {
      await go("/tasks/q/system/own");
      await page.getByRole("button", { name: "Run now" }).click();
      await dialog.getByLabel("With another payload").check();
    };
    await ask();
    expect(JSON.parse(await field.inputValue())).toEqual({ day: 1 });
    await field.fill('{"day":');
    await dialog.getByRole("button", { name: "Run now" }).click();
    await dialog.getByText("This is not JSON yet.").waitFor();
    expect(await world.client.runs.list("own")).toEqual([]);
    await field.fill('{"day":2}');
    await dialog.getByRole("button", { name: "Run now" }).click();
    await page.getByText('"day": 2').waitFor();
    expect(await world.client.get("own")).toMatchObject({ payload: { day: 1 } });
    await put("own", { payload: { day: 1, password: "secret" } });
    // A page accepts an answer of the last second, and the one of the run has read the task.
    const hidden = { day: 1, password: "[redacted]" };
    await eventually(async () => {
      await ask();
      expect(JSON.parse(await field.inputValue())).toEqual(hidden);
    });
    await field.fill('{"day":3,"password":"[redacted]"}');
    await dialog.getByRole("button", { name: "Run now" }).click();
    await page.getByText('"day": 3').waitFor();
    const [newest] = await world.client.runs.list("own");
    expect(newest).toMatchObject({ payload: { day: 3, password: "secret" } });
    const operator = await world.as("operator");
    await operator.go("/tasks/q/system/own");
    await operator.page.getByRole("button", { name: "Run now" }).click();
    await operator.page.getByRole("dialog").getByLabel("If a run is still going on").waitFor();
    expect(await operator.page.getByLabel("With another payload").count()).toBe(0);
    await world.client.delete("own");
  });

  test("a schedule is built of days, times and a shared calendar, and its year shows the lost night", async () => {
    const { page, go } = await world.as("admin");
    const timezone = "Europe/Berlin";
    await operatorOf(world.client).calendars.put({ name: "built", entries: ["*-12-25"] });
    await put("built", { schedule: { calendar: "Mon..Fri *-*-* 02:30", timezone } });
    await go("/tasks/q/system/built/edit");
    const form = page.getByRole("group", { name: "Schedule", exact: true });
    await form.getByRole("button", { name: "Sun", exact: true }).click();
    await page.locator(".year li", { hasText: "no time; this day has 23 h; the clock skips" }).waitFor();
    await form.getByRole("button", { name: "built", exact: true }).click();
    await page.locator(".year li", { hasText: "by built" }).waitFor();
    const zone = form.getByRole("combobox", { name: "Time zone" });
    await zone.fill("Europe/Berlim");
    await form
      .locator(".field", { hasText: "Time zone" })
      .getByText('"Europe/Berlim" is not a timezone')
      .waitFor();
    await zone.fill(timezone);
    await form.getByRole("textbox", { name: "Times" }).fill("2:30, 10:00, 17:45");
    await page.getByRole("button", { name: "Save" }).click();
    await titleOf(page, "built").waitFor();
    const days = "Mon..Fri,Sun *-*-*";
    expect((await world.client.get("built")).schedule).toMatchObject({
      any: ["02:30", "10:00", "17:45"].map((time) => ({
        calendar: expect.stringContaining(`${days} ${time}`),
        timezone,
      })),
      except: [{ named: "built" }],
    });
    await world.client.delete("built");
    await operatorOf(world.client).calendars.delete({ name: "built" });
  });

  test("a payload is edited in the form of its type's schema, or as JSON, and a wrong one is refused", async () => {
    const { page, go } = await world.as("admin");
    await put("letter", {
      type: "letter",
      payload: { text: "Dear all", paper: "a4", to: { names: [] }, more: 1 },
    });
    await go("/tasks/q/system/letter/edit");
    const form = page.getByRole("group", { name: "Payload", exact: true });
    const json = form.getByLabel("As JSON");
    const payload = async () => JSON.parse(await json.inputValue());
    await form.getByRole("textbox", { name: "names" }).fill("ann\nbob");
    await form.getByRole("spinbutton").fill("2");
    const stored = { text: "Dear all", paper: "a4", to: { names: ["ann", "bob"] }, more: 1, copies: 2 };
    expect(await payload()).toEqual(stored);
    await json.fill(JSON.stringify({ ...stored, paper: "a5" }));
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("payload.paper").first().waitFor();
    // The field that is wrong says so, and has the focus.
    await form.locator("textarea[aria-invalid=true]:focus").waitFor();
    expect(await form.getByRole("combobox", { name: "paper" }).count()).toBe(0);
    await json.fill(JSON.stringify(stored));
    await form.getByRole("combobox", { name: "paper" }).selectOption("a3");
    await page.getByRole("button", { name: "Save" }).click();
    await titleOf(page, "letter").waitFor();
    expect((await world.client.get("letter")).payload).toEqual({ ...stored, paper: "a3" });
    await world.client.delete("letter");
  });

  test("what two people change in one task is joined, hidden values too; the same field is shown", async () => {
    await put("shared", { payload: { user: "ann", password: "hunter2" } });
    const [one, two] = [await world.as("admin"), await world.as("admin", "again")];
    for (const { go } of [one, two]) await go("/tasks/q/system/shared/edit");
    await one.page.getByLabel("Description").fill("by one");
    await two.page.getByLabel("Tags").fill("blue");
    await two.page.getByLabel("Cron", { exact: false }).last().fill("0 4 * * *");
    // The preview knows the stored definition too.
    await two.page.locator("table.diff").waitFor();
    await one.page.getByRole("button", { name: "Save" }).click();
    await titleOf(one.page, "shared").waitFor();
    await two.page.getByText("It is in this form now", { exact: false }).waitFor();
    expect(await two.page.getByLabel("Description").inputValue()).toBe("by one");
    await one.go("/tasks/q/system/shared/edit");
    await two.page.getByRole("button", { name: "Save" }).click();
    await titleOf(two.page, "shared").waitFor();
    expect(await world.client.get("shared")).toMatchObject({
      ...{ description: "by one", tags: ["blue"], schedule: { cron: "0 4 * * *" } },
      payload: { user: "ann", password: "hunter2" },
    });
    await one.page.getByText("It is in this form now", { exact: false }).waitFor();
    await two.go("/tasks/q/system/shared/edit");
    await one.page.getByLabel("Description").fill("one again");
    await two.page.getByLabel("Description").fill("by two");
    await one.page.getByRole("button", { name: "Save" }).click();
    await titleOf(one.page, "shared").waitFor();
    const conflict = two.page.getByRole("alert");
    await conflict.getByText("one again").waitFor();
    expect(await conflict.textContent()).toContain("by two");
    await conflict.getByRole("button", { name: "Store mine over it" }).click();
    await titleOf(two.page, "shared").waitFor();
    expect(await world.client.get("shared")).toMatchObject({ description: "by two", tags: ["blue"] });
    await world.client.delete("shared");
  });

  test("a revision is restored", async () => {
    await put("fine", { description: "by one" });
    await put("fine", { description: "by two" });
    const { page, go } = await world.as("admin");
    await go("/tasks/q/system/fine");
    await page.getByRole("button", { name: "Show or restore" }).first().click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("by one").first().waitFor();
    await dialog.getByRole("button", { name: "Restore", exact: true }).click();
    await page.getByText("The revision is restored.").waitFor();
    expect((await world.client.get("fine")).description).toBe("by one");
  });

  test("a form that is half filled in asks before it is left, and stays if it is told to", async () => {
    const { page, go } = await world.as("admin");
    const stay = () => staying.add(page);
    asked.length = 0;
    await go("/tasks/q/system/fine");
    await pick(page, "Edit");
    await page.getByLabel("Description").fill("half of a");
    stay();
    await page.getByRole("link", { name: "Runs", exact: true }).click();
    expect(await page.getByLabel("Description").inputValue()).toBe("half of a");
    stay();
    await page.evaluate("history.back()");
    await eventually(() => asked.length === 2);
    expect(await page.getByLabel("Description").inputValue()).toBe("half of a");
    await page.getByRole("link", { name: "Runs", exact: true }).click();
    await titleOf(page, "Runs").waitFor();
    expect(asked.splice(0)).toEqual(["confirm", "confirm", "confirm"]);
    await go("/held");
    await page.getByRole("button", { name: "Freeze" }).click();
    const field = page.getByRole("dialog").getByRole("combobox", { name: "Owner", exact: true });
    await field.fill("acm");
    // An owner that exists is suggested.
    await page.locator("datalist option[value=acme]").waitFor({ state: "attached" });
    stay();
    await page.keyboard.press("Escape");
    expect(await field.inputValue()).toBe("acm");
    stay();
    await page.mouse.click(5, 5);
    expect(await field.inputValue()).toBe("acm");
    // A button that says so needs no question.
    await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    expect(asked.splice(0)).toEqual(["confirm", "confirm"]);
    await page.getByRole("link", { name: "Runs", exact: true }).click();
    await titleOf(page, "Runs").waitFor();
    expect(asked).toEqual([]);
  });

  test("a session that ends keeps what was entered", async () => {
    const { page, go } = await world.as("admin");
    await go("/tasks/q/system/fine/edit");
    const cookies = await page.context().cookies();
    await page.context().clearCookies();
    await page.getByLabel("Description").fill("half of a");
    await page.getByText("Your session has ended.").waitFor();
    expect(await page.getByLabel("Description").inputValue()).toBe("half of a");
    await page.context().addCookies(cookies);
    await page.getByLabel("Description").fill("whole");
    await page.getByText("Your session has ended.").waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Save" }).click();
    await titleOf(page, "fine").waitFor();
    expect((await world.client.get("fine")).description).toBe("whole");
  });
});
