import type { Imported } from "@carillon/ops/internal";
import { compileSchedule, type Schedule, scheduleSchema } from "@carillon/sdk/schedule";
import { describe, expect, it } from "vitest";
import { agenda } from "../src/import/agenda.js";
import { crontab } from "../src/import/crontab.js";
import { kubernetes } from "../src/import/kubernetes.js";
import { pgBoss } from "../src/import/pg-boss.js";
import { readRows } from "../src/import/rows.js";
import { verify } from "../src/import/verify.js";
import { CRONJOBS, CRONTABS } from "./import-fixtures.js";
import { type Joins, offsetOf, wallTimes } from "./import-oracle.js";

const NOW = Date.parse("2026-03-01T00:00:00Z");
const DAY = 86_400_000;
/** Around clock changes in America and Europe, ends of months, and the 15th. */
const WINDOWS = [
  ["2026-03-06", "2026-03-16"],
  ["2026-03-27", "2026-04-02"],
  ["2026-10-24", "2026-11-03"],
].map((window) => window.map((day) => Date.parse(day)) as [number, number]);
const options = (more: object = {}) => ({ now: NOW, queue: "jobs", ...more });

function ourTimes({ task }: Imported, from: number, to: number): number[] {
  const schedule = compileSchedule(scheduleSchema.parse(task!.schedule) as Schedule);
  const times: number[] = [];
  for (let time = schedule.next(from - 1); time !== undefined && time < to; time = schedule.next(time))
    times.push(time);
  return times;
}

/** Compares with each minute of the clock. cronie's times on days of clock changes have tests in core. */
function check(one: Imported, expression: string, zone: string, joins: Joins): void {
  for (const [from, to] of WINDOWS) {
    const quiet = (time: number) =>
      joins === "robfig" || offsetOf(zone, time - DAY) === offsetOf(zone, time + DAY);
    const wall = wallTimes(expression, zone, joins, from, to);
    expect([expression, zone, ourTimes(one, from, to).filter(quiet)]).toEqual([
      expression,
      zone,
      wall.filter(quiet),
    ]);
  }
}

