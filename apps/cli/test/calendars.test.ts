import { describe, expect, it } from "vitest";
import { harness } from "./harness.js";
import { carillon } from "./helpers.js";

const { cli, json, refusal } = harness("calendars");
const put = (input: string) => json(["calendars", "put", "holidays"], input);

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
  it.each([
    ["a bad entry", "x", "2026-12-25\nXmas", "INVALID_SCHEDULE"],
    ["half a list", "x", '["2026-12-25"', "INVALID_SCHEDULE"],
    ["an empty file", "x", "\n", "INVALID_OPTION"],
  ])("are reported for %s with 2, and nothing is stored", async (_, name, input, code) => {
    expect(await refusal(["calendars", "put", name], input)).toMatchObject({ exit: 2, code });
    expect(await json(["calendars", "list"])).toEqual({ calendars: [] });
  });
});

it("--help explains the command", async () => {
  const { code, stdout } = await carillon(["calendars", "--help"]);
  expect(code).toBe(0);
  for (const verb of ["put", "list", "show", "rm"]) expect(stdout).toMatch(new RegExp(`^ {2}${verb} `, "m"));
  const { stdout: help } = await carillon(["calendars", "put", "--help"]);
  expect(help).toContain("# comments");
});
