import { operatorOf } from "@carillon/ops";
import { eventually } from "@carillon/testing";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { lookAt } from "./looks.js";
import { disguise, storeMarkup } from "./markup.js";
import { asked, problems, startWorld, staying, titleOf, type World } from "./world.js";

const binary = process.env["CARILLON_CHROMIUM"];
if (!binary) console.warn("apps/console/test/e2e is skipped: there is no Chromium. Set CARILLON_CHROMIUM.");

const PAGES = {
  now: "/",
  tasks: "/tasks",
  task: "/tasks/q/system/fails",
  // The runs of the backfill, which are in the past.
  durations: `/tasks/q/system/past?from=${Date.UTC(2023, 11, 31)}&to=${Date.UTC(2024, 0, 2)}`,
  set: "/tasks/q/system/in-set",
  edit: "/tasks/q/system/fails/edit",
  new: "/tasks/new",
  runs: "/runs",
  load: "/load",
  freezes: "/freezes",
  resume: "/resume?owner=acme",
  alerts: "/alerts",
  backfills: "/backfills",
  calendars: "/calendars",
  sets: "/sets",
  system: "/system",
  doctor: "/doctor",
  rules: "/rules",
  owner: "/owners/in-disguise",
  // Those of one task: other tests make more than fit on the page.
  changes: "/changes?task=in-disguise/in-disguise",
  tokens: "/tokens",
};
/** Pages that show no text of users. */
const WITHOUT = ["task", "durations", "set", "load", "resume", "backfills", "tokens"];

