import { describe, expect, it } from "vitest";
import { harness } from "./harness.js";
import { carillon } from "./helpers.js";

const { cli, json, refusal } = harness("calendars");
const put = (input: string) => json(["calendars", "put", "holidays"], input);

/** A task that would run tomorrow and the day after, at noon UTC, without the holidays. */
const task = JSON.stringify({
  id: "a",
  type: "noop",
  queue: "bar",
  schedule: { cron: "0 12 * * *", except: [{ named: "holidays" }] },
});
const day = (from: string, days: number) =>
  new Date(Date.parse(from.slice(0, 10)) + days * 86_400_000).toISOString().slice(0, 10);

describe("a calendar", () => {
  it("is put, changed, listed, shown and deleted", async () => {
    const created = await put("# office\n2026-12-25\n*-05-01\n");
    expect(created).toMatchObject({ name: "holidays", outcome: "created", replanned: 0 });
    expect(await put('["2026-12-25","*-05-01"]')).toMatchObject({
      outcome: "unchanged",
      revision: created.revision,
    });
    expect(await json(["calendars", "show", "holidays"])).toMatchObject({
      name: "holidays",
      entries: ["2026-12-25", "*-05-01"],
      revision: created.revision,
      updated: expect.any(Number),
    });
    const updated = await put("2026-12-25\n");
    expect(updated.outcome).toBe("updated");
    expect(updated.revision).toBeGreaterThan(created.revision);
    expect(await json(["calendars", "list"])).toMatchObject({
      calendars: [{ name: "holidays", entries: 1, revision: updated.revision, tasks: 0 }],
    });
    expect(await json(["calendars", "rm", "holidays"])).toEqual({ name: "holidays", deleted: true });
    expect(await json(["calendars", "list"])).toEqual({ calendars: [] });
  });

  it("replans the tasks that name it, and cannot be deleted while there are some", async () => {
    await put("[]");
    await json(["put"], task);
    const first = new Date((await json(["show", "a"])).nextExecution).toISOString();
    expect(await put(day(first, 0))).toMatchObject({ outcome: "updated", replanned: 1 });
    const second = new Date((await json(["show", "a"])).nextExecution).toISOString();
    expect(second).toBe(`${day(first, 1)}T12:00:00.000Z`);
    expect(await json(["calendars", "list"])).toMatchObject({ calendars: [{ tasks: 1 }] });

    const inUse = await refusal(["calendars", "rm", "holidays"]);
    expect(inUse).toMatchObject({ exit: 5, code: "CALENDAR_IN_USE" });
    await json(["rm", "a"]);
    await json(["calendars", "rm", "holidays"]);
  });

  it("is shown to people as text that put reads again", async () => {
    const created = await cli(
      ["calendars", "put", "holidays", "-", "--by", "eve"],
      "2026-12-25\n*-05-01 Europe/Berlin\n",
    );
    expect(created.stdout).toMatch(/^created holidays: 2 entries, revision \d+\n$/);
    const shown = await cli(["calendars", "show", "holidays"]);
    expect(shown.stdout).toMatch(
      /^# holidays: revision \d+, changed .* by eve\n2026-12-25\n\*-05-01 Europe\/Berlin\n$/,
    );
    const again = await cli(["calendars", "put", "holidays"], shown.stdout);
    expect(again.stdout).toMatch(/^unchanged holidays: 2 entries/);
    await cli(["calendars", "put", "other"], "2026-12-25");
    expect((await cli(["calendars", "show", "other"])).stdout).toMatch(/^# .*\) by \S+@\S+\n2026-12-25\n$/);
    await cli(["calendars", "rm", "other"]);
    const { stdout } = await cli(["calendars", "list"]);
    expect(stdout).toMatch(/^NAME +ENTRIES +TASKS +REVISION +UPDATED\nholidays +2 +0 +\d+ +\S+ \(.*\)\n$/);
    expect((await cli(["calendars", "rm", "holidays"])).stdout).toBe("deleted holidays\n");
    expect((await cli(["calendars", "list"])).stdout).toBe("No calendars.\n");
  });
});

describe("errors", () => {
  it.each([["show"], ["rm"]])("%s of a missing calendar ends with 3", async (verb) => {
    const found = await refusal(["calendars", verb, "nope"]);
    expect(found).toMatchObject({ exit: 3, code: "CALENDAR_NOT_FOUND" });
  });

  it.each([
    ["a bad name", "a:b", "2026-12-25", "INVALID_NAME"],
    ["a bad entry", "x", "2026-12-25\nXmas", "INVALID_SCHEDULE"],
    ["a date that does not exist", "x", "2026-02-30", "INVALID_SCHEDULE"],
    ["entries that are no text", "x", "[1]", "INVALID_OPTION"],
    ["half a list", "x", '["2026-12-25"', "INVALID_SCHEDULE"],
    ["an empty file", "x", "\n", "INVALID_OPTION"],
  ])("are reported for %s with 2, and nothing is stored", async (_, name, input, code) => {
    expect(await refusal(["calendars", "put", name], input)).toMatchObject({ exit: 2, code });
    expect(await json(["calendars", "list"])).toEqual({ calendars: [] });
  });

  it.each([
    ["no verb", ["calendars"]],
    ["an unknown verb", ["calendars", "lst"]],
    ["no name", ["calendars", "put"]],
    ["too many names", ["calendars", "rm", "a", "b"]],
    ["a file that is not there", ["calendars", "put", "a", "/no/such/file"]],
  ])("are reported for %s with 2", async (_, args) => {
    expect(await cli(args)).toMatchObject({ code: 2, stdout: "" });
  });

  it("are reported if one owner changes what belongs to all", async () => {
    const found = await refusal(["calendars", "put", "x", "--owner", "acme"], "2026-12-25");
    expect(found).toMatchObject({ exit: 2, code: "FORBIDDEN" });
  });
});

it("--help explains the command", async () => {
  const { code, stdout } = await carillon(["calendars", "--help"]);
  expect(code).toBe(0);
  for (const verb of ["put", "list", "show", "rm"]) expect(stdout).toMatch(new RegExp(`^ {2}${verb} `, "m"));
  const { stdout: help } = await carillon(["calendars", "put", "--help"]);
  expect(help).toContain("# comments");
});
