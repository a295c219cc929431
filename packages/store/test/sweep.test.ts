import type { RedisClient } from "@carillon/store";
import { internalsOf } from "@carillon/store/internal";
import { Cluster } from "ioredis";
import { afterEach, beforeEach, expect, it } from "vitest";
import { onEveryEngine } from "../../../test/helpers.js";
import { Bench, QUEUE } from "./bench.js";

const RETENTION = { completedJobs: { for: 60_000 }, failedJobs: { for: 60_000 } };
const MANY = 40;

onEveryEngine("the removal of finished jobs", (connection) => {
  let bench: Bench;
  beforeEach(async () => {
    bench = await Bench.open(connection(), { retention: RETENTION });
  });
  afterEach(async () => {
    await bench.close();
  });
  const keys = () => internalsOf(bench.store).keys.queue(QUEUE);
  const send = <T>(step: (client: RedisClient) => Promise<T>) => internalsOf(bench.store).link.ask(step);

  /**
   * Creates this many runs that a plain worker completed and the reconciler settled; their jobs are due to be removed.
   */
  async function over(count: number, work?: Parameters<Bench["workAll"]>[0]): Promise<string[]> {
    const ids = Array.from({ length: count }, (_, i) => `t${i}`);
    for (const id of ids) {
      await bench.put({ id, schedule: { every: "1d" } });
      await bench.trigger(id, id);
    }
    await bench.workAll(work);
    await bench.clock.advance(10_000);
    const settled = await bench.reconcile();
    expect(settled).toHaveLength(count);
    await bench.clock.advance(RETENTION.completedJobs.for);
    return settled.map(([run]) => run);
  }

  async function commands(): Promise<number> {
    const client = bench.connect();
    const masters = client instanceof Cluster ? client.nodes("master") : [client];
    const infos = await Promise.all(masters.map((master) => master.info("commandstats")));
    const calls = [...infos.join("\n").matchAll(/cmdstat_(\S+?):calls=(\d+)/g)];
    return calls.filter(([, name]) => name !== "info").reduce((sum, [, , n]) => sum + Number(n), 0);
  }

  it("takes three commands for each job, including the one for its task", async () => {
    const runs = await over(MANY);
    const before = await commands();
    const { seen, more } = await bench.store.runs.reconcile(QUEUE);
    const spent = (await commands()) - before;
    expect(seen.map(([run]) => run).sort()).toEqual([...runs].sort());
    expect(more).toBe(false);
    expect(spent / MANY).toBeLessThan(4);
    expect(await bench.jobs()).toEqual([]);
    // The records are kept, and checked once more when their retention ends.
    const records = await bench.store.runs.many(QUEUE, runs);
    expect(records).toHaveLength(MANY);
    expect(await send((client) => client.zcard(keys().runs))).toBe(MANY);
    await bench.clock.advance(7 * 86_400_000);
    await bench.reconcile();
    expect((await bench.ownKeys()).filter((key) => /~(r:|out:|hist|fail|journal|runs)/.test(key))).toEqual(
      [],
    );
  });

  it("leaves the same BullMQ keys as BullMQ's own remove", async () => {
    const left = async (remove: () => Promise<unknown>) => {
      let n = 0;
      await over(4, async (job) => {
        await job.log("a line");
        if (n++ % 2 === 1) throw new Error("no paper");
      });
      await remove();
      return Object.keys(await bench.dump())
        .filter((key) => key.startsWith(keys().bull))
        .map((key) => key.slice(keys().bull.length));
    };
    const swept = await left(() => bench.reconcile());
    expect(swept).toContain("meta");
    await bench.close();
    bench = await Bench.open(connection(), { retention: RETENTION });
    const removed = await left(async () => {
      for (const job of await bench.jobs()) await job.remove();
    });
    expect(swept).toEqual(removed);
  });

  it("leaves the job of a final run that was retried from outside, and removes others", async () => {
    const runs = await over(5);
    const jobs = await bench.jobs();
    const retried = jobs[2];
    await retried?.retry("completed");
    const seen = await bench.reconcile();
    expect(seen).toHaveLength(5);
    expect(new Map(seen).get(retried?.id as string)).toBe("reopened");
    expect((await bench.jobs()).map(({ id }) => id)).toEqual([retried?.id]);
    expect(await bench.store.runs.get(QUEUE, retried?.id as string)).toMatchObject({ state: "queued" });
    expect(runs).toContain(retried?.id);
  });

  it("leaves a job with a parent to BullMQ, which notifies the parent", async () => {
    const runs = await over(3);
    const [child = ""] = runs;
    const parent = `${keys().bull}parent`;
    await send((client) => client.hset(keys().job(child), "parentKey", parent));
    await send((client) => client.hset(parent, "name", "p"));
    await send((client) => client.sadd(`${parent}:dependencies`, keys().job(child), "another"));
    const seen = await bench.reconcile();
    expect(seen.map(([run]) => run).sort()).toEqual([...runs].sort());
    expect(await send((client) => client.smembers(`${parent}:dependencies`))).toEqual(["another"]);
    // Its record is kept like all others.
    await bench.reconcile();
    expect(await send((client) => client.zscore(keys().runs, child))).toBe(
      String(bench.clock.now - RETENTION.completedJobs.for + 7 * 86_400_000 + 1),
    );
  });

  it("removes the others if the record of one is corrupt", async () => {
    const runs = await over(4);
    const [bad = "", ...others] = runs;
    await send((client) => client.del(keys().run(bad)));
    await send((client) => client.set(keys().run(bad), "in the way"));
    const seen = await bench.reconcile();
    expect(seen.map(([run]) => run).sort()).toEqual([...others].sort());
  });
});
