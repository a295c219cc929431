import { operatorOf } from "@carillon/ops";
import { type Context, defineTask, type ItemContext, PermanentError, TimeLimitError } from "@carillon/sdk";
import type { TestKit } from "@carillon/testing";
import { describe, expect, test, vi } from "vitest";
import { explained } from "../../packages/ops/test/in-words.js";
import { lastingKeys } from "../helpers.js";
import { anything, Stand } from "./harness.js";

const stand = Stand.use();
const START = Date.parse("2026-01-01T00:00:00Z");
const at = (seconds: number) => START + seconds * 1_000;

/**
 * A task due every minute at the half minute, with a tolerance of 5 s, and a worker that takes one job at each of these
 * moments.
 */
async function everyMinute(
  takesOneAt: readonly string[],
  handler: (kit: TestKit, context: Context) => Promise<void>,
): Promise<TestKit> {
  const ring = defineTask("ring", {
    queue: "bells",
    payload: anything,
    handler: (_payload, context) => handler(kit, context),
  });
  const kit = await stand.kit({ types: [ring], concurrency: 1 });
  await kit.worker.pause();
  for (const moment of takesOneAt) {
    kit.at(moment, async () => {
      await kit.worker.resume();
      await kit.sleep("1ms");
      await kit.worker.pause();
    });
  }
  await kit.client.put(ring, {
    id: "t",
    schedule: { every: "60s", origin: "2026-01-01T00:00:30Z" },
    overlap: "allow",
    minGap: "55s",
    payload: {},
  });
  return kit;
}

describe("B2 a run that starts too soon after the last one is dropped", () => {
  test.each([
    ["45 s: dropped", "00:45", "01:30", false],
    ["54.999 s: dropped", "00:35.001", "01:30", false],
    ["55 s: runs", "00:35", "01:30", true],
    ["95 s: runs", "00:30", "02:05", true],
  ])("after %s", async (_what, first, second, runs) => {
    let started = 0;
    const kit = await everyMinute([first, second], async () => {
      started += 1;
    });
    // Decided at the start of the run: it was enqueued.
    await kit.advanceTo("02:06");
    await kit.expect("t").firedAt(["00:30", "01:30"]);
    expect(started).toBe(runs ? 2 : 1);
    if (runs) return kit.expect("t").ranAt([first, second]).outcomes(["succeeded", "succeeded"]);
    await kit.expect("t").ranAt([first]).outcomes(["succeeded", "dropped"]);
    const { runs: dropped } = await kit.client.runs.journal({ task: "t", outcome: "dropped" });
    expect(dropped).toHaveLength(1);
    expect(dropped[0]?.error).toMatch(/^started (45000|54999) ms after the run before/);
    expect(await explained(kit.client, "t", dropped[0]?.nominal ?? 0)).toMatchObject({
      summary: expect.stringMatching(
        /and was dropped, since it started (45000|54999) ms after the run before\.$/,
      ),
    });
    expect(await kit.client.runs.stats("t")).toMatchObject({
      runs: 2,
      outcomes: { succeeded: 1, dropped: 1 },
    });
  });
});

describe("B3 the last run is counted from its start, and kept when it failed", () => {
  test("the last run of a failing task is its start", async () => {
    const kit = await everyMinute(["00:45", "01:30", "02:35"], async (kit) => {
      await kit.sleep("10s");
      throw new Error("the mailbox is full");
    });
    await kit.advanceTo("01:29");
    expect(await kit.client.runs.stats("t")).toMatchObject({
      lastStart: at(45),
      lastFinish: at(55),
      lastSuccess: undefined,
      lastOutcome: "failed",
    });
    // 45 s after that start: too early although the run before failed. A dropped run does not count as one.
    await kit.advanceTo("01:31");
    await kit.expect("t").outcomes(["failed", "dropped"]);
    expect(await kit.client.runs.stats("t")).toMatchObject({ lastStart: at(45), lastFinish: at(55) });
    await kit.advanceTo("02:50");
    await kit.expect("t").ranAt(["00:45", "02:35"]).outcomes(["failed", "dropped", "failed"]);
    expect(await kit.client.runs.stats("t")).toMatchObject({ lastStart: at(155), lastFinish: at(165) });
  });
});

