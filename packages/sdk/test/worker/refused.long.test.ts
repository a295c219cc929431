import { once } from "node:events";
import { type AnyTaskType, type Context, defineTask, Worker, type WorkerOptions } from "@carillon/sdk";
import { Store } from "@carillon/store";
import { storeOf, withSeams } from "@carillon/store/internal";
import { eventually } from "@carillon/testing";
import { afterEach, describe, expect, it, vi } from "vitest";
import { attempt, ownRedis, SILENT } from "../../../../test/helpers.js";
import { Bench, next, nothing, QUEUE } from "./bench.js";

const bench = Bench.use("refused", ownRedis());
const noop = defineTask("noop", { queue: QUEUE, payload: nothing, handler: () => {} });

describe("a Redis that refuses to hand out jobs", () => {
  const set = (maxmemory: string) => bench.admin.config("SET", "maxmemory", maxmemory);
  afterEach(() => set("0"));

  it("is asked once a second, and the jobs run when it accepts writes again", async () => {
    const run = await bench.run("t", "noop");
    await set("1");
    const worker = new Worker({
      connection: bench.redis.url,
      namespace: bench.namespace,
      types: [noop],
      logger: SILENT,
    });
    // BullMQ's check for stalled jobs is refused too, at any time: its error has other words.
    const refused: number[] = [];
    worker.on("error", ({ message }) => {
      if (/out of memory/.test(message)) refused.push(performance.now());
    });
    await worker.start();
    await eventually(() => expect(refused.length).toBeGreaterThanOrEqual(3));
    const [first, , third] = refused as [number, number, number];
    expect(third - first).toBeGreaterThan(1_500);
    await set("0");
    await eventually(async () => expect(await bench.record(run)).toMatchObject({ outcome: "succeeded" }));
    await worker.stop();
  });
});

/** A failover that connections survive: for a moment Redis is a replica, and accepts no writes. */
describe("a Redis that is read-only for a short time", () => {
  const refusals = async () => {
    const found = /errorstat_READONLY:count=(\d+)/.exec(await bench.admin.info("errorstats"));
    return Number(found?.[1] ?? 0);
  };
  /** Makes Redis read-only until it has refused this many writes. */
  async function readOnly(most: number): Promise<void> {
    const before = await refusals();
    await bench.admin.call("REPLICAOF", "127.0.0.1", "1");
    const seen = async () => expect(await refusals()).toBeGreaterThanOrEqual(before + most);
    const over = eventually(seen, { intervalMs: 1 });
    void over.catch(() => {}).then(writable);
  }
  const writable = () => bench.admin.call("REPLICAOF", "NO", "ONE");
  afterEach(async () => void (await writable()));
  const soon = { lockDuration: 1_000, stalledInterval: 200 };
  /** Runs a worker whose Redis refuses writes for a moment from this point on. Returns a function that stops it. */
  async function workRefusedAt(point: string, type: AnyTaskType, options: Partial<WorkerOptions> = {}) {
    let refused = false;
    const failpoint = async (at: string) => {
      if (at !== point || refused) return;
      refused = true;
      await readOnly(1);
    };
    const store = new Store(
      withSeams({ connection: bench.redis.url, namespace: bench.namespace }, { failpoint }),
    );
    const worker = await bench.work([type], { connection: undefined, store, ...options });
    worker.on("error", () => {});
    return async () => {
      await worker.stop();
      await store.close();
    };
  }

  it("while a run is postponed does not stop it from waiting and then running", async () => {
    const run = await bench.run("t", "noop", { crash: { delay: "4s" } });
    const dead = attempt({ worker: "dead" });
    await storeOf(bench.client).runs.start({ queue: QUEUE, owner: "system", id: "t" }, run, dead);
    const stop = await workRefusedAt("after start-run", noop, soon);
    await eventually(async () => expect(await bench.record(run)).toMatchObject({ state: "final" }));
    expect(await bench.record(run)).toMatchObject({ outcome: "succeeded", attempts: 2, crashes: 1 });
    const jobs = bench.queue();
    await eventually(async () => expect(await jobs.getJob(run)).toMatchObject({ attemptsMade: 1 }));
    await stop();
  });

  it("while a run ends does not change its recorded end and output", async () => {
    const type = defineTask("type", {
      queue: QUEUE,
      payload: nothing,
      handler: async (_payload, { log }) => {
        log("done");
        await readOnly(3);
        return { all: "done" };
      },
    });
    const worker = await bench.work([type], { ...soon, lockDuration: 10_000 });
    worker.on("error", () => {});
    const run = await bench.run("t", "type");
    const jobs = bench.queue();
    const job = await eventually(async () => {
      const found = await jobs.getJob(run);
      return found?.finishedOn ? found : false;
    });
    expect(job).toMatchObject({ returnvalue: { all: "done" }, attemptsMade: 1 });
    expect(await bench.record(run)).toMatchObject({ outcome: "succeeded", result: { all: "done" } });
    expect(await bench.output(run)).toMatchObject([{ attempt: 1, text: "log done\n" }]);
  });

  it("after a recorded end lets the job complete, without a second run of the handler", async () => {
    // An end that changes its task is not combined with the end of the job in a turn.
    const handler = vi.fn((_payload, { runNextAt }: Context) => runNextAt(Date.now() + 3_600_000));
    const type = defineTask("type", { queue: QUEUE, payload: nothing, handler });
    const stop = await workRefusedAt("after settle-run", type);
    const run = await bench.run("t", "type", { retry: { attempts: 2, delay: "1ms" } });
    const jobs = bench.queue();
    await eventually(async () => expect(await (await jobs.getJob(run))?.isCompleted()).toBe(true));
    expect(handler).toHaveBeenCalledTimes(1);
    expect(await bench.record(run)).toMatchObject({ outcome: "succeeded", attempts: 1 });
    await stop();
  });

  it("after a recorded failure counts that attempt, and allows no extra one", async () => {
    const handler = vi.fn(() => {
      throw new Error("no");
    });
    const type = defineTask("type", { queue: QUEUE, payload: nothing, handler });
    const stop = await workRefusedAt("after settle-run", type, { ...soon, lockDuration: 5_000 });
    const run = await bench.run("t", "type", { retry: { attempts: 2, delay: "1ms" } });
    const jobs = bench.queue();
    await eventually(async () => expect(await (await jobs.getJob(run))?.isFailed()).toBe(true));
    expect(handler).toHaveBeenCalledTimes(2);
    const job = await jobs.getJob(run);
    expect(job).toMatchObject({ attemptsMade: 2 });
    expect(job?.stacktrace).toHaveLength(2);
    expect(await bench.record(run)).toMatchObject({ outcome: "failed", attempts: 2 });
    await stop();
  });
});

