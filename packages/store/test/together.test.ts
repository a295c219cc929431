import { once } from "node:events";
import type { StartResult } from "@carillon/store";
import { internalsOf } from "@carillon/store/internal";
import { startFaultProxy } from "@carillon/testing";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { attempt, onEveryEngine, ownRedis } from "../../../test/helpers.js";
import { Bench, QUEUE, START } from "./bench.js";

/** Runs that start or end at the same moment. */
class Crowd {
  readonly bench: Bench;
  /** Runs of task `t0`, `t1`, … */
  readonly runs: string[] = [];

  constructor(bench: Bench) {
    this.bench = bench;
  }

  static async of(
    bench: Bench,
    size: number,
    more: Partial<Parameters<Bench["put"]>[0]> = {},
  ): Promise<Crowd> {
    const crowd = new Crowd(bench);
    for (let i = 0; i < size; i++) await bench.put({ id: `t${i}`, ...more });
    await bench.clock.advance(10_000);
    for (let i = 0; i < size; i++) {
      await bench.claim(`t${i}`, `token${i}`);
      crowd.runs.push(...(await bench.store.runs.open(bench.name(`t${i}`))));
    }
    return crowd;
  }

  start() {
    const { runs } = this.bench.store;
    return Promise.allSettled(
      this.runs.map((run, i) => runs.start(this.bench.name(`t${i}`), run, attempt())),
    );
  }

  end(fences: readonly number[], outcome: "succeeded" | "failed" = "succeeded") {
    const { runs } = this.bench.store;
    const end = (i: number) => ({ fence: fences[i] as number, outcome, error: "no" });
    return Promise.allSettled(this.runs.map((run, i) => runs.settle(this.bench.name(`t${i}`), run, end(i))));
  }

  async states(): Promise<(string | undefined)[]> {
    const found = await this.bench.store.runs.many(QUEUE, this.runs);
    return found.map(({ state, outcome }) => outcome ?? state);
  }
}

function fenceOf(started: StartResult): number {
  if (started.word !== "OK") throw new Error(started.word);
  return started.fence;
}

const fencesOf = (started: PromiseSettledResult<StartResult>[]) =>
  started.map((one) => {
    if (one.status === "rejected") throw one.reason;
    return fenceOf(one.value);
  });

/** Names of the scripts that the store sends from now on. */
function sentBy({ store }: Bench): string[] {
  const { link } = internalsOf(store);
  const sent: string[] = [];
  const run = link.run.bind(link);
  link.run = (script, ...rest) => {
    sent.push(script.name);
    return run(script, ...rest);
  };
  return sent;
}

