import { operatorOf } from "@carillon/ops";
import { Scheduler } from "@carillon/scheduler";
import { Client, defineTask, type Run, Worker } from "@carillon/sdk";
import { eventually, type TestKit } from "@carillon/testing";
import { describe, expect, it } from "vitest";
import { startConsole } from "../../apps/console/test/harness.js";
import { gate, SILENT } from "../helpers.js";
import { anything, PATIENCE, Stand, task } from "./harness.js";

const stand = Stand.use();
let kit: TestKit;

const NO = () => Promise.reject(new Error("no"));

/** Milliseconds from each start to the next. */
async function gaps(id: string): Promise<number[]> {
  const { runs } = await kit.history(id);
  const starts = runs.flatMap(({ started }) => started ?? []).sort((a, b) => a - b);
  return starts.slice(1).map((time, i) => time - (starts[i] as number));
}

describe("D4 a failure is retried with backoff, capped, and never past the next slot of a fixed schedule", () => {
  it("waits double up to 5 intervals; jitter of an eighth comes on top of the cap", async () => {
    const type = task(NO);
    kit = await stand.kit({ types: [type] });
    const schedule = { every: "10s", anchor: "finish" } as const;
    await kit.client.put(type, { id: "t", schedule, rerun: { delay: "10s" }, payload: {} });
    await kit.advance("1h");
    const waits = await gaps("t");
    const exact = waits.map((_, i) => Math.min(10_000 * 2 ** i, 50_000));
    const off = waits.map((wait, i) => wait / (exact[i] as number) - 1);
    expect(waits.length).toBeGreaterThan(60);
    expect(Math.max(...off)).toBeLessThanOrEqual(0.13);
    expect(Math.min(...off)).toBeGreaterThanOrEqual(-0.13);
    // Spread over the whole range, on both sides.
    expect(Math.max(...off)).toBeGreaterThan(0.1);
    expect(Math.min(...off)).toBeLessThan(-0.1);
    expect(new Set(waits).size).toBeGreaterThan(50);
  });

  it.each([
    { backoff: "linear", waits: [10, 20, 30, 40, 50, 50, 50] },
    { backoff: "exponential", waits: [10, 20, 40, 50, 50, 50, 50] },
    { backoff: "fixed", waits: [10, 10, 10, 10, 10, 10, 10] },
  ] as const)("$backoff without jitter: $waits seconds", async ({ backoff, waits }) => {
    const type = task(NO);
    kit = await stand.kit({ types: [type] });
    await kit.client.put(type, {
      id: "t",
      schedule: { every: "10s", anchor: "finish" },
      rerun: { delay: "10s", backoff, jitter: 0 },
      pauseAfterFailures: 8,
      payload: {},
    });
    await kit.advance("1h");
    expect(await gaps("t")).toEqual(waits.map((seconds) => seconds * 1_000));
  });

  it("a retry of a fixed schedule that would pass the next slot gives way to it", async () => {
    const type = task(() => kit.sleep("2s").then(NO));
    kit = await stand.kit({ types: [type] });
    await kit.client.put(type, {
      id: "t",
      schedule: { cron: "* * * * *" },
      rerun: { delay: "20s" },
      payload: {},
    });
    await kit.advance("30m");
    const { runs } = await kit.history("t");
    const [slots, retries] = [
      runs.filter(({ trigger }) => trigger === "schedule"),
      runs.filter(({ trigger }) => trigger === "retry"),
    ];
    // Each slot starts exactly in time.
    expect(slots).toHaveLength(30);
    for (const { started, nominal } of slots) expect(started).toBe(nominal);
    expect(retries.length).toBeGreaterThan(0);
    for (const { nominal, started } of retries) expect(started).toBeLessThan(nominal + 60_000);
    await kit.expect("t").skipped("overlap", 0);
  });

  const HOUR = 3_600_000;
  const START = Date.parse("2026-01-01T00:00:00Z");
  const hourly = { id: "t", schedule: { every: "1h" }, rerun: { delay: "30m", jitter: 0 }, payload: {} };
  const inHours = (time: number) => (time - START) / HOUR;
  const failsAtOne = task(({ occurrence: { nominal, trigger } }) =>
    inHours(nominal) === 1 && trigger !== "retry" ? NO() : undefined,
  );

  it.each([
    { policies: {}, runs: [["catch-up", 4]], missed: [2, 3] },
    { policies: { catchUp: "skip" }, runs: [], missed: [2, 4] },
    {
      policies: { catchUp: "all", overlap: "allow" },
      runs: [
        ["catch-up", 2],
        ["catch-up", 3],
        ["schedule", 4],
      ],
      missed: undefined,
    },
  ] as const)(
    "without a node during the retry and later slots, $policies: the retry gives way",
    async (given) => {
      const { store, clock } = await stand.virtual("bells", START);
      const client = new Client({ store });
      const worker = new Worker({ store, types: [failsAtOne], logger: SILENT });
      await worker.start();
      stand.later(() => worker.stop());
      // A new node for each occurrence, and one more check.
      const nodesLook = async () => {
        for (let looks = 0; looks < 4; looks++) await new Scheduler({ store, logger: SILENT }).tick();
        await eventually(async () => {
          expect(await client.runs.stats("t")).toMatchObject({ open: 0 });
        }, PATIENCE);
      };

      await client.put(failsAtOne, { ...hourly, ...given.policies });
      await clock.set(START + HOUR);
      await nodesLook();
      expect((await client.get("t")).pending).toMatchObject([{ trigger: "retry", at: START + 1.5 * HOUR }]);

      await clock.set(START + 4 * HOUR + 60_000);
      await nodesLook();
      const runs = (await client.runs.list("t")).sort((a, b) => a.nominal - b.nominal);
      expect(runs.map(({ trigger, nominal }) => [trigger, inHours(nominal)])).toEqual([
        ["schedule", 1],
        ...given.runs,
      ]);
      const skips = (await client.runs.skips("t")).reverse();
      expect(skips.map(({ reason, from, to }) => [reason, inHours(from), inHours(to)])).toEqual([
        ...(given.missed ? [["missed", ...given.missed]] : []),
        ["retry-superseded", 1, 1],
      ]);
      expect(await client.get("t")).toMatchObject({ pending: [], nextExecution: START + 5 * HOUR });
    },
  );

  it("a retry held by a pause gives way to owed times, and runs if none is owed", async () => {
    kit = await stand.kit({ types: [failsAtOne], start: START });
    for (const from of ["catch-up", "skip"] as const)
      await kit.client.put(failsAtOne, { ...hourly, id: from });
    await kit.advanceTo(START + HOUR + 60_000);
    await operatorOf(kit.client).tasks.pauseMany({ queue: "bells" });
    await kit.advanceTo(START + 4 * HOUR + 60_000);
    for (const from of ["catch-up", "skip"] as const) await kit.client.resume(from, { missed: from });
    await kit.advanceTo(START + 5 * HOUR);
    const triggers = async (id: string) => (await kit.history(id)).runs.map(({ trigger }) => trigger);
    expect(await triggers("catch-up")).toEqual(["schedule", "catch-up", "schedule"]);
    await kit.expect("catch-up").skipped("retry-superseded", 1).skipped("missed", 2);
    expect(await triggers("skip")).toEqual(["schedule", "retry", "schedule"]);
    await kit.expect("skip").skipped("retry-superseded", 0).skipped("paused", 3);
  });

  it("a success resets the wait of the next failure", async () => {
    let n = 0;
    const type = task(() => {
      n += 1;
      return n === 3 || n > 5 ? undefined : NO();
    });
    kit = await stand.kit({ types: [type] });
    await kit.client.put(type, {
      id: "t",
      schedule: { every: "1h", anchor: "finish" },
      rerun: { delay: "10s", jitter: 0 },
      payload: {},
    });
    await kit.advance("3h");
    expect(await gaps("t")).toEqual([10_000, 20_000, 3_600_000, 10_000, 20_000]);
    await kit.expect("t").outcomes(["failed", "failed", "succeeded", "failed", "failed", "succeeded"]);
  });
});

