import { operatorOf } from "@carillon/ops";
import { type Client, defineTask } from "@carillon/sdk";
import { internalsOf, storeOf } from "@carillon/store/internal";
import { eventually, type TestKit } from "@carillon/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { explained } from "../../packages/ops/test/in-words.js";
import { anything, PATIENCE, type Program, Stand } from "./harness.js";

const stand = Stand.use({ appendonly: true, config: { appendfsync: "always" } });

const NAME = { queue: "bells", owner: "system", id: "t" };
const FIVE_MINUTES = 300_000;

/** A worker in its own process, which hangs in its handler or works at once. */
function worker(mode: "hang" | "work"): Promise<Program> {
  const program = stand.program("test/seeds/dying-worker.mjs", { MODE: mode });
  return program.says({ ready: true }).then(() => program);
}

async function trigger(client: Client): Promise<string> {
  const triggered = await client.trigger(NAME);
  if (triggered.outcome !== "enqueued") throw new Error(triggered.outcome);
  return triggered.run;
}

describe("D5 a start counts as a crash until its end takes it back", () => {
  let client: Client;
  /** Statistics as stored: those that hold if the worker dies now. */
  const stored = () =>
    stand.admin
      .hget(internalsOf(storeOf(client)).keys.queue("bells").stats("system/t"), "starts")
      .then((starts) => Number(starts?.split(" ")[1]));
  beforeEach(async () => {
    client = stand.client();
    const schedule = { every: "365d" };
    await client.put({ ...NAME, type: "work", schedule, crash: { delay: "1ms" }, overlap: "allow" });
  });

  it("a run that succeeds is not a crash", async () => {
    const program = await worker("work");
    for (const n of [1, 2]) {
      await program.says({ settled: await trigger(client), outcome: "succeeded" });
      expect(await client.runs.stats(NAME)).toMatchObject({ attempts: n, crashes: 0, consecutiveCrashes: 0 });
      expect(await stored()).toBe(0);
    }
  });

  it("kill -9 of the worker is 1 crash, even after the next attempt has succeeded", async () => {
    const doomed = await worker("hang");
    const run = await trigger(client);
    await doomed.says({ attempt: 1, run });
    expect(await stored()).toBe(1);
    // Provisional: no worker has died yet.
    expect(await client.runs.stats(NAME)).toMatchObject({ attempts: 1, crashes: 0 });
    await doomed.kill();

    const next = await worker("work");
    await next.says({ attempt: 2, run });
    await next.says({ settled: run, outcome: "succeeded" });
    expect(await client.runs.stats(NAME)).toMatchObject({
      runs: 1,
      attempts: 2,
      crashes: 1,
      consecutiveCrashes: 0,
      successes: 1,
    });
    expect(await stored()).toBe(1);
    const { attemptList, crashes } = await client.runs.get(run);
    expect(crashes).toBe(1);
    expect(attemptList.map(({ pid }) => pid)).toEqual([doomed.child.pid, next.child.pid]);
  });
});