onEveryEngine("runs that start or end at one moment", (connection) => {
  const bench = Bench.use(connection);
  const keys = () => internalsOf(bench.store).keys.queue(QUEUE);
  const next = () => bench.store.claims.next(QUEUE);

  it("share a script of 16, each with its own record", async () => {
    const crowd = await Crowd.of(bench, 20);
    const sent = sentBy(bench);
    const fences = fencesOf(await crowd.start());
    expect(sent).toEqual(["start-run", "start-run"]);
    expect(await crowd.states()).toEqual(crowd.runs.map(() => "running"));
    await crowd.end(fences);
    expect(sent.slice(2)).toEqual(["settle-run", "settle-run"]);
    expect(await crowd.states()).toEqual(crowd.runs.map(() => "succeeded"));
    for (const [i, run] of crowd.runs.entries()) {
      expect(await bench.store.runs.stats(bench.name(`t${i}`))).toMatchObject({
        attempts: "1",
        lastRun: run,
      });
      expect(await bench.store.runs.open(bench.name(`t${i}`))).toEqual([]);
    }
    expect(await bench.store.runs.outcomes(QUEUE)).toMatchObject({ succeeded: 20 });
    const journal = await bench.store.runs.journal(QUEUE, { from: START, to: bench.clock.now }, 100, 0);
    expect(journal.map(({ id }) => id).sort()).toEqual([...crowd.runs].sort());
    // The reconciler checks next at the time when the finished job is removed.
    expect((await next()).get("r")).toBe(bench.clock.now + 600_000);
  });

  it("of one task have different fences", async () => {
    await bench.put({ id: "t", overlap: "allow" });
    const runs: string[] = [];
    for (const token of ["a", "b", "c"]) {
      const answer = await bench.trigger("t", token);
      if (answer.outcome === "enqueued") runs.push(answer.run);
    }
    const started = await Promise.all(runs.map((run) => bench.begin("t", run)));
    const [first, ...others] = started.map(fenceOf);
    expect(others).toEqual([(first as number) + 1, (first as number) + 2]);
    expect(await bench.store.runs.stats(bench.name("t"))).toMatchObject({ attempts: "3", crashes: "3" });
  });

  it("of two queues use a script each", async () => {
    await bench.put({ id: "t", queue: QUEUE });
    const run = await bench.run("t");
    const sent = sentBy(bench);
    const words = await Promise.all([
      bench.begin("t", run),
      bench.begin({ ...bench.name("t"), queue: "others" }, run),
    ]);
    expect(words.map(({ word }) => word)).toEqual(["OK", "GONE"]);
    expect(sent).toEqual(["start-run", "start-run"]);
  });

  describe("if the keys of one hold foreign data", () => {
    const refused = { status: "rejected", reason: { code: "REDIS_ERROR" } };

    it("let the others start", async () => {
      const crowd = await Crowd.of(bench, 3);
      const stats = keys().stats("system/t1");
      await internalsOf(bench.store).link.ask((client) => client.set(stats, "in the way"));
      const [a, b, c] = await crowd.start();
      expect(b).toMatchObject(refused);
      for (const one of [a, c]) expect(one).toMatchObject({ status: "fulfilled", value: { word: "OK" } });
      expect(await crowd.states()).toEqual(["running", "queued", "running"]);
    });

    it("let the others end, counted and checked", async () => {
      const crowd = await Crowd.of(bench, 3);
      const fences = fencesOf(await crowd.start());
      const history = keys().history("system/t1");
      await internalsOf(bench.store).link.ask((client) => client.set(history, "in the way"));
      const [a, b, c] = await crowd.end(fences);
      expect(b).toMatchObject(refused);
      for (const one of [a, c]) expect(one).toEqual({ status: "fulfilled", value: "OK" });
      expect(await crowd.states()).toEqual(["succeeded", "running", "succeeded"]);
      expect(await bench.store.runs.outcomes(QUEUE)).toMatchObject({ succeeded: 2 });
      // The run that is still open: the reconciler's first check of it.
      expect((await next()).get("r")).toBe(bench.clock.now + 10_000);
    });
  });

  it("report one that ends half way because of foreign data", async () => {
    const crowd = await Crowd.of(bench, 3, { overlap: "allow" });
    await bench.trigger("t1", "second");
    const fences = fencesOf(await crowd.start());
    const open = keys().open("system/t1");
    await internalsOf(bench.store).link.ask((client) => client.set(open, "in the way"));
    const [a, b, c] = await crowd.end(fences);
    expect(b).toMatchObject({ status: "rejected", reason: { code: "REDIS_ERROR" } });
    for (const one of [a, c]) expect(one).toEqual({ status: "fulfilled", value: "OK" });
  });

  it("of one task that all fail pause it at the limit", async () => {
    await bench.put({ id: "t", overlap: "allow", pauseAfterFailures: 4 });
    for (const token of ["a", "b", "c", "d"]) {
      await bench.clock.advance(10_000);
      await bench.claim("t", token);
    }
    const runs = await bench.store.runs.open(bench.name("t"));
    const started = await Promise.all(runs.map((run) => bench.begin("t", run)));
    const fences = started.map(fenceOf);
    const { generation } = await bench.stored("t");
    const ends = runs.slice(0, 2).map((run, i) => ({ run, fence: fences[i] as number }));
    const end = ({ run, fence }: { run: string; fence: number }) =>
      bench.settle("t", run, fence, { outcome: "failed", error: "no" });
    expect(await Promise.all(ends.map(end))).toEqual(["OK", "OK"]);
    // Two ends change nothing about the task, so that a concurrent decision about it holds.
    expect(await bench.stored("t")).toMatchObject({ state: "scheduled", generation });
    const last = runs.slice(2).map((run, i) => ({ run, fence: fences[i + 2] as number }));
    expect(await Promise.all(last.map(end))).toEqual(["OK", "OK"]);
    expect((await bench.stored("t")).state).toBe("paused");
  });

  it("that fail have consequences for their own task only", async () => {
    const crowd = await Crowd.of(bench, 3, { pauseAfterFailures: 1 });
    await bench.put({ id: "t1" });
    const fences = fencesOf(await crowd.start());
    for (const one of await crowd.end(fences, "failed")) expect(one).toMatchObject({ value: "OK" });
    const states = await Promise.all([0, 1, 2].map(async (i) => (await bench.stored(`t${i}`)).state));
    expect(states).toEqual(["paused", "scheduled", "paused"]);
    expect(await crowd.states()).toEqual(["failed", "failed", "failed"]);
  });
});

