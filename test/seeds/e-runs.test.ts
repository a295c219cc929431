import { hostname } from "node:os";
import { operatorOf } from "@carillon/ops";
import { type Context, defineTask } from "@carillon/sdk";
import { internalsOf } from "@carillon/store/internal";
import { eventually, type TestKit } from "@carillon/testing";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { startConsole } from "../../apps/console/test/harness.js";
import { explained } from "../../packages/ops/test/in-words.js";
import { anything, PATIENCE, Stand, task } from "./harness.js";

const stand = Stand.use();
let kit: TestKit;

const at = (time: string) => Date.parse(`2026-01-01T${time}Z`);

describe("E3 a run's record has the times of planning, creation, start and end, the place and the outcome", () => {
  const handlers: Record<string, (context: Context) => unknown> = {
    works: () => kit.sleep("7s"),
    throws: () => kit.sleep("7s").then(() => Promise.reject(new Error("out of paper"))),
    "throws what is no error": () => Promise.reject("out of paper"),
    "times out": ({ signal }) => kit.sleep("1h", { signal }),
  };
  const ends: Record<string, object> = {
    works: { outcome: "succeeded", finished: at("01:00:12") },
    throws: {
      outcome: "failed",
      finished: at("01:00:12"),
      error: expect.stringContaining("Error: out of paper"),
    },
    "throws what is no error": {
      outcome: "failed",
      finished: at("01:00:05"),
      error: expect.stringContaining("out of paper"),
    },
    "times out": {
      outcome: "timed-out",
      finished: at("01:00:35"),
      error: expect.stringContaining("TimeLimitError"),
    },
  };

  it.each(Object.keys(handlers))("the record of a run that %s", async (what) => {
    const type = task((context) => handlers[what]?.(context));
    kit = await stand.kit({ types: [type] });
    await kit.worker.pause();
    kit.at("1:00:05", () => kit.worker.resume());
    await kit.client.put(type, { id: "t", schedule: { every: "1h" }, timeLimit: "30s", payload: {} });

    await kit.advanceTo("1:00:02");
    const [planned] = await kit.client.runs.list("t");
    const place = { nominal: at("01:00:00"), due: at("01:00:00"), enqueued: at("01:00:00"), node: "node-1" };
    expect(planned).toMatchObject({ ...place, state: "queued", attempts: 0 });
    expect(planned).not.toHaveProperty("started");

    await kit.advanceTo("1:00:05");
    const process_ = { pid: process.pid, host: hostname(), worker: expect.stringContaining(hostname()) };
    const run = await kit.client.runs.get(planned?.id ?? "");
    expect(run).toMatchObject({ ...place, ...process_, started: at("01:00:05"), attempts: 1 });

    await kit.advanceTo("1:01:00");
    expect(await kit.client.runs.get(planned?.id ?? "")).toMatchObject({
      ...place,
      ...process_,
      started: at("01:00:05"),
      state: "final",
      trigger: "schedule",
      attemptList: [{ attempt: 1, started: at("01:00:05"), pid: process.pid, host: hostname() }],
      ...ends[what],
    });
  });
});