describe("B4 a time box of half the interval", () => {
  async function boxed(handler: (kit: TestKit, context: Context) => unknown): Promise<TestKit> {
    const sweep = defineTask("sweep", {
      queue: "bells",
      payload: anything,
      handler: async (_payload, context) => (await handler(kit, context)) as never,
    });
    const kit = await stand.kit({ types: [sweep] });
    await kit.client.put(sweep, { id: "t", schedule: { every: "60s" }, timeLimit: "50%", payload: {} });
    return kit;
  }

  test("the run ends as partial after 30 s, and the next goes on from its cursor", async () => {
    const swept: [run: string, item: number][] = [];
    const left: number[] = [];
    const kit = await boxed(async (kit, { checkpoint, saveCheckpoint, timeLeft, partial, nothingToDo }) => {
      let item = Number(checkpoint ?? 0);
      const begun = new Date().toISOString().slice(14, 19);
      if (item === 10) return nothingToDo();
      for (left.push(timeLeft()); item < 10; ) {
        if (timeLeft() === 0) return partial({ cursor: item });
        await kit.sleep("5s");
        swept.push([begun, item]);
        item += 1;
        await saveCheckpoint(item);
      }
      return { cursor: item };
    });
    await kit.advanceTo("03:10");
    await kit
      .expect("t")
      .ranAt(["01:00", "02:00", "03:00"])
      .finishedAt(["01:30", "02:20", "03:00"])
      .outcomes(["partial", "succeeded", "nothing-to-do"]);
    expect(left).toEqual([30_000, 30_000]);
    expect(swept).toEqual([
      ...[0, 1, 2, 3, 4, 5].map((item) => ["01:00", item]),
      ...[6, 7, 8, 9].map((item) => ["02:00", item]),
    ]);
    const runs = await kit.client.runs.list("t");
    expect(runs.map(({ result }) => result)).toEqual([undefined, { cursor: 10 }, { cursor: 6 }]);
    expect(await kit.client.runs.stats("t")).toMatchObject({
      successes: 3,
      failures: 0,
      outcomes: { partial: 1 },
    });
  });

  test("a run that is interrupted, or does not stop, is timed out, not partial", async () => {
    const reasons: unknown[] = [];
    const kit = await boxed(async (kit, { signal, occurrence }) => {
      signal.addEventListener("abort", () => reasons.push(signal.reason));
      await kit.sleep("55s", occurrence.nominal === at(60) ? { signal } : {});
    });
    await kit.advanceTo("02:59");
    await kit
      .expect("t")
      .ranAt(["01:00", "02:00"])
      .finishedAt(["01:30", "02:40"])
      .outcomes(["timed-out", "timed-out"]);
    expect(reasons).toEqual([expect.any(TimeLimitError), expect.any(TimeLimitError)]);
    expect(await kit.client.runs.stats("t")).toMatchObject({ successes: 0, failures: 2, crashes: 0 });
  });
});