describe("D6 after a crash the wait is at least five minutes, stored, and does not slide at restarts", () => {
  it("two restarts of worker, node and Redis keep the next start", async () => {
    const client = stand.client();
    await client.put({ ...NAME, type: "work", schedule: { every: "365d" } });
    let node = await stand.node().running();
    const doomed = await worker("hang");
    const run = await trigger(client);
    await doomed.says({ attempt: 1, run });
    const crashed = await stand.time();
    await doomed.kill();

    const queue = stand.queue("bells");
    let program = await worker("work");
    /**
     * The next start by our record and by BullMQ's, of a job that waits, and the number of times that a worker checked
     * it.
     */
    const look = () =>
      eventually(async () => {
        const [{ notBefore, state }, job] = await Promise.all([client.runs.get(run), queue.getJob(run)]);
        const score = await stand.admin.zscore(queue.toKey("delayed"), run);
        if (!job || score === null || notBefore === undefined) return false;
        // BullMQ keeps the time in the upper bits of the score, a counter in the lower twelve.
        const bullmq = Math.floor(Number(score) / 0x1000);
        return { notBefore, state, bullmq, looks: job.attemptsStarted };
      }, PATIENCE);
    let first = await look();
    expect(first).toMatchObject({ state: "queued", bullmq: first.notBefore });
    expect(first.notBefore).toBeGreaterThanOrEqual(crashed + FIVE_MINUTES);
    expect(first.notBefore).toBeLessThan((await stand.time()) + FIVE_MINUTES);

    for (let restart = 1; restart <= 2; restart++) {
      await Promise.all([program.kill(), node.kill(), stand.redis.kill()]);
      await stand.redis.start();
      node = await stand.node().running();
      program = await worker("work");
      expect(await look()).toEqual(first);
      // An operator promotes the job: the worker takes it, and postpones it to the same time again.
      await (await queue.getJob(run))?.promote();
      const again = await eventually(async () => {
        const seen = await look();
        // A suspect is postponed shortly before it is checked.
        return seen.looks > first.looks && seen.bullmq >= first.notBefore && seen;
      }, PATIENCE);
      expect(again).toEqual({ ...first, looks: again.looks });
      first = again;
      expect(program.said).not.toContainEqual(expect.objectContaining({ run }));
    }
    expect(await client.runs.stats(NAME)).toMatchObject({ attempts: 1, crashes: 1 });
  });

  it("it starts at that time, whatever happens to workers meanwhile", async () => {
    const starts: number[] = [];
    const type = defineTask("work", {
      queue: "bells",
      payload: anything,
      handler: async () => {
        starts.push(Date.now());
        await kit.sleep("30s");
      },
    });
    const kit = await stand.kit({ types: [type] });
    await kit.client.put(type, { id: "t", schedule: { at: "2026-01-01T00:01:00Z" }, payload: {} });
    const restart = async () => {
      await kit.worker.crash();
      await kit.worker.start();
    };
    for (const at of ["01:10", "03:00", "05:00"] as const) kit.at(at, restart);
    await kit.advanceTo("02:30");
    const [waiting] = await kit.client.runs.list("t");
    const notBefore = waiting?.notBefore ?? 0;
    expect(notBefore).toBeGreaterThanOrEqual(Date.parse("2026-01-01T00:06:10Z"));
    await kit.advanceTo(notBefore - 1);
    expect((await kit.client.runs.list("t"))[0]).toMatchObject({ state: "queued", attempts: 1, notBefore });
    // A worker that meets a suspect for the first time checks it twice.
    await kit.advanceTo(notBefore + 5_000);
    expect(starts).toHaveLength(2);
    await kit.advance("1m");
    expect(await kit.client.runs.stats("t")).toMatchObject({ attempts: 2, crashes: 1 });
  });

  it("the task can choose the wait", async () => {
    const type = defineTask("work", { queue: "bells", payload: anything, handler: () => kit.sleep("30s") });
    const kit = await stand.kit({ types: [type] });
    const crash = { delay: "2h" };
    await kit.client.put(type, { id: "t", schedule: { at: "2026-01-01T00:01:00Z" }, crash, payload: {} });
    kit.at("01:10", async () => {
      await kit.worker.crash();
      await kit.worker.start();
    });
    await kit.advanceTo("1:59:59");
    expect(await kit.client.runs.stats("t")).toMatchObject({ attempts: 1 });
    await kit.advanceTo("2:10:00");
    expect(await kit.client.runs.stats("t")).toMatchObject({ attempts: 2, crashes: 1, successes: 1 });
  });
});

