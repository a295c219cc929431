import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TaskInput } from "@carillon/sdk";
import { Queue } from "bullmq";
import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import { toCrontab } from "../src/export/crontab.js";
import { crontab } from "../src/import/crontab.js";
import { harness, task } from "./harness.js";

const bench = harness("export");
const { cli, json } = bench;
const folder = mkdtempSync(join(tmpdir(), "carillon-export-"));
afterAll(() => rmSync(folder, { recursive: true }));

const HOUR = 3_600_000;
const soon = Math.ceil(Date.now() / HOUR) * HOUR;

/** Everything that survives the way from BullMQ to Carillon and back. */
const SCHEDULERS: readonly [id: string, repeat: object, opts: object][] = [
  [
    "weekdays",
    { pattern: "0 9 * * 1-5", tz: "Europe/Berlin" },
    { attempts: 3, backoff: { type: "fixed", delay: 500 } },
  ],
  ["either", { pattern: "0 0 */10 * 1", tz: "UTC" }, { priority: 5 }],
  [
    "phase",
    // Next due in half an hour, whenever that is.
    { every: HOUR, offset: (Date.now() + HOUR / 2) % HOUR },
    { removeOnComplete: { count: 10, age: 3_600 }, removeOnFail: { count: 5 } },
  ],
  [
    "bounded",
    { pattern: "*/5 * * * *", tz: "UTC", limit: 7, startDate: soon + 60_001, endDate: soon + 50 * HOUR },
    {},
  ],
];

const shapeOf = ({
  pattern,
  tz,
  every,
  limit,
  next,
  startDate,
  endDate,
  template,
}: Record<string, unknown>) => ({
  pattern,
  tz,
  every,
  limit,
  next,
  endDate,
  template,
  // Another moment of the same gap between two times may be written.
  startDate: startDate === undefined ? undefined : next,
});

describe("export bullmq", () => {
  it("gives back what an import read", async () => {
    const [old, renewed] = ["bull", "again"].map(
      (prefix) => new Queue("mail", { connection: { url: bench.redis.url }, prefix }),
    );
    for (const [id, repeat, opts] of SCHEDULERS)
      await old!.upsertJobScheduler(id, repeat, { name: "send", data: { id }, opts });
    const file = join(folder, "mail.json");
    const report = await cli(["import", "bullmq", "--out", file, "--set", "mail"]);
    expect(report.stdout).toContain("Compared over two years: 4 of 4 fire at the same times");
    const quick = await cli(["import", "bullmq", "--out", file, "--force", "--set", "mail", "--no-compare"]);
    expect(quick.stdout).toContain("Times were not compared.");
    await json(["apply", "--config", file, "--yes"]);
    expect((await bench.client.list({ set: "mail" })).tasks.map(({ state }) => state)).toEqual(
      Array(4).fill("paused"),
    );

    const { tasks } = await json(["export", "bullmq", "--set", "mail"]);
    expect(tasks.map(({ notes }: { notes: string[] }) => notes)).toEqual([[], [], [], []]);
    for (const { there } of tasks) await renewed!.upsertJobScheduler(there.id, there.repeat, there.template);
    const all = async (queue: Queue) =>
      (await queue.getJobSchedulers()).map((one) => [one.key, shapeOf({ ...one })]).sort();
    expect(await all(renewed!)).toEqual(await all(old!));
    await Promise.all([old!.close(), renewed!.close()]);
  });

  const exported = async (given: Partial<TaskInput>) => {
    await bench.client.put(task("a", given));
    return (await json(["export", "bullmq"])).tasks[0] as { there?: { repeat: object }; notes: string[] };
  };
  it.each([
    ["a union", { schedule: { any: [{ every: "1h" }, { cron: "0 9 * * *" }] } }, "a union of schedules"],
    ["a calendar event", { schedule: { calendar: "*-*-* 09:00" } }, "a calendar event"],
    ["an interval by the calendar", { schedule: { every: "1 month" } }, "an interval by the calendar"],
    ["a delay", { schedule: { every: "1h", anchor: "finish" } }, "a delay after each run"],
  ] as const)("has nothing for %s", async (_, given, note) => {
    expect(await exported({ ...given, overlap: "allow" } as never)).toEqual({
      task: "system/a",
      notes: [note],
    });
  });

  it("names policies without a home, and times that differ", async () => {
    const found = await exported({
      schedule: { cron: "0 0 */10 * 1", jitter: "5m" },
      timeLimit: "1m",
      catchUp: "all",
      overlap: "skip",
    });
    expect(found.notes).toEqual([
      "not expressed: timeLimit, catchUp, schedule.jitter",
      expect.stringMatching(/^fires at other times there, first at \S+Z, only in BullMQ$/),
      "overlap skip: BullMQ starts a run although another is running",
    ]);
  });

  it("writes a module to run", async () => {
    await bench.client.put(task("a", { overlap: "allow" }));
    const file = join(folder, "module.mjs");
    expect(await cli(["export", "bullmq", "--out", file])).toEqual({
      code: 0,
      stdout: `wrote 1 of 1 tasks to ${file}\n`,
      stderr: "",
    });
    expect(readFileSync(file, "utf8")).toMatch(
      /^\/\/ REDIS_URL=[\s\S]*"every": 3600000,\n\s+"offset": 3600000[\s\S]*upsertJobScheduler/,
    );
    expect(await cli(["export", "bullmq", "--out", file])).toMatchObject({ code: 2 });
  });
});