describe("D8 a task is paused after n failures in a row, and starts from zero when resumed", () => {
  it("it is paused after n, including timeouts, with a note; a resume resets the count", async () => {
    let n = 0;
    const type = task(({ signal }) => {
      n += 1;
      if (n === 2) return undefined;
      return n % 2 === 0 ? kit.sleep("1h", { signal }) : NO();
    });
    kit = await stand.kit({ types: [type] });
    await kit.client.put(type, {
      id: "t",
      schedule: { every: "1m" },
      timeLimit: "10s",
      pauseAfterFailures: 3,
      payload: {},
    });
    await kit.advance("1h");
    // A success comes in between: the first failure does not count.
    await kit
      .expect("t")
      .outcomes(["failed", "succeeded", "failed", "timed-out", "failed"])
      .state("paused")
      .nextAt(undefined);
    expect((await kit.client.get("t")).paused).toMatchObject({ note: expect.stringContaining("3 failures") });
    expect(await kit.client.runs.stats("t")).toMatchObject({ consecutiveFailures: 3, failures: 4 });

    expect(await kit.client.resume("t")).toBe(true);
    expect(await kit.client.runs.stats("t")).toMatchObject({ consecutiveFailures: 0, failures: 4 });
    await kit.expect("t").state("scheduled");
    await kit.advance("1h");
    await kit.expect("t").fired(8).state("paused");
    expect(await kit.client.runs.stats("t")).toMatchObject({ consecutiveFailures: 3, failures: 7 });
  });

  it("a run that ended by crashes is a failure too", async () => {
    const type = task(({ signal }) => kit.sleep("1h", { signal }));
    kit = await stand.kit({ types: [type] });
    await kit.client.put(type, {
      id: "t",
      schedule: { every: "10m" },
      crash: { attempts: 1 },
      pauseAfterFailures: 1,
      payload: {},
    });
    kit.at("10:05", async () => {
      await kit.worker.crash();
      await kit.worker.start();
    });
    await kit.advanceTo("15:00");
    await kit.expect("t").outcomes(["crashed"]).state("paused");
  });
});

