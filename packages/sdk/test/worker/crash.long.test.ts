import { defineTask } from "@carillon/sdk";
import { eventually, startFaultProxy } from "@carillon/testing";
import { describe, expect, it } from "vitest";
import { Bench, next, nothing, QUEUE } from "./bench.js";
import { Lives, type Mode, patience } from "./lives.js";

const bench = Bench.use("crash");
const lives = Lives.use(bench);

/** A worker in this process, which survives. Returns its attempts, with the time of each. */
async function survivor() {
  const attempts: { attempt: number; at: number }[] = [];
  const once = defineTask("once", {
    queue: QUEUE,
    payload: nothing,
    handler: (_payload, { attempt }) => {
      attempts.push({ attempt, at: Date.now() });
      return { attempt };
    },
  });
  const worker = await bench.work([once], { stalledInterval: 200 });
  const { outcome } = await next(worker, "settled");
  expect(outcome).toBe("succeeded");
  return attempts;
}

/** Starts a worker again whenever it ends, as a process manager does, until the run is final. */
async function restartUntilFinal(run: string, mode: Mode) {
  const born: ReturnType<typeof lives.start>[] = [];
  const over = async () => (await bench.record(run))?.state === "final";
  while (!(await over())) {
    if (born.length === 10) throw new Error("The run does not end.");
    const life = lives.start(mode);
    born.push(life);
    await Promise.race([life.ended, eventually(over, patience)]);
  }
  return born;
}

describe("a worker that is killed", () => {
  it("is counted as one crash; the next attempt waits for it, and a restart does not prolong that", async () => {
    const run = await bench.run("t", "once", { crash: { delay: "4s" } });
    const first = lives.start("hang");
    await first.says({ attempt: 1 });
    await first.kill();
    expect(await bench.stats("t")).toMatchObject({ crashes: "1" });

    const second = lives.start("work");
    const waiting = await eventually(async () => (await bench.record(run))?.notBefore ?? false, patience);
    await second.kill();
    const [third, ...more] = await survivor();
    expect([third?.attempt, more]).toEqual([2, []]);
    expect(third?.at).toBeGreaterThanOrEqual(waiting);
    expect(second.said).toEqual([]);
    const record = await bench.record(run);
    expect(record).toMatchObject({ outcome: "succeeded", attempts: 2, crashes: 1, result: { attempt: 2 } });
    expect(await bench.stats("t")).toMatchObject({ crashes: "1", consecutiveCrashes: "0", succeeded: "1" });
  });

  it("before it delays the job of a waiting run has made no attempt", async () => {
    const retry = { attempts: 2, delay: "1ms" };
    const run = await bench.run("t", "once", { crash: { delay: "4s", attempts: 2 }, retry });
    const first = lives.start("hang");
    await first.says({ attempt: 1 });
    // Both processes are already waiting: the wait must not end before they have died.
    const doomed = [1, 2].map(() => lives.start("stop", 1_000, "after start-run"));
    await Promise.all(doomed.map((life) => life.says({ ready: true })));
    await first.kill();
    await Promise.all(doomed.map((life) => life.ended));
    expect(await survivor()).toMatchObject([{ attempt: 2 }]);
    expect(await bench.record(run)).toMatchObject({ attempts: 2, crashes: 1, result: { attempt: 2 } });
    expect(await bench.client.runs.get(run)).toMatchObject({ attemptList: [{ attempt: 1 }, { attempt: 2 }] });
    expect(await bench.stats("t")).toMatchObject({ attempts: "2", crashes: "1" });
  });

  it("too often fails the run and its job, without another start of the handler", async () => {
    const run = await bench.run("t", "deadly", { crash: { delay: "1ms", attempts: 2 } });
    const born = await restartUntilFinal(run, "work");
    expect(born).toHaveLength(3);
    await born[2]?.says({ event: "crashed", run });
    expect(await bench.record(run)).toMatchObject({ outcome: "crashed", crashes: 2 });
    const jobs = bench.queue();
    await eventually(async () => expect(await (await jobs.getJob(run))?.isFailed()).toBe(true));
  });

  it("by one item of 100 does not stop the other 99", async () => {
    const run = await bench.run("t", "many", { payload: { count: 100 }, crash: { delay: "1ms" } });
    const born = await restartUntilFinal(run, "seven");
    const record = await bench.record(run);
    expect(record).toMatchObject({
      outcome: "failed",
      result: {
        total: 100,
        succeeded: 99,
        failed: 1,
        failures: [{ index: 7, error: "crashed: its worker died 3 times" }],
      },
    });
    // Three deaths, and the process that completed the run.
    expect(born).toHaveLength(4);
    const tries = born.flatMap(({ said }) => said).filter(({ item }) => item === 7);
    expect(tries.map(({ attempt }) => attempt)).toEqual([1, 2, 3]);
    expect(await bench.keys(`${QUEUE}:${run}_*`)).toEqual([]);
  });

  it("while it stores items generates them again, and works none twice", async () => {
    const count = 600;
    const run = await bench.run("t", "many", { payload: { count }, crash: { delay: "1ms" } });
    const proxy = await startFaultProxy(bench.redis);
    const half = proxy.withhold("question", `${run}_${count / 2}`);
    const first = lives.start("hang", 30_000, "", proxy.url);
    await half;
    await first.kill();
    await proxy.close();
    const stored = await bench.admin.scard(`${bench.jobKey(run)}:dependencies`);
    expect(stored).toBeGreaterThan(0);
    expect(stored).toBeLessThan(count);
    // Deletes the lock, as if it had expired.
    await bench.admin.del(`${bench.jobKey(run)}:lock`);

    let generated = 0;
    const items: number[] = [];
    const many = defineTask("many", {
      queue: QUEUE,
      payload: nothing,
      generate: () => {
        generated += 1;
        return Array.from({ length: count }, (_, n) => n);
      },
      process: (item) => void items.push(item),
    });
    const worker = await bench.work([many], { stalledInterval: 200 });
    await next(worker, "settled");
    expect(generated).toBe(1);
    expect(items).toHaveLength(count);
    expect(new Set(items).size).toBe(count);
    expect(await bench.record(run)).toMatchObject({
      outcome: "succeeded",
      crashes: 1,
      result: { total: count, succeeded: count },
    });
  });
});
