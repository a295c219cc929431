import { type AnswerTo, operatorOf } from "@carillon/ops";
import { type Context, defineTask, type Json, type Outcome, type Run } from "@carillon/sdk";
import { displayState } from "@carillon/sdk/internal";
import type { TestKit } from "@carillon/testing";
import { describe, expect, it } from "vitest";
import { anything, Stand } from "./harness.js";

const stand = Stand.use();
let kit: TestKit;

function task(handler: (context: Context) => unknown) {
  return defineTask("work", {
    queue: "bells",
    payload: anything,
    handler: async (_payload, context) => (await handler(context)) as Json,
  });
}

describe("D7 the statistics of a task add up", () => {
  /** Statistics computed from the records of all runs alone. */
  function expected(runs: readonly Run[]) {
    const of = (...outcomes: Outcome[]) =>
      runs.filter(({ outcome }) => outcome !== undefined && outcomes.includes(outcome));
    const good = of("succeeded", "partial", "nothing-to-do");
    const bad = of("failed", "timed-out", "crashed", "lost");
    const took = (some: readonly Run[]) =>
      some.reduce((sum, { started, finished }) => sum + (started && finished ? finished - started : 0), 0);
    const last = (times: (number | undefined)[]) =>
      times.reduce((a, b) => (b !== undefined && (a === undefined || b > a) ? b : a), undefined);
    const acted = runs.filter(({ outcome }) => outcome !== "nothing-to-do");
    return {
      runs: runs.length,
      open: runs.filter(({ state }) => state !== "final").length,
      successes: good.length,
      failures: bad.length,
      successMs: took(good),
      failureMs: took(bad),
      lastStart: last(acted.map(({ started }) => started)),
      lastFinish: last(acted.filter(({ outcome }) => outcome !== "dropped").map(({ finished }) => finished)),
      lastSuccess: last(of("succeeded", "partial").map(({ finished }) => finished)),
    };
  }

  it("with a run of each outcome, they add up at each moment", async () => {
    let calls = 0;
    const started = (context: Context): unknown => {
      calls += 1;
      const { signal, nothingToDo, occurrence } = context;
      switch (occurrence.trigger === "manual" ? "manual" : new Date(occurrence.nominal).getUTCMinutes()) {
        case 2:
          return kit.sleep("5s").then(() => Promise.reject(new Error("no")));
        case 3:
        case 7:
          return kit.sleep("1h", { signal });
        case 4:
          return kit.sleep("1h", { signal }).catch(() => "enough");
        case 5:
          return kit.sleep("3s").then(() => nothingToDo());
        case 6:
          return kit.sleep("1h", { signal });
        default:
          return kit.sleep("10s");
      }
    };
    const type = task(started);
    kit = await stand.kit({
      types: [type],
      retention: { completedJobs: { for: 60_000 }, failedJobs: { for: 60_000 } },
    });
    await kit.client.put(type, {
      id: "t",
      schedule: { every: "1m" },
      overlap: "allow",
      timeLimit: "20s",
      minGap: "30s",
      crash: { attempts: 1 },
      payload: {},
    });
    const openRun = async () => (await kit.client.runs.list("t", { limit: 1 }))[0]?.id ?? "";
    kit.at("01:20", () => kit.client.trigger("t"));
    kit.at("06:05", async () => void (await kit.client.runs.cancel(await openRun())));
    kit.at("07:05", async () => {
      await kit.worker.crash();
      await kit.worker.start();
    });
    // The run of 08:00 begins late, so that of 09:00 begins too soon after it, and is dropped.
    kit.at("07:50", () => kit.worker.pause());
    kit.at("08:40", () => kit.worker.resume());
    kit.at("09:50", () => kit.worker.pause());
    const queue = stand.queue("bells");
    kit.at("10:02", async () => void (await queue.remove(await openRun())));
    kit.at("10:40", () => kit.worker.resume());
    kit.at("11:02", () => kit.worker.pause());
    kit.at("11:04", () => kit.client.trigger("t"));

    for (let seconds = 5; seconds <= 665; seconds += 15) {
      await kit.advanceTo(Date.parse("2026-01-01T00:00:00Z") + seconds * 1_000);
      const [{ runs }, stats] = [await kit.history("t"), await kit.client.runs.stats("t")];
      expect(stats).toMatchObject(expected(runs));
      // Invariant 6: counters, records and their sum agree.
      const sum = Object.values(stats.outcomes).reduce((a, b) => a + b, 0);
      expect(sum + stats.open).toBe(runs.length);
      for (const [outcome, count] of Object.entries(stats.outcomes))
        expect(runs.filter((run) => run.outcome === outcome)).toHaveLength(count);
      expect(stats.attempts).toBe(calls);
    }
    const stats = await kit.client.runs.stats("t");
    expect(stats.outcomes).toEqual({
      succeeded: 3,
      failed: 1,
      "timed-out": 1,
      partial: 1,
      "nothing-to-do": 1,
      cancelled: 1,
      dropped: 1,
      crashed: 1,
      lost: 1,
    });
    // One run is running, and one waits.
    expect(stats).toMatchObject({ runs: 13, open: 2, crashes: 1, consecutiveCrashes: 0 });
    expect(stats).toMatchObject({ consecutiveFailures: 2, lastOutcome: "lost" });
    expect((await kit.client.get("t")).nextExecution).toBe(Date.parse("2026-01-01T00:12:00Z"));
  });

  it("failures and crashes in a row are counted until a success", async () => {
    let n = 0;
    const type = task(({ signal }) => {
      n += 1;
      if (n <= 2 || n === 5) return Promise.reject(new Error("no"));
      return n === 3 ? kit.sleep("1h", { signal }) : undefined;
    });
    kit = await stand.kit({ types: [type] });
    await kit.client.put(type, { id: "t", schedule: { every: "10m" }, crash: { attempts: 1 }, payload: {} });
    kit.at("30:01", async () => {
      await kit.worker.crash();
      await kit.worker.start();
    });
    const seen: unknown[] = [];
    for (let minutes = 15; minutes <= 55; minutes += 10) {
      await kit.advanceTo(`${minutes}:00`);
      const { consecutiveFailures, consecutiveCrashes } = await kit.client.runs.stats("t");
      seen.push([consecutiveFailures, consecutiveCrashes]);
    }
    expect(seen).toEqual([
      [1, 0],
      [2, 0],
      [3, 1],
      [0, 0],
      [1, 0],
    ]);
  });
});