describe("D9 a run past its time limit is ended and counts as a failure, not a crash", () => {
  it("it counts 1 failure and 0 crashes", async () => {
    const told: unknown[] = [];
    const type = task(async ({ signal }) => {
      signal.addEventListener("abort", () => told.push([kit.now, String(signal.reason)]));
      await kit.sleep("10m", { signal });
    });
    kit = await stand.kit({ types: [type] });
    await kit.client.put(type, { id: "t", schedule: { every: "1h" }, timeLimit: "30s", payload: {} });
    await kit.advanceTo("1:05:00");
    await kit.expect("t").ranAt(["1:00:00"]).finishedAt(["1:00:30"]).outcomes(["timed-out"]);
    expect(told).toEqual([[Date.parse("2026-01-01T01:00:30Z"), expect.stringContaining("30s")]]);
    expect(await kit.client.runs.stats("t")).toMatchObject({
      failures: 1,
      crashes: 0,
      consecutiveFailures: 1,
      consecutiveCrashes: 0,
      outcomes: { "timed-out": 1, crashed: 0 },
    });
  });

  it("a handler that ignores the signal is abandoned after its grace", async () => {
    const type = task(() => kit.sleep("10m"));
    kit = await stand.kit({ types: [type] });
    await kit.client.put(type, {
      id: "t",
      schedule: { every: "1h" },
      timeLimit: "30s",
      timeLimitGrace: "5s",
      payload: {},
    });
    await kit.advanceTo("1:30:00");
    await kit.expect("t").finishedAt(["1:00:35"]).outcomes(["timed-out"]);
    expect(await kit.client.runs.stats("t")).toMatchObject({ failures: 1, crashes: 0 });
  });
});