describe("crontabs", () => {
  it("of 20 machines fire at their times", () => {
    let lines = 0;
    for (const { text, user } of CRONTABS) {
      for (const one of crontab(
        text.replace(/^\uFEFF/, ""),
        options({ system: user, timezone: "Europe/Berlin" }),
      )) {
        if (!one.task) continue;
        lines += 1;
        const { cron, timezone } = one.task.schedule as { cron: string; timezone: string };
        const given = text
          .split("\n")
          [Number(one.from.slice(5)) - 1]!.replace(/^\uFEFF/, "")
          .trim()
          .split(/\s+/);
        const expression = given[0]!.startsWith("@") ? given[0]! : given.slice(0, 5).join(" ");
        if (cron.includes("H")) expect(expression).toContain("~");
        else check(one, expression, timezone, "cronie");
      }
    }
    expect(lines).toBe(45);
  });

  const first = (text: string, more: object = {}) => crontab(text, options({ timezone: "UTC", ...more }))[0]!;
  it.each([
    ["a program's name", "0 4 * * * cd /srv && nice -n 19 php /srv/a.php --x", { id: "a" }],
    ["a used name", "0 4 * * * /a/x.sh", { id: "x" }],
    ["the comment above", "# Nightly.\n0 4 * * * x", { description: "Nightly." }],
    ["no lock", "0 4 * * * x", { overlap: "allow" }],
    [
      "a lock that gives up",
      "0 4 * * * flock -xn /l x -y",
      { overlap: "skip", payload: { command: "x -y" } },
    ],
    ["a lock that waits", "0 4 * * * flock /l x", { overlap: "queue-all" }],
    [
      "a lock that waits a while",
      "0 4 * * * flock -w 5 /l -c 'x y'",
      { overlap: "queue-one", payload: { command: "x y" } },
    ],
    [
      "a lock with values of its options",
      "0 4 * * * flock -nE 0 /l php x --all",
      { overlap: "skip", payload: { command: "php x --all" } },
    ],
    [
      "a lock that waits no time",
      "0 4 * * * flock -w 0 -E 0 /l x",
      { overlap: "skip", payload: { command: "x" } },
    ],
    [
      "a lock with long options",
      "0 4 * * * flock --verbose --timeout=3 /l x",
      { overlap: "queue-one", payload: { command: "x" } },
    ],
    [
      "a lock with a text for a shell",
      "0 4 * * * flock -n /l sh -c 'cd /a && echo '\\''b'\\'''",
      { overlap: "skip", payload: { command: "cd /a && echo 'b'" } },
    ],
    [
      "redirections of a lock's text",
      "0 4 * * * flock -n /l -c 'a; b' >> /log 2>&1",
      { payload: { command: "sh -c 'a; b' >> /log 2>&1" } },
    ],
    [
      "a lock of one part of a line",
      "0 4 * * * flock -n /l a; b",
      { overlap: "allow", payload: { command: "flock -n /l a; b" } },
    ],
    [
      "an unknown option of a lock",
      "0 4 * * * flock -n --fcntl /l a",
      { overlap: "allow", payload: { command: "flock -n --fcntl /l a" } },
    ],
    ["a shared lock", "0 4 * * * flock -s /l a", { overlap: "allow", payload: { command: "flock -s /l a" } }],
    ["the flags of OpenBSD", "0 4 * * * -ns -q x", { overlap: "skip", payload: { command: "x" } }],
    ["a program in a variable", "0 4 * * * $VV script.pl", { id: "script" }],
    [
      "a random value from the start of the field",
      "~10 3 * * * x",
      { schedule: { cron: "H(0-10) 3 * * *" } },
    ],
    [
      "a random value to the end of the field",
      "30~ ~ 5~ * * x",
      { schedule: { cron: "H(30-59) H H(5-31) * *" } },
    ],
    ["a random delay", "RANDOM_DELAY=6\n0 4 * * * x", { schedule: { cron: "0 4 * * *", jitter: "6m" } }],
    ["a macro of FreeBSD", "@every_minute x", { schedule: { cron: "* * * * *" } }],
    ["a date that never comes", "0 0 31 2 * x", { schedule: { manual: true } }],
    ["input", "0 4 * * * a%b\\%%c", { payload: { command: "a", stdin: "b%\nc" } }],
    ["variables", 'A=1\nB = "two"\n0 4 * * * x', { payload: { env: { A: "1", B: "two" } } }],
    [
      "an address",
      "MAILTO=ops@example.com\n0 4 * * * x",
      { alerts: [{ email: "ops@example.com", on: ["failed", "crashed"] }] },
    ],
    ["a random minute", "5~40 4 * * * x", { schedule: { cron: "H(5-40) 4 * * *" } }],
  ])("keep %s", (_, text, task) => {
    expect(first(text).task).toMatchObject(task);
  });

  it.each([
    ["a start of the machine", "@reboot x", "REFUSED"],
    ["a line without a command", "0 4 * * *", "REFUSED"],
    ["another shell", "SHELL=/bin/bash\n0 4 * * * x", "DROPPED"],
    ["a zone that not every cron knows", "CRON_TZ=UTC\n0 4 * * * x", "CRON_TZ"],
    ["a local user's mail", "MAILTO=root\n0 4 * * * x", "DROPPED"],
    ["a lock", "0 4 * * * flock -n /l x", "FLOCK"],
  ])("name %s", (_, text, code) => {
    expect(first(text).notes.map(({ code }) => code)).toEqual([code]);
  });

  it.each([
    "# m h  dom mon dow   command",
    "#minute hour mday month wday who command",
    "# *  *  *  *  * user-name  command to be executed",
    "# |  .------------- hour (0 - 23)",
    "#0 3 * * * /srv/old.sh",
    "#@daily /srv/old.sh",
    "# MAILTO=ops@example.com",
  ])("take %s for no description", (comment) => {
    expect(first(`${comment}\n0 4 * * * x`).task!.description).toBeUndefined();
  });

  it("have a user in files of the system, and a zone that is asked for", () => {
    expect(first("0 4 * * * root x", { system: true }).task!.payload).toMatchObject({
      user: "root",
      command: "x",
    });
    expect(first("0 4 * * * x", { timezone: undefined }).notes).toMatchObject([{ code: "ZONE_ASSUMED" }]);
    expect(crontab("0 4 * * * /a/x\n0 5 * * * /b/x", options()).map(({ task }) => task!.id)).toEqual([
      "x",
      "x-2",
    ]);
  });
});