describe("D10 a task's display state goes through SCHEDULED, STARTING, TERMINATING, DISABLED", () => {
  it("it goes through each of them", async () => {
    const type = task(({ signal }) =>
      kit.sleep("1h", { signal }).catch(() => kit.sleep("5s").then(() => Promise.reject(new Error("late")))),
    );
    kit = await stand.kit({ types: [type] });
    const trace: unknown[] = [];
    const look = (at: string) =>
      kit.at(at, async () => {
        const [seen, runs] = await Promise.all([kit.client.get("t"), kit.client.runs.list("t")]);
        trace.push([at, seen.state, runs.map(({ state }) => state).join(), displayState(seen, runs)]);
        expect(seen.displayState).toBe(displayState(seen, runs));
      });
    await kit.client.put(type, {
      id: "t",
      schedule: { every: "1m", end: "2026-01-01T00:03:30Z" },
      timeLimit: "20s",
      payload: {},
    });
    await kit.worker.pause();
    kit.at("01:10", () => kit.worker.resume());
    kit.at("01:40", () => kit.client.pause("t"));
    kit.at("02:30", () => kit.client.resume("t"));
    for (const at of ["00:30", "01:05", "01:15", "01:32", "01:36", "01:45", "02:15", "02:45"]) look(at);
    for (const at of ["03:10", "03:22", "03:26"]) look(at);
    await kit.advanceTo("04:00");
    expect(trace).toEqual([
      ["00:30", "scheduled", "", "SCHEDULED"],
      ["01:05", "scheduled", "queued", "SCHEDULED"],
      ["01:15", "scheduled", "running", "STARTING"],
      ["01:32", "scheduled", "terminating", "TERMINATING"],
      ["01:36", "scheduled", "final", "SCHEDULED"],
      ["01:45", "paused", "final", "DISABLED"],
      ["02:15", "paused", "final", "DISABLED"],
      ["02:45", "scheduled", "final", "SCHEDULED"],
      ["03:10", "finished", "running,final", "STARTING"],
      ["03:22", "finished", "terminating,final", "TERMINATING"],
      ["03:26", "finished", "final,final", "DISABLED"],
    ]);
  });
});