describe("B5 an owner's tasks go with the owner", () => {
  async function twoOwners() {
    const handled: string[] = [];
    const note = (queue: string) =>
      defineTask(`type-${queue}`, {
        queue,
        payload: anything,
        handler: (_payload, { occurrence }) => void handled.push(`${occurrence.owner}/${occurrence.task}`),
      });
    const types = [note("bells"), note("mail")] as const;
    const kit = await stand.kit({ types });
    await kit.worker.pause();
    const put = (type: (typeof types)[number], owner: string, id: string) =>
      kit.client.put(type, { owner, id, schedule: { every: "1m" }, overlap: "allow", payload: {} });
    await put(types[0], "acme", "a");
    await put(types[0], "acme", "b");
    await put(types[1], "acme", "c");
    await put(types[0], "beta", "a");
    return { kit, handled };
  }

  test("they are paused and resumed together", async () => {
    const { kit } = await twoOwners();
    expect(
      await operatorOf(kit.client).tasks.pauseMany({ owner: "acme", note: "moving" }, { by: "ops" }),
    ).toMatchObject({
      count: 3,
    });
    await kit.advance("2m");
    for (const id of ["a", "b", "c"]) await kit.expect(`acme/${id}`).fired(0).state("paused");
    await kit.expect("beta/a").fired(2).state("scheduled");
    expect(await operatorOf(kit.client).tasks.resumeMany({ owner: "acme" })).toMatchObject({ count: 3 });
    await kit.advance("1m");
    for (const id of ["a", "b", "c"]) await kit.expect(`acme/${id}`).firedFor(["03:00"]).state("scheduled");
  });

  test("they are deleted together, and their queued jobs do nothing", async () => {
    const { kit, handled } = await twoOwners();
    await kit.advance("1m");
    const [bells, mail] = [stand.queue("bells"), stand.queue("mail")];
    const queued = await bells.getWaiting();
    const ours = queued.filter(({ data }) => data.occurrence.owner === "acme");
    expect([queued.length, ours.length, await mail.getWaitingCount()]).toEqual([3, 2, 1]);

    expect(await operatorOf(kit.client).tasks.deleteMany({ owner: "acme" })).toMatchObject({ count: 3 });
    expect((await kit.client.list({ owner: "acme" })).tasks).toEqual([]);
    expect(await kit.client.count()).toBe(1);
    await expect(kit.client.get("acme/a")).rejects.toMatchObject({ code: "TASK_NOT_FOUND" });

    // A job that is restored from a backup, or was in flight, no longer counts as the task's.
    const stale = await bells.add(ours[0]?.name ?? "", ours[0]?.data, { jobId: ours[0]?.id ?? "" });
    await kit.worker.resume();
    await kit.advance("30s");
    expect(handled).toEqual(["beta/a"]);
    expect(await bells.getJobState(stale.id ?? "")).toBe("completed");
    expect(await mail.getJobCountByTypes()).toBe(0);

    await kit.advance("10m");
    expect(new Set(handled)).toEqual(new Set(["beta/a"]));
  });

  test("runs under way at the deletion leave nothing behind", async () => {
    const slow = defineTask("slow", { queue: "bells", payload: anything, handler: () => kit.sleep("30s") });
    const kit = await stand.kit({ types: [slow] });
    await kit.client.put(slow, { owner: "acme", id: "a", schedule: { every: "1m" }, payload: {} });
    await kit.advance("1m");
    await kit.expect("acme/a").ranAt(["01:00"]);
    // All keys but the kit's own clock.
    const ours = async () =>
      (await lastingKeys(stand.admin, `{${stand.namespace}:bells}:~*`)).filter(
        (key) => !key.endsWith("~clock"),
      );
    expect(await ours()).not.toEqual([]);
    expect(await operatorOf(kit.client).tasks.deleteMany({ owner: "acme" })).toMatchObject({ count: 1 });
    await kit.advance("1h");
    await vi.waitFor(async () => expect(await ours()).toEqual([]), { timeout: 60_000 });
    expect(await stand.queue("bells").getJobCounts("waiting", "active", "delayed", "failed")).toEqual({
      waiting: 0,
      active: 0,
      delayed: 0,
      failed: 0,
    });
  });
});

