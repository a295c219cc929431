import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { operatorOf } from "@carillon/ops";
import { eventually } from "@carillon/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { harness, task } from "./harness.js";
import { spawnCarillon } from "./helpers.js";

const bench = harness("backfill", { shared: true });
const { cli, json, refusal } = bench;

/** Past times of `every: 1h`: three of them. */
const HOUR = 3_600_000;
const to = Math.floor(Date.now() / HOUR) * HOUR - HOUR;
const range = ["--from", new Date(to - 2 * HOUR).toISOString(), "--to", new Date(to).toISOString()];

describe("a backfill without a node", () => {
  it("is counted, started, listed and stopped for many tasks", async () => {
    await bench.client.putMany([task("m1", { tags: ["m"] }), task("m2", { tags: ["m"], owner: "acme" })]);
    const counted = await cli(["backfill", "--tag", "m", ...range, "--dry-run", "--per-minute", "2"]);
    expect(counted.stdout).toMatch(/^backfill means 2 tasks\n6 occurrences, 3 min at 2 a minute\nTASK/);
    expect(counted.stdout).toMatch(/acme\/m2 +bar +3\n/);
    expect(await refusal(["backfill", "--tag", "m", ...range, "--per-minute", "2"])).toMatchObject({
      exit: 2,
      message: expect.stringMatching(/backfill means all that match \(tag m\)/),
    });
    expect(await refusal(["backfill", "--tag", "m", ...range, "--all"])).toMatchObject({
      exit: 2,
      message: expect.stringMatching(/^per-minute: missing/),
    });
    expect((await refusal(["backfill", "m1", ...range, "--per-minute", "2"])).exit).toBe(2);
    expect(
      (await refusal(["backfill", "m1", "acme/m2", ...range, "--per-minute", "2", "--every", "1m"])).exit,
    ).toBe(2);
    const started = await json(["backfill", "m1", "acme/m2", ...range, "--per-minute", "2", "--by", "ann"]);
    expect(started).toMatchObject({ count: 2, total: 6, batch: expect.stringMatching(/^b-/) });
    const { batch } = started as { batch: string };
    expect(await json(["backfills", "--batch", batch])).toMatchObject({
      backfills: [{ total: 3, every: 60_000, by: "ann" }, { total: 3 }],
    });
    expect(await json(["backfills", "--batch", batch, "--owner", "acme"])).toMatchObject({
      backfills: [{ task: { id: "m2" } }],
    });
    expect((await cli(["backfills", "-n", "1", "--state", "running"])).stdout).toMatch(
      /^ID +TASK +QUEUE +STATE +PROGRESS .*\n\w{13} +\S+ +bar +running +0\/3 /,
    );
    expect((await cli(["backfills", "cancel", batch])).stdout).toBe(`stopped backfill ${batch}\n`);
    expect(await json(["backfills", "--batch", batch, "--state", "running"])).toEqual({ backfills: [] });
    expect((await json(["backfill", "m1", ...range, "--only", "failed", "--dry-run"])).total).toBe(0);
  });

  it("is counted, started, shown and stopped", async () => {
    await bench.client.put(task("a"));
    expect(await json(["backfill", "a", ...range, "--dry-run"])).toEqual({ total: 3 });
    const counted = await cli(["backfill", "a", ...range, "--dry-run"]);
    expect(counted.stdout).toBe("3 occurrences of a; nothing was started\n");
    const { id, total } = await json([
      "backfill",
      "a",
      ...range,
      "--every",
      "10s",
      "--overlap",
      "queue-all",
      "--by",
      "ann",
    ]);
    expect(total).toBe(3);
    expect(await json(["backfills", "show", id])).toMatchObject({
      id,
      task: { queue: "bar", owner: "system", id: "a" },
      state: "running",
      from: to - 2 * HOUR,
      to,
      total: 3,
      enqueued: 0,
      skipped: 0,
      every: 10_000,
      by: "ann",
      overlap: "queue-all",
    });
    const { stdout } = await cli(["backfills", "show", id]);
    expect(stdout).toContain("\nprogress  0 of 3 (0%): 0 enqueued, 0 skipped\n");
    expect(stdout).toMatch(/\nevery +10 s\noverlap +queue-all\ncreated +.* by ann\n$/);
    expect((await cli(["backfills", "cancel", id])).stdout).toBe(`stopped backfill ${id}\n`);
    expect(await json(["backfills", "cancel", id])).toEqual({ id, changed: false });
    expect(await json(["backfills", "show", id])).toMatchObject({ state: "cancelled" });
  });

  it("uses the schedule's time zone", async () => {
    await bench.client.put(task("daily", { schedule: { cron: "0 9 * * *", timezone: "Asia/Tokyo" } }));
    const put = await json([
      "backfill",
      "daily",
      "--from",
      "2026-01-01 09:00",
      "--to",
      "2026-01-02 09:00",
      "--dry-run",
    ]);
    expect(put).toEqual({ total: 2 });
    const utc = await json([
      "backfill",
      "daily",
      "--from",
      "2026-01-01 09:00",
      "--to",
      "2026-01-02",
      "--dry-run",
      "-z",
      "UTC",
    ]);
    expect(utc).toEqual({ total: 1 });
    expect(
      await json(["backfill", "daily", "--from", "2026-01-01", "--to", "2026-01-01 08:00", "--dry-run"]),
    ).toEqual({
      total: 0,
    });
  });

  it.each<[string, string[], string]>([
    ["no start", ["a", "--to", "now"], "from"],
    ["the future", ["a", "--from", "now", "--to", "tomorrow"], "to"],
    ["waiting for a dry run", ["a", ...range, "--dry-run", "--wait"], "wait"],
  ])("refuses %s with 2", async (_, args, field) => {
    await bench.client.put(task("a"));
    expect(await refusal(["backfill", ...args])).toMatchObject({ exit: 2, field });
  });

  it("ends now if no end is given", async () => {
    await bench.client.put({ ...task("a"), schedule: { every: "1h" } });
    const { code, stdout } = await cli(["backfill", "a", "--from", "yesterday", "--dry-run", "--json"]);
    expect(code).toBe(0);
    expect(JSON.parse(stdout).total).toBeGreaterThanOrEqual(24);
  });

  it("refuses a task whose times depend on its runs", async () => {
    await bench.client.put(task("after", { schedule: { every: "1h", anchor: "finish" } }));
    expect(await refusal(["backfill", "after", ...range])).toMatchObject({ exit: 2, field: "task" });
  });
});

