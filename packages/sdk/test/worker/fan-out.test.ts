import { itemId } from "@carillon/core/internal";
import { operatorOf } from "@carillon/ops";
import {
  CancelledError,
  CarillonError,
  defineTask,
  type ItemContext,
  type Json,
  PermanentError,
} from "@carillon/sdk";
import { Store } from "@carillon/store";
import { storeOf } from "@carillon/store/internal";
import { eventually } from "@carillon/testing";
import { describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { gate } from "../../../../test/helpers.js";
import { aborted, Bench, next, nothing, QUEUE } from "./bench.js";

const bench = Bench.use("fan");

const numbers = (count: number) => Array.from({ length: count }, (_, n) => n);

/** A task type with `count` numbers as its items. */
function many(count: number, process: (item: number, context: ItemContext) => unknown, rest: object = {}) {
  return defineTask("many", {
    queue: QUEUE,
    payload: nothing,
    generate: () => numbers(count),
    process: (item: number, context) => process(item, context) as Json,
    ...rest,
  });
}

describe("a run of many items", () => {
  it("works each item once as its own job, and is final when all items are", async () => {
    const done: [number, ItemContext][] = [];
    const type = defineTask("many", {
      queue: QUEUE,
      payload: z.object({ count: z.number() }),
      generate: async ({ count }, { log }) => {
        log("generating");
        return numbers(count).map((n) => ({ n }));
      },
      process: ({ n }, context) => void done.push([n, context]),
    });
    const worker = await bench.work([type]);
    const seen: string[] = [];
    for (const event of ["started", "generated", "settled", "fenced"] as const) {
      (worker as unknown as NodeJS.EventEmitter).on(event, () => seen.push(event));
    }
    const end = next(worker, "settled");
    const run = await bench.run("t", "many", { payload: { count: 100 } });
    expect(await end).toMatchObject({ run, outcome: "succeeded" });
    expect(done.map(([n]) => n).sort((a, b) => a - b)).toEqual(numbers(100));
    const [, context] = done.find(([n]) => n === 7) ?? [];
    const record = await bench.record(run);
    expect(context).toMatchObject({
      index: 7,
      attempt: 1,
      idempotencyKey: `${record?.key}/7`,
      occurrence: { run, task: "t" },
      fence: expect.any(Number),
    });
    expect(new Set(done.map(([, { fence }]) => fence)).size).toBe(1);
    expect(context?.timeLeft()).toBe(Number.POSITIVE_INFINITY);
    expect(record).toMatchObject({
      state: "final",
      outcome: "succeeded",
      attempts: 1,
      result: { total: 100, succeeded: 100, failed: 0, failures: [] },
    });
    expect(record?.crashes).toBeUndefined();
    // The attempt began with `generate`, not with `combine`.
    expect((await bench.client.runs.get(run)).attemptList).toMatchObject([
      { attempt: 1, started: record?.started },
    ]);
    expect(await bench.stats("t")).toMatchObject({ attempts: "1", crashes: "0", succeeded: "1" });
    expect(await bench.output(run)).toMatchObject([{ attempt: 1, text: "log generating\n" }]);
    expect(seen).toEqual(["started", "generated", "started", "settled"]);
    const jobs = bench.queue();
    const job = await eventually(async () => {
      const found = await jobs.getJob(run);
      return found && (await found.isCompleted()) ? found : false;
    });
    expect(job.progress).toEqual({ done: 100, failed: 0, total: 100 });
    // Its items are deleted from Redis.
    expect(await bench.keys(`${QUEUE}:${run}_*`)).toEqual([]);
  });

  it("has nothing to do without items", async () => {
    const worker = await bench.work([many(0, () => {})]);
    const end = next(worker, "settled");
    const run = await bench.run("t", "many");
    expect(await end).toMatchObject({ outcome: "nothing-to-do" });
    expect(await bench.record(run)).toMatchObject({ outcome: "nothing-to-do", attempts: 1 });
  });

  it("fails and names failed items, which do not affect others", async () => {
    const worker = await bench.work([
      many(30, (n) => {
        if (n % 10 === 7) throw new Error(`no ${n}`);
      }),
    ]);
    const end = next(worker, "settled");
    const run = await bench.run("t", "many", { retry: { attempts: 5, delay: "1ms" } });
    expect(await end).toMatchObject({
      outcome: "failed",
      error: "3 of 30 items failed. The first, item 7: no 7",
    });
    const failures = [7, 17, 27].map((n) => ({ index: n, error: `no ${n}` }));
    expect(await bench.record(run)).toMatchObject({
      outcome: "failed",
      result: { total: 30, succeeded: 27, failed: 3, failures },
    });
    const jobs = bench.queue();
    // Attempts of the run are those of `generate`; items have their own.
    await eventually(async () => expect(await (await jobs.getJob(run))?.isFailed()).toBe(true));
    expect(await jobs.getJob(run)).toMatchObject({ attemptsMade: 1 });
    expect(await bench.stats("t")).toMatchObject({ failed: "1", attempts: "1" });
    expect(await bench.keys(`${QUEUE}:${run}_*`)).toEqual([]);
  });

  it("names the first 20 of many failures", async () => {
    const worker = await bench.work([
      many(25, (n) => {
        throw new Error(`${n}${"x".repeat(10_000)}`);
      }),
    ]);
    const end = next(worker, "settled");
    const run = await bench.run("t", "many");
    await end;
    const result = (await bench.record(run))?.result as { failures: { index: number; error: string }[] };
    expect(result).toMatchObject({ total: 25, succeeded: 0, failed: 25 });
    expect(result.failures.map(({ index }) => index)).toEqual(numbers(20));
    expect(result.failures[0]?.error).toMatch(/^0x{499}…$/);
  });

  it("keeps the results of items with its job, truncated if they are long", async () => {
    const worker = await bench.work([many(2, (n) => "x".repeat(n === 0 ? 16_382 : 16_383))]);
    const end = next(worker, "settled");
    const run = await bench.run("t", "many");
    expect(await end).toMatchObject({ outcome: "succeeded" });
    const kept = await bench.admin.hgetall(`${bench.jobKey(run)}:processed`);
    const results = Object.entries(kept).map(([key, json]) => [key.slice(-1), JSON.parse(json)]);
    expect(Object.fromEntries(results)).toEqual({
      0: "x".repeat(16_382),
      1: { cut: true, length: 16_385 },
    });
  });

  it("cuts long records of items, except the data of failed ones", async () => {
    const long = "x".repeat(2_000);
    const got: string[] = [];
    const type = defineTask("many", {
      queue: QUEUE,
      payload: nothing,
      generate: () => [`a${long}`, `b${long}`],
      process: (item: string, { log }) => {
        got.push(item);
        log("y".repeat(5_000));
        if (item.startsWith("b")) throw new Error(long);
        return long;
      },
    });
    const worker = await bench.work([type]);
    let end = next(worker, "settled");
    const run = await bench.run("t", "many");
    await end;
    const cut = { cut: true, length: 2_003 };
    const { items } = await operatorOf(bench.client).runs.items({ id: run });
    expect(items).toMatchObject([
      { status: "completed", data: cut, result: { cut: true, length: 2_002 } },
      { status: "failed", data: `b${long}`, error: expect.stringMatching(/^Error: x{493}$/) },
    ]);
    for (const { output } of items) expect(output).toMatch(/^cut 2957 bytes before this\nlog y{2043}\n$/);
    end = next(worker, "settled");
    await operatorOf(bench.client).runs.retryItems({ id: run });
    await end;
    expect(got).toEqual([`a${long}`, `b${long}`, `b${long}`]);
  });

  it("retries items one by one, by the type's policy", async () => {
    const tries: string[] = [];
    const worker = await bench.work([
      many(
        3,
        (n, { attempt }) => {
          tries.push(`${n}.${attempt}`);
          if (n === 1 && attempt < 3) throw new Error("not yet");
          if (n === 2) throw new PermanentError("never".repeat(200));
        },
        { itemRetry: { attempts: 3, backoff: "linear", delay: "1ms", max: "2ms" } },
      ),
    ]);
    const end = next(worker, "settled");
    const run = await bench.run("t", "many");
    expect(await end).toMatchObject({ outcome: "failed" });
    expect(tries.sort()).toEqual(["0.1", "1.1", "1.2", "1.3", "2.1"]);
    expect(await bench.record(run)).toMatchObject({ result: { succeeded: 2, failed: 1 } });
  });

  it("runs no more items at once than the type allows", async () => {
    let [now, most] = [0, 0];
    const worker = await bench.work([
      many(
        20,
        async () => {
          now += 1;
          most = Math.max(most, now);
          await new Promise((resolve) => setImmediate(resolve));
          now -= 1;
        },
        { concurrency: 2 },
      ),
    ]);
    const end = next(worker, "settled");
    await bench.run("t", "many");
    expect(await end).toMatchObject({ outcome: "succeeded" });
    expect(most).toBe(2);
  });

  it("fails permanently with the reason if items are invalid", async () => {
    const generated: [unknown, string][] = [
      ["text", "generate must return an array of items."],
      [numbers(10_001), "generate returned 10001 items; a run has 10000 at most."],
      [Array(257).fill("x".repeat(262_000)), "generate returned items of more than 67108864 bytes in all."],
      [[1, { at: new Date() }], "items[1].at: a Date is not JSON."],
    ];
    const type = defineTask("many", {
      queue: QUEUE,
      payload: nothing,
      generate: () => generated[0]?.[0] as number[],
      process: () => {},
    });
    const worker = await bench.work([type]);
    for (const [, error] of [...generated]) {
      const end = next(worker, "settled");
      await bench.run("t", "many", { retry: { attempts: 3, delay: "1ms" } });
      expect(await end).toMatchObject({ outcome: "failed", error: expect.stringContaining(error) });
      generated.shift();
    }
  });

  it("retries a failed generate like a handler, and obeys runNextAt when all items are done", async () => {
    let calls = 0;
    const at = Date.now() + 3_600_000;
    const type = defineTask("many", {
      queue: QUEUE,
      payload: nothing,
      generate: (_payload, { runNextAt }) => {
        calls += 1;
        if (calls === 1) throw new Error("not yet");
        runNextAt(at);
        return ["a"];
      },
      process: () => {},
    });
    await bench.work([type]);
    const run = await bench.run("t", "many", {
      retry: { attempts: 2, delay: "1ms" },
      schedule: { every: "30d" },
    });
    await eventually(async () => expect(await bench.record(run)).toMatchObject({ outcome: "succeeded" }));
    const stored = await storeOf(bench.client).tasks.get({ queue: QUEUE, owner: "system", id: "t" });
    expect(stored).toMatchObject({ pending: [{ trigger: "self", at }] });
  });

  it("works all items again if it is retried from outside", async () => {
    const done: number[] = [];
    let broken = true;
    const worker = await bench.work([
      many(5, (n) => {
        done.push(n);
        if (n === 3 && broken) throw new Error("once");
      }),
    ]);
    let end = next(worker, "settled");
    const run = await bench.run("t", "many");
    expect(await end).toMatchObject({ outcome: "failed" });
    const jobs = bench.queue();
    const job = await eventually(async () => {
      const found = await jobs.getJob(run);
      return found && (await found.isFailed()) ? found : false;
    });
    broken = false;
    end = next(worker, "settled");
    await job.retry();
    expect(await end).toMatchObject({ outcome: "succeeded" });
    expect(done.sort()).toEqual([...numbers(5), ...numbers(5)].sort());
    expect(await bench.record(run)).toMatchObject({ result: { total: 5, succeeded: 5, failed: 0 } });
  });

  it("adds no item twice if it is generated twice, and works missing items", async () => {
    const done: number[] = [];
    const worker = await bench.work([many(600, (n) => void done.push(n))]);
    await worker.stop();
    const run = await bench.run("t", "many");
    const jobs = bench.queue();
    // The state after a worker died while it stored items: some are stored, and one is complete, not in order.
    const job = await jobs.getJob(run);
    await job?.updateData({ ...job.data, items: { round: 1 } });
    const { occurrence } = job?.data ?? {};
    const parent = { id: run, queue: jobs.qualifiedName };
    const stored = [0, 1, 5, 599].map((index) => ({
      name: "many",
      data: { child: true, item: index, index, fence: 1, grace: 1_000, occurrence },
      opts: { jobId: itemId(run, index), parent, removeOnComplete: true },
    }));
    await jobs.addBulk(stored);
    const record = "waiting 1 - - 0 - -\n";
    // Item 5 has no record: it is left from a round before that.
    const records = [0, 1, 599].flatMap((index) => [String(index), record, `d${index}`, String(index)]);
    await bench.admin.hset(bench.itemsKey(run), "round", 1, "n", 600, "most", 1, ...records);
    const [first] = await bench.keys(`${QUEUE}:${run}_0`);
    await bench.admin
      .multi()
      .srem(`${bench.jobKey(run)}:dependencies`, first as string)
      .hset(`${bench.jobKey(run)}:processed`, first as string, "null")
      .del(first as string)
      .lrem(`${bench.jobKey("wait")}`, 0, `${run}_0`)
      .exec();

    const end = next(await bench.work([many(600, (n) => void done.push(n))]), "settled");
    expect(await end).toMatchObject({ outcome: "succeeded" });
    expect(done.sort((a, b) => a - b)).toEqual(numbers(600).slice(1));
    expect(await bench.record(run)).toMatchObject({ result: { total: 600, succeeded: 600 } });
  });

  it("takes no foreign job for an item: the attempt fails and names it", async () => {
    const done: number[] = [];
    const run = await bench.run("t", "many", { retry: { attempts: 100, delay: "1ms" } });
    const jobs = bench.queue();
    const foreign = await jobs.add("other", {}, { jobId: itemId(run, 1), delay: 3_600_000 });
    const worker = await bench.work([many(3, (n) => void done.push(n))]);
    const error = expect.stringContaining(`job ${run}_1 of queue ${QUEUE} is not an item of this run`);
    expect(await next(worker, "settled")).toMatchObject({ run, outcome: "retrying", error });
    expect(done).toEqual([]);
    expect(await jobs.getJob(itemId(run, 1))).toMatchObject({ name: "other", parentKey: undefined });
    await foreign.remove();
    await eventually(async () =>
      expect(await bench.record(run)).toMatchObject({
        outcome: "succeeded",
        result: { total: 3, succeeded: 3 },
      }),
    );
    expect(done.sort()).toEqual([0, 1, 2]);
  });

  it("stores nothing of a worker that lost an item, nor of an attempt that lost the run", async () => {
    const [began, finish] = [gate(), bench.gate()];
    const type = many(1, async (_n, { log }) => {
      log("mine");
      began.resolve();
      await finish.promise;
    });
    const worker = await bench.work([type]);
    const end = next(worker, "settled");
    const run = await bench.run("t", "many");
    await began.promise;
    await eventually(async () => expect(await bench.keys(`${QUEUE}:waiting-children`)).toHaveLength(1));
    const { items, runs } = storeOf(bench.client);
    const stored = () => bench.admin.hgetall(bench.itemsKey(run));
    const before = await stored();
    const fence = Number(before["round"]);
    const name = { queue: QUEUE, owner: "system", id: "t" };
    const zombie = { name, run, index: 0, token: "lost" };
    expect(await items.start(zombie, { made: 8, pid: 1, worker: "zombie" })).toEqual({ word: "LOST" });
    await items.end(zombie, { status: "completed" });
    await runs.saveOutput(QUEUE, run, { index: 0, token: "lost" }, "log zombie\n", false);
    // The run's job is held by an attempt of this fence.
    await bench.admin.set(`${bench.jobKey(run)}:lock`, "held");
    const adding = { queue: QUEUE, run, type: "many", round: fence, data: {}, options: { attempts: 1 } };
    for (const who of [
      { fence: fence - 1, token: "held" },
      { fence, token: "lost" },
    ])
      expect(await items.add({ ...adding, ...who }, [{ index: 1, item: 1 }])).toBeUndefined();
    expect(await stored()).toEqual(before);
    // The one that has it adds it, once.
    for (const _ of [1, 2])
      expect(await items.add({ ...adding, fence, token: "held" }, [{ index: 0, item: 0 }])).toBe(1);
    await bench.admin.del(`${bench.jobKey(run)}:lock`);
    finish.resolve();
    expect(await end).toMatchObject({ run, outcome: "succeeded" });
    expect((await operatorOf(bench.client).runs.items({ id: run })).items).toMatchObject([
      { attempts: 1, output: "log mine\n", worker: worker.id, pid: process.pid },
    ]);
  });

  it("counts no crash while some items are left", async () => {
    const done: number[] = [];
    const states: unknown[] = [];
    const run = await bench.run("t", "many");
    const jobs = bench.queue();
    // The state after a worker died that had stored all items, and not yet recorded that the run waits for them.
    const job = await jobs.getJob(run);
    await job?.updateData({ ...job.data, items: { round: 1, total: 3 } });
    const { occurrence } = job?.data ?? {};
    const opts = { parent: { id: run, queue: jobs.qualifiedName }, removeOnComplete: true };
    await jobs.addBulk(
      numbers(3).map((index) => ({
        name: "many",
        data: { child: true, item: index, index, fence: 1, grace: 1_000, occurrence },
        opts: { ...opts, jobId: itemId(run, index) },
      })),
    );
    const type = many(3, async (n) => {
      states.push((await bench.record(run))?.state);
      done.push(n);
    });
    await bench.work([type], { concurrency: 1 });
    const final = async () => expect(await bench.record(run)).toMatchObject({ state: "final" });
    await eventually(final);
    const record = await bench.record(run);
    expect(record).toMatchObject({ outcome: "succeeded", attempts: 1, result: { total: 3, succeeded: 3 } });
    expect(record).not.toHaveProperty("crashes");
    expect(states).toEqual(["queued", "queued", "queued"]);
    expect(done.sort()).toEqual([0, 1, 2]);
  });

  it("postpones an item whose run cannot be read", async () => {
    const done: number[] = [];
    const store = new Store({ connection: bench.redis.url, namespace: bench.namespace });
    const { get } = store.runs;
    let refused = 0;
    vi.spyOn(store.runs, "get").mockImplementation(async (...of) => {
      refused += 1;
      if (refused === 1) throw new CarillonError("REDIS_UNAVAILABLE", "gone for a moment.");
      return get.apply(store.runs, of);
    });
    const type = many(3, (n) => void done.push(n));
    const worker = await bench.work([type], { connection: undefined, store });
    const end = next(worker, "settled");
    await bench.run("t", "many");
    expect(await end).toMatchObject({ outcome: "succeeded" });
    expect(done.sort()).toEqual([0, 1, 2]);
    await worker.stop();
    await store.close();
  });

  it("aborts an item that lost its job, and works it again", async () => {
    const seen: unknown[] = [];
    const worker = await bench.work(
      [
        many(1, async (_n, { attempt, occurrence, signal }) => {
          seen.push(attempt);
          if (attempt > 1) return;
          await bench.admin.del(`${bench.jobKey(itemId(occurrence.run, 0))}:lock`);
          await aborted(signal).catch(({ name }: Error) => seen.push(name));
        }),
      ],
      { lockDuration: 1_000, stalledInterval: 1_000 },
    );
    worker.on("error", () => {});
    const end = next(worker, "settled");
    await bench.run("t", "many", { crash: { delay: "1ms" } });
    expect(await end).toMatchObject({ outcome: "succeeded" });
    expect(seen).toEqual([1, "LockLostError", 2]);
  });

  it("gives items its priority", async () => {
    const [began, finish] = [gate(), bench.gate()];
    const type = many(2, async () => {
      began.resolve();
      await finish.promise;
    });
    const worker = await bench.work([type]);
    const end = next(worker, "settled");
    const run = await bench.run("t", "many", { priority: 7 });
    await began.promise;
    expect(await bench.queue().getJob(`${run}_1`)).toMatchObject({ priority: 7 });
    finish.resolve();
    await end;
  });

  it("stores no items if it is cancelled while it generates", async () => {
    const began = gate();
    const type = defineTask("many", {
      queue: QUEUE,
      payload: nothing,
      generate: async (_payload, { signal }) => {
        began.resolve();
        await aborted(signal).catch(() => {});
        return [1, 2, 3];
      },
      process: () => {},
    });
    const worker = await bench.work([type]);
    const end = next(worker, "settled");
    const run = await bench.run("t", "many");
    await began.promise;
    await bench.cancel("t", run);
    expect(await end).toMatchObject({ run, outcome: "cancelled" });
    expect(await bench.keys(`${QUEUE}:${run}_*`)).toEqual([]);
  });

  it("stores no items if its attempt lost the job", async () => {
    const type = defineTask("many", {
      queue: QUEUE,
      payload: nothing,
      generate: async (_payload, { occurrence, attempt }) => {
        if (attempt === 1) await bench.admin.del(`${bench.jobKey(occurrence.run)}:lock`);
        return [1, 2, 3];
      },
      process: () => {},
    });
    const worker = await bench.work([type]);
    worker.on("error", () => {});
    const fenced = next(worker, "fenced");
    const run = await bench.run("t", "many");
    expect(await fenced).toMatchObject({ run });
    expect(await bench.keys(`${QUEUE}:${run}*`)).toEqual([bench.jobKey(run)]);
    expect(await bench.record(run)).toMatchObject({ state: "running" });
  });

  it("passes a cancel to running items, and skips the others", async () => {
    const reasons: unknown[] = [];
    const began = gate();
    let calls = 0;
    const worker = await bench.work(
      [
        many(50, async (_n, { signal }) => {
          calls += 1;
          if (calls === 3) began.resolve();
          await aborted(signal).catch((reason: unknown) => reasons.push(reason));
        }),
      ],
      { concurrency: 3 },
    );
    const run = await bench.run("t", "many");
    await began.promise;
    await eventually(async () => expect(await bench.keys(`${QUEUE}:waiting-children`)).toHaveLength(1));
    const cancelled = next(worker, "cancelled");
    expect(await bench.cancel("t", run)).toBe("OK");
    expect(await cancelled).toMatchObject({ run });
    expect(reasons).toHaveLength(3);
    expect(reasons.every((reason) => reason instanceof CancelledError)).toBe(true);
    expect(calls).toBe(3);
    expect(await bench.record(run)).toMatchObject({ state: "final", outcome: "cancelled" });
    await eventually(async () => expect(await bench.keys(`${QUEUE}:${run}_*`)).toEqual([]));
  });

  it("passes a cancel to items that wait for a place", async () => {
    const began = gate();
    let calls = 0;
    const worker = await bench.work([
      many(
        5,
        async (_n, { signal }) => {
          calls += 1;
          began.resolve();
          await aborted(signal);
        },
        { concurrency: 1 },
      ),
    ]);
    const run = await bench.run("t", "many");
    await began.promise;
    await eventually(async () => expect(await bench.admin.llen(bench.jobKey("active"))).toBe(5));
    const cancelled = next(worker, "cancelled");
    await bench.cancel("t", run);
    await cancelled;
    expect(calls).toBe(1);
  });

  it("works an item whose workers died while it waited for a place", async () => {
    const began = gate();
    const finish = bench.gate();
    const attempts: number[] = [];
    const worker = await bench.work(
      [
        many(
          2,
          async (n, { attempt }) => {
            began.resolve();
            if (n === 0) await finish.promise;
            else attempts.push(attempt);
          },
          { concurrency: 1 },
        ),
      ],
      { concurrency: 1 },
    );
    const run = await bench.run("t", "many");
    await began.promise;
    // The state after three deaths, none of them during an attempt.
    await bench.admin.hset(bench.jobKey(`${run}_1`), "stc", 3);
    const end = next(worker, "settled");
    finish.resolve();
    expect(await end).toMatchObject({ outcome: "succeeded" });
    expect(attempts).toEqual([1]);
    expect(await bench.record(run)).not.toHaveProperty("crashes");
  });

  it("skips the items of a deleted task, and leaves nothing", async () => {
    const began = gate();
    const finish = bench.gate();
    const done: number[] = [];
    await bench.work(
      [
        many(20, async (n) => {
          done.push(n);
          began.resolve();
          await finish.promise;
        }),
      ],
      { concurrency: 1 },
    );
    const run = await bench.run("t", "many");
    await began.promise;
    await bench.client.delete("t");
    finish.resolve();
    await eventually(async () => expect(await bench.keys(`${QUEUE}:${run}*`)).toEqual([]));
    expect(done).toEqual([0]);
  });

  it("reports its progress", async () => {
    const finish = bench.gate();
    await bench.work([
      many(10, async (n) => {
        if (n === 3) throw new Error("no");
        if (n === 9) await finish.promise;
      }),
    ]);
    const run = await bench.run("t", "many");
    const jobs = bench.queue();
    await eventually(async () =>
      expect((await jobs.getJob(run))?.progress).toEqual({ done: 9, failed: 1, total: 10 }),
    );
    finish.resolve();
    await eventually(async () =>
      expect((await jobs.getJob(run))?.progress).toEqual({ done: 10, failed: 1, total: 10 }),
    );
  });

  it("loses and doubles no item if connections are cut while items are stored", async () => {
    const done: number[] = [];
    const worker = await bench.work([many(2_000, (n) => void done.push(n))], {
      // An item whose hand-over was interrupted is found once its lock runs out.
      lockDuration: 5_000,
      stalledInterval: 500,
    });
    worker.on("error", () => {});
    let stored = false;
    worker.once("generated", () => {
      stored = true;
    });
    const end = next(worker, "settled");
    const run = await bench.run("t", "many");
    const left = () => bench.admin.scard(`${bench.jobKey(run)}:dependencies`);
    let [before, cuts] = [0, 0];
    for (; cuts < 5; cuts++) {
      await eventually(async () => stored || (await left()) !== before, { intervalMs: 1 });
      if (stored) break;
      await bench.admin.call("CLIENT", "KILL", "TYPE", "NORMAL", "SKIPME", "YES");
      before = await left();
    }
    expect(cuts).toBeGreaterThan(1);
    expect(await end).toMatchObject({ outcome: "succeeded" });
    expect(done.sort((a, b) => a - b)).toEqual(numbers(2_000));
    expect(await bench.record(run)).toMatchObject({ result: { total: 2_000, succeeded: 2_000 } });
  });
});

describe("a definition with items", () => {
  const base = { queue: QUEUE, payload: nothing };
  const generate = () => [1];
  const process = () => {};
  it.each<[string, object]>([
    ["process", { generate }],
    ["generate", { process }],
    ["handler", { generate, process, handler: () => {} }],
    ["concurrency", { generate, process, concurrency: 0 }],
    ["itemRetry.attempts", { generate, process, itemRetry: { attempts: 1.5 } }],
    ["itemRetry.backoff", { generate, process, itemRetry: { backoff: "square" } }],
    ["itemRetry.delay", { generate, process, itemRetry: { delay: "1" } }],
    ["itemRetry.dealy", { generate, process, itemRetry: { dealy: "5s" } }],
    ["itemRetry", { generate, process, itemRetry: null }],
  ])("is refused if %s is wrong", (field, options) => {
    expect(() => defineTask("many", { ...base, ...options } as never)).toThrow(
      expect.objectContaining({ field }),
    );
  });
});
