import { operatorOf } from "@carillon/ops";
import { eventually } from "@carillon/testing";
import { expect, test } from "vitest";
import { inABrowser, put, settled, world } from "./furnished.js";
import { pick } from "./world.js";

inABrowser("acts on tasks and runs", () => {
  test("a skipped occurrence says why", async () => {
    await world.client.trigger("slow");
    await eventually(async () => (await world.client.get("slow")).openRuns?.running === 1);
    await world.client.trigger("slow");
    const { page, go } = await world.as("operator");
    await go("/tasks/q/system/slow");
    const skips = page.locator("section", { has: page.getByRole("heading", { name: "Skips", exact: true }) });
    await skips.getByRole("button", { name: "Why?" }).first().click();
    await skips.getByText("an earlier run was not over", { exact: false }).waitFor();
    const box = await skips.locator("[aria-live]").boundingBox();
    expect(box!.y).toBeGreaterThanOrEqual(0);
    expect(box!.y + box!.height).toBeLessThanOrEqual(page.viewportSize()!.height);
  });

  test("a run is watched while it prints, and cancelled", async () => {
    const { page, go } = await world.as("operator");
    const [run] = await world.client.runs.list("slow");
    await go(`/runs/${run!.id}`);
    await page.locator("pre.output", { hasText: "slow work begins" }).waitFor();
    await page.getByRole("button", { name: "Cancel" }).click();
    await page.locator("main h1 + .badge", { hasText: "cancelled" }).waitFor();
  });

  test("the items of a fan-out are squares and rows, and are found by their data in all runs", async () => {
    await put("invoices", { type: "invoices" });
    for (const _ of [1, 2]) {
      await world.client.trigger("invoices");
      await settled("invoices");
      await eventually(async () =>
        expect((await world.client.runs.list("invoices")).every(({ state }) => state === "final")).toBe(true),
      );
    }
    const [run] = await world.client.runs.list("invoices");
    const { page, go } = await world.as("operator");
    await go(`/runs/${run?.id}`);
    const rows = page.locator("details.item");
    await eventually(async () => expect(await rows.count()).toBe(40));
    expect(await rows.first().textContent()).toContain('{"customer":"cust-7"}');
    await page.locator('.squares [title*="cust-23"]').click();
    expect(await page.locator("details.item[open]").textContent()).toContain("cust-23");
    await page.getByRole("searchbox", { name: "Find items of all runs" }).fill("CUST-7");
    await eventually(async () => expect(await rows.count()).toBe(2));
    expect(await rows.allTextContents()).toEqual([1, 2].map(() => expect.stringContaining("no address")));
  });

  test("a task is paused with a note; many are resumed with their missed occurrences", async () => {
    const { page, go } = await world.as("operator");
    await go("/tasks/q/system/fine");
    await pick(page, "Pause");
    const dialog = page.getByRole("dialog");
    // The first field has the focus.
    await dialog.locator("input:focus").fill("the e2e says so");
    await dialog.getByLabel("Note", { exact: true }).waitFor();
    await dialog.getByText("Copy as command, curl or code").click();
    await dialog.getByText(/carillon .* call tasks\.pause .*"note":"the e2e says so"/).waitFor();
    await dialog.getByRole("button", { name: "Pause" }).click();
    await page.getByText("the e2e says so").waitFor();
    await go("/tasks?filter=paused");
    await page.getByLabel("Select fine").check();
    await page.locator(".bulk").getByRole("button", { name: "Resume" }).click();
    await dialog.getByText("This concerns 1 task").waitFor();
    await dialog.getByRole("combobox").selectOption("catch-up");
    await dialog.getByRole("button", { name: "Resume" }).click();
    await page.getByText("1 task resumed.").waitFor();
    expect((await world.client.get("fine")).state).toBe("scheduled");
    await go("/tasks");
    await page.getByLabel("Select fine").check();
    await page.locator(".bulk").getByRole("button", { name: "Pause" }).click();
    await dialog.getByText("This concerns 1 task").waitFor();
    await dialog.getByLabel("Note").fill("x".repeat(501));
    await dialog.getByRole("button", { name: "Pause" }).click();
    await dialog.locator(".field:has(input[aria-invalid=true]:focus) .refusal").waitFor();
  });

  test("occurrences that wait are listed, with payloads of their own", async () => {
    await put("waits", { type: "slow", overlap: "queue-one" });
    const started = async () =>
      eventually(
        async () => (await world.client.runs.list("waits")).find(({ state }) => state === "running") ?? false,
      );
    await world.client.trigger("waits");
    const first = await started();
    await world.client.trigger("waits", { payload: { day: 3, password: "secret" } });
    const { page, go } = await world.as("viewer");
    await go("/tasks/q/system/waits");
    const waiting = page.locator("section", {
      has: page.getByRole("heading", { name: "Waiting occurrences" }),
    });
    await waiting.getByText("manual", { exact: true }).waitFor();
    expect(await waiting.locator("code").textContent()).toBe('{"day":3,"password":"[redacted]"}');
    await world.client.runs.cancel(first.id);
    await waiting.waitFor({ state: "detached" });
    await world.client.runs.cancel((await started()).id);
    await eventually(async () => (await world.client.get("waits")).openRuns === undefined);
    await world.client.delete("waits");
  });

  test("a backfill says first how many times it runs, and shows its progress", async () => {
    await put("past", { schedule: { every: "1m" }, overlap: "allow" });
    const { page, go } = await world.as("operator");
    await go("/tasks/q/system/past");
    await pick(page, "Backfill");
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("From", { exact: false }).fill("2024-01-01T00:00");
    await dialog.getByLabel("To, included", { exact: false }).fill("2024-01-01T00:04");
    await dialog.getByText("5 times in this range.").waitFor();
    await dialog.getByRole("button", { name: "Run them" }).click();
    await page.getByText("5 of 5").waitFor();
  });

  test("a selection of runs is run again at a pace, after its effect is said", async () => {
    await put("again", { type: "bad" });
    await world.client.trigger("again");
    await settled("again");
    const { page, go } = await world.as("operator");
    await go("/runs?filter=failed&task=again");
    await page.getByRole("checkbox", { name: "Select the run of again" }).check();
    await page.getByRole("button", { name: "Run 1 run again", exact: true }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("Runs 1 run again").waitFor();
    await dialog.getByRole("button", { name: "Run again", exact: true }).click();
    await page.getByRole("heading", { name: "Backfills of the last 7 days", exact: true }).waitFor();
    await page.getByRole("progressbar", { name: "1 of 1", exact: true }).waitFor();
    await world.client.delete("again");
  });

  test("failures of one cause are one row, over tasks, and are run again", async () => {
    await put("also", { type: "bad" });
    await world.client.trigger("also");
    await settled("also");
    const { page, go } = await world.as("operator");
    await go("/errors");
    const row = page.locator("main li", { hasText: "<b>the disk</b> is full" });
    await row.getByText("2 of 2 tasks still fail").waitFor();
    const { failing } = await operatorOf(world.client).tasks.counts();
    await page.locator(`.nav .count[title='${failing} failing']`).waitFor();
    expect(await page.title()).toContain(`${failing} failing · Errors · Carillon`);
    expect(await page.locator("link[rel=icon]").getAttribute("href")).toContain("state=");
    await row.getByRole("link", { name: "Error: <b>the disk</b> is full" }).click();
    await page.locator("main li", { hasText: "also" }).getByText("it still fails").waitFor();
    await page.goBack();
    await row.getByRole("button", { name: "Run these again" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText(/Runs \d runs again/).waitFor();
    await dialog.getByRole("button", { name: "Run again", exact: true }).click();
    await page.locator("main li", { hasText: "also" }).getByText("1 of 1").waitFor();
    await world.client.delete("also");
  });

  test("runs are compared with those before: a column sorts, a deploy is a mark, a number leads to its runs", async () => {
    const { page, go } = await world.as("viewer");
    await go("/runs?filter=trends");
    const head = page.getByRole("region", { name: "Trends" }).getByRole("button", { name: "Succeeded" });
    const rows = page.locator("main tbody tr");
    await page.getByText("billing 1.4 by deploy 42").waitFor();
    await page.locator("main svg line").first().waitFor({ state: "attached" });
    await head.click();
    await page
      .getByRole("columnheader", { name: "Succeeded" })
      .and(page.locator("[aria-sort=ascending]"))
      .waitFor();
    await rows.first().getByText("0%", { exact: true }).waitFor();
    await head.click();
    await page.locator("th[aria-sort=descending]").waitFor();
    await rows.first().getByText("100%", { exact: true }).waitFor();
    await page.getByRole("button", { name: "By owner", exact: true }).click();
    await rows.getByRole("link", { name: "system", exact: true }).click();
    const row = rows.filter({ has: page.getByRole("link", { name: "fails", exact: true }) });
    await row.locator(".unseen", { hasText: "more than before" }).first().waitFor({ state: "attached" });
    await row.getByRole("link").nth(1).click();
    await page.locator("main li", { hasText: "the disk" }).first().waitFor();
    expect(new URL(page.url()).searchParams.get("task")).toBe("fails");
  });

  test("what is held is one list, and each of it is lifted there", async () => {
    const { page, go } = await world.as("operator");
    await go("/held");
    const dialog = page.getByRole("dialog");
    for (const [what, note] of [
      ["frozen", "owner globex"],
      ["paused queue", "in-disguise"],
      ["silenced alerts", "Owner in-disguise"],
      ["paused task", "acme/paused"],
    ] as const) {
      const row = page.locator("main li", { hasText: what }).filter({ hasText: note });
      await row.getByRole("button", { name: "Lift" }).click();
      await dialog.getByRole("button", { name: "Lift" }).click();
      await row.waitFor({ state: "detached" });
    }
    const ops = operatorOf(world.client);
    const { freezes } = await ops.freezes.list();
    expect(freezes.map(({ owner }) => owner)).toEqual(["in-disguise"]);
    expect((await ops.silences.list()).silences).toEqual([]);
    expect((await ops.queues.list()).queues.filter(({ paused }) => paused)).toEqual([]);
    expect((await world.client.get("acme/paused")).state).toBe("scheduled");
  });

  test("a selection is of the rows that are shown, never of those of a former filter", async () => {
    for (const id of ["of-team", "of-nobody"]) await put(id, { tags: id === "of-team" ? ["few"] : [] });
    const { page, go } = await world.as("operator");
    await go("/tasks");
    const box = page.getByRole("checkbox", { name: "Select the tasks shown" });
    const at = (await box.boundingBox())!;
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    await page.route(/tasks\?.*tag=few/, async (route) => {
      await held;
      await route.continue();
    });
    await page.getByRole("combobox", { name: "Tag" }).fill("few");
    // The click leaves the field, so the filter changes before the click arrives.
    await page.mouse.click(at.x + at.width / 2, at.y + at.height / 2);
    await page.locator("main [aria-busy=true]").waitFor({ state: "attached" });
    await page.mouse.click(at.x + at.width / 2, at.y + at.height / 2);
    expect(await page.getByRole("region", { name: "Selected tasks" }).count()).toBe(0);
    release();
    await page.locator("main [aria-busy=true]").waitFor({ state: "detached" });
    await box.check();
    await page.getByText("1 task selected").waitFor();
    await page.unroute(/tasks\?.*tag=few/);
    // Without one of them, it is not the selection of all any more.
    await page.getByRole("button", { name: "Select all that match" }).click();
    await page.getByText("All that match are selected").waitFor();
    await page.getByRole("checkbox", { name: "Select of-team" }).uncheck();
    expect(await page.getByRole("region", { name: "Selected tasks" }).count()).toBe(0);
    await box.check();
    await page.getByText("1 task selected").waitFor();
    await page.getByRole("button", { name: "Paused" }).first().click();
    await page.getByText("1 task selected").waitFor({ state: "detached" });
    for (const id of ["of-team", "of-nobody"]) await world.client.delete(id);
  });

  test("a herd is spread with one click, and one undo restores its schedules", async () => {
    const schedule = { cron: "0 12 1 1 *", timezone: "UTC" };
    for (const id of ["herd-1", "herd-2"]) await put(id, { tags: ["herd"], schedule });
    const { page, go } = await world.as("admin");
    await go(`/load?tag=herd&day=${new Date().getUTCFullYear() + 1}-01-01`);
    await page.getByRole("button", { name: "Spread them" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("img").waitFor();
    await dialog.getByRole("button", { name: "Spread", exact: true }).click();
    const notice = page.locator(".notices li", { hasText: "2 tasks spread." });
    await notice.waitFor();
    expect((await world.client.get("herd-1")).schedule).toEqual({ ...schedule, jitter: "5m" });
    // A newer change that can be undone is not the one that the notice is about.
    await put("newer", { tags: ["newer"], schedule: { cron: "0 13 1 1 *", timezone: "UTC" } });
    const at = `${new Date().getUTCFullYear() + 1}-01-01T13:00:00Z`;
    await operatorOf(world.client).tasks.spread({ at, jitter: "5m", tag: "newer" });
    await notice.getByRole("button", { name: "Undo", exact: true }).click();
    await page.getByText("2 tasks restored.").waitFor();
    expect((await world.client.get("herd-1")).schedule).toEqual(schedule);
    expect((await world.client.get("newer")).schedule).toHaveProperty("jitter");
    for (const id of ["herd-1", "herd-2", "newer"]) await world.client.delete(id);
  });

  test("an act is undone from its notice or by a key, and the notice waits under the pointer and the focus", async () => {
    await put("by-mistake");
    const { secret } = await operatorOf(world.client).tokens.create({ name: "undoer", role: "operator" });
    const { page, go } = await world.as({ secret });
    const notices = page.locator(".notices li");
    const notice = (text: string) => notices.filter({ has: page.getByText(text, { exact: true }) });
    const stored = () => world.client.get("by-mistake");
    const pause = async () => {
      await pick(page, "Pause");
      await page.getByRole("dialog").getByLabel("Note").fill("INC-7");
      await page.getByRole("dialog").getByRole("button", { name: "Pause", exact: true }).click();
      await notice("The task is paused.").waitFor();
    };
    await page.clock.install();
    await go("/tasks/q/system/by-mistake");
    await pause();
    await notice("The task is paused.").hover();
    await page.clock.fastForward(60_000);
    await notice("The task is paused.").getByRole("button", { name: "Undo" }).focus();
    await page.mouse.move(0, 0);
    await page.clock.fastForward(60_000);
    await page.keyboard.press("Enter");
    await notice("Undone: the task is resumed.").waitFor();
    expect((await stored()).state).toBe("scheduled");
    await pause();
    await page.getByRole("button", { name: "Resume", exact: true }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Resume", exact: true }).click();
    await notice("The task is resumed.").waitFor();
    await page.keyboard.press("u");
    await notice("Undone: the task is paused.").hover();
    expect((await stored()).paused).toMatchObject({ note: "INC-7" });
    await page.mouse.move(0, 0);
    await page.clock.fastForward(11_000);
    await notice("Undone: the task is paused.").waitFor({ state: "detached" });
    // A change of another comes between: the undo leaves it alone.
    const admin = await world.as("admin");
    await admin.go("/tasks/q/system/by-mistake/edit");
    await admin.page.getByLabel("Description").fill("wrong");
    await admin.page.getByRole("button", { name: "Save" }).click();
    const saved = admin.page.locator(".notices li", { hasText: "The change is stored." });
    const undo = saved.getByRole("button", { name: "Undo" });
    await undo.waitFor();
    await put("by-mistake", { description: "another's" });
    await undo.click();
    await admin.page.locator(".notices li", { hasText: "Not undone: " }).waitFor();
    expect((await stored()).description).toBe("another's");
    await world.client.delete("by-mistake");
  });

  test("deleted tasks are a list, and come back after their times are shown, or by an undo", async () => {
    const ids = ["gone-1", "gone-2"];
    for (const id of ids) await put(id, { tags: ["gone"], description: "as it was" });
    const { page, go } = await world.as("admin");
    const dialog = page.getByRole("dialog");
    await go("/tasks?tag=gone");
    await page.getByRole("checkbox", { name: "Select the tasks shown" }).check();
    await page.locator(".bulk").getByRole("button", { name: "Delete" }).click();
    await dialog.getByLabel("Yes, with their runs and skips").check();
    await dialog.getByRole("button", { name: "Delete" }).click();
    const notice = page.locator(".notices li", { hasText: "2 tasks deleted." });
    await notice.getByRole("button", { name: "Undo" }).click();
    await page.getByText("2 tasks restored.").waitFor();
    expect((await world.client.list({ tag: "gone" })).tasks).toHaveLength(2);
    for (const id of ids) await world.client.delete(id);
    await go("/tasks?filter=deleted&search=gone-");
    const row = page.locator("main li", { hasText: "gone-1" });
    await row.getByText("kept until").waitFor();
    await row.getByRole("button", { name: "Restore" }).click();
    await dialog.getByText("as it was").waitFor();
    expect(await dialog.locator("table.diff td[data-tone=ok] time").count()).toBe(5);
    await dialog.getByRole("button", { name: "Restore", exact: true }).click();
    await page.getByText("The task is restored.").waitFor();
    await row.waitFor({ state: "detached" });
    expect(await page.locator("main li", { hasText: "gone-2" }).count()).toBe(1);
    expect(await world.client.get("gone-1")).toMatchObject({ description: "as it was", tags: ["gone"] });
    await world.client.delete("gone-1");
  });

  test("a field of a selection is edited after old and new are shown for each task, or of none", async () => {
    await put("edit-1", { tags: ["edits"], schedule: { cron: "0 4 * * *", timezone: "UTC" } });
    await put("edit-2", { tags: ["edits"], schedule: { every: "1h" } });
    const { page, go } = await world.as("admin");
    const dialog = page.getByRole("dialog");
    await go("/tasks?tag=edits");
    await page.getByRole("checkbox", { name: "Select the tasks shown" }).check();
    await page.locator(".bulk").getByRole("button", { name: "Edit" }).click();
    const save = dialog.getByRole("button", { name: "Save" });
    await dialog.getByRole("textbox", { name: "Cron expression" }).fill("nonsense");
    await dialog.locator(".field:has(input[aria-invalid=true]) .refusal").waitFor();
    await dialog.getByRole("textbox", { name: "Cron expression" }).fill("0 5 * * *");
    await dialog.getByText("1 task refused:").waitFor();
    await dialog.getByText(/^edit-2: schedule/).waitFor();
    expect(await save.isDisabled()).toBe(true);
    await dialog.getByRole("combobox").first().selectOption("If a run is still going on");
    await dialog.getByRole("combobox").nth(1).selectOption("run both");
    await dialog.getByText("This concerns 2 tasks:").waitFor();
    expect(await dialog.locator("table.stacks tbody tr").allTextContents()).toEqual(
      ["edit-1", "edit-2"].map((id) => expect.stringMatching(new RegExp(`^${id}.*"skip".*"allow".*`))),
    );
    await save.click();
    const notice = page.locator(".notices li", { hasText: "2 tasks changed." });
    await notice.waitFor();
    const overlaps = async () =>
      (await world.client.list({ tag: "edits" })).tasks.map(({ overlap }) => overlap);
    expect(await overlaps()).toEqual(["allow", "allow"]);
    await notice.getByRole("button", { name: "Undo" }).click();
    await page.getByText("2 tasks restored.").waitFor();
    expect(await overlaps()).toEqual(["skip", "skip"]);
    for (const id of ["edit-1", "edit-2"]) await world.client.delete(id);
  });

  test("the runs under way that a filter shows are cancelled, and no others", async () => {
    const ids = ["end-1", "end-2", "stays"];
    for (const id of ids) {
      await put(id, { type: "slow" });
      await world.client.trigger(id);
      await eventually(async () => (await world.client.get(id)).openRuns?.running === 1);
    }
    const { page, go } = await world.as("operator");
    const dialog = page.getByRole("dialog");
    await go("/runs?text=end-");
    await page.getByRole("button", { name: "Cancel these 2 runs" }).click();
    await dialog.getByText("This ends 2 runs of 2 tasks:").waitFor();
    await dialog.getByRole("button", { name: "Cancel them" }).click();
    const notice = page.locator(".notices li", { hasText: "2 runs were asked to end." });
    await notice.waitFor();
    expect(await notice.getByRole("button", { name: "Undo" }).count()).toBe(0);
    for (const id of ["end-1", "end-2"]) await settled(id);
    expect((await world.client.get("stays")).openRuns?.running).toBe(1);
    await world.client.runs.cancel((await world.client.runs.list("stays"))[0]!.id);
    await settled("stays");
    for (const id of ids) await world.client.delete(id);
  });

  test("a plan counts the occurrences that paused tasks owe, and runs them at a rate", async () => {
    await put("owes", { owner: "initech", schedule: { every: "1s" } });
    await world.client.pause("initech/owes", { note: "INC-43" });
    await eventually(
      async () => (await operatorOf(world.client).tasks.resumePlan({ owner: "initech" })).owed.count > 2,
    );
    const viewer = await world.as("viewer");
    await viewer.go("/resume?owner=initech&note=INC-43");
    await viewer.page.getByRole("cell", { name: "run once" }).waitFor();
    expect(await viewer.page.getByRole("button", { name: "Resume" }).count()).toBe(0);
    const { page, go } = await world.as("operator");
    await go("/resume?owner=initech&note=INC-43");
    await page.getByRole("cell", { name: "run once" }).waitFor();
    await page.getByLabel("Times that passed meanwhile").selectOption("all");
    await page.getByLabel("Starts a minute", { exact: false }).fill("6000");
    await page.getByText("6,000 a minute", { exact: false }).waitFor();
    await page.getByRole("button", { name: "Resume 1 task" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Resume" }).click();
    await page.getByText("1 task resumed.").waitFor();
    expect((await world.client.get("initech/owes")).state).toBe("scheduled");
    expect((await operatorOf(world.client).backfills.list({ owner: "initech" })).backfills).toHaveLength(1);
    await world.client.delete("initech/owes");
  });
});