describe("E4 the log and output of a handler are kept with its attempt, cut to size and marked", () => {
  const MEGABYTE = 1024 * 1024;
  beforeEach(() => {
    // Output is printed too, which this test suppresses.
    for (const method of ["log", "error", "warn"] as const) vi.spyOn(console, method).mockReturnValue();
  });
  afterEach(() => vi.restoreAllMocks());

  it("output, error output and the log are kept per attempt; of 1 MB the end, with a flag", async () => {
    const type = task(async ({ attempt, log }) => {
      log("begun", { attempt });
      console.log("to %s", "out");
      await kit.sleep("1s");
      console.error("to err");
      if (attempt === 1) throw new Error("again");
      for (let n = 0; n < MEGABYTE / 64; n++) console.log(`${n} ${"x".repeat(64)}`.slice(0, 63));
      console.warn("the end");
    });
    kit = await stand.kit({ types: [type] });
    const retry = { attempts: 2, delay: "1s" };
    await kit.client.put(type, { id: "t", schedule: { every: "1h" }, retry, payload: {} });
    await kit.advanceTo("1:00:10");
    const [run] = await kit.client.runs.list("t");
    expect(run).toMatchObject({ outcome: "succeeded", attempts: 2 });
    const id = run?.id ?? "";
    const { output } = await kit.client.runs.get(id);
    expect(output).toHaveLength(2);
    expect(output[0]).toEqual({
      attempt: 1,
      text: 'log begun {"attempt":1}\nout to out\nerr to err\n',
      cut: false,
    });
    const [, second] = output;
    expect(second).toMatchObject({ attempt: 2, cut: true });
    expect(second?.text).toMatch(/^cut \d+ bytes before this\nout \d+ x/);
    expect(second?.text.endsWith("x\nerr the end\n")).toBe(true);
    expect(Buffer.byteLength(second?.text ?? "")).toBeLessThan(64 * 1024 + 100);
    // Output in Redis is limited as well.
    const key = internalsOf(kit.store).keys.queue("bells").output(id);
    expect(await stand.admin.hstrlen(key, "2")).toBeLessThan(80 * 1024);
  });

  it("one print of 1 MB is cut too, and is deleted with its run", async () => {
    const type = task(() => console.log("y".repeat(MEGABYTE)));
    kit = await stand.kit({ types: [type] });
    const retention = { successes: 1 };
    await kit.client.put(type, { id: "t", schedule: { every: "1h" }, retention, payload: {} });
    await kit.advanceTo("1:00:10");
    const [first] = await kit.client.runs.list("t");
    const { output } = await kit.client.runs.get(first?.id ?? "");
    expect(output).toMatchObject([{ attempt: 1, cut: true, text: expect.stringMatching(/y\n$/) }]);
    expect(output[0]?.text.length).toBeLessThan(64 * 1024 + 100);
    await kit.advanceTo("2:00:10");
    const keys = await stand.admin.keys(`{${stand.namespace}:bells}:~out:*`);
    expect(keys).toHaveLength(1);
    expect(keys).not.toContain(
      internalsOf(kit.store)
        .keys.queue("bells")
        .output(first?.id ?? ""),
    );
  });
});

describe("E5 nothing-to-do is an outcome: `checked` is updated, the last run stays", () => {
  it.each([
    ["an empty generate", 0],
    ["a handler that says so", 1],
  ])("%s", async (_, which) => {
    let work = 1;
    const types = [
      defineTask("fan-out", {
        queue: "bells",
        payload: anything,
        generate: () => Array.from({ length: work-- > 0 ? 1 : 0 }, (_, n) => n),
        process: () => kit.sleep("5s"),
      }),
      task(({ nothingToDo }) => (work-- > 0 ? kit.sleep("5s") : nothingToDo())),
    ];
    const type = types[which] as (typeof types)[number];
    kit = await stand.kit({ types: [type] });
    await kit.client.put({ id: "t", type: type.type, queue: "bells", schedule: { every: "1h" } });
    await kit.advanceTo("1:30:00");
    const before = await kit.client.runs.stats("t");
    expect(before).toMatchObject({ lastStart: at("01:00:00"), lastFinish: at("01:00:05") });
    expect(before.lastChecked).toBeUndefined();

    const stays = (({ lastRun, lastStart, lastFinish, lastSuccess }) => ({
      lastRun,
      lastStart,
      lastFinish,
      lastSuccess,
    }))(before);
    for (const [hour, runs] of [
      ["02", 2],
      ["03", 3],
    ] as const) {
      await kit.advanceTo(at(`${hour}:30:00`));
      const stats = await kit.client.runs.stats("t");
      expect(stats).toMatchObject({ ...stays, lastChecked: at(`${hour}:00:00`), runs, successes: runs });
    }
    await kit.expect("t").outcomes(["succeeded", "nothing-to-do", "nothing-to-do"]);
  });
});