describe("export crontab", () => {
  const LINES =
    "CRON_TZ=Europe/Berlin\n0 4 * * 1-5 backup --all%in\\%put\n*/15 * * * * flock -n /tmp/poll.lock poll\n";

  it("gives back what an import read", async () => {
    const imported = crontab(LINES, { now: Date.now(), queue: "jobs" });
    for (const one of imported) await bench.client.put(one.task as TaskInput);
    const { stdout } = await cli(["export", "crontab"]);
    const again = crontab(stdout, { now: Date.now(), queue: "jobs" }).map(({ task }) => task);
    expect(again).toEqual(
      imported.map(({ task }) => ({ ...task, schedule: { ...task!.schedule, cron: expect.any(String) } })),
    );
    expect(stdout).toContain("0 4 * * 1-5 backup --all%in\\%put\n");
  });

  const lineOf = (payload: object, overlap = "skip", id = `t${process.pid}`) => {
    const definition = {
      ...{ ...task(id), owner: "system", catchUp: "one", schedule: { cron: "0 4 * * *" } },
      ...{ payload, overlap },
    };
    return toCrontab({ definition, fired: 0 } as never, Date.now());
  };

  it("writes commands, variables and input so that cron runs exactly them", () => {
    const odd = fc.string({ unit: fc.constantFrom(..."ab'\"\\\\%%$`;&| ~#!*"), maxLength: 12 });
    const inputs = fc
      .string({ unit: fc.constantFrom(..."ab\\%\n"), maxLength: 8 })
      .filter((text) => !text.includes("\\\n"));
    const cases = fc.record({
      word: odd,
      variable: odd,
      stdin: fc.option(inputs, { nil: undefined }),
      overlap: fc.constantFrom("skip", "queue-all", "allow"),
    });
    fc.assert(
      fc.property(cases, ({ word, variable, stdin, overlap }) => {
        const quoted = `'${word.replaceAll("'", "'\\''")}'`;
        const payload = {
          command: `cd / && printf '%s\\0' ${quoted} "$A"; cat; pwd`,
          env: { A: variable },
          stdin,
        };
        const { there, notes } = lineOf(payload, overlap);
        const ran = runByCron(there!.command);
        const input = stdin ? stdin.replace(/(?<!\n)$/, "\n") : "";
        expect({ notes, ...ran }).toEqual({
          ...{ notes: [], status: 0, stderr: "" },
          stdout: `${word}\0${variable}\0${input}/\n`,
        });
      }),
      { numRuns: 150 },
    );
  });

  it("holds the lock until the whole command has ended", () => {
    const nested = lineOf({ command: "true" }).there!.command;
    const { stdout } = runByCron(lineOf({ command: `true; ${nested} || echo locked` }).there!.command);
    expect(stdout).toBe("locked\n");
    expect(lineOf({ command: "a", env: { A: "b" } }, "allow").there!.command).toBe("export A=b; a");
  });

  it("locks each task by a file of its own, in the home of the user", () => {
    const lockOf = (more: object) => {
      const definition = { ...task("a.b"), owner: "system", schedule: { cron: "0 4 * * *" }, ...more };
      const stored = { definition: { ...definition, payload: { command: "x" } }, fired: 0 };
      return toCrontab(stored as never, Date.now()).there!.command.split(" ")[2]!;
    };
    const locks = [
      {},
      { queue: "q2" },
      { owner: "a", id: "b" },
      { owner: "a.b", id: "c" },
      { owner: "a", id: "b.c" },
    ];
    expect(new Set(locks.map(lockOf)).size).toBe(locks.length);
    expect(lockOf({ queue: "q" })).toBe("~/.carillon:q:system:a.b.lock");
  });

  it.each([
    ["a line break", { command: "cd /srv\n* * * * * rm -rf /srv/data" }, /line break/],
    ["a line break of a variable", { command: "a", env: { A: "b\nc" } }, /line break/],
    ["a name that is no variable", { command: "a", env: { "A;b": "c" } }, /A;b/],
    ["a backslash before a line end of the input", { command: "a", stdin: "b\\\nc" }, /backslash/],
    ["no command", { command: " " }, /no command/],
  ])("writes no line for %s", (_, payload, note) => {
    expect(lineOf(payload)).toEqual({
      ...{ task: expect.any(String), notes: [expect.stringMatching(note)] },
    });
  });

  it("names the user and what else its payload has", () => {
    expect(lineOf({ command: "a", user: "www-data", x: 1 }).notes).toEqual([
      "runs as the owner of the crontab, not as www-data",
      "not expressed: payload x",
    ]);
  });

  it.each([
    ["every: 2h", { schedule: { every: "2h", origin: "2026-01-01T00:05:00Z" } }, "5 0-23/2 * * *"],
    ["every: 20m", { schedule: { every: "20m" } }, "0-59/20 * * * *"],
    ["every: 7m", { schedule: { every: "7m" } }, undefined],
    ["seconds", { schedule: { cron: "30 0 4 * * *" } }, undefined],
    ["the last day", { schedule: { cron: "0 4 L * *" } }, undefined],
    ["an end", { schedule: { cron: "0 4 * * *", end: "2090-01-01T00:00:00Z" } }, undefined],
  ] as const)("knows whether a line can say %s", async (_, given, when) => {
    await bench.client.put(task("a", { ...given, payload: { command: "x" }, overlap: "allow" } as never));
    const [found] = (await json(["export", "crontab"])).tasks;
    expect(found.there?.when).toBe(when);
    expect(found.notes).toHaveLength(when ? 0 : 1);
  });
});

