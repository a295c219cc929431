import { operatorOf } from "@carillon/ops";
import { type Imported, importBullmq } from "@carillon/ops/internal";
import { Client } from "@carillon/sdk";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sharedRedis } from "../../../test/helpers.js";
import { SOURCES } from "../src/import/load.js";
import { CRONJOBS, CRONTABS } from "./import-fixtures.js";

const NOW = Date.parse("2026-03-01T00:00:00Z");
const server = sharedRedis();
let client: Client;
beforeAll(() => {
  client = new Client({ connection: server.url, namespace: "import-plan" });
});
afterAll(() => client.close());

type System = keyof typeof SOURCES;
const read = (system: System, text: string, more: object = {}) =>
  SOURCES[system](text, { now: NOW, queue: "jobs", ...more });

const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });
const among = (...texts: unknown[]) => maybe(fc.constantFrom(...texts));
const names = fc.oneof(
  fc.constantFrom("a", "-VV", "month end", "ä", "x:y", "..", "a/b", "__proto__", "n".repeat(300)),
  fc.string({ minLength: 1, maxLength: 20 }).filter((name) => name.trim() !== ""),
);
const crons = fc.constantFrom(
  ...[
    "0 3 * * *",
    "*/10 * * * * *",
    "0 0 31 2 *",
    "0 0 30 2 1",
    "61 * * * *",
    "nonsense",
    "* *",
    "@daily",
    "@every 5m",
  ],
  ...["0 9 ? * 2-6", "0 0 L * *", "0 0 1 1 * 2030", "H 3 * * *", "5,5 * * * *", "0 0 * * 8", "0 */24 * * *"],
);
const zones = among("UTC", "Europe/Berlin", "Mars/Olympus", "EST", "GMT+02:00");
const times = among("2026-04-01T00:00:00Z", "2026-02-01T00:00:00Z", "1999-01-01", 1_777_777_777_777, "soon");
const data = maybe(fc.oneof(fc.jsonValue({ maxDepth: 2 }), fc.constant("not json")));

const ROWS: Record<"agenda" | "pg-boss", fc.Arbitrary<object>> = {
  agenda: fc.record({
    name: names,
    repeatInterval: maybe(
      fc.oneof(
        crons,
        fc.constantFrom("3 minutes", "5000", 0, -5, 1, "0.5 seconds", "900 years", "one month"),
      ),
    ),
    ...{ repeatTimezone: zones, nextRunAt: times, startDate: times, endDate: times, data },
    skipDays: among([0, 6], "[1]", [0, 1, 2, 3, 4, 5, 6], [9], "x", 3),
    ...{
      disabled: among(true, "t", false),
      priority: among(10, "-10"),
      repeatAt: among("3:30pm"),
      type: among("single", "odd"),
    },
  }),
  "pg-boss": fc.record({
    ...{ name: names, key: maybe(names), cron: crons, timezone: zones, data, kind: among("cron", "rrule") },
    options: among(
      { retryLimit: 0 },
      { retryLimit: 500, retryBackoff: true, retryDelayMax: 1 },
      { expireInSeconds: 1e9 },
      { odd: 1 },
      "{}",
      "x",
    ),
    ...{
      policy: among("standard", "singleton", "stately", "odd"),
      retry_limit: among(0, 3, "x"),
      expire_seconds: among(60, 1e12, 0),
    },
  }),
};
const lines = fc
  .tuple(
    fc.oneof(crons, fc.constantFrom("~ 4 * * *", "50~10 * * * *", "5~ 3 * * *", "@reboot")),
    names,
    among("flock -n /l ", "-q ", "flock -E 0 "),
  )
  .map(([when, command, before = ""]) => `${when} ${before}${command.replace(/[\r\n]/g, "")}`);
const cronJobs = fc.record({
  kind: fc.constant("CronJob"),
  metadata: fc.record({ name: names, creationTimestamp: among("2026-01-01T00:07:00Z", "x") }),
  spec: fc.record({
    schedule: fc.oneof(crons, fc.constantFrom("@every 1.5h", "@every 0s", "@every x", "TZ=UTC 0 3 * * *")),
    ...{
      timeZone: zones,
      concurrencyPolicy: among("Forbid", "Odd"),
      startingDeadlineSeconds: among(0, 10, 1e9),
      suspend: among(true, "x"),
    },
    successfulJobsHistoryLimit: among(0, 3, 1e6),
    jobTemplate: fc.record({
      spec: fc.record({ backoffLimit: among(0, 500), activeDeadlineSeconds: among(0, 60, 1e9) }),
    }),
  }),
});
const schedulers = fc.record({
  ...{
    queue: names,
    id: names,
    kind: fc.constantFrom("scheduler" as const, "repeatable" as const),
    version: among("4.18.3", "6.7.0"),
  },
  ...{
    score: fc.constant(NOW + 60_000),
    next: fc.constant(NOW + 60_000),
    jobId: fc.constant("x"),
    alive: fc.boolean(),
  },
  ...{
    raw: fc.constantFrom({}, { name: "a" }, { odd: "1" }),
    paused: fc.boolean(),
    waiting: fc.nat({ max: 3 }),
  },
  definition: fc.record({
    ...{
      name: names,
      pattern: maybe(crons),
      every: among(1, 60_000, 0, -1, 1e15),
      tz: zones,
      left: among(0, 3, 1e9),
      data,
    },
    ...{ startDate: among(NOW - 1, NOW + 1e6, Number.NaN), endDate: among(NOW - 1, NOW + 1e9) },
    opts: fc.record({
      ...{
        attempts: among(0, 3, 1_000),
        priority: among(-1, 1, 1e7),
        removeOnFail: among(true, 1e6, { age: 1e9 }),
        odd: among(true),
      },
      backoff: among(0, 1_000, { type: "exponential", delay: 1e9 }, { type: "odd" }),
    }),
  }),
});

