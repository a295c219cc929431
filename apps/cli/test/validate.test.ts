import { operatorOf } from "@carillon/ops";
import { describe, expect, it } from "vitest";
import { harness, task } from "./harness.js";

const bench = harness("validate");
const { cli, json, refusal } = bench;
const text = (...args: Parameters<typeof task>) => JSON.stringify(task(...args));
const FROM = "2026-01-01T00:00:00Z";

describe("validate", () => {
  it("describes a task and its times, and stores nothing", async () => {
    const schedule = { cron: "0 3 * * *", timezone: "Europe/Berlin" };
    const given = { ...schedule, cron: " 0  3 * * *" };
    const found = await json(["validate", "--from", FROM, "-n", "2"], text("a", { schedule: given }));
    expect(found).toEqual({
      schedule: { cron: "0 3 * * *", timezone: "Europe/Berlin" },
      canonical: "0 3 * * *",
      humanized: "at 03:00, every day (Europe/Berlin)",
      next: ["2026-01-01T02:00:00Z", "2026-01-02T02:00:00Z"].map((time) => ({
        nominal: Date.parse(time),
        due: Date.parse(time),
      })),
      exhausted: false,
      warnings: [
        { code: "NO_NODE", message: expect.any(String), remedy: expect.any(String) },
        { code: "NO_WORKER", message: expect.any(String), remedy: expect.any(String) },
      ],
      outcome: "created",
      preview: { after: expect.objectContaining({ schedule }), times: expect.anything() },
    });
    const { stdout } = await cli(["validate", "--from", FROM, "-n", "1"], text("a", { schedule }));
    expect(stdout).toMatch(
      /^task {6}system\/a in queue bar\nschedule {2}0 3 \* \* \*\nmeans {5}at 03:00, every day/,
    );
    expect(stdout).toContain("\n2026-01-01T02:00:00Z  ");
    expect((await operatorOf(bench.client).names.list({ of: "queue" })).names).toEqual([]);
  });

  it("names the task as a put for an owner would", async () => {
    const { stdout } = await cli(["--owner", "acme", "validate"], text("a"));
    expect(stdout).toMatch(/^task {6}acme\/a in queue bar\n/);
  });

  it("describes the value of H for the task", async () => {
    const found = await json(
      ["validate", "--from", FROM, "-n", "1"],
      text("a", { schedule: { cron: "H 3 * * *" } }),
    );
    const [{ nominal }] = found.next;
    const [hour, minute] = new Date(nominal).toISOString().slice(11, 16).split(":");
    expect(found.canonical).toBe(`${Number(minute)} 3 * * *`);
    expect(found.humanized).toBe(`at ${hour}:${minute}, every day (UTC)`);
    await bench.client.put(task("a", { schedule: { cron: "H 3 * * *" } }));
    expect((await bench.client.get({ id: "a" }))?.humanized).toBe(found.humanized);
    const { stdout } = await cli(["next", "H 3 * * *", "--id", "a", "--from", FROM, "-n", "1"]);
    expect(stdout).toContain(`\nmeans  at ${hour}:${minute}`);
  });

  it("spreads an id over its owners, as next does without Redis", async () => {
    const body = text("a", { schedule: { cron: "H H * * *" } });
    const asked = ["--from", FROM, "-n", "1"];
    const [system, acme] = [
      await json(["validate", ...asked], body),
      await json(["--owner", "acme", "validate", ...asked], body),
    ];
    expect(acme.canonical).not.toBe(system.canonical);
    const next = ["next", "H H * * *", ...asked, "--json"];
    expect(await json([...next, "--id", "a"])).toMatchObject({ canonical: system.canonical });
    expect(await json(["--owner", "acme", ...next, "--id", "a"])).toMatchObject({
      canonical: acme.canonical,
    });
    expect(await json([...next, "--id", "acme/a"])).toMatchObject({ canonical: acme.canonical });
    const line = JSON.stringify({ expr: "H H * * *", id: "a", owner: "acme", from: FROM, count: 1 });
    expect(JSON.parse((await cli(["next", "--batch"], line)).stdout)).toMatchObject({
      canonical: acme.canonical,
    });
  });

  it("takes many tasks, and shows jitter, warnings and ends", async () => {
    const tasks = [
      task("a", { schedule: { every: "1h", jitter: "10m" } }),
      task("b", { schedule: { at: FROM } }),
      task("c", { schedule: { every: "1h", maxRuns: 1 } }),
    ];
    const { results: found } = await json(["validate"], JSON.stringify(tasks));
    expect(found).toMatchObject([{ exhausted: false }, { exhausted: true, next: [] }, { exhausted: true }]);
    const { stdout } = await cli(["validate"], JSON.stringify(tasks));
    expect(stdout).toMatch(/ DUE\n.* \(\+.*\)\n/);
    expect(stdout).toContain("It never fires again.\n");
    expect(stdout).toContain("Nothing follows.\n");
  });

  it("knows shared calendars and the types that may be put", async () => {
    const holidays = text("a", { schedule: { cron: "0 9 * * *", except: [{ named: "holidays" }] } });
    expect(await refusal(["validate"], holidays)).toMatchObject({ exit: 2, code: "INVALID_SCHEDULE" });
    await operatorOf(bench.client).calendars.put({ name: "holidays", entries: ["2026-12-25"] });
    const found = await json(["validate", "--from", "2026-12-24T12:00:00Z", "-n", "1"], holidays);
    expect(found.next[0].nominal).toBe(Date.parse("2026-12-26T09:00:00Z"));
    await operatorOf(bench.client).types.allow({ types: ["report"] });
    expect(await refusal(["validate"], holidays)).toMatchObject({ exit: 2, code: "UNKNOWN_TASK_TYPE" });
  });

  it.each<[string, string, string, string | undefined]>([
    ["an unknown field", `{"shedule":1,${text("a").slice(1)}`, "INVALID_TASK", "shedule"],
    [
      "a task of many",
      `[${text("a")},${text("b", { timeLimit: "0%" })}]`,
      "INVALID_DURATION",
      "[1].timeLimit",
    ],
    ["half a document", '{"id":', "INVALID_TASK", undefined],
    ["nothing", "", "INVALID_TASK", undefined],
  ])("refuses %s as put does, with 2", async (_, input, code, field) => {
    const [asked, put] = await Promise.all([refusal(["validate"], input), refusal(["put"], input)]);
    expect(asked).toMatchObject({ exit: 2, code, ...(field === undefined ? {} : { field }) });
    if (code !== "INVALID_TASK") expect(asked).toEqual(put);
  });
});

describe("types", () => {
  it("are unrestricted, then restricted, then unrestricted again", async () => {
    expect(await json(["types"])).toEqual({ types: [] });
    expect((await cli(["types"])).stdout).toBe("any type\n");
    expect(await json(["types", "allow", "report", "http.request", "report"])).toEqual({
      types: ["http.request", "report"],
    });
    expect((await cli(["types"])).stdout).toBe("http.request\nreport\n");
    expect(await refusal(["put"], text("a"))).toMatchObject({
      exit: 2,
      code: "UNKNOWN_TASK_TYPE",
      field: "type",
    });
    expect(await json(["put"], text("a", { type: "report" }))).toMatchObject({ outcome: "created" });
    expect((await cli(["types", "any"])).stdout).toBe("any type may be put\n");
    expect(await json(["put"], text("b"))).toMatchObject({ outcome: "created" });
  });
});
