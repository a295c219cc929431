import { eventually } from "@carillon/testing";
import { describe, expect, it } from "vitest";
import { Bench, QUEUE } from "./bench.js";
import { Lives, type Mode, patience } from "./lives.js";

const bench = Bench.use("crash");
const lives = Lives.use(bench);

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
    const run = await bench.run("t", "once", { crash: { wait: "4s" } });
    const first = lives.start("hang");
    await first.says({ attempt: 1 });
    await first.kill();
    expect(await bench.stats("t")).toMatchObject({ crashes: "1" });

    const second = lives.start("work");
    const waiting = await eventually(async () => (await bench.record(run))?.notBefore ?? false, patience);
    await second.kill();
    const third = lives.start("work");
    const { at } = await third.says({ attempt: 2 });
    expect(at).toBeGreaterThanOrEqual(waiting);
    await third.says({ event: "settled", outcome: "succeeded" });
    expect(second.said).toEqual([]);
    const record = await bench.record(run);
    expect(record).toMatchObject({ outcome: "succeeded", attempts: 2, crashes: 1, result: { attempt: 2 } });
    expect(await bench.stats("t")).toMatchObject({ crashes: "1", consecutiveCrashes: "0", succeeded: "1" });
  });

  it("between the word that the job must wait and putting it off: that was no attempt", async () => {
    const retry = { attempts: 2, delay: "1ms" };
    const run = await bench.run("t", "once", { crash: { wait: "3s", most: 2 }, retry });
    const first = lives.start("hang");
    await first.says({ attempt: 1 });
    await first.kill();
    for (let n = 0; n < 2; n++) await lives.start("work", 1_000, "after start-run").ended;
    const last = lives.start("work");
    await last.says({ event: "settled", outcome: "succeeded" });
    expect(last.said).toMatchObject([{ attempt: 2 }, { event: "settled" }]);
    expect(await bench.record(run)).toMatchObject({ attempts: 2, crashes: 1, result: { attempt: 2 } });
    expect(await bench.client.run(run)).toMatchObject({ attemptList: [{ attempt: 1 }, { attempt: 2 }] });
    expect(await bench.stats("t")).toMatchObject({ attempts: "2", crashes: "1" });
  }, 60_000);

  it("over and over: the run is over, its job failed, and its handler is left alone", async () => {
    const run = await bench.run("t", "deadly", { crash: { wait: "1ms", most: 2 } });
    const born = await restartUntilFinal(run, "work");
    expect(born).toHaveLength(3);
    await born[2]?.says({ event: "crashed", run });
    expect(await bench.record(run)).toMatchObject({ outcome: "crashed", crashes: 2 });
    const jobs = bench.queue();
    await eventually(async () => expect(await (await jobs.getJob(run))?.isFailed()).toBe(true));
  });

  it("by one item of 100: the other 99 are done, whatever ran beside it", async () => {
    const run = await bench.run("t", "many", { payload: { count: 100 } });
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
    // Three deaths, and the life that ended it.
    expect(born).toHaveLength(4);
    const tries = born.flatMap(({ said }) => said).filter(({ item }) => item === 7);
    expect(tries.map(({ attempt }) => attempt)).toEqual([1, 2, 3]);
    expect(await bench.keys(`${QUEUE}:${run}.*`)).toEqual([]);
  });

  it("while it stores items: generated once more, and none is done twice", async () => {
    const count = 10_000;
    const run = await bench.run("t", "many", { payload: { count }, crash: { wait: "1ms" } });
    const first = lives.start("hang", 5_000);
    await first.says({ generating: count });
    const key = `${bench.jobKey(run)}:dependencies`;
    await eventually(async () => (await bench.admin.scard(key)) > 0, { intervalMs: 1 });
    await first.kill();
    const stored = await bench.admin.scard(key);
    expect(stored).toBeLessThan(count);

    const second = lives.start("work", 5_000);
    await eventually(async () => expect(await bench.record(run)).toMatchObject({ state: "final" }), {
      timeoutMs: 100_000,
      intervalMs: 200,
    });
    await second.says({ generating: count });
    const items = second.said.filter(({ item }) => item !== undefined).map(({ item }) => item);
    expect(items).toHaveLength(count);
    expect(new Set(items).size).toBe(count);
    expect(await bench.record(run)).toMatchObject({
      outcome: "succeeded",
      crashes: 1,
      result: { total: count, succeeded: count },
    });
  }, 120_000);
});