describe("B6 an interval is positive, and creating a task twice leaves one", () => {
  const task = { id: "t", type: "ring", queue: "bells" };

  test.each([["-20s"], ["-20"], [-20], ["0s"], [0]])(
    "an interval of %j is refused, nothing is stored",
    async (every) => {
      const client = stand.client();
      await expect(client.put({ ...task, schedule: { every: every as string } })).rejects.toMatchObject({
        code: "INVALID_DURATION",
        field: "schedule.every",
      });
      expect(await client.count()).toBe(0);
      expect(await stand.admin.keys(`{${stand.namespace}*`)).toEqual([]);
    },
  );

  test("the command line refuses it too", async () => {
    const { code, stderr } = await stand.carillon(
      ["put", "--json"],
      JSON.stringify({ ...task, schedule: { every: "-20s" } }),
    );
    expect(code).toBe(2);
    expect(JSON.parse(stderr)).toMatchObject({
      error: { code: "INVALID_DURATION", field: "schedule.every" },
    });
    expect(await stand.client().count()).toBe(0);
  });

  test("created twice is one task, and the second put changes nothing", async () => {
    const client = stand.client();
    const put = () => client.put({ ...task, schedule: { every: "20s" } });
    expect(await put()).toMatchObject({ outcome: "created" });
    const stored = await client.get("t");
    expect(await put()).toMatchObject({ outcome: "unchanged", nextExecution: stored.nextExecution });
    expect(await client.get("t")).toEqual(stored);
    expect(await client.count()).toBe(1);
    expect((await client.list()).tasks).toHaveLength(1);
  });
});

