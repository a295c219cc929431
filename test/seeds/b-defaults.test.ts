import { operatorOf } from "@carillon/ops";
import { type Context, defineTask, type TaskInput } from "@carillon/sdk";
import { describe, expect, it } from "vitest";
import { anything, Stand } from "./harness.js";

const stand = Stand.use();

describe("B7 a default time box of half the interval, with a tolerance of 5 s", () => {
  const withBoxes = async (handler: (context: Context) => Promise<void>) => {
    const ring = defineTask("ring", {
      queue: "bells",
      payload: anything,
      handler: (_, context) => handler(context),
    });
    const kit = await stand.kit({ types: [ring], start: "2026-01-01T00:00:00Z" });
    await operatorOf(kit.client).defaults.set({
      scope: "all",
      policies: { timeLimit: "50%", tolerance: "5s" },
    });
    const put = (id: string, every: string) =>
      kit.client.put(ring, { id, schedule: { every }, overlap: "allow", payload: {} });
    return { kit, put };
  };

  it("a task without a time box ends at half its interval", async () => {
    const { kit, put } = await withBoxes(async ({ signal }) => {
      await kit.sleep("1h", { signal }).catch(() => {});
      signal.throwIfAborted();
    });
    await put("t", "60s");
    await kit.advance("95s");
    const [run] = await kit.client.runs.list("t");
    expect(run).toMatchObject({ outcome: "timed-out" });
    expect((run?.finished ?? 0) - (run?.started ?? 0)).toBe(30_000);
  });

  it("with a halved interval no run is dropped, except one that is early by more than 5 s", async () => {
    const { kit, put } = await withBoxes(async () => {});
    await put("t", "60s");
    await kit.advance("3m");
    await put("t", "30s");
    await kit.advance("3m");
    const outcomes = async () => (await kit.client.runs.list("t")).map(({ outcome }) => outcome);
    expect(await outcomes()).toEqual(Array(9).fill("succeeded"));
    // The worker pauses for a while, so that the waiting run starts 10 s before the next one.
    await kit.advance("1s");
    await kit.worker.pause();
    await kit.advance("49s");
    await kit.worker.resume();
    await kit.advance("15s");
    expect((await outcomes()).slice(0, 2)).toEqual(["dropped", "succeeded"]);
  });
});

describe("B7 whose defaults apply", () => {
  it("a task's own policy, then those of its type, its owner, and all; by put and putMany", async () => {
    const client = stand.client();
    const set = (scope: "all" | `owner:${string}` | `type:${string}`, timeLimit: string) =>
      operatorOf(client).defaults.set({ scope, policies: { timeLimit } });
    await set("all", "50%");
    await set("owner:acme", "40%");
    await set("type:mail", "30%");
    const at = { queue: "bells", schedule: { every: "1h" } } as const;
    const tasks: [TaskInput, string][] = [
      [{ ...at, id: "all", type: "ring" }, "50%"],
      [{ ...at, id: "owner", type: "ring", owner: "acme" }, "40%"],
      [{ ...at, id: "type", type: "mail", owner: "acme" }, "30%"],
      [{ ...at, id: "own", type: "mail", owner: "acme", timeLimit: "20%" }, "20%"],
    ];
    await client.putMany(tasks.map(([task]) => task));
    for (const [task, timeLimit] of tasks) {
      expect((await client.get(task)).timeLimit).toBe(timeLimit);
      expect(await client.put(task)).toMatchObject({ outcome: "unchanged" });
      const id = `${task.id}-alone`;
      await client.put({ ...task, id });
      expect((await client.get({ ...task, id })).timeLimit).toBe(timeLimit);
    }
  });
});

describe("B7 the tolerance is an interval less 5 s", () => {
  it.each([
    ["54 s after the first start: dropped", "02:00", ["succeeded", "dropped"]],
    ["57 s after it: runs", "02:03", ["succeeded", "succeeded"]],
  ] as const)("%s", async (_what, second, outcomes) => {
    const ring = defineTask("ring", { queue: "bells", payload: anything, handler: () => {} });
    const kit = await stand.kit({ types: [ring], concurrency: 1, start: "2026-01-01T00:00:00Z" });
    await operatorOf(kit.client).defaults.set({ scope: "all", policies: { tolerance: "5s" } });
    await kit.worker.pause();
    for (const moment of ["01:06", second]) {
      kit.at(moment, async () => {
        await kit.worker.resume();
        await kit.sleep("1ms");
        await kit.worker.pause();
      });
    }
    await kit.client.put(ring, { id: "t", schedule: { every: "60s" }, overlap: "allow", payload: {} });
    await kit.advanceTo("02:30");
    await kit.expect("t").outcomes([...outcomes]);
  });
});