describe("a backfill with a node", () => {
  let node: ChildProcess;
  beforeAll(async () => {
    const main = fileURLToPath(new URL("../../scheduler/bin/carillon-scheduler.js", import.meta.url));
    const env = { ...process.env, ...bench.env, CARILLON_PORT: "0", CARILLON_LOG_LEVEL: "silent" };
    node = spawn(process.execPath, [main], { env, stdio: "ignore" });
    await eventually(async () => (await operatorOf(bench.client).nodes.list()).nodes.length > 0);
  });
  afterAll(async () => {
    node.kill("SIGTERM");
    await once(node, "close");
  });

  it("shows its progress until it ends", async () => {
    await bench.client.put(task("fast", { overlap: "allow" }));
    const { code, stdout, stderr } = await cli(["backfill", "fast", ...range, "--wait", "--every", "600ms"]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^backfill [0-9a-z]{13}: 3 occurrences of fast\ndone: 3 enqueued, 0 skipped\n$/);
    expect(stderr).toMatch(/^0 of 3 \(0%\)|^1 of 3 \(33%\)/);
    expect(stderr.trimEnd().split("\n").at(-1)).toBe("3 of 3 (100%): 3 enqueued, 0 skipped");
    const runs = await bench.client.runs.list("fast");
    // The task's own schedule may be due meanwhile.
    expect(runs.filter(({ trigger }) => trigger === "backfill")).toHaveLength(3);
    const { stdout: told } = await cli(["explain", "fast", new Date(to).toISOString()]);
    expect(told).toMatch(/QUEUED {2}A backfill ran it .* after it was due, and has been waiting/);
  });

  it("is silent for programs until it ends", async () => {
    await bench.client.put(task("skips"));
    const found = await json(["backfill", "skips", ...range, "--wait"]);
    expect(found).toMatchObject({ state: "done", total: 3, enqueued: 1, skipped: 2 });
  });

  it("ends the wait with 5 when it is stopped", async () => {
    await bench.client.put(task("slow", { overlap: "allow" }));
    const child = spawnCarillon(["backfill", "slow", ...range, "--wait", "--every", "1h"], bench.env);
    const [line] = await once(child.stdout!.setEncoding("utf8"), "data");
    const [, id] = /^backfill (\w+):/.exec(line) ?? [];
    await eventually(async () => (await operatorOf(bench.client).backfills.get({ id: id! })).enqueued === 1);
    const ended = once(child, "close");
    await operatorOf(bench.client).backfills.cancel({ id: id! });
    expect((await ended)[0]).toBe(5);
  });
});
