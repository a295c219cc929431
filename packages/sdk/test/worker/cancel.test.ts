import { CancelledError, type Context } from "@carillon/sdk";
import { Store } from "@carillon/store";
import { internalsOf, storeOf, withSeams } from "@carillon/store/internal";
import { eventually } from "@carillon/testing";
import { describe, expect, it, vi } from "vitest";
import { gate } from "../../../../test/helpers.js";
import { aborted, Bench, HandClock, next, QUEUE, telling, typed } from "./bench.js";

const bench = Bench.use("cancel");

describe("a cancel", () => {
  it("aborts the handler, and fails the job if it throws", async () => {
    const { definition, begun } = telling("long", ({ signal }) => aborted(signal));
    const worker = await bench.work([definition]);
    const run = await bench.run("t", "long", { retry: { attempts: 5 } });
    const { signal } = await begun;
    const end = next(worker, "settled");
    const asked = performance.now();
    expect(await bench.cancel("t", run)).toBe("OK");
    expect(await end).toMatchObject({ run, outcome: "cancelled" });
    // Received as a message, not found by the poll every 5 s.
    expect(performance.now() - asked).toBeLessThan(4_500);
    expect(signal.reason).toBeInstanceOf(CancelledError);
    expect(await bench.record(run)).toMatchObject({ state: "final", outcome: "cancelled" });
    const jobs = bench.queue();
    await eventually(async () => {
      const job = await jobs.getJob(run);
      expect(await job?.isFailed()).toBe(true);
      expect(job?.failedReason).toBe("cancelled");
    });
  });

  it("completes the job without a result if the handler returns, with the run cancelled", async () => {
    const { definition, begun } = telling("long", async ({ signal }) => {
      await aborted(signal).catch(() => {});
      return { half: "done" };
    });
    const worker = await bench.work([definition]);
    const run = await bench.run("t", "long");
    await begun;
    const end = next(worker, "settled");
    await bench.cancel("t", run);
    expect(await end).toMatchObject({ outcome: "cancelled" });
    expect(await bench.record(run)).not.toHaveProperty("result");
    const jobs = bench.queue();
    await eventually(async () => {
      const job = await jobs.getJob(run);
      expect(await job?.isCompleted()).toBe(true);
      expect(job?.returnvalue).toBeNull();
    });
  });

  it("runs no handler if no worker has the job yet", async () => {
    const ran = gate();
    const { definition } = telling("long", () => ran.reject(new Error("it ran")));
    const run = await bench.run("t", "long");
    await bench.cancel("t", run);
    const worker = await bench.work([definition]);
    const cancelled = next(worker, "cancelled");
    expect(await cancelled).toMatchObject({ run, task: "system/t" });
    expect(await bench.record(run)).toMatchObject({ state: "final", outcome: "cancelled" });
    const jobs = bench.queue();
    await eventually(async () => expect(await (await jobs.getJob(run))?.isCompleted()).toBe(true));
    ran.resolve();
    await ran.promise;
  });

  it("is found by polling if its message was lost", async () => {
    const { definition, begun } = telling("long", ({ signal }) => aborted(signal));
    const worker = await bench.work([definition]);
    const run = await bench.run("t", "long");
    await begun;
    const end = next(worker, "settled");
    // Writes the request as `cancel` does, without publishing it.
    await bench.admin.hset(internalsOf(storeOf(bench.client)).keys.queue(QUEUE).run(run), "cancel", "1 test");
    expect(await end).toMatchObject({ outcome: "cancelled" });
  });

  it("is polled for as soon as a lost subscription is restored", async () => {
    const { definition, begun } = telling("long", ({ signal }) => aborted(signal));
    const worker = await bench.work([definition]);
    const run = await bench.run("t", "long");
    await begun;
    const { cancel } = internalsOf(storeOf(bench.client)).keys;
    const listeners = async () => Number((await bench.admin.pubsub("NUMSUB", cancel))[1]);
    await eventually(async () => expect(await listeners()).toBe(1));
    const end = next(worker, "settled");
    await bench.admin.call("CLIENT", "KILL", "TYPE", "PUBSUB");
    expect(await bench.cancel("t", run)).toBe("OK");
    const asked = performance.now();
    expect(await end).toMatchObject({ outcome: "cancelled" });
    expect(performance.now() - asked).toBeLessThan(4_500);
    expect(await listeners()).toBe(1);
  });

  it.each<["cancel" | "loss", string, string]>([
    ["cancel", "settled", "CancelledError"],
    ["loss", "fenced", "LockLostError"],
  ])("a %s between the start and the handler: it has its grace, no more", async (what, event, why) => {
    const clock = new HandClock();
    const failpoint = async (at: string) => {
      if (at !== "after turn" || !(await bench.admin.exists(`${bench.jobKey(run)}:lock`))) return;
      if (what === "cancel") {
        await bench.cancel("t", run);
        hear?.(`${QUEUE} ${run}`);
      } else {
        await bench.admin.del(`${bench.jobKey(run)}:lock`);
      }
    };
    const store = new Store(
      withSeams({ connection: bench.redis.url, namespace: bench.namespace }, { failpoint }),
    );
    let hear: ((message: string) => void) | undefined;
    const { listen } = store;
    vi.spyOn(store, "listen").mockImplementation((channel, listener) => {
      hear = listener.message;
      return listen.call(store, channel, listener);
    });
    const { definition, begun } = telling("long", () => new Promise(() => {}));
    const run = await bench.run("t", "long", { timeLimitGrace: "2s" });
    const options = { connection: undefined, store, lockDuration: 1_000 };
    const worker = await bench.work([definition], options, { clock });
    worker.on("error", () => {});
    const end = next(worker, event as "settled");
    const { signal } = await begun;
    await expect(aborted(signal)).rejects.toThrow(expect.objectContaining({ name: why }));
    clock.advance(2_000);
    expect(await end).toMatchObject({ run });
    await worker.stop();
    await store.close();
  });

  it("affects its own run only", async () => {
    const contexts: Context[] = [];
    const both = gate();
    const definition = typed((context) => {
      contexts.push(context);
      if (contexts.length === 2) both.resolve();
      return aborted(context.signal);
    }, "long");
    const worker = await bench.work([definition]);
    const first = await bench.run("t", "long");
    const second = await bench.again("t");
    await both.promise;
    const end = next(worker, "settled");
    await bench.cancel("t", second);
    expect(await end).toMatchObject({ run: second });
    expect(contexts.find(({ occurrence }) => occurrence.run === first)?.signal.aborted).toBe(false);
    const stopping = worker.stop({ within: 0 });
    await stopping;
    expect(await bench.record(first)).toMatchObject({ state: "queued" });
  });
});
