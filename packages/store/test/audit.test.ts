import { parseTask } from "@carillon/core";
import { shardOf } from "@carillon/core/internal";
import { internalsOf } from "@carillon/store/internal";
import { Cluster } from "ioredis";
import { expect, it } from "vitest";
import { onEveryEngine } from "../../../test/helpers.js";
import { Bench, QUEUE } from "./bench.js";

onEveryEngine("the indexes", (connection) => {
  const bench = Bench.use(connection);

  const due = (id: string) =>
    internalsOf(bench.store)
      .keys.queue(QUEUE)
      .due(shardOf(`system/${id}`));

  it("stay unchanged if they agree with the definitions", async () => {
    await bench.put({ id: "a" });
    await bench.put({ id: "b", schedule: { every: "1m", anchor: "finish" } });
    await bench.clock.advance(60_000);
    await bench.claim("b", "t");
    await bench.put({ id: "c", enabled: false });
    for (const priority of [0, 3, 0]) await bench.put({ id: "d", priority });
    for (const priority of [3, 0, 5]) await bench.put({ id: "e", priority });
    const before = await bench.dump();
    expect(await bench.store.tasks.audit(QUEUE)).toBe(0);
    expect(await bench.dump()).toEqual(before);
  });

  it("lose a name without a definition, and keep those that begin like it", async () => {
    for (const id of ["a", "ab"]) await bench.put({ id });
    const { keys, link } = internalsOf(bench.store);
    const { tasks, task } = keys.queue(QUEUE);
    await link.client.del(task("system/a"));
    await link.client.zadd(tasks, 0, "system/nobody");
    expect(await bench.store.tasks.audit(QUEUE)).toBe(2);
    expect(await link.client.zrange(tasks, 0, "-1")).toEqual([expect.stringMatching(/^system\/ab /)]);
    expect(await link.client.zscore(due("a"), "system/a")).toBeNull();
    expect(await bench.store.tasks.audit(QUEUE)).toBe(0);
  });

  it("lists exactly the paused and the finished tasks, after a repair", async () => {
    await bench.put({ id: "on" });
    await bench.put({ id: "off", enabled: false });
    const { keys, link } = internalsOf(bench.store);
    const paused = keys.queue(QUEUE).inState("paused");
    await link.client.zrem(paused, "system/off");
    await link.client.zadd(paused, 0, "system/on");
    expect(await bench.store.tasks.audit(QUEUE)).toBe(2);
    expect(await link.client.zrange(paused, 0, "-1")).toEqual(["system/off"]);
    expect(await bench.store.tasks.audit(QUEUE)).toBe(0);
  });

  it("need no entry for a task whose only occurrence waits for a run's end", async () => {
    const task = { id: "a", schedule: { every: "1m", anchor: "finish" }, overlap: "queue-all" } as const;
    await bench.put(task);
    await bench.trigger("a", "m");
    await bench.clock.advance(60_000);
    await bench.claim("a", "t");
    expect(await bench.stored("a")).toMatchObject({ due: undefined, pending: [{ trigger: "schedule" }] });
    expect(await bench.store.tasks.audit(QUEUE)).toBe(0);
  });

  it.each([
    ["as its only occurrence", { every: "1m", anchor: "finish" } as const],
    ["besides its next time", { every: "1m" } as const],
  ])("get an entry for a task that waits for no open run any more: %s", async (_what, schedule) => {
    await bench.put({ id: "a", schedule, overlap: "queue-all" });
    await bench.trigger("a", "m");
    await bench.clock.advance(60_000);
    await bench.claim("a", "t");
    await bench.workAll();
    await bench.reconcile();
    await bench.clock.advance(10_000);
    await bench.reconcile();
    await internalsOf(bench.store).link.client.zrem(due("a"), "system/a");
    expect(await bench.store.tasks.audit(QUEUE)).toBe(1);
    expect(await bench.claim("a", "u")).toEqual(["OK"]);
    expect((await bench.stored("a")).pending).toEqual([]);
  });

  it("need no entry for a task whose retry is due while a run is open", async () => {
    const schedule = { every: "1m", anchor: "finish" } as const;
    await bench.put({ id: "a", schedule, rerun: { delay: "3s", jitter: 0 } });
    await bench.clock.advance(60_000);
    await bench.claim("a", "t");
    await bench.workAll(async () => {
      throw new Error("once");
    });
    await bench.clock.advance(10_000);
    await bench.reconcile();
    expect(await bench.stored("a")).toMatchObject({ due: undefined, pending: [{ trigger: "retry" }] });
    await bench.clock.advance(10_000);
    await bench.trigger("a", "m");
    expect(await internalsOf(bench.store).link.client.zscore(due("a"), "system/a")).toBeNull();
    expect(await bench.store.tasks.audit(QUEUE)).toBe(0);
  });

  it("get back a lost task, which fires", async () => {
    await bench.put({ id: "a" });
    await internalsOf(bench.store).link.client.zrem(due("a"), "system/a");
    await internalsOf(bench.store).link.client.del(internalsOf(bench.store).keys.queue(QUEUE).next);
    await bench.clock.advance(10_000);
    expect(await bench.claim("a", "t")).toEqual([]);
    expect(await bench.store.tasks.audit(QUEUE)).toBe(1);
    expect((await bench.store.claims.next(QUEUE)).has(String(shardOf("system/a")))).toBe(true);
    expect(await bench.claim("a", "t")).toEqual(["OK"]);
  });

  it("are repaired for all other tasks if one cannot be read", async () => {
    for (const id of ["a", "b"]) await bench.put({ id, priority: 3 });
    const { client } = internalsOf(bench.store).link;
    const { priorities, task } = internalsOf(bench.store).keys.queue(QUEUE);
    await client.set(task("system/a"), "in the way");
    await client.hdel(priorities, "system/b");
    expect(await bench.store.tasks.audit(QUEUE)).toBe(1);
    expect(await client.hget(priorities, "system/b")).toBe("3");
    expect(await bench.store.tasks.audit(QUEUE)).toBe(0);
  });

  it("lose the entry of a paused task, which does not fire before that either", async () => {
    await bench.put({ id: "a", enabled: false });
    await internalsOf(bench.store).link.client.zadd(due("a"), 1, "system/a");
    await bench.clock.advance(10_000);
    expect(await bench.claim("a", "t")).toEqual(["STALE"]);
    expect(await bench.store.tasks.audit(QUEUE)).toBe(1);
    expect(await internalsOf(bench.store).link.client.zscore(due("a"), "system/a")).toBeNull();
  });

  it.each([
    ["gone", (key: string) => internalsOf(bench.store).link.client.del(key)],
    ["over", (key: string) => internalsOf(bench.store).link.client.hset(key, "state", "final")],
  ])("give a task a next time again that waits for a run that is %s", async (_what, end) => {
    await bench.put({ id: "a", schedule: { every: "1m", anchor: "finish" } });
    await bench.clock.advance(60_000);
    await bench.claim("a", "t");
    const [run] = await bench.store.runs.list(bench.name("a"), 1);
    const { generation } = await bench.stored("a");
    await end(
      internalsOf(bench.store)
        .keys.queue(QUEUE)
        .run(run?.id as string),
    );
    expect(await bench.store.tasks.audit(QUEUE)).toBe(1);
    expect(await bench.stored("a")).toMatchObject({
      due: bench.clock.now + 60_000,
      waiting: undefined,
      // A write based on a read from before must not remove the new time.
      generation: String(Number(generation) + 1),
    });
  });

  it("are listed again among the parts that have lost them", async () => {
    for (const id of ["a", "b", "c"]) await bench.put({ id });
    const { next } = internalsOf(bench.store).keys.queue(QUEUE);
    const before = await bench.store.claims.next(QUEUE);
    await internalsOf(bench.store).link.client.del(next);
    await internalsOf(bench.store).link.client.zadd(
      next,
      bench.clock.now + 60_000,
      String(shardOf("system/b")),
    );
    expect(await bench.store.tasks.audit(QUEUE)).toBe(before.size);
    expect(await bench.store.claims.next(QUEUE)).toEqual(before);
    expect(await bench.store.tasks.audit(QUEUE)).toBe(0);
  });

  it("are compared with their parts once, whatever the number of tasks", async () => {
    const many = Array.from({ length: 450 }, (_, i) =>
      parseTask({ id: `t${i}`, type: "noop", queue: QUEUE, schedule: { every: "10s" } }),
    );
    await bench.store.tasks.put(QUEUE, many);
    await internalsOf(bench.store).link.client.zrem(due("t0"), "system/t0");
    await internalsOf(bench.store).link.client.del(internalsOf(bench.store).keys.queue(QUEUE).next);
    const { link } = internalsOf(bench.store);
    const masters = link.client instanceof Cluster ? link.client.nodes("master") : [link.client];
    await Promise.all(masters.map((master) => master.config("RESETSTAT")));
    // The put has already repaired its own entry by then.
    expect(await bench.store.tasks.audit(QUEUE)).toBe(8);
    const stats = await Promise.all(masters.map((master) => master.info("commandstats")));
    const calls = stats.map((text) => Number(/cmdstat_zrange:calls=(\d+)/.exec(text)?.[1] ?? 0));
    // Reads the head of each index, and again the heads of repaired parts.
    expect(calls.reduce((sum, count) => sum + count, 0)).toBe(8 + 8);
    expect((await bench.store.claims.next(QUEUE)).size).toBe(8);
  });
});
