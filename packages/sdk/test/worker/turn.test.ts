import { defineTask, type Worker } from "@carillon/sdk";
import { Store } from "@carillon/store";
import { storeOf, withSeams } from "@carillon/store/internal";
import { eventually } from "@carillon/testing";
import type { Worker as BullWorker, Job } from "bullmq";
import { Worker as PlainWorker } from "bullmq";
import { afterEach, describe, expect, it, vi } from "vitest";
import { attempt, gate } from "../../../../test/helpers.js";
import { Bench, next, nothing, QUEUE, typed } from "./bench.js";

const bench = Bench.use("turn");
const stores: Store[] = [];
afterEach(async () => {
  for (const store of stores.splice(0)) await store.close();
});

/** A store with a failpoint. */
function failing(failpoint: (point: string) => void | Promise<void>): {
  connection: undefined;
  store: Store;
} {
  const options = { connection: bench.redis.url, namespace: bench.namespace };
  const store = new Store(withSeams(options, { failpoint }));
  stores.push(store);
  return { connection: undefined, store };
}

async function runs(count: number, payload = {}): Promise<string[]> {
  const first = await bench.run("t", "type", { payload });
  const others = await Promise.all(Array.from({ length: count - 1 }, () => bench.again("t")));
  return [first, ...others];
}

async function settledAll(ids: readonly string[]): Promise<void> {
  for (const id of ids)
    await eventually(async () => expect(await bench.record(id)).toMatchObject({ state: "final" }));
}

/** Each run and its job ended once, and nothing counts as a crash. */
async function expectOnce(ids: readonly string[], handler: ReturnType<typeof vi.fn>): Promise<void> {
  await settledAll(ids);
  expect(handler).toHaveBeenCalledTimes(ids.length);
  const queue = bench.queue();
  for (const id of ids) {
    const record = await bench.record(id);
    expect(record).toMatchObject({ outcome: "succeeded", attempts: 1 });
    expect(record).not.toHaveProperty("crashes");
    const job = (await queue.getJob(id)) as Job;
    expect(await job.getState()).toBe("completed");
    expect(job).toMatchObject({ attemptsMade: 1, attemptsStarted: 1, stalledCounter: 0 });
  }
  const all = String(ids.length);
  const counts = { attempts: all, succeeded: all, crashes: "0", consecutiveCrashes: "0" };
  expect(await bench.stats("t")).toMatchObject(counts);
  expect((await queue.getJobCounts())["active"]).toBe(0);
}

describe("a lost answer to a turn", () => {
  it.each([
    ["before", 1],
    ["after", 1],
    // More often than the store itself tries.
    ["before", 6],
    ["after", 6],
  ])("has no effect, lost %s the script, %d times: each run is worked once", async (when, times) => {
    const handler = vi.fn(async () => ({ done: true }));
    const type = defineTask("type", { queue: QUEUE, payload: nothing, handler });
    let turn = 0;
    let left = 0;
    const failpoint = (point: string) => {
      if (point === "before turn" && left === 0) {
        turn += 1;
        // The first takes, the second ends and takes, the third ends.
        if (turn <= 3) left = times;
      }
      if (point !== `${when} turn` || left === 0) return;
      left -= 1;
      throw new Error("Connection is closed.");
    };
    const ids = await runs(4);
    const worker = await bench.work([type], { ...failing(failpoint), concurrency: 2 });
    worker.on("error", () => {});
    await expectOnce(ids, handler);
    expect(turn).toBeGreaterThanOrEqual(3);
  });

  it("hands out no job that another worker has taken meanwhile", async () => {
    const handler = vi.fn();
    const type = defineTask("type", { queue: QUEUE, payload: nothing, handler });
    const [run] = (await runs(1)) as [string];
    let lost = false;
    const failpoint = async (point: string) => {
      if (point !== "after turn" || lost) return;
      lost = true;
      await bench.admin.set(`${bench.jobKey(run)}:lock`, "another");
      throw new Error("Connection is closed.");
    };
    await bench.admin.config("RESETSTAT");
    const worker = await bench.work([type], failing(failpoint));
    await eventually(async () => expect((await bench.keys("~turn:*")).length).toBeGreaterThan(0));
    const asked = async () =>
      Number(/cmdstat_bzpopmin:calls=(\d+)/.exec(await bench.admin.info("commandstats"))?.[1] ?? 0);
    await eventually(async () => expect(await asked()).toBeGreaterThan(0));
    await worker.stop();
    expect(handler).not.toHaveBeenCalled();
    expect(await bench.admin.get(`${bench.jobKey(run)}:lock`)).toBe("another");
  });
});

it.each([[{}], [{ resetAttemptsMade: true }]])(
  "a run that succeeded runs again if its job is retried with %j",
  async (how) => {
    const handler = vi.fn();
    const type = defineTask("type", { queue: QUEUE, payload: nothing, handler });
    const [run] = (await runs(1)) as [string];
    await bench.work([type]);
    const job = () => bench.queue().getJob(run);
    for (const times of [1, 2, 3]) {
      await eventually(async () => expect(handler).toHaveBeenCalledTimes(times));
      await eventually(async () => expect(await (await job())?.isCompleted()).toBe(true));
      await (await job())?.retry("completed", how);
    }
  },
);