describe("D10 a paused task whose run goes on", () => {
  it("is STARTING until the run ends, then DISABLED", async () => {
    const type = task(() => kit.sleep("1m"));
    kit = await stand.kit({ types: [type] });
    await kit.client.put(type, { id: "t", schedule: { every: "1h" }, payload: {} });
    kit.at("1:00:30", () => kit.client.pause("t"));
    await kit.advanceTo("1:00:40");
    expect(await kit.client.get("t")).toMatchObject({ state: "paused", displayState: "STARTING" });
    await kit.advanceTo("1:01:10");
    expect(await kit.client.get("t")).toMatchObject({ state: "paused", displayState: "DISABLED" });
  });
});

describe("D13 manual runs are in the journal", () => {
  it("they are listed with their author, scheduled or paused", async () => {
    const type = task(() => "done");
    kit = await stand.kit({ types: [type] });
    await kit.client.put(type, { id: "t", schedule: { every: "1h" }, payload: {} });
    kit.at("30:00", () => kit.client.trigger("t"));
    kit.at("1:10:00", () => kit.client.pause("t"));
    kit.at("1:30:00", () => kit.client.trigger("t", { by: "ann" }));
    await kit.advanceTo("3:00:00");
    const { runs } = await kit.client.runs.journal({ task: "t" });
    expect(runs.map(({ by }) => by)).toEqual(["ann", undefined, undefined]);
    expect(runs.map(({ trigger, started, outcome }) => [trigger, started, outcome])).toEqual([
      ["manual", Date.parse("2026-01-01T01:30:00Z"), "succeeded"],
      ["schedule", Date.parse("2026-01-01T01:00:00Z"), "succeeded"],
      ["manual", Date.parse("2026-01-01T00:30:00Z"), "succeeded"],
    ]);
    expect(runs[0]?.node).toMatch(/^client-/);
    expect(await kit.client.runs.stats("t")).toMatchObject({ runs: 3, successes: 3 });
  });
});