describe("E6 old successful runs are deleted, failures are kept longer", () => {
  const DAY = 86_400_000;

  it("clean runs are deleted after days, failed ones later", async () => {
    const bad = new Set(["03", "05"]);
    const type = task(({ occurrence }) => {
      if (bad.has(new Date(occurrence.nominal).toISOString().slice(8, 10))) throw new Error("no");
    });
    kit = await stand.kit({ types: [type] });
    const retention = { successesFor: "2d", failuresFor: "10d" };
    await kit.client.put(type, { id: "t", schedule: { every: "1d" }, retention, payload: {} });
    /** The days of all runs on record. */
    const days = async () => {
      const { runs } = await kit.client.runs.journal({ task: "t" });
      const keys = await stand.admin.keys(`{${stand.namespace}:bells}:~r:*`);
      expect(keys).toHaveLength(runs.length);
      return runs.map(({ finished }) => new Date(finished ?? 0).getUTCDate());
    };
    await kit.advanceTo("2026-01-07T12:00:00Z");
    expect(await days()).toEqual([7, 6, 5, 3]);
    await kit.advanceTo("2026-01-12T12:00:00Z");
    expect(await days()).toEqual([12, 11, 10, 5, 3]);
    await kit.advanceTo("2026-01-14T12:00:00Z");
    expect(await days()).toEqual([14, 13, 12, 5]);
    await kit.advanceTo("2026-01-20T12:00:00Z");
    expect(await days()).toEqual([20, 19, 18]);
  });

  it("runs of a task that no longer runs are deleted too", async () => {
    const type = task(({ occurrence }) => {
      if (occurrence.trigger === "manual") throw new Error("no");
    });
    kit = await stand.kit({
      types: [type],
      retention: { completedJobs: { for: 60_000 }, failedJobs: { for: 60_000 } },
    });
    const retention = { successesFor: "2d", failuresFor: "10d" };
    await kit.client.put(type, { id: "t", schedule: { every: "1h" }, retention, payload: {} });
    kit.at("1:30:00", () => kit.client.trigger("t"));
    kit.at("1:40:00", () => kit.client.pause("t"));
    await kit.advanceTo("2:00:00");
    await kit.expect("t").outcomes(["succeeded", "failed"]);
    await kit.advance(5 * DAY);
    await kit.expect("t").outcomes(["failed"]);
    await kit.advance(15 * DAY);
    await kit.expect("t").outcomes([]);
  });
});