describe.skipIf(!binary)("the pages in a browser", () => {
  let world: World;
  let pages: Record<string, string>;
  /** Minute of an hour in which no test runs: tasks are due then. */
  const minute = String((new Date().getUTCMinutes() + 30) % 60).padStart(2, "0");
  const later = { cron: `${minute} * * * *`, timezone: "UTC" };
  const put = (id: string, more: object = {}) =>
    world.client.put({ id, queue: "q", type: "ok", schedule: later, ...more } as never);
  const settled = async (id: string) =>
    eventually(async () => (await world.client.runs.list(id)).some(({ state }) => state === "final"));

  beforeAll(async () => {
    world = await startWorld(binary!);
    await put("fine");
    await put("fails", { type: "bad", description: `<i>one</i>${"x".repeat(490)}` });
    await put("slow", { type: "slow" });
    await put("lonely", { type: "nobody", queue: "alone" });
    await put("paused", { owner: "acme", tags: ["tenant"] });
    await put("single", { schedule: { at: "2099-01-01T00:00:00Z" } });
    await put("bounded", { schedule: { ...later, start: "2099-01-01T00:00:00Z" } });
    await world.client.pause("acme/paused", { note: "until <b>Friday</b>" });
    await world.client.trigger("fails");
    await world.client.trigger("fine");
    await Promise.all([settled("fails"), settled("fine")]);
    await operatorOf(world.client).calendars.put({ name: "holidays", entries: ["2030-12-25"] });
    const inSet = { id: "in-set", queue: "q", type: "ok", schedule: { manual: true } } as const;
    const set = { set: "billing", version: "1.4", tasks: [inSet] };
    await operatorOf(world.client).sets.apply(set, { by: "deploy 42" });
    await world.client.put({ ...inSet, priority: 5 }, { by: "ann" });
    await operatorOf(world.client).freezes.put({ owner: "globex", note: "an audit" });
    pages = { ...PAGES, ...(await storeMarkup(world.client)) };
  });
  afterAll(() => world?.stop());
  afterEach(() => expect(problems.splice(0)).toEqual([]));

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
    await page.locator("main .rows .badge", { hasText: "succeeded" }).first().waitFor();
    await world.client.delete("made-here");
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

  test("a task is paused with a note; many are resumed with their missed occurrences", async () => {
    const { page, go } = await world.as("operator");
    await go("/tasks/q/system/fine");
    await page.getByRole("button", { name: "Pause" }).click();
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
    await ask();
    expect(JSON.parse(await field.inputValue())).toEqual({ day: 1, password: "[redacted]" });
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

  test("occurrences that wait are listed, with payloads of their own", async () => {
    await put("waits", { type: "slow", overlap: "queue-one" });
    const started = async () =>
      eventually(async () =>
        (await world.client.runs.list("waits")).find(({ state }) => state === "running"),
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
    await world.client.runs.cancel(first!.id);
    await waiting.waitFor({ state: "detached" });
    await world.client.runs.cancel((await started())!.id);
    await eventually(async () => (await world.client.get("waits")).openRuns === undefined);
    await world.client.delete("waits");
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

  test("a backfill says first how many times it runs, and shows its progress", async () => {
    await put("past", { schedule: { every: "1m" }, overlap: "allow" });
    const { page, go } = await world.as("operator");
    await go("/tasks/q/system/past");
    await page.getByRole("button", { name: "Backfill" }).click();
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
    await titleOf(page, "Backfills").waitFor();
    await page.getByRole("progressbar", { name: "1 of 1", exact: true }).waitFor();
    await world.client.delete("again");
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
    // The notice is shown for some seconds only.
    const notice = page.getByRole("listitem").filter({ hasText: "2 tasks spread." });
    const undo = await notice.getByRole("link", { name: "Undo", exact: true }).getAttribute("href");
    expect((await world.client.get("herd-1")).schedule).toEqual({ ...schedule, jitter: "5m" });
    // A newer change that can be undone is not the one that the notice is about.
    await put("newer", { tags: ["newer"], schedule: { cron: "0 13 1 1 *", timezone: "UTC" } });
    const at = `${new Date().getUTCFullYear() + 1}-01-01T13:00:00Z`;
    await operatorOf(world.client).tasks.spread({ at, jitter: "5m", tag: "newer" });
    await go(undo ?? "");
    await dialog.getByText("This concerns 2 tasks:").waitFor();
    await dialog.getByRole("button", { name: "Undo", exact: true }).click();
    await page.getByText("2 tasks restored.").waitFor();
    expect((await world.client.get("herd-1")).schedule).toEqual(schedule);
    expect((await world.client.get("newer")).schedule).toHaveProperty("jitter");
    for (const id of ["herd-1", "herd-2", "newer"]) await world.client.delete(id);
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

  test("the palette acts on the open task, and finds owners, by keyboard or touch; a viewer gets no action", async () => {
    const { page, go, axe } = await world.as("operator");
    await go("/tasks/q/system/fine");
    await page.getByRole("button", { name: "Pause" }).waitFor();
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
    await option("acme/paused task").waitFor();
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
    expect(await viewer.page.getByRole("option", { name: "action" }).count()).toBe(0);
    await viewer.page.keyboard.press("Escape");
  });

  test("alerts are silenced and released by roles that may do so", async () => {
    const viewer = await world.as("viewer");
    await viewer.go("/alerts");
    expect(await viewer.page.locator("main button").count()).toBe(0);
    const { page, go } = await world.as("operator");
    await go("/alerts");
    const dialog = page.getByRole("dialog");
    await page.getByRole("button", { name: "Test" }).click();
    await dialog.getByRole("textbox").fill("nonsense");
    await dialog.getByRole("button", { name: "Test" }).click();
    // The field that is refused says so, and has the focus.
    await dialog.locator(".field:has(input[aria-invalid=true]:focus) .refusal").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Silence" }).click();
    await dialog.getByRole("textbox", { name: "Task" }).fill("fails");
    await dialog.getByLabel("Until", { exact: false }).fill("2040-01-01T00:00");
    await dialog.getByRole("button", { name: "Silence" }).click();
    const row = page.locator("main li", { hasText: "Task fails" });
    await row.waitFor();
    const silences = async () =>
      (await operatorOf(world.client).silences.list()).silences.filter(({ task }) => task === "fails");
    expect(await silences()).toMatchObject([{ until: Date.UTC(2040, 0), by: "operator" }]);
    await row.getByRole("button", { name: "End" }).click();
    await row.waitFor({ state: "detached" });
    expect(await silences()).toEqual([]);
  });

  test("actions that a role may not take are hidden, and refused at their addresses", async () => {
    const { page, go } = await world.as("viewer");
    await go("/tasks/q/system/fine");
    expect(await page.locator("main .page-head button, main .page-head a").count()).toBe(0);
    await go("/tasks");
    expect(await page.locator("main input[type=checkbox]").count()).toBe(0);
    await go("/tasks/q/system/fine/edit");
    await page.getByLabel("Description").waitFor();
    expect(await page.getByRole("button", { name: "Save" }).count()).toBe(0);
    await page.goto(`${world.url}/task`);
    await titleOf(page, "This page does not exist.").waitFor();
    await page.goto(`${world.url}/runs/gone%40by-now`);
    await titleOf(page, "Run of gone").waitFor();
    await page.getByText('No run has the id "gone@by-now".', { exact: false }).waitFor();
    const answer = await page.request.post(`${world.url}/api/v1/tasks/q/system/fine/pause`, {
      headers: { origin: world.url },
    });
    expect(answer.status()).toBe(403);
    const operator = await world.as("operator");
    await operator.go("/tasks/q/system/fine");
    expect(await operator.page.getByRole("button", { name: "Delete" }).count()).toBe(0);
    expect(await operator.page.getByRole("button", { name: "Pause" }).count()).toBe(1);
  });

  test("a token of two owners sees the load and the changes of one of them, and no other tasks", async () => {
    await put("theirs", { owner: "umbrella", type: "lonely" });
    const owners = ["acme", "umbrella"];
    const { page, go } = await world.as(
      await operatorOf(world.client).tokens.create({ name: "both", role: "viewer", owners }),
    );
    await page.locator(".live[data-live=true]").waitFor();
    await page.getByRole("combobox", { name: "Owner" }).selectOption("umbrella");
    await page.getByRole("link", { name: "Load", exact: true }).click();
    await page.getByText("24 starts of 1 task", { exact: false }).waitFor();
    expect(await page.locator("main").textContent()).not.toContain("fails");
    await go("/tasks");
    await page.getByRole("link", { name: "umbrella/theirs" }).waitFor();
    expect(await page.locator("main [data-row]").count()).toBe(1);
    await world.client.delete("umbrella/theirs");
    await page.getByText("There are no tasks yet", { exact: false }).waitFor();
  });

  test("a link for support is made, opens its owners' tasks for reading, and is revoked", async () => {
    const { page, go } = await world.as("admin");
    await go("/tokens");
    await page.getByRole("button", { name: "New link" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name", { exact: true }).fill("support");
    await dialog.getByLabel("Owners").fill("acme");
    await dialog.getByRole("button", { name: "Create" }).click();
    const link = (await dialog.locator("pre", { hasText: "token=" }).textContent()) ?? "";
    await page.keyboard.press("Escape");
    const [{ expires = 0 } = {}] = (await operatorOf(world.client).tokens.list()).tokens.filter(
      ({ name }) => name === "support",
    );
    expect(expires).toBeGreaterThan(Date.now());
    const context = await page.context().browser()!.newContext();
    const theirs = await context.newPage();
    await theirs.goto(link);
    expect(theirs.url()).not.toContain("token");
    await theirs.goto(`${world.url}/tasks?owner=acme`);
    await theirs.getByRole("link", { name: "acme/paused" }).waitFor();
    expect(await theirs.getByRole("link", { name: "fails", exact: true }).count()).toBe(0);
    // The navigation has no page that it may not see.
    expect(await theirs.getByRole("link", { name: "Tokens", exact: true }).count()).toBe(0);
    await theirs.locator("main").getByText("Saved views").click();
    await theirs.getByLabel("Name of this view").fill("Acme");
    await theirs.getByRole("button", { name: "Save" }).click();
    await theirs.getByRole("link", { name: "Acme", exact: true }).waitFor();
    const row = page.locator("main li", { hasText: "support" });
    await row.getByRole("button", { name: "Revoke" }).click();
    await dialog.getByRole("button", { name: "Revoke" }).click();
    await row.waitFor({ state: "detached" });
    expect((await theirs.request.get(`${world.url}/api/v1/tasks`)).status()).toBe(401);
    await context.close();
  });

  test("a task names its set, the last apply of it, and who has changed it since", async () => {
    const { page, go } = await world.as("viewer");
    await go("/tasks/q/system/in-set");
    await page.getByText(/Defined as code by the set billing, version 1\.4, applied by deploy 42/).waitFor();
    await page.getByText(/definition was changed by ann .*The next apply of the set undoes that/).waitFor();
    await page.getByText("only when it is triggered").waitFor();
    await go("/sets");
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
    await page.waitForURL("**/tasks/*/*/*");
    await page.keyboard.press("/");
    expect(await page.evaluate("document.activeElement.type")).toBe("search");
  });

  test("a form that is half filled in asks before it is left, and stays if it is told to", async () => {
    const { page, go } = await world.as("admin");
    const stay = () => staying.add(page);
    asked.length = 0;
    await go("/tasks/q/system/fine");
    await page.getByRole("link", { name: "Edit", exact: true }).click();
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
    await go("/freezes");
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

  test("a quota and a recurring freeze that are set show at their owner, whose own token sees neither quotas nor other owners", async () => {
    const { page, go } = await world.as("admin");
    await go("/rules");
    await page.getByRole("button", { name: "Set a quota" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Most tasks", { exact: true }).fill("100");
    const scope = dialog.getByLabel("Scope", { exact: true });
    await scope.fill("acme");
    await dialog.getByRole("button", { name: "Save" }).click();
    // The field that is refused says so, and has the focus.
    await dialog.locator(".field:has(input[aria-invalid=true]:focus) .refusal").waitFor();
    await scope.fill("owner:acme");
    await dialog.getByRole("button", { name: "Save" }).click();
    await page.getByText("at most 100 tasks", { exact: true }).waitFor();
    // The focus is back where it was.
    await page.locator("button:focus", { hasText: "Set a quota" }).waitFor();
    await page.getByRole("link", { name: "owner:acme", exact: true }).click();
    await page.getByText(/^\d of 100 used$/).waitFor();
    await page.getByRole("button", { name: "Freeze", exact: true }).click();
    await dialog.getByRole("button", { name: "In recurring windows" }).click();
    await dialog.getByRole("button", { name: "Sun", exact: true }).click();
    await dialog.getByText("Concerns 1 task", { exact: false }).waitFor();
    await dialog.getByRole("button", { name: "Freeze", exact: true }).click();
    const row = page.locator("main li", { hasText: "for 2 h each, at 18:00, on Sunday (UTC)" });
    await row.getByRole("button", { name: "Lift" }).click();
    await dialog.getByRole("button", { name: "Lift" }).click();
    await row.waitFor({ state: "detached" });
    const ops = operatorOf(world.client);
    await ops.quotas.set({ scope: "owner:acme" });
    const { secret } = await ops.tokens.create({ name: "tenant", role: "admin", owners: ["acme"] });
    const bound = await world.as({ secret });
    await bound.go("/owners/acme");
    await bound.page.getByRole("heading", { name: "Newest failures", exact: true }).waitFor();
    expect(await bound.page.getByRole("heading", { name: /^(Quotas|Named tokens)$/ }).count()).toBe(0);
    expect(await bound.page.getByRole("link", { name: "Rules", exact: true }).count()).toBe(0);
    await bound.go("/owners/system");
    await bound.page.getByRole("alert").first().waitFor();
  });

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
});