describe("D14 history is pruned by count and age, per task", () => {
  const record = (id: string) => `{${stand.namespace}:bells}:~r:${id}`;

  const [MANY, FEWER] = [1_200, 300];
  /** Short, because nodes and workers have their own work in each minute that passes. */
  const EVERY = 2_000;
  it(`${MANY} runs: the cap of each kind is left, and nothing else in Redis`, async () => {
    const type = task(({ occurrence }) => {
      if (occurrence.task !== "good" && (occurrence.nominal / EVERY) % 4 === 0) throw new Error("no");
    });
    kit = await stand.kit({ types: [type], retention: { successes: 5, failures: 5 }, patience: 20_000 });
    const put = (id: string, rest: { maxRuns: number; retention?: object }) => {
      const { maxRuns, ...more } = rest;
      return kit.client.put(type, { id, schedule: { every: "2s", maxRuns }, payload: {}, ...more });
    };
    await put("t", { maxRuns: MANY, retention: { successes: 50, failures: 20 } });
    await put("failures-only", { maxRuns: FEWER, retention: { successes: 0, failures: 1_000 } });
    // The node's defaults apply if the task sets none.
    await put("good", { maxRuns: 50 });
    await kit.advance((MANY + 60) * EVERY);

    const kept = { t: [MANY, 50, 20], "failures-only": [FEWER, 0, FEWER / 4], good: [50, 5, 0] } as const;
    for (const [id, [all, successes, failures]] of Object.entries(kept)) {
      expect(await kit.client.runs.stats(id)).toMatchObject({ runs: all });
      const { runs } = await kit.client.runs.journal({ task: id, limit: 1_000 });
      expect(runs.filter(({ outcome }) => outcome === "succeeded")).toHaveLength(successes);
      expect(runs.filter(({ outcome }) => outcome === "failed")).toHaveLength(failures);
      expect(await kit.client.runs.list(id, { limit: 1_000 })).toHaveLength(successes + failures);
      expect(await stand.admin.keys(record(`${id}@*`))).toHaveLength(successes + failures);
    }
    // The newest are kept, without a gap.
    const { runs } = await kit.client.runs.journal({ task: "t", outcome: "failed" });
    const end = Date.parse("2026-01-01T00:00:00Z") + MANY * EVERY;
    expect(runs.map(({ nominal }) => (end - nominal) / (4 * EVERY))).toEqual(runs.map((_, i) => i));
  });

  it("old runs are deleted before the cap is reached", async () => {
    const type = task(() => {});
    kit = await stand.kit({ types: [type] });
    const retention = { successes: 1_000, successesFor: "3h" };
    await kit.client.put(type, { id: "t", schedule: { every: "10m" }, retention, payload: {} });
    await kit.advance("10h");
    const { runs } = await kit.client.runs.journal({ task: "t" });
    expect(runs).toHaveLength(19);
    expect(await stand.admin.keys(record("t@*"))).toHaveLength(19);
    expect(Math.min(...runs.map(({ finished }) => finished ?? 0))).toBe(kit.now - 3 * 3_600_000);
  });
});