describe("E14 authors are recorded: of a put, and of a trigger, enqueue or backfill", () => {
  it("SDK", async () => {
    const type = task(() => {});
    kit = await stand.kit({ types: [type] });
    const { client } = kit;
    await kit.worker.pause();
    const given = { id: "t", schedule: { every: "1h" }, overlap: "allow", payload: {} } as const;
    await client.put(type, given, { by: "ann" });
    expect(await client.get("t")).toMatchObject({ createdBy: "ann", updatedBy: "ann" });
    await client.update("t", (stored) => ({ ...stored, priority: 1 }), { by: "bob" });
    expect(await client.get("t")).toMatchObject({ createdBy: "ann", updatedBy: "bob" });
    await client.putMany([{ ...given, type: type.type, queue: type.queue }], { by: "carl" });
    expect(await client.get("t")).toMatchObject({ createdBy: "ann", updatedBy: "carl" });

    const runs = async (id: string) =>
      (await client.runs.list(id)).map(({ trigger, by }) => [trigger, by]).sort();
    await kit.advance("2h");
    await client.trigger("t", { by: "dan" });
    await operatorOf(client).backfills.start(
      { id: "t", from: at("01:00:00"), to: at("01:00:00") },
      { by: "eve" },
    );
    await client.trigger("t", { overlap: "queue-one", by: "fay" });
    expect(await client.get("t")).toMatchObject({ pending: [{ trigger: "manual", by: "fay" }] });
    await client.enqueue(type, {}, { id: "now", by: "gus" });
    await client.enqueue(type, {}, { id: "later", delay: "1m", by: "hal" });
    await kit.advance("5m");
    expect(await runs("now")).toEqual([["manual", "gus"]]);
    expect(await runs("later")).toEqual([["schedule", "hal"]]);
    const scheduled = ["schedule", undefined];
    expect(await runs("t")).toEqual([["backfill", "eve"], ["manual", "dan"], scheduled, scheduled]);
    const { events } = await explained(client, "t", at("02:00:00"));
    expect(events.map(({ text }) => text)).toContainEqual(
      expect.stringMatching(/\(manual\).*asked for by dan$/),
    );

    await kit.worker.resume();
    await kit.advance("5m");
    expect(await runs("t")).toContainEqual(["manual", "fay"]);
    await client.delete("t", { by: "ida" });
    expect((await operatorOf(client).changes.list({ by: "ida" })).changes).toMatchObject([
      { kind: "delete", by: "ida", scope: { id: "t" } },
    ]);
  });

  const TASK = { id: "nightly", type: "report", queue: "reports", schedule: { every: "1h" } };

  it("HTTP API", async () => {
    const { api, stop } = await startConsole();
    stand.later(stop);
    const path = "/tasks/reports/system/nightly";
    expect(await api("POST", "/tasks", TASK)).toMatchObject({ status: 201 });
    // The author is the token: a request cannot name another one.
    expect(await api("PUT", `${path}?by=bob`, { ...TASK, priority: 1 })).toMatchObject({ status: 400 });
    expect(await api("POST", `${path}/trigger`, { by: "dan" })).toMatchObject({ status: 400 });
    expect(await api("PUT", path, { ...TASK, priority: 1 })).toMatchObject({ status: 200 });
    expect((await api("GET", path)).body).toMatchObject({ createdBy: "admin", updatedBy: "admin" });
    const { body } = await api("POST", `${path}/trigger`, {});
    expect((await api("GET", `/runs/${body.run}`)).body).toMatchObject({ trigger: "manual", by: "admin" });
    expect((await api("GET", `${path}/runs`)).body.runs).toMatchObject([{ by: "admin" }]);
    expect(await api("DELETE", path)).toMatchObject({ status: 204 });
    const [newest] = (await api("GET", "/changes?limit=1")).body.changes as object[];
    expect(newest).toMatchObject({ kind: "delete", by: "admin", scope: { id: "nightly" } });
  });

  it("CLI", async () => {
    const said = async (args: string[], input: unknown = "") => {
      const { code, stdout, stderr } = await stand.carillon(args, JSON.stringify(input));
      // The warning that no worker handles the type does not change the exit code.
      expect(code, stderr).toBe(0);
      return stdout;
    };
    await said(["put", "--by", "ann"], TASK);
    await said(["put", "--batch", "--by", "bob"], { ...TASK, priority: 1 });
    expect(await said(["show", "nightly"])).toMatch(/^created +\S.* by ann\n(.*\n)*last put by +bob$/m);
    await said(["edit", "nightly", "--set", "priority=2", "--by", "carl"]);
    const shown = JSON.parse(await said(["show", "nightly", "--json"]));
    expect(shown).toMatchObject({ createdBy: "ann", updatedBy: "carl" });
    const { run } = JSON.parse(await said(["trigger", "nightly", "--by", "dan", "--json"]));
    expect(await said(["run", run])).toMatch(/^asked for by +dan$/m);
    expect(JSON.parse(await said(["runs", "nightly", "--json"]))).toMatchObject({ runs: [{ by: "dan" }] });
    await said(["rm", "nightly", "--by", "ida"]);
    const { changes } = JSON.parse(await said(["changes", "--json", "--by", "ida"]));
    expect(changes).toMatchObject([{ kind: "delete", by: "ida" }]);
  });
});

describe("E3 a record is written by the process that works the run", () => {
  it("worker, node and client are three processes", async () => {
    const node = await stand.node({ CARILLON_UNSAFE_REDIS: "warn" }).running();
    const program = stand.program("test/seeds/items-worker.mjs");
    await eventually(() => expect(program.said).toHaveLength(1), PATIENCE);
    const client = stand.client();
    await client.put({ id: "t", type: "ring", queue: "bells", schedule: { every: "1s" }, overlap: "skip" });
    const { pid } = await program.says({ printed: "ring" });
    const [begun] = await client.runs.list("t");
    program.tell("go on");
    const run = await eventually(async () => {
      const record = await client.runs.get(begun?.id ?? "");
      return record.state === "final" && record;
    }, PATIENCE);
    expect(run).toMatchObject({ outcome: "succeeded", pid, worker: program.said[0]?.["working"] });
    expect(run.node).toContain(`-${node.child.pid}-`);
    expect(new Set([pid, node.child.pid, process.pid]).size).toBe(3);
    const times = [run.enqueued, run.started, run.finished] as number[];
    expect(times).toEqual([...times].sort((a, b) => a - b));
  });
});