describe("D16 a pause holds a crashed run in its wait", () => {
  const START = Date.parse("2026-01-01T00:01:00Z");
  const starts: { attempt: number; at: number }[] = [];
  const type = defineTask("work", {
    queue: "bells",
    payload: anything,
    handler: async (_payload, { attempt }) => {
      starts.push({ attempt, at: kit.now });
      await kit.sleep("30s");
    },
  });
  let kit: TestKit;
  /** A run of 01:00, and another worker that finds that the first one died at 01:10. */
  async function crashed(): Promise<void> {
    starts.length = 0;
    kit = await stand.kit({ types: [type] });
    const schedule = { every: "1d", origin: new Date(START).toISOString() };
    await kit.client.put(type, { id: "t", schedule, payload: {} });
    kit.at("01:10", async () => {
      await kit.worker.crash();
      await kit.worker.start();
    });
    await kit.advanceTo("04:00");
    expect(starts).toEqual([{ attempt: 1, at: START }]);
  }
  const run = async () => (await kit.client.runs.list("t"))[0];
  const told = async () => (await explained(kit.client, "t", START)).summary;

  it("a pause in the wait stops the second start; the resume starts it, as one attempt", async () => {
    await crashed();
    await kit.client.pause("t", { by: "ann", note: "it kills its workers" });
    const until = (await run())?.notBefore ?? 0;
    const iso = new Date(until).toISOString().replace(".000Z", "Z");
    expect(await told()).toContain(`crashed; it waits until ${iso}, and until its task is resumed.`);
    await kit.advanceTo("1:00:00");
    expect(starts).toHaveLength(1);
    expect(await run()).toMatchObject({ state: "queued", attempts: 1, crashes: 1, notBefore: until });
    expect(await told()).toContain("crashed; it waits until its task is resumed.");

    const resumed = kit.now;
    await kit.client.resume("t");
    await kit.advance("2m");
    expect(starts.map(({ attempt }) => attempt)).toEqual([1, 2]);
    // A worker that meets a suspect for the first time checks it twice.
    expect(starts[1]?.at).toBeLessThan(resumed + 5_000);
    expect(await run()).toMatchObject({ outcome: "succeeded", attempts: 2, crashes: 1 });
    expect(await kit.client.runs.stats("t")).toMatchObject({ runs: 1, attempts: 2, crashes: 1 });
  });

  it("a resume in the wait starts it when the wait is over, not before", async () => {
    await crashed();
    await kit.client.pause("t");
    await kit.advanceTo("05:00");
    await kit.client.resume("t");
    const until = (await run())?.notBefore ?? 0;
    const iso = new Date(until).toISOString().replace(".000Z", "Z");
    expect(await told()).toContain(`crashed; it waits until ${iso}.`);
    await kit.advanceTo("20:00");
    expect(starts.map(({ attempt }) => attempt)).toEqual([1, 2]);
    expect(starts[1]?.at).toBeGreaterThanOrEqual(until);
    expect(starts[1]?.at).toBeLessThan(until + 5_000);
  });

  it("a run that has not crashed starts while its task is paused", async () => {
    await crashed();
    await kit.advanceTo("10:00");
    await kit.worker.pause();
    await kit.client.trigger("t");
    await kit.client.pause("t");
    await kit.worker.resume();
    await kit.advance("1m");
    expect(starts.map(({ attempt }) => attempt)).toEqual([1, 2, 1]);
  });

  it("in real processes the worker that finds the crash leaves the run alone until the resume", async () => {
    const client = stand.client();
    await client.put({ ...NAME, type: "work", schedule: { every: "365d" }, crash: { delay: "1ms" } });
    const doomed = await worker("hang");
    const run = await trigger(client);
    await doomed.says({ attempt: 1, run });
    await client.pause(NAME);
    await doomed.kill();

    const next = await worker("work");
    const queue = stand.queue("bells");
    await eventually(async () => {
      const { state, crashes, notBefore = Number.POSITIVE_INFINITY } = await client.runs.get(run);
      expect({ state, crashes }).toEqual({ state: "queued", crashes: 1 });
      // The wait has passed, and the job was out of the worker's hands for much longer.
      expect(await stand.time()).toBeGreaterThan(notBefore);
      const score = Number(await stand.admin.zscore(queue.toKey("delayed"), run));
      expect(score / 0x1000).toBeGreaterThan(notBefore + 10_000);
    }, PATIENCE);
    expect(next.said).not.toContainEqual(expect.objectContaining({ run }));
    await client.resume(NAME);
    await next.says({ attempt: 2, run });
    await next.says({ settled: run, outcome: "succeeded" });
    expect(await client.runs.stats(NAME)).toMatchObject({ attempts: 2, crashes: 1 });
  });
});