describe("CronJobs", () => {
  it("of 20 manifests fire at their times", () => {
    const all = CRONJOBS.flatMap((text) => kubernetes(text, options({ timezone: "UTC" })));
    expect(all).toHaveLength(20);
    for (const [i, one] of all.entries()) {
      expect([one.from, one.task?.payload]).toMatchObject(
        [/^prod\//, { command: ["/bin/run"] }].map((part) =>
          part instanceof RegExp ? expect.stringMatching(part) : part,
        ),
      );
      const [, expression = ""] = /schedule: ["']([^"']+)/.exec(CRONJOBS[i]!) ?? [];
      const [, zone] = /timeZone: (\S+)/.exec(CRONJOBS[i]!) ?? /TZ=(\S+)/.exec(expression) ?? [];
      if (!expression.startsWith("@every"))
        check(one, expression.replace(/^\S*TZ=\S+ /, ""), zone ?? "UTC", "robfig");
      else expect(ourTimes(one, NOW, NOW + DAY)[0]).toBe(Date.parse("2026-03-01T00:07:00Z"));
    }
  });

  const spec = (text: string) =>
    kubernetes(CRONJOBS.find((one) => one.includes(`name: ${text},`))!, options())[0]!;
  it.each([
    [
      "nightly",
      {
        overlap: "queue-one",
        catchUpLimits: { window: "100s" },
        retry: { attempts: 3 },
        timeLimit: "600s",
        enabled: false,
      },
    ],
    ["report", { timeLimit: "1800s", retention: { successes: 3 } }],
    ["poll", { overlap: "cancel-running", retention: { successes: 2, failures: 0 } }],
    ["suspended", { state: "paused" }],
    ["hello", { overlap: "allow", retry: { attempts: 7, delay: "10s", max: "6m" }, type: "container" }],
  ])("keep the policies of %s", (name, task) => {
    expect(spec(name).task).toMatchObject(task);
  });

  it("skip midnight where the clock does, also by a name", () => {
    const manifest = (schedule: string) =>
      JSON.stringify({ kind: "CronJob", spec: { schedule, timeZone: "Africa/Cairo" } });
    for (const schedule of ["@daily", "0 0 * * *"])
      check(kubernetes(manifest(schedule), options())[0]!, "0 0 * * *", "Africa/Cairo", "robfig");
    const [one] = kubernetes(manifest("@daily"), options());
    expect(ourTimes(one!, Date.parse("2027-04-29T12:00Z"), Date.parse("2027-05-01T00:00Z"))).toEqual([
      Date.parse("2027-04-30T21:00Z"),
    ]);
    expect(kubernetes(manifest("@every 1.5h"), options())[0]!.task!.schedule).toMatchObject({
      every: "1h30m",
    });
  });

  it("name what has no counterpart", () => {
    expect(spec("parallel").notes.map(({ code }) => code)).toEqual([
      ...["DROPPED", "DROPPED", "CONTAINER", "ZONE_ASSUMED"],
    ]);
    expect(spec("nightly").notes.map(({ code }) => code)).toEqual(["CONTAINER", "TIME_LIMIT"]);
    expect(() => kubernetes("a: [", options())).toThrow("not YAML");
  });
});

describe("rows", () => {
  it.each([
    ["JSON", '[{"RETRY_LIMIT":"a","x":{"$date":"2026-01-01T00:00:00Z"}}]'],
    ["JSON lines", '{"RETRY_LIMIT":"a","x":{"$date":"2026-01-01T00:00:00Z"}}\n\n'],
    ["CSV", 'RETRY_LIMIT,x\n"a",2026-01-01T00:00:00Z\n'],
  ])("are read from %s", (_, text) => {
    expect(readRows(text)).toEqual([{ retryLimit: "a", x: "2026-01-01T00:00:00Z" }]);
  });

  it("of Agenda become intervals with the phase of the next run, cron, or single times", () => {
    const rows = [
      {
        name: "a b",
        repeatInterval: "3 minutes",
        nextRunAt: { $date: "2026-03-01T00:01:30Z" },
        data: { x: 1 },
      },
      {
        name: "cron",
        repeatInterval: "0 9 * * 1-5",
        repeatTimezone: "Europe/Berlin",
        disabled: true,
        skipDays: [0, 6],
        nextRunAt: "2026-03-02T08:00:00Z",
      },
      { name: "once", repeatInterval: null, nextRunAt: "2026-04-01T00:00:00Z" },
      { name: "past", lastRunAt: "2026-02-01T00:00:00Z", nextRunAt: null },
      { name: "due", nextRunAt: "2026-02-01T00:00:00Z", data: '{"order":17}' },
      { name: "at", repeatAt: "3:30pm" },
    ];
    const found = agenda(JSON.stringify(rows), options());
    expect(found).toMatchObject([
      {
        task: {
          id: "a-b",
          type: "a-b",
          schedule: { every: "3m", origin: "1970-01-01T00:01:30.000Z" },
          payload: { x: 1 },
        },
      },
      {
        task: {
          schedule: { cron: "0 9 * * 1-5", except: [{ calendar: "Sun,Sat", timezone: "Europe/Berlin" }] },
          state: "paused",
        },
        notes: [{ code: "SKIP_DAYS" }, { code: "CONCURRENCY" }],
      },
      { task: { schedule: { at: "2026-04-01T00:00:00.000Z" } } },
      {
        task: { id: "due", schedule: { manual: true }, payload: { order: 17 } },
        notes: [{ code: "DUE" }, { code: "CONCURRENCY" }],
      },
      { notes: [{ code: "REFUSED" }] },
    ]);
    expect(verify(found[0]!, NOW)).toMatchObject({ differences: [] });
    expect(verify(found[1]!, NOW)).toMatchObject({ differences: [] });
  });

  it.each([
    ["an end", { repeatInterval: "0 3 * * *", endDate: "2026-03-09T05:00:00Z" }, undefined],
    ["a start", { repeatInterval: "0 3 * * *", startDate: "2026-03-09T03:00:00Z" }, undefined],
    ["skipped days", { repeatInterval: "*/5 * * * *", skipDays: "[0,6]" }, undefined],
    [
      "an interval over a skipped day of 23 hours",
      { repeatInterval: "1 hour", skipDays: [0], nextRunAt: "2026-03-08T00:00:00Z" },
      undefined,
    ],
    [
      "a skipped day of some, west of UTC",
      { repeatInterval: "0 9 * * 1-6", skipDays: [1], nextRunAt: "2026-03-03T14:00:00Z" },
      undefined,
    ],
    [
      "an interval that begins in days",
      { repeatInterval: "1 day", nextRunAt: "2026-03-05T07:00:00Z" },
      undefined,
    ],
    [
      "an interval with skipped days",
      { repeatInterval: "1 day", skipDays: [1], nextRunAt: "2026-03-01T07:00:00Z" },
      undefined,
    ],
    [
      "a time that its rule does not have",
      { repeatInterval: "0 3 * * *", nextRunAt: "2026-03-05T07:00:00Z" },
      /its next time there is 2026-03-05T07:00:00Z/,
    ],
  ])("of Agenda with %s fire at its times, or say why not", (_, row, reason) => {
    const [one] = agenda(
      JSON.stringify([{ name: "a", nextRunAt: "2026-03-01T00:00:00Z", ...row }]),
      options({ timezone: "America/New_York" }),
    );
    const verdict = verify(one!, NOW);
    expect(verdict?.reason).toEqual(reason ? expect.stringMatching(reason) : undefined);
    expect(verdict!.differences.length > 0).toBe(reason !== undefined);
  });

  it("of Agenda are read as its Redis backend stores them", () => {
    const row = {
      id: "1",
      name: "a",
      priority: "0",
      nextRunAt: "2026-04-01T00:00:00.000Z",
      type: "normal",
      lockedAtMs: "null",
    };
    const more = {
      repeatInterval: "null",
      repeatTimezone: "null",
      data: '{"x":1}',
      repeatAt: "null",
      disabled: "true",
      fork: "false",
    };
    expect(agenda(JSON.stringify({ ...row, ...more, skipDays: "null" }), options())).toMatchObject([
      { task: { schedule: { at: row.nextRunAt }, payload: { x: 1 }, state: "paused" } },
    ]);
  });

  it("of pg-boss become tasks with its default of two retries", () => {
    const rows =
      'name,key,cron,timezone,data,options\nmail,,"*/5 * * * *",UTC,"{""a"":1}",\nmail,eu,0 9 * * *,Europe/Berlin,,"{""retryLimit"":0,""priority"":3}"\n';
    expect(pgBoss(rows, options())).toMatchObject([
      {
        task: {
          id: "mail",
          queue: "mail",
          payload: { a: 1 },
          retry: { attempts: 3, delay: "1ms" },
          timeLimit: "900s",
          catchUp: "skip",
        },
        notes: [{ code: "QUEUE_OPTIONS" }],
      },
      {
        task: { id: "mail-eu", schedule: { timezone: "Europe/Berlin" } },
        notes: [{ code: "DROPPED" }, { code: "QUEUE_OPTIONS" }],
      },
    ]);
  });

  it("of pg-boss keep the options of their queue, unless they have their own", () => {
    const queue = {
      policy: "singleton",
      retry_limit: "9",
      retry_delay: 30,
      retry_backoff: "t",
      retry_delay_max: 600,
      expire_seconds: 120,
    };
    const row = {
      name: "single",
      cron: "0 3 * * *",
      timezone: "UTC",
      options: { retryLimit: 4 },
      ...queue,
      dead_letter: "dead",
    };
    const [one] = pgBoss(JSON.stringify([row]), options());
    expect(one).toMatchObject({
      task: {
        ...{ overlap: "queue-all", timeLimit: "120s" },
        retry: { attempts: 5, backoff: "exponential", delay: "30s", max: "600s" },
      },
      notes: [{ code: "DROPPED", text: expect.stringContaining("deadLetter") }, { code: "QUEUE_POLICY" }],
    });
  });

  it("of pg-boss with seconds are compared with one job a minute", () => {
    const times = (cron: string) => {
      const [one] = pgBoss(
        JSON.stringify([{ name: "a", cron, timezone: "UTC", policy: "standard" }]),
        options(),
      );
      return verify(one!, NOW)!;
    };
    expect(times("*/10 * * * * *")).toMatchObject({
      differences: [{ time: NOW + 10_000, only: "ours" }, { only: "ours" }, { only: "ours" }],
      reason: "pg-boss fires once a minute at most",
    });
    expect(times("30 * * * * *")).toMatchObject({ differences: [] });
  });
});

describe("verify", () => {
  const compare = (
    library: "cron-parser 4" | "cron-parser 5",
    cron: string,
    timezone = "UTC",
    ours: object = {},
  ) =>
    verify(
      {
        from: "a",
        notes: [],
        task: {
          id: "a",
          type: "t",
          queue: "q",
          schedule: { cron, timezone, dialect: "cron-parser", ...ours } as never,
        },
        theirs: { library, cron, timezone },
      },
      NOW,
    )!;

  it("finds no difference in the dialect of the library", () => {
    expect(compare("cron-parser 5", "0 9 */2 * 1", "Europe/Berlin")).toMatchObject({
      differences: [],
      sampled: true,
    });
    expect(compare("cron-parser 4", "30 2 1 * *", "Europe/Berlin")).toMatchObject({
      ...{ differences: [], sampled: false, compared: 24 },
    });
    expect(compare("cron-parser 5", "30 2 * * 1", "Europe/Berlin")).toMatchObject({
      ...{ differences: [], sampled: false, compared: 105 },
    });
    expect(compare("cron-parser 5", "0 0 1 1 *")).toMatchObject({
      differences: [],
      sampled: false,
      compared: 2,
    });
  });

  it("names the days that cron-parser 4 joins otherwise", () => {
    const { differences, reason } = compare("cron-parser 4", "0 9 1 * 1#2");
    expect(differences[0]).toEqual({ time: Date.parse("2026-03-01T09:00:00Z"), only: "ours" });
    expect(reason).toContain("cron-parser 4 wants both");
  });

  it("finds days and clock changes of schedules with too many times to compare each", () => {
    expect(compare("cron-parser 5", "*/5 * 1-7 * 3", "UTC", { cron: "*/5 * 1-7 * 2" })).toMatchObject({
      sampled: true,
      differences: [{}, {}, {}],
    });
    const change = compare("cron-parser 5", "*/5 1-3 * * *", "Europe/Berlin", {
      dialect: undefined,
      dst: { gap: "run-after" },
    });
    expect(change).toMatchObject({ sampled: true, reason: "clocks change in Europe/Berlin then" });
  });

  it("knows that BullMQ runs an interval once more after its end", () => {
    const end = NOW + 150_000;
    const task = { id: "a", type: "t", queue: "q", schedule: { every: 60_000, end } };
    const found = verify(
      {
        from: "a",
        notes: [],
        task,
        theirs: { library: "interval", every: 60_000, next: NOW + 60_000, end, overruns: true },
      },
      NOW,
    );
    expect(found).toMatchObject({ differences: [{ time: NOW + 180_000, only: "theirs" }], compared: 3 });
    // Also if it ends after many times.
    const far = NOW + 300 * DAY + 30_000;
    const late = { ...task, schedule: { every: 60_000, end: far } };
    const next = NOW + 60_000;
    const theirs = { library: "interval", every: 60_000, next, end: far, overruns: true } as const;
    expect(verify({ from: "a", notes: [], task: late, theirs }, NOW)).toMatchObject({
      differences: [{ time: far + 30_000, only: "theirs" }],
    });
  });
});