it("a job that its worker has lost frees its place when its handler ends", async () => {
  const type = defineTask("type", {
    queue: QUEUE,
    payload: nothing,
    handler: async (_payload, { occurrence, signal }) => {
      if (occurrence.task !== "lost") return;
      await bench.admin.del(`${bench.jobKey(occurrence.run)}:lock`);
      await once(signal, "abort");
    },
  });
  const lock = { lockDuration: 1_000, stalledInterval: 60_000 };
  const worker = await bench.work([type], { ...lock, concurrency: 1 });
  worker.on("error", () => {});
  const fenced = next(worker, "fenced");
  await bench.run("lost", "type");
  const run = await bench.run("other", "type");
  await fenced;
  // Settled soon, not after half a minute of attempts.
  const settled = async () => expect(await bench.record(run)).toMatchObject({ outcome: "succeeded" });
  await eventually(settled);
});

describe("a run's end that cannot be recorded", () => {
  /**
   * Runs a task whose ends are lost until `act` has been called.
   * @param fails attempts that fail first
   */
  async function ending(act: (run: string, tries: number) => Promise<void>, fails = 0) {
    let [calls, tries] = [0, 0];
    const failpoint = async (at: string) => {
      if (at !== "before settle-run") return;
      tries += 1;
      await act(run, tries);
    };
    const store = new Store(
      withSeams({ connection: bench.redis.url, namespace: bench.namespace }, { failpoint }),
    );
    const type = defineTask("type", {
      queue: QUEUE,
      payload: nothing,
      handler: (_payload, { runNextAt }) => {
        calls += 1;
        // An end that changes its task is not part of a turn.
        runNextAt(Date.now() + 3_600_000);
        if (calls <= fails) throw new Error("not yet");
        return "done";
      },
    });
    const run = await bench.run("t", "type", { retry: { attempts: fails + 1, delay: "1ms" } });
    const soon = { lockDuration: 1_000, stalledInterval: 200 };
    const worker = await bench.work([type], { connection: undefined, store, ...soon });
    worker.on("error", () => {});
    const job = async () => bench.queue().getJob(run);
    return { run, worker, store, job, count: () => ({ calls, tries }) };
  }
  const refuse = (message: string) => async () => {
    throw new Error(message);
  };

  it("because of this run's own data does not keep its job from ending", async () => {
    const { run, worker, store, job, count } = await ending(refuse("WRONGTYPE Operation against a key"));
    expect(await next(worker, "settled")).toMatchObject({ run, outcome: "succeeded" });
    await eventually(async () => expect(await job()).toMatchObject({ returnvalue: "done" }));
    expect(count()).toEqual({ calls: 1, tries: 1 });
    await worker.stop();
    await store.close();
  });

  it("does not hold up the stop of its worker", async () => {
    const { worker, store, job, count } = await ending(refuse("READONLY You can't write"));
    await eventually(() => expect(count().tries).toBeGreaterThan(0));
    await worker.stop();
    expect(count().tries).toBeLessThan(5);
    expect(await (await job())?.getState()).toBe("completed");
    await store.close();
  });

  it("allows no second concurrent attempt in the same worker", async () => {
    const { run, worker, store, job, count } = await ending(async (run, tries) => {
      if (tries === 1) return;
      await bench.admin.del(`${bench.jobKey(run)}:lock`);
      const taken = async () => Number(await bench.admin.hget(bench.jobKey(run), "ats"));
      // Handed out once, the job waits outside of the queue, as any job whose worker may have died.
      await eventually(async () => (await taken()) > 4);
    }, 1);
    await eventually(async () => expect(await (await job())?.isCompleted()).toBe(true));
    const record = await bench.record(run);
    expect(record).toMatchObject({ outcome: "succeeded", result: "done", attempts: 2 });
    expect(record).not.toHaveProperty("crashes");
    expect(count().calls).toBe(2);
    await worker.stop();
    await store.close();
  });
});