describe("D20 a crash of an item is a crash", () => {
  const START = Date.parse("2026-01-01T00:01:00Z");
  const starts: { item: number; attempt: number; at: number }[] = [];
  let [items, endless, hanging] = [1, false, -1];
  const type = defineTask("work", {
    queue: "bells",
    payload: anything,
    generate: () => Array.from({ length: items }, (_, n) => n),
    process: async (item: number, { attempt }) => {
      starts.push({ item, attempt, at: kit.now });
      await kit.sleep(endless || item === hanging ? "1d" : "30s");
    },
  });
  let kit: TestKit;
  async function fanOut(count: number, rest: object = {}): Promise<void> {
    [items, endless, hanging] = [count, false, -1];
    starts.length = 0;
    kit = await stand.kit({ types: [type] });
    const schedule = { every: "1d", origin: new Date(START).toISOString() };
    await kit.client.put(type, { id: "t", schedule, payload: {}, ...rest });
  }
  async function crash(): Promise<void> {
    await kit.worker.crash();
    await kit.worker.start();
  }
  const run = async () => (await kit.client.runs.list("t"))[0];
  const records = async () =>
    (await operatorOf(kit.client).runs.items({ id: (await run())?.id ?? "" })).items;

  it("kill -9 at 01:10 and 03:10: it starts again no earlier than 06:10, then after ten minutes", async () => {
    await fanOut(1);
    endless = true;
    kit.at("01:10", crash);
    kit.at("03:10", crash);
    await kit.advanceTo("05:00");
    const [waiting] = await records();
    const notBefore = waiting?.notBefore ?? 0;
    expect(waiting).toMatchObject({ status: "waiting", crashes: 1 });
    expect(notBefore).toBeGreaterThanOrEqual(Date.parse("2026-01-01T00:06:10Z"));
    expect(await kit.client.runs.stats("t")).toMatchObject({ crashes: 1, consecutiveCrashes: 1 });
    await kit.advanceTo(notBefore - 1);
    expect(starts).toHaveLength(1);
    await kit.advanceTo(notBefore + 5_000);
    expect(starts.map(({ attempt }) => attempt)).toEqual([1, 2]);

    const killed = kit.now;
    await crash();
    endless = false;
    await kit.advanceTo(killed + 600_000);
    expect(starts).toHaveLength(2);
    expect(await kit.client.runs.stats("t")).toMatchObject({ crashes: 2, consecutiveCrashes: 2 });
    await kit.advanceTo(killed + 720_000);
    expect(starts.map(({ attempt }) => attempt)).toEqual([1, 2, 3]);

    expect(await run()).toMatchObject({ outcome: "succeeded", attempts: 1, crashes: 2 });
    const counts = { runs: 1, successes: 1, attempts: 1, crashes: 2, consecutiveCrashes: 0 };
    expect(await kit.client.runs.stats("t")).toMatchObject(counts);
    const { tasks } = await operatorOf(kit.client).runs.statsMany({});
    expect(tasks).toMatchObject([counts]);
    expect((await records())[0]).toMatchObject({ status: "completed", attempts: 3, crashes: 2 });
  });

  it("an item fails at its third crash, and each crash of each item counts", async () => {
    await fanOut(2, { crash: { delay: "1m" } });
    await kit.advanceTo("01:10");
    endless = true;
    for (let n = 1; n <= 3; n++) {
      await crash();
      await kit.advance("20m");
    }
    const record = await run();
    expect(record).toMatchObject({ outcome: "failed", crashes: 6, attempts: 1 });
    expect(record?.error).toContain(
      "2 of 2 items failed. The first, item 0: crashed: its worker died 3 times",
    );
    expect(await kit.client.runs.stats("t")).toMatchObject({ runs: 1, failures: 1, crashes: 6 });
  });

  it("a pause holds it in its wait; the resume starts it", async () => {
    await fanOut(1);
    kit.at("01:10", crash);
    await kit.advanceTo("04:00");
    await kit.client.pause("t", { by: "ann" });
    // Between two checks of the worker.
    await kit.advanceTo("1:00:30");
    expect(starts).toHaveLength(1);
    expect(await run()).toMatchObject({ state: "queued", attempts: 1, crashes: 1 });
    const resumed = kit.now;
    await kit.client.resume("t");
    await kit.advance("2m");
    expect(starts.map(({ attempt }) => attempt)).toEqual([1, 2]);
    // A worker that meets a suspect for the first time checks it twice.
    expect(starts[1]?.at).toBeLessThan(resumed + 5_000);
    expect(await run()).toMatchObject({ outcome: "succeeded", crashes: 1 });
  });

  it("items that one death hits wait as long as one, and no other item waits", async () => {
    await fanOut(8);
    kit.at("01:10", crash);
    await kit.advanceTo("05:00");
    const waiting = await records();
    const crashed = waiting.filter(({ crashes }) => crashes === 1);
    expect(crashed.length).toBeGreaterThan(1);
    for (const { notBefore = 0 } of crashed)
      expect(notBefore).toBeLessThan(START + 10_000 + 360_000 + 60_000);
    await kit.advanceTo("30:00");
    expect(await run()).toMatchObject({ outcome: "succeeded", crashes: crashed.length });
    expect(await kit.client.runs.stats("t")).toMatchObject({
      crashes: crashed.length,
      consecutiveCrashes: 0,
    });
  });

  it("an attempt that ends begins a new series, while another item goes on", async () => {
    await fanOut(2);
    kit.at("01:10", crash);
    await kit.advanceTo("05:00");
    expect(await kit.client.runs.stats("t")).toMatchObject({ crashes: 2, consecutiveCrashes: 2 });
    hanging = 1;
    await kit.advanceTo("20:00");
    expect((await records()).map(({ status }) => status)).toEqual(["completed", "active"]);
    expect(await kit.client.runs.stats("t")).toMatchObject({ crashes: 2, consecutiveCrashes: 0 });
  });

  it("in real processes, as SDK, CLI and HTTP say it", async () => {
    const client = stand.client();
    await client.put({ ...NAME, type: "one-item", schedule: { every: "365d" }, crash: { delay: "1ms" } });
    const run = await trigger(client);
    for (const attempt of [1, 2]) {
      const doomed = await worker("hang");
      await doomed.says({ item: "only", attempt });
      // An item may begin before its run has left the worker: a death here would be a crash of both.
      await eventually(
        async () => (await stand.queue("bells").getJobState(run)) === "waiting-children",
        PATIENCE,
      );
      await doomed.kill();
    }
    const next = await worker("work");
    await next.says({ item: "only", attempt: 3 });
    await next.says({ settled: run, outcome: "succeeded" });

    expect(await client.runs.get(run)).toMatchObject({ outcome: "succeeded", attempts: 1, crashes: 2 });
    const counts = { runs: 1, attempts: 1, crashes: 2, consecutiveCrashes: 0 };
    expect(await client.runs.stats(NAME)).toMatchObject(counts);
    const token = "a-token-for-this-test";
    const env = { CARILLON_CONSOLE_PORT: "0", CARILLON_TOKEN: token };
    const { url } = await stand
      .program("apps/console/bin/carillon-console.js", env)
      .says({ msg: "listening" });
    const headers = { authorization: `Bearer ${token}` };
    const http = async (path: string) => (await fetch(`${url}/api/v1${path}`, { headers })).json();
    expect(await http("/tasks/bells/system/t/stats")).toMatchObject(counts);
    expect(await http(`/runs/${run}`)).toMatchObject({ crashes: 2 });
    expect(await http(`/runs/${run}/items`)).toMatchObject({ items: [{ attempts: 3, crashes: 2 }] });
    const said = async (...args: string[]) => JSON.parse((await stand.carillon([...args, "--json"])).stdout);
    expect(await said("stats")).toMatchObject({ tasks: [counts] });
    expect(await said("run", run)).toMatchObject({ crashes: 2 });
    expect((await stand.carillon(["stats"])).stdout).toMatch(/CRASHES.*\n.* 2 /);
  });
});
