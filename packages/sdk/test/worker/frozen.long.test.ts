import { defineTask } from "@carillon/sdk";
import { eventually } from "@carillon/testing";
import { describe, expect, it } from "vitest";
import { gate } from "../../../../test/helpers.js";
import { Bench, next, nothing, QUEUE } from "./bench.js";
import { Lives, patience } from "./lives.js";

const bench = Bench.use("frozen");
const lives = Lives.use(bench);
const crash = { delay: "1ms" };

/** A worker in this process, which is never frozen. Its lock is long, so that a busy machine does not lose it. */
async function successor() {
  const begun = gate<{ attempt: number; fence: number }>();
  const word = gate();
  const told = defineTask("told", {
    queue: QUEUE,
    payload: nothing,
    handler: async (_payload, { attempt, fence, saveCheckpoint }) => {
      begun.resolve({ attempt, fence });
      await word.promise;
      await saveCheckpoint({ attempt });
      return { attempt };
    },
  });
  const worker = await bench.work([told], { stalledInterval: 200 });
  return {
    begun: begun.promise,
    async succeeds() {
      const end = next(worker, "settled");
      word.resolve();
      expect(await end).toMatchObject({ outcome: "succeeded" });
    },
  };
}

/** Tests on real processes that are stopped for longer than BullMQ's lock of one second. */
describe("a worker that is frozen for longer than its lock", () => {
  /** Freezes the first worker in its handler, until its successor has taken the job. */
  async function takenOver(payload = {}) {
    const run = await bench.run("t", "told", { crash, payload });
    const zombie = lives.start("work");
    const first = await zombie.says({ attempt: 1 });
    zombie.freeze();
    const heir = await successor();
    const { attempt, fence } = await heir.begun;
    expect(attempt).toBe(2);
    expect(fence).toBeGreaterThan(first["fence"] as number);
    return { run, zombie, heir };
  }

  it("is aborted and ignored if it wakes up while its successor works", async () => {
    const { run, zombie, heir } = await takenOver();
    zombie.thaw();
    await zombie.says({ aborted: "LockLostError", attempt: 1 });
    zombie.tell("go");
    await zombie.says({ event: "fenced", run });
    expect(zombie.said).toContainEqual({ attempt: 1, saved: "CONFLICT", aborted: true });
    expect(await bench.record(run)).toMatchObject({ state: "running", attempts: 2 });

    await heir.succeeds();
    expect(await bench.record(run)).toMatchObject({
      outcome: "succeeded",
      result: { attempt: 2 },
      crashes: 1,
    });
    expect(await bench.stats("t")).toMatchObject({
      succeeded: "1",
      crashes: "1",
      checkpoint: '{"attempt":2}',
    });
    expect(zombie.said.filter(({ event }) => event === "settled")).toEqual([]);
  });

  it("does not end the run if it finishes while its successor works", async () => {
    const { run, zombie, heir } = await takenOver({ swift: true });
    // Sent while it is frozen, so that the handler continues before anything reports the lost lock.
    zombie.tell("go");
    zombie.thaw();
    await zombie.says({ event: "fenced", run });
    expect(await bench.record(run)).toMatchObject({ state: "running", attempts: 2 });
    await heir.succeeds();
    expect(await bench.record(run)).toMatchObject({ outcome: "succeeded", result: { attempt: 2 } });
  });

  it("changes nothing if it finishes after its successor", async () => {
    const { run, zombie, heir } = await takenOver();
    await heir.succeeds();
    const record = await bench.record(run);
    const stats = await bench.stats("t");
    zombie.tell("go");
    zombie.thaw();
    await zombie.says({ event: "fenced", run });
    expect(zombie.said.find(({ saved }) => saved)).toMatchObject({ saved: "CONFLICT" });
    expect(await bench.record(run)).toEqual(record);
    expect(await bench.stats("t")).toEqual(stats);
    expect(record).toMatchObject({ outcome: "succeeded", result: { attempt: 2 }, attempts: 2 });
    const job = await bench.queue().getJob(run);
    expect([await job?.getState(), job?.returnvalue]).toEqual(["completed", { attempt: 2 }]);
  });
});

describe("a worker that was frozen and gets its own job back", () => {
  /** Its handler continues, and waits for a message. */
  async function thawed(timeLimitGrace: string) {
    const run = await bench.run("t", "told", { crash, timeLimitGrace });
    const only = lives.start("work");
    await only.says({ attempt: 1 });
    only.freeze();
    await eventually(async () => (await bench.admin.exists(`${bench.jobKey(run)}:lock`)) === 0, patience);
    only.thaw();
    await only.says({ aborted: "LockLostError", attempt: 1 });
    return { run, only };
  }
  const record = { attempts: 2, crashes: 1, result: { attempt: 2 } };

  it("does not start alongside the handler that continues, and keeps the next attempt's lock when that ends", async () => {
    const { run, only } = await thawed("1h");
    // The job is handed out again and again meanwhile.
    const taken = async () => Number(await bench.admin.hget(bench.jobKey(run), "ats"));
    await eventually(async () => (await taken()) > 5, patience);
    expect(only.said.filter(({ fence }) => fence)).toMatchObject([{ attempt: 1 }]);
    only.tell("go");
    await only.says({ event: "fenced", run });
    await only.says({ attempt: 2 });
    only.tell("go");
    await only.says({ event: "settled", outcome: "succeeded" });
    expect(await bench.record(run)).toMatchObject(record);
  });

  it("abandons a handler that does not end in its grace", async () => {
    const { run, only } = await thawed("1s");
    await only.says({ event: "fenced", run });
    await only.says({ attempt: 2 });
    only.tell("go");
    await only.says({ event: "settled", outcome: "succeeded" });
    expect(await bench.record(run)).toMatchObject(record);
  });
});

describe("workers that die", () => {
  it("twice do not end the run: the third one completes it", async () => {
    const run = await bench.run("t", "told", { crash: { ...crash, attempts: 3 } });
    for (const attempt of [1, 2]) {
      const doomed = lives.start("work");
      await doomed.says({ attempt });
      await doomed.kill();
    }
    const third = await successor();
    expect(await third.begun).toMatchObject({ attempt: 3 });
    await third.succeeds();
    expect(await bench.record(run)).toMatchObject({ outcome: "succeeded", attempts: 3, crashes: 2 });
    // BullMQ itself does not forbid it either.
    const job = await bench.queue().getJob(run);
    await eventually(async () => expect(await job?.getState()).toBe("completed"), patience);
  });
});