/** Each is a task or is refused by name, and a plan accepts all tasks. */
async function accepted(all: readonly Imported[], count?: number): Promise<void> {
  if (count !== undefined) expect(all).toHaveLength(count);
  for (const { task, notes } of all) {
    const refusals = notes.filter(({ code }) => code === "REFUSED" || code === "FINISHED");
    expect([notes, refusals.length > 0]).toEqual([notes, task === undefined]);
  }
  const tasks = all.flatMap(({ task }) => (task ? [task] : []));
  expect(tasks.length).toBeGreaterThan(0);
  const { items, refused } = await operatorOf(client).sets.plan({ set: "imported", tasks });
  expect([items.length, refused]).toEqual([tasks.length, []]);
}
const sample = <T>(arbitrary: fc.Arbitrary<T>) => fc.sample(arbitrary, { numRuns: 300, seed: 11 });

describe("a plan accepts what is imported from", () => {
  it("crontabs", async () => {
    for (const { text, user } of CRONTABS) await accepted(read("crontab", text, { system: user }));
    await accepted(read("crontab", sample(lines).join("\n")), 300);
  });

  it("CronJobs", async () => {
    await accepted(CRONJOBS.flatMap((text, i) => read("kubernetes", text, { queue: `q${i}` })));
    await accepted(read("kubernetes", JSON.stringify({ kind: "List", items: sample(cronJobs) })), 300);
  });

  it.each(["agenda", "pg-boss"] as const)("rows of %s", async (system) => {
    const rows = sample(ROWS[system]);
    const history = rows.filter(
      (row) =>
        system === "agenda" &&
        ["repeatInterval", "repeatAt", "nextRunAt"].every((name) =>
          [undefined, "soon"].includes((row as never)[name]),
        ),
    );
    await accepted(read(system, JSON.stringify(rows)), rows.length - history.length);
  });

  it("schedulers of BullMQ", async () => {
    await accepted(importBullmq(sample(schedulers) as never, { now: NOW }), 300);
  });
});

describe("what an importer does not know is refused by name", () => {
  const AGENDA = { name: "a", repeatInterval: "1 hour", nextRunAt: "2026-03-02" };
  const BOSS = { name: "a", cron: "0 3 * * *", timezone: "UTC", policy: "standard" };
  const JOB = { kind: "CronJob", metadata: { name: "a" }, spec: { schedule: "@daily" } };
  const inJob = (spec: object) => ({ ...JOB, spec: { ...JOB.spec, jobTemplate: { spec } } });
  it.each<[System, object, string]>([
    ["agenda", { ...AGENDA, novel: 1 }, "novel"],
    ["agenda", { ...AGENDA, type: "odd" }, "type"],
    ["agenda", { ...AGENDA, skipDays: [9] }, "skipDays"],
    ["pg-boss", { ...BOSS, novel_field: 1 }, "novelField"],
    ["pg-boss", { ...BOSS, options: { novel: 1 } }, "options.novel"],
    ["pg-boss", { ...BOSS, policy: "odd" }, "policy"],
    ["pg-boss", { ...BOSS, kind: "rrule", cron: "FREQ=DAILY" }, "kind"],
    ["kubernetes", { ...JOB, novel: 1 }, "novel"],
    ["kubernetes", { ...JOB, spec: { ...JOB.spec, concurrencyPolicy: "Odd" } }, "spec.concurrencyPolicy"],
    ["kubernetes", inJob({ novel: 1 }), "spec.jobTemplate.spec.novel"],
    ["kubernetes", inJob({ suspend: true }), "suspend"],
    ["kubernetes", inJob({ template: { spec: { containers: [{ novel: 1 }] } } }), "containers.novel"],
  ])("%s: %o", (system, row, name) => {
    const [one] = read(system, JSON.stringify(system === "kubernetes" ? row : [row]));
    expect(one).toMatchObject({ notes: [{ code: "REFUSED", text: expect.stringContaining(name) }] });
    expect(one!.task).toBeUndefined();
  });

  it.each([
    ["its hash", { raw: { novel: "1" } }, "novel"],
    ["options of its job", { definition: { opts: { novel: 1 } } }, "novel"],
    ["its recurrence", { definition: { repeat: { nthDayOfWeek: 2 } } }, "nthDayOfWeek"],
  ])("bullmq: %s", (_, { definition, ...more }: { definition?: object; raw?: object }, name) => {
    const base = {
      queue: "q",
      id: "a",
      kind: "scheduler",
      next: NOW,
      score: NOW,
      jobId: "j",
      alive: true,
      raw: {},
      ...more,
    };
    const given = {
      ...base,
      definition: { name: "a", pattern: "0 3 * * *", tz: "UTC", data: {}, opts: {}, ...definition },
    };
    expect(importBullmq([given as never], { now: NOW })).toMatchObject([
      { notes: [{ code: "REFUSED", text: expect.stringContaining(name) }] },
    ]);
  });
});