it("export json is what put reads", async () => {
  await bench.client.put(task("a"));
  await bench.client.pause("a");
  const file = join(folder, "tasks.json");
  await cli(["export", "json", "--out", file]);
  expect(await json(["put", file])).toMatchObject({ results: [{ outcome: "unchanged" }] });
});

/** Runs a line's command as cronie does: its text up to the first `%` that no backslash precedes, and the rest as input. */
function runByCron(line: string): { stdout: string; stderr: string; status: number | null } {
  let [command, escaped, at] = ["", false, 0];
  for (; at < line.length; at++) {
    const char = line[at]!;
    if (escaped && char === "%") command = command.slice(0, -1);
    else if (!escaped && char === "%") break;
    escaped = !escaped && char === "\\";
    command += char;
  }
  const given = line.slice(at + 1);
  let input = "";
  escaped = false;
  for (const char of given) {
    if (escaped && char !== "%") input += "\\";
    const put: string = !escaped && char === "%" ? "\n" : char;
    escaped = put === "\\";
    if (!escaped) input += put;
  }
  if (escaped) input += "\\";
  if (input !== "" && !input.endsWith("\n")) input += "\n";
  const { stdout, stderr, status } = spawnSync("/bin/sh", ["-c", command], {
    ...{ input, encoding: "utf8", env: { ...process.env, HOME: folder } },
  });
  return { stdout, stderr, status };
}