describe("the end of a run whose lock was lost", () => {
  /** Runs a worker whose handler waits until `act` is done. */
  async function losing(act: (run: string) => Promise<unknown>) {
    const [begun, go] = [gate<string>(), gate()];
    const type = typed(async ({ occurrence }) => {
      begun.resolve(occurrence.run);
      await go.promise;
      return "done";
    });
    await runs(1);
    // Before the end, no check for stalled jobs runs and no lock is renewed.
    const worker = await bench.work([type], { lockDuration: 600_000, stalledInterval: 600_000 });
    worker.on("error", () => {});
    const run = await begun.promise;
    await act(run);
    go.resolve();
    return { run, worker };
  }

  it("has no effect if another attempt has begun", async () => {
    let fenced: Promise<unknown> | undefined;
    const second = attempt({ worker: "second", pid: 2, attempt: 2, token: "second" });
    const name = { queue: QUEUE, owner: "system", id: "t" };
    const begun = gate<Worker>();
    const { run, worker } = await losing(async (id) => {
      await bench.admin.set(`${bench.jobKey(id)}:lock`, "second");
      const { runs: records } = storeOf(bench.client);
      expect(await records.start(name, id, second)).toMatchObject({ word: "WAIT" });
      await bench.admin.hdel(`${bench.jobKey(id).replace(`:${QUEUE}:`, ":~r:")}`, "notBefore");
      expect(await records.start(name, id, second)).toMatchObject({ word: "OK", attempt: 2 });
      fenced = begun.promise.then((it) => next(it, "fenced"));
    });
    begun.resolve(worker);
    expect(await fenced).toMatchObject({ run });
    expect(await bench.record(run)).toMatchObject({ state: "running", worker: "second" });
    expect(await bench.admin.get(`${bench.jobKey(run)}:lock`)).toBe("second");
    expect(await (await bench.queue().getJob(run))?.getState()).toBe("active");
  });

  it("counts if no other attempt has begun, and the next worker only ends the job", async () => {
    const { run, worker } = await losing((id) => bench.admin.del(`${bench.jobKey(id)}:lock`));
    await settledAll([run]);
    expect(await bench.record(run)).toMatchObject({ outcome: "succeeded", attempts: 1 });
    expect(await (await bench.queue().getJob(run))?.getState()).toBe("active");
    await worker.stop();
    // Deletes the mark of its own check for stalled jobs.
    await bench.admin.del(bench.jobKey("stalled-check"));
    const handler = vi.fn();
    const type = defineTask("type", { queue: QUEUE, payload: nothing, handler });
    await bench.work([type], { stalledInterval: 100 });
    const job = bench.queue();
    await eventually(async () => expect(await (await job.getJob(run))?.getState()).toBe("completed"));
    expect(handler).not.toHaveBeenCalled();
    expect(await bench.stats("t")).toMatchObject({ succeeded: "1", crashes: "0" });
  });
});

it("corrupt data of one task does not stop the other ends of a turn, nor its own job's", async () => {
  const [all, go] = [gate(), gate()];
  let begun = 0;
  const handler = vi.fn(async () => {
    begun += 1;
    if (begun === 4) all.resolve();
    await go.promise;
  });
  const type = defineTask("type", { queue: QUEUE, payload: nothing, handler });
  const ids = [...(await runs(3)), await bench.run("bad", "type")];
  const worker = await bench.work([type]);
  await all.promise;
  const history = bench.jobKey("").replace(`:${QUEUE}:`, ":~hist:system/bad");
  await bench.admin.set(history, "in the way");
  const told: string[] = [];
  const four = gate();
  worker.on("settled", ({ run }) => told.push(run) === 4 && four.resolve());
  go.resolve();
  await four.promise;
  await settledAll(ids.slice(0, 3));
  const queue = bench.queue();
  for (const id of ids)
    await eventually(async () => expect(await (await queue.getJob(id))?.getState()).toBe("completed"));
  expect(await bench.record(ids[3] as string)).toMatchObject({ state: "running" });
});

it("many jobs at once wake all idle workers, plain ones too", async () => {
  const seen = new Map<string, number>();
  const enough = gate();
  const type = (who: string) =>
    typed(async () => {
      seen.set(who, (seen.get(who) ?? 0) + 1);
      if (seen.size === 4) enough.resolve();
      // No single worker finishes them all before the others have woken up.
      await enough.promise;
    });
  for (const who of ["a", "b", "c"]) await bench.work([type(who)], { concurrency: 10 });
  const plain: BullWorker = new PlainWorker(
    QUEUE,
    async () => {
      seen.set("plain", (seen.get("plain") ?? 0) + 1);
      if (seen.size === 4) enough.resolve();
      await enough.promise;
    },
    {
      connection: { url: bench.redis.url },
      prefix: bench.jobKey("").replace(`:${QUEUE}:`, ""),
      concurrency: 10,
    },
  );
  await plain.waitUntilReady();
  const ids = await runs(60);
  await enough.promise;
  const done = async () => expect((await bench.queue().getJobCounts())["completed"]).toBe(ids.length);
  await eventually(done);
  await plain.close();
  expect([...seen.values()].reduce((sum, n) => sum + n)).toBe(ids.length);
});

it("a turn that ends a run also takes a job that came meanwhile, without a marker", async () => {
  const hold = gate();
  const turns: number[] = [];
  let turn = 0;
  const handler = vi.fn(async () => {
    turns.push(turn);
    if (turns.length === 1) await hold.promise;
  });
  const type = defineTask("type", { queue: QUEUE, payload: nothing, handler });
  const failpoint = (point: string) => {
    if (point === "before turn") turn += 1;
  };
  const [first] = (await runs(1)) as [string];
  await bench.work([type], { ...failing(failpoint), concurrency: 2 });
  await eventually(() => expect(turns).toHaveLength(1));
  const queue = bench.queue();
  // A paused queue sets no marker.
  await queue.pause();
  const second = await bench.again("t");
  await bench.admin.hdel(queue.toKey("meta"), "paused");
  const before = turn;
  hold.resolve();
  await settledAll([first, second]);
  expect(turns[1]).toBe(before + 1);
});