describe("D17 the wait after a crash doubles with each crash in a row", () => {
  it("5, 10, 20, 40 minutes, and 5 again after a success", async () => {
    const starts: number[] = [];
    let crashes = 0;
    const type = task(async () => {
      starts.push(Date.now());
      if (crashes === 4) return;
      crashes += 1;
      kit.at(Date.now() + 1_000, async () => {
        await kit.worker.crash();
        await kit.worker.start();
      });
      await kit.sleep("10m");
    });
    kit = await stand.kit({ types: [type] });
    const schedule = { at: "2026-01-01T00:01:00Z" };
    await kit.client.put(type, { id: "t", schedule, crash: { attempts: 10 }, payload: {} });
    await kit.advance("3h");
    const waits = starts.slice(1).map((time, i) => (time - (starts[i] as number)) / 60_000);
    // A crash is noticed within a minute or so, and then waits.
    expect(waits.map((wait, i) => wait - 5 * 2 ** i).every((more) => more >= 0 && more < 3)).toBe(true);
    expect(waits).toHaveLength(4);
    expect(await kit.client.runs.stats("t")).toMatchObject({ crashes: 4, consecutiveCrashes: 0 });
    crashes = 3;
    starts.length = 0;
    await kit.client.trigger("t");
    await kit.advance("30m");
    const again = ((starts[1] as number) - (starts[0] as number)) / 60_000;
    expect(again).toBeGreaterThanOrEqual(5);
    expect(again).toBeLessThan(8);
  });
});

describe("D17 the wait after a crash, capped, and over runs", () => {
  it("5, 10, 20, 40, 60, 60 minutes, of runs that have two attempts each", async () => {
    const starts: number[] = [];
    const type = task(async () => {
      starts.push(Date.now());
      kit.at(Date.now() + 1_000, async () => {
        await kit.worker.crash();
        await kit.worker.start();
      });
      await kit.sleep("10m");
    });
    kit = await stand.kit({ types: [type] });
    const task0 = { id: "t", schedule: { every: "1d" }, crash: { attempts: 2 }, payload: {} };
    await kit.client.put(type, task0);
    const waits: number[] = [];
    for (let run = 1; run <= 3; run++) {
      starts.length = 0;
      await kit.client.trigger("t");
      await kit.advance("3h");
      expect(starts).toHaveLength(2);
      waits.push(((starts[1] as number) - (starts[0] as number)) / 60_000);
    }
    // The crash that ends a run counts for the next one's wait.
    const exact = [5, 20, 60];
    expect(waits.map((wait, i) => wait - (exact[i] as number)).every((more) => more >= 0 && more < 3)).toBe(
      true,
    );
  });
});

describe("D19 the table of all tasks has their crashes", () => {
  it("counts workers that died, not the attempt under way, by SDK, CLI and HTTP", async () => {
    let calls = 0;
    const type = task(async () => {
      calls += 1;
      if (calls <= 2)
        kit.at(Date.now() + 1_000, async () => {
          await kit.worker.crash();
          await kit.worker.start();
        });
      await kit.sleep("1h");
    });
    kit = await stand.kit({ types: [type] });
    await kit.client.put(type, { id: "t", schedule: { at: "2026-01-01T00:01:00Z" }, payload: {} });
    await kit.client.put(type, { id: "idle", schedule: { every: "365d" }, payload: {} });
    await kit.advance("30m");
    expect(calls).toBe(3);
    const counts = { idle: [0, 0], t: [2, 2] };
    const of = (rows: readonly { task: { id: string }; crashes: number; consecutiveCrashes: number }[]) =>
      Object.fromEntries(
        rows.map(({ task: { id }, crashes, consecutiveCrashes }) => [id, [crashes, consecutiveCrashes]]),
      );
    expect(of((await operatorOf(kit.client).runs.statsMany()).tasks)).toEqual(counts);
    expect(await kit.client.runs.stats("t")).toMatchObject({ crashes: 2, consecutiveCrashes: 2 });
    const { stdout } = await stand.carillon(["stats", "--json"]);
    expect(of(JSON.parse(stdout).tasks)).toEqual(counts);
    const lines = (await stand.carillon(["stats"])).stdout.split("\n");
    const column = lines.find((line) => line.includes("CRASHES"))?.indexOf("CRASHES") ?? -1;
    expect(Number.parseInt(lines.find((line) => /\bt\b/.test(line))?.slice(column) ?? "", 10)).toBe(2);
  });
});