describe("D15 one call returns the statistics of all tasks, and one all failures of all queues, newest first", () => {
  const FAILURES = ["failed", "timed-out", "crashed", "lost"] as const;
  const minutes = (n: number) => Date.parse("2026-01-01T00:00:00Z") + n * 60_000;

  it("they cover 3 queues, 5 tasks and 4 kinds of failure", async () => {
    const type = (queue: string, name: string, handler: (context: Context) => unknown) =>
      defineTask(name, {
        queue,
        payload: anything,
        handler: async (_payload, context) => (await handler(context)) as Json,
      });
    const forever = ({ signal }: Context) => kit.sleep("1h", { signal });
    const types = {
      good: type("x", "good", () => kit.sleep("2s")),
      fails: type("x", "fails", () => kit.sleep("3s").then(() => Promise.reject(new Error("no")))),
      slow: type("y", "slow", forever),
      dies: type("y", "dies", forever),
      gone: type("z", "gone", () => kit.sleep("1s")),
    };
    kit = await stand.kit({ types: Object.values(types) });
    const put = (id: keyof typeof types, first: number, more: object = {}) =>
      kit.client.put(types[id], {
        id,
        payload: {},
        schedule: { every: "10m", origin: new Date(minutes(first)).toISOString() },
        ...more,
      });
    await put("good", 1, { tags: ["nightly"] });
    await put("fails", 2, { tags: ["nightly"] });
    await put("slow", 3, { timeLimit: "20s", owner: "acme" });
    await put("dies", 4, { crash: { attempts: 1 } });
    await put("gone", 5);
    kit.at("04:05", async () => {
      await kit.worker.crash();
      await kit.worker.start();
    });
    kit.at("14:05", async () => {
      await kit.worker.crash();
      await kit.worker.start();
    });
    // The job of the second run is deleted before a worker takes it.
    kit.at("14:50", () => kit.worker.pause());
    kit.at("15:01", async () => {
      const [run] = await kit.client.runs.list("gone", { limit: 1 });
      await stand.queue("z").remove(run?.id ?? "");
    });
    kit.at("15:30", () => kit.worker.resume());
    await kit.advanceTo("20:30");

    const { tasks, cursor } = await operatorOf(kit.client).runs.statsMany();
    const shown = tasks.map(
      ({ task, lastOutcome, lastMs, successRate, consecutiveFailures, runs, nextExecution }) => [
        `${task.queue} ${task.owner}/${task.id}`,
        lastOutcome,
        lastMs,
        successRate,
        consecutiveFailures,
        runs,
        nextExecution,
      ],
    );
    expect(shown).toEqual([
      ["x system/fails", "failed", 3_000, 0, 2, 2, minutes(22)],
      ["x system/good", "succeeded", 2_000, 1, 0, 2, minutes(21)],
      ["y acme/slow", "timed-out", 20_000, 0, 2, 2, minutes(23)],
      ["y system/dies", "crashed", expect.any(Number), 0, 2, 2, minutes(24)],
      ["z system/gone", "lost", undefined, 0.5, 1, 2, minutes(25)],
    ]);
    expect(cursor).toBeUndefined();
    // Each row equals the statistics of its task.
    for (const { task, state, nextExecution, ...stats } of tasks) {
      expect(await kit.client.runs.stats(task)).toMatchObject(stats);
      expect(await kit.client.get(task)).toMatchObject({ state, nextExecution });
    }

    const ids = ({ tasks: found }: AnswerTo<"runs.statsMany">) => found.map(({ task }) => task.id);
    const { runs: all } = operatorOf(kit.client);
    expect(ids(await all.statsMany({ sort: "next" }))).toEqual(["good", "fails", "slow", "dies", "gone"]);
    expect(ids(await all.statsMany({ outcome: [...FAILURES], sort: "next", queue: "y" }))).toEqual([
      "slow",
      "dies",
    ]);
    expect(ids(await all.statsMany({ outcome: ["lost", "crashed"] }))).toEqual(["dies", "gone"]);
    expect(ids(await all.statsMany({ tag: "nightly", outcome: "failed" }))).toEqual(["fails"]);
    expect(ids(await all.statsMany({ owner: "acme" }))).toEqual(["slow"]);
    const first = await all.statsMany({ sort: "next", limit: 3 });
    const second = await all.statsMany({ sort: "next", limit: 3, cursor: first.cursor });
    expect([...ids(first), ...ids(second)]).toEqual(["good", "fails", "slow", "dies", "gone"]);
    const listed = await kit.client.list({ sort: "next", outcome: FAILURES });
    expect(listed.tasks.map(({ id }) => id)).toEqual(["fails", "slow", "dies", "gone"]);

    const journal = await kit.client.runs.journal({ outcome: FAILURES });
    const ends = journal.runs.map(({ finished = 0 }) => finished);
    expect(ends).toEqual(ends.toSorted((a, b) => b - a));
    expect(new Set(journal.runs.map(({ task }) => task.queue))).toEqual(new Set(["x", "y", "z"]));
    const count = (wanted: Outcome) => journal.runs.filter(({ outcome }) => outcome === wanted).length;
    expect([...FAILURES.map(count), journal.runs.length]).toEqual([2, 2, 2, 1, 7]);
    const some = await kit.client.runs.journal({ outcome: ["lost", "crashed"], limit: 2 });
    const rest = await kit.client.runs.journal({ outcome: ["lost", "crashed"], cursor: some.cursor });
    expect([...some.runs, ...rest.runs]).toEqual(
      journal.runs.filter(({ outcome }) => outcome === "lost" || outcome === "crashed"),
    );

    // The command prints the same.
    const cli = JSON.parse((await stand.carillon(["stats", "--json"])).stdout);
    expect(cli).toEqual(JSON.parse(JSON.stringify({ tasks })));
    const failed = JSON.parse((await stand.carillon(["journal", "--failures", "--json"])).stdout);
    expect(failed).toEqual(JSON.parse(JSON.stringify(journal)));
  });
});