describe("runs that start or end at one moment, if Redis", () => {
  const redis = ownRedis();
  let admin: Redis;
  beforeAll(async () => {
    admin = new Redis(redis.url);
  });
  afterAll(async () => {
    admin.disconnect();
  });

  it("executed the script and its answer is lost, learn the result", async () => {
    const proxy = await startFaultProxy(redis);
    const bench = await Bench.open(proxy.url);
    try {
      const crowd = await Crowd.of(bench, 3);
      const starts = proxy.loseAnswerTo("evalsha");
      const fences = fencesOf(await crowd.start());
      await starts;
      const ends = proxy.loseAnswerTo("evalsha");
      for (const one of await crowd.end(fences)) expect(one).toMatchObject({ value: "OK" });
      await ends;
      expect(await crowd.states()).toEqual(["succeeded", "succeeded", "succeeded"]);
      for (const i of [0, 1, 2])
        expect(await bench.store.runs.stats(bench.name(`t${i}`))).toMatchObject({
          attempts: "1",
          succeeded: "1",
          crashes: "0",
        });
      expect(await bench.store.runs.outcomes(QUEUE)).toMatchObject({ succeeded: 3 });
    } finally {
      await bench.close();
      await proxy.close();
    }
  });

  it("refuses writes, get an error each, and nothing is changed", async () => {
    const bench = await Bench.open(redis.url);
    try {
      const crowd = await Crowd.of(bench, 3);
      await admin.config("SET", "maxmemory", 1);
      const full = { status: "rejected", reason: { code: "REDIS_OUT_OF_MEMORY" } };
      for (const one of await crowd.start()) expect(one).toMatchObject(full);
      await admin.config("SET", "maxmemory", 0);
      const fences = fencesOf(await crowd.start());
      await admin.config("SET", "maxmemory", 1);
      for (const one of await crowd.end(fences)) expect(one).toMatchObject(full);
      expect(await crowd.states()).toEqual(["running", "running", "running"]);
    } finally {
      await admin.config("SET", "maxmemory", 0);
      await bench.close();
    }
  });

  it("has become a replica, get an error each, and the connection is replaced", async () => {
    const bench = await Bench.open(redis.url);
    try {
      const crowd = await Crowd.of(bench, 3);
      const left = once(internalsOf(bench.store).link.client, "reconnecting");
      await admin.replicaof(redis.host, redis.port + 1);
      const replica = { status: "rejected", reason: { code: "REDIS_READ_ONLY" } };
      for (const one of await crowd.start()) expect(one).toMatchObject(replica);
      await left;
    } finally {
      await admin.replicaof("NO", "ONE");
      await bench.close();
    }
  });
});