describe("B8 a tolerance is about scheduled runs", () => {
  /** An hourly task with a tolerance of 5 s, which fails at 01:00. Returns its kit at 01:10. */
  async function failedAtOne(rest: Partial<TaskInput> = {}) {
    const done: string[] = [];
    const only = defineTask("one", {
      queue: "bells",
      payload: anything,
      handler: async (_, { occurrence }) => {
        done.push(occurrence.trigger);
        if (done.length === 1) throw new Error("the mailbox is full");
      },
    });
    const many = defineTask("many", {
      queue: "bells",
      payload: anything,
      generate: () => ["good", "bad"],
      process: async (item, { occurrence }) => {
        if (item === "good") return;
        done.push(occurrence.trigger);
        if (done.length === 1) throw new Error("no such folder");
      },
    });
    const kit = await stand.kit({ types: [only, many], start: "2026-01-01T00:00:00Z" });
    await operatorOf(kit.client).defaults.set({
      scope: "all",
      policies: { timeLimit: "50%", tolerance: "5s" },
    });
    await kit.client.put({
      id: "t",
      type: "one",
      queue: "bells",
      schedule: { every: "1h" },
      payload: {},
      ...rest,
    });
    await kit.advanceTo("01:10:00");
    expect(done[0]).toBe("schedule");
    const [failed] = (await kit.client.runs.list("t")).toReversed();
    expect(failed).toMatchObject({ outcome: "failed" });
    return { kit, done, failed: failed?.id as string };
  }

  it("a trigger runs", async () => {
    const { kit, done } = await failedAtOne();
    await kit.client.trigger("t");
    await kit.advance("1m");
    expect(done).toEqual(["schedule", "manual"]);
    await kit.expect("t").outcomes(["failed", "succeeded"]);
  });

  it("a rerun runs", async () => {
    const { kit, done } = await failedAtOne({ rerun: { delay: "10m", jitter: 0 } });
    await kit.advance("1m");
    expect(done).toEqual(["schedule", "retry"]);
    await kit.expect("t").outcomes(["failed", "succeeded"]);
  });

  it("a retry of the failed items runs", async () => {
    const { kit, done, failed } = await failedAtOne({ type: "many" });
    await operatorOf(kit.client).runs.retryItems({ id: failed });
    await kit.advance("1m");
    expect(done).toHaveLength(2);
    await kit.expect("t").outcomes(["failed", "succeeded"]);
  });

  it("a backfill runs", async () => {
    const { kit, done } = await failedAtOne();
    await operatorOf(kit.client).backfills.start({
      id: "t",
      from: kit.now - 3_600_000,
      to: kit.now,
      only: "failed",
    });
    await kit.advance("1m");
    expect(done).toEqual(["schedule", "backfill"]);
    await kit.expect("t").outcomes(["failed", "succeeded"]);
  });

  it("a run that the catch-up policy asks for is judged as a scheduled one", async () => {
    const { kit, done } = await failedAtOne();
    await kit.client.pause("t");
    kit.at("03:29:58", () => kit.client.trigger("t"));
    kit.at("03:30:00", () => kit.client.resume("t", { missed: "catch-up" }));
    await kit.advanceTo("03:31:00");
    expect(done).toEqual(["schedule", "manual"]);
    await kit.expect("t").outcomes(["failed", "succeeded", "dropped"]);
  });

  it("a scheduled run right after one of those is dropped", async () => {
    const { kit, done } = await failedAtOne();
    kit.at("01:59:00", () => kit.client.trigger("t"));
    await kit.advanceTo("02:01:00");
    expect(done).toEqual(["schedule", "manual"]);
    await kit.expect("t").outcomes(["failed", "succeeded", "dropped"]);
  });
});