describe("D15 the table's rates and next times", () => {
  it("cancelled and dropped runs are neither successes nor failures; paused and finished tasks have no next time", async () => {
    const type = task(() => {});
    kit = await stand.kit({ types: [type] });
    await kit.client.put(type, { id: "t", schedule: { every: "1m" }, minGap: "5m", payload: {} });
    await kit.client.put(type, { id: "once", schedule: { at: "2026-01-01T00:01:00Z" }, payload: {} });
    await kit.advanceTo("02:30");
    await kit.worker.pause();
    const triggered = await kit.client.trigger("t");
    if (triggered.outcome === "enqueued") await kit.client.runs.cancel(triggered.run);
    await kit.worker.resume();
    await kit.client.pause("t");
    await kit.advance("10s");
    const { tasks } = await operatorOf(kit.client).runs.statsMany();
    expect(tasks).toMatchObject([
      { task: { id: "once" }, state: "finished", nextExecution: undefined, successRate: 1 },
      {
        task: { id: "t" },
        state: "paused",
        nextExecution: undefined,
        successRate: 1,
        outcomes: { succeeded: 1, dropped: 1, cancelled: 1 },
      },
    ]);
  });

  it("HTTP has the same table; the journal returns all of more than 200 ends of a queue, newest first", async () => {
    const { api, client, redis, stop } = await startConsole();
    stand.later(stop);
    const ENDS = 250;
    const types = [task(() => Promise.reject(new Error("no")))];
    const { namespace } = client;
    const worker = new Worker({ connection: redis.url, namespace, types, logger: SILENT, concurrency: 50 });
    const ended = new Set<string>();
    const all = gate();
    worker.on("settled", ({ run }: { run: string }) => {
      if (ended.add(run).size === ENDS) all.resolve();
    });
    stand.later(() => worker.stop());
    await worker.start();
    const given = { type: "work", queue: "bells", schedule: { every: "365d" } } as const;
    await client.put({ ...given, id: "t", overlap: "allow", retention: { failures: 1_000 } });
    await client.put({ ...given, id: "held", enabled: false });
    await Promise.all(Array.from({ length: ENDS }, () => client.trigger("t")));
    await all.promise;
    const table = JSON.parse(JSON.stringify(await operatorOf(client).runs.statsMany()));
    expect(table.tasks).toMatchObject([{ state: "paused" }, { failures: ENDS, successRate: 0 }]);
    expect(table.tasks[0].nextExecution).toBeUndefined();
    expect((await api("GET", "/runs/stats")).body).toEqual(table);
    const { runs } = (await api("GET", "/runs/journal?outcome=failed&limit=1000")).body as { runs: Run[] };
    expect(new Set(runs.map(({ id }) => id))).toEqual(ended);
    const ends = runs.map(({ finished = 0 }) => finished);
    expect(ends).toEqual(ends.toSorted((a, b) => b - a));
  });
});

describe("D21 the errors of all tasks are one view: grouped by cause, with whom they hit, and one cause is run again", () => {
  it("two causes over three tasks of two owners, one of them made up", async () => {
    const down = new Set(["a", "b", "c"]);
    const type = defineTask("work", {
      queue: "bells",
      payload: anything,
      handler: async (_, { occurrence: { task: id } }) => {
        if (down.has(id))
          throw new Error(id === "c" ? "no such table" : `connect ECONNREFUSED 10.0.0.1:${id.length}`);
      },
    });
    kit = await stand.kit({ types: [type] });
    const schedule = { every: "1m" } as const;
    for (const [owner, id] of [
      ["acme", "a"],
      ["beta", "b"],
      ["beta", "c"],
    ] as const)
      await kit.client.put(type, { owner, id, schedule, payload: {} });
    await kit.advance("2m");
    down.delete("a");
    await kit.advance("1m");
    const { failures, replayMany } = operatorOf(kit.client).runs;
    const { from, groups } = await failures();
    expect(groups).toMatchObject([
      { cause: { error: "Error: connect ECONNREFUSED …" }, runs: 5, madeUp: 2, owed: 3, tasks: 2, owners: 2 },
      { cause: { error: "Error: no such table" }, runs: 3, owed: 3, tasks: 1, owners: 1 },
    ]);
    expect((await failures({ by: "owner" })).groups).toMatchObject([
      { owner: "beta", runs: 6, owed: 6 },
      { owner: "acme", runs: 2, owed: 0 },
    ]);
    const again = await replayMany({ from, cause: groups[0]?.cause?.id, dryRun: true });
    expect(again).toMatchObject({
      total: 5,
      sample: [
        { id: "b", total: 3 },
        { id: "a", total: 2 },
      ],
    });
  });
});