describe("B9 the time limit of a fan-out is one of the whole run", () => {
  const starts: [item: number, at: number][] = [];
  const done: number[] = [];
  let kit: TestKit;
  /** Six items of 20 s, one at a time, every minute in a box of half of it. */
  async function boxed(generate: () => number[], rest: object = {}): Promise<void> {
    for (const list of [starts, done]) list.length = 0;
    const many = defineTask("many", {
      queue: "bells",
      payload: anything,
      generate,
      process: async (item: number, { signal }) => {
        starts.push([item, kit.now]);
        await kit.sleep("20s", { signal });
        done.push(item);
      },
      concurrency: 1,
    });
    kit = await stand.kit({ types: [many] });
    await operatorOf(kit.client).defaults.set({
      scope: "all",
      policies: { timeLimit: "50%", tolerance: "5s" },
    });
    await kit.client.put(many, { id: "t", schedule: { every: "60s" }, payload: {}, ...rest });
  }
  const six = () => [0, 1, 2, 3, 4, 5];
  const runs = async () => (await kit.client.runs.list("t")).reverse();

  test("the run ends after 30 s, no occurrence is skipped, and the next runs do what is left", async () => {
    await boxed(six);
    await kit.advanceTo("01:59");
    const [first] = await runs();
    expect(first).toMatchObject({
      outcome: "timed-out",
      finished: (first?.started ?? 0) + 30_000,
      result: { total: 6, succeeded: 1, failed: 0, left: 5 },
      error: "The time limit left 5 of 6 items, 1 of them under way.",
    });
    const { items } = await operatorOf(kit.client).runs.items({ id: first?.id ?? "" });
    expect(items.map(({ status }) => status)).toEqual(["completed", ...Array(5).fill("cancelled")]);
    await kit.advanceTo("06:59");
    await kit.expect("t").firedAt(["01:00", "02:00", "03:00", "04:00", "05:00", "06:00"]).skipped(0);
    expect(done).toEqual([0, 1, 2, 3, 4, 5]);
    // Items that are left come first. `generate` returned the same again: nothing is there twice.
    expect((await runs()).map(({ result }) => (result as { total: number }).total)).toEqual(Array(6).fill(6));
  });

  test("new items come after those that are left, and a retry does what no other run has taken", async () => {
    let next = 0;
    await boxed(() => [next++, next++, next++]);
    await kit.advanceTo("01:40");
    const [first] = await runs();
    const ops = operatorOf(kit.client);
    await kit.client.pause("t");
    const { run } = await ops.runs.retryItems({ id: first?.id ?? "" });
    expect((await ops.runs.retryItems({ id: first?.id ?? "" })).run).toBe(run);
    await kit.advanceTo("02:15");
    expect(await kit.client.runs.get(run)).toMatchObject({
      itemsOf: first?.id,
      result: { total: 2, left: 1 },
    });
    await kit.client.resume("t");
    await kit.advanceTo("03:45");
    const [, , third] = await runs();
    expect(third).toMatchObject({ result: { total: 4, succeeded: 1, left: 3 } });
    const { items } = await ops.runs.items({ id: third?.id ?? "" });
    expect(items.map(({ data }) => data)).toEqual([2, 3, 4, 5]);
    expect(items[0]?.key).toBe(`${first?.key}/2`);
    // Others have taken them since.
    await expect(ops.runs.retryItems({ id: first?.id ?? "" })).resolves.toEqual(
      expect.objectContaining({ run }),
    );
  });

  /** A daily task with a limit of 30 s, and one item at a time for each of these names. */
  async function daily(items: readonly string[], work: (item: string, context: ItemContext) => unknown) {
    const many = defineTask("many", {
      queue: "bells",
      payload: anything,
      generate: () => [...items],
      process: async (item: string, context) => void (await work(item, context)),
      itemRetry: { attempts: 5, delay: "1h" },
    });
    kit = await stand.kit({ types: [many] });
    await kit.client.put(many, { id: "t", schedule: { every: "1d" }, payload: {}, timeLimit: "30s" });
    const seconds = async () => {
      await kit.client.trigger("t");
      await kit.advance("5m");
      const [run] = await kit.client.runs.list("t");
      return { ...run, took: ((run?.finished ?? 0) - (run?.started ?? 0)) / 1_000 };
    };
    return seconds;
  }

  test("a run whose items return at the limit is partial; one that waits for its retry is left", async () => {
    const next = await daily(["returns", "waits"], async (item, { signal }) => {
      if (item === "waits") throw new Error("no");
      await kit.sleep("10m", { signal }).catch(() => {});
    });
    expect(await next()).toMatchObject({
      outcome: "partial",
      took: 30,
      result: { succeeded: 1, failed: 0, left: 1 },
    });
  });

  test("failures of items are named with what the limit left; an item that ignores its signal has failed", async () => {
    const next = await daily(["fails", "left", "ignores"], async (item, { signal }) => {
      if (item === "fails") throw new PermanentError("no");
      await kit.sleep("10m", item === "left" ? { signal } : {});
    });
    const error =
      "The time limit left 1 of 3 items, 1 of them under way. 2 of 3 items failed. The first, item 0: no";
    expect(await next()).toMatchObject({ outcome: "timed-out", error });
    // Only what was left is done by itself. What failed is for a retry.
    expect(await next()).toMatchObject({ result: { total: 3 } });
  });

  test("an item keeps its idempotency key until it is done, and is done by one run only", async () => {
    const keys: string[] = [];
    const next = await daily(["a"], async (_item, { signal, idempotencyKey }) => {
      keys.push(idempotencyKey);
      if (keys.length < 3) await kit.sleep("10m", { signal });
    });
    const runs = [await next(), await next(), await next(), await next()];
    expect(runs.map(({ outcome }) => outcome)).toEqual(["timed-out", "timed-out", "succeeded", "succeeded"]);
    expect(keys).toEqual([...Array(3).fill(`${runs[0]?.key}/0`), `${runs[3]?.key}/0`]);
    for (const { id } of runs)
      await expect(operatorOf(kit.client).runs.retryItems({ id: id as string })).rejects.toThrow(
        "no failed items",
      );
  });

  test("a crashed item that is left goes on waiting in the next run", async () => {
    const starts: number[] = [];
    const next = await daily(["a"], async () => {
      starts.push(kit.now);
      if (starts.length === 1) await kit.sleep("1d");
    });
    kit.at("00:10", async () => {
      await kit.worker.crash();
      await kit.worker.start();
    });
    await kit.client.trigger("t");
    await kit.advance("2m");
    expect((await kit.client.runs.list("t"))[0]).toMatchObject({
      outcome: "partial",
      crashes: 1,
      result: { left: 1 },
    });
    expect(await next()).toMatchObject({ outcome: "partial", took: 30, result: { left: 1 } });
    expect(starts).toHaveLength(1);
    expect(await next()).toMatchObject({ outcome: "succeeded" });
    expect((starts[1] ?? 0) - (starts[0] ?? 0)).toBeGreaterThanOrEqual(310_000);
  });
});
