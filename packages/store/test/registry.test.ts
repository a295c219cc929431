import { shardOf } from "@carillon/core/internal";
import { isAlive, isSilent } from "@carillon/store";
import { internalsOf } from "@carillon/store/internal";
import { afterEach, beforeEach, expect, it } from "vitest";
import { nodeInfo, onEveryEngine } from "../../../test/helpers.js";
import { Bench, QUEUE, START } from "./bench.js";

onEveryEngine("the registry of queues", (connection) => {
  const bench = Bench.use(connection);
  let other: Bench;
  beforeEach(async () => {
    other = await Bench.open(connection(), { namespace: bench.store.namespace });
  });
  afterEach(async () => {
    await other.close();
  });

  it("always has the queue of a stored task: the last delete races a put 100 times", async () => {
    await bench.put({ id: "t0" });
    for (let i = 0; i < 100; i++) {
      const deleting = bench.store.tasks.delete(bench.name(`t${i}`));
      const putting = other.put({ id: `t${i + 1}` });
      await Promise.all([deleting, putting]);
      expect(await bench.store.registry.queues()).toEqual([QUEUE]);
    }
    await bench.store.tasks.delete(bench.name("t100"));
    expect(await bench.store.registry.queues()).toEqual([]);
    expect(await bench.ownKeys()).toEqual([]);
  });

  it("is found in each namespace, whatever its server", async () => {
    const others = await Promise.all(
      [1, 2, 3].map((n) => Bench.open(connection(), { namespace: `shop-${n}` })),
    );
    for (const one of others) await one.put({ id: "t" });
    expect(await bench.store.namespaces()).toEqual(["shop-1", "shop-2", "shop-3"]);
    for (const one of others) await one.close();
  });

  it("stays correct while two deletes race two puts of the same name 60 times", async () => {
    for (let i = 0; i < 60; i++) {
      await Promise.all([
        bench.put({ id: "t" }),
        other.store.tasks.delete(bench.name("t")),
        other.put({ id: "t", priority: 1 }),
        bench.store.tasks.delete(bench.name("t")),
        bench.store.registry.forgetIfEmpty(QUEUE),
      ]);
      const stored = await bench.store.tasks.get(bench.name("t"));
      if (stored) expect(await bench.store.registry.queues()).toEqual([QUEUE]);
    }
    await bench.store.tasks.delete(bench.name("t"));
    expect(await bench.ownKeys()).toEqual([]);
  });

  it("does not forget a queue during a put into it, nor one with runs left", async () => {
    const mark = await bench.store.registry.enter(QUEUE);
    expect(await other.store.registry.forgetIfEmpty(QUEUE)).toBe(false);
    const second = await other.store.registry.enter(QUEUE);
    const third = await other.store.registry.enter(QUEUE);
    await other.store.registry.leave(QUEUE, third);
    await bench.store.registry.leave(QUEUE, mark);
    expect(await other.store.registry.forgetIfEmpty(QUEUE)).toBe(false);
    const last = await other.store.registry.enter(QUEUE);
    await other.store.registry.leave(QUEUE, last);
    expect(await other.store.registry.forgetIfEmpty(QUEUE)).toBe(false);
    await other.store.registry.leave(QUEUE, second);
    await internalsOf(bench.store).link.client.zadd(
      internalsOf(bench.store).keys.queue(QUEUE).runs,
      1,
      "t@1.a",
    );
    expect(await other.store.registry.forgetIfEmpty(QUEUE)).toBe(false);
    await internalsOf(bench.store).link.client.del(internalsOf(bench.store).keys.queue(QUEUE).runs);
    expect(await other.store.registry.forgetIfEmpty(QUEUE)).toBe(true);
    expect(await other.store.registry.forgetIfEmpty(QUEUE)).toBe(false);
    expect(await bench.ownKeys()).toEqual([]);
  });

  it("deletes a queue's stamps with it, and takes none afterwards", async () => {
    const { registry } = bench.store;
    await registry.leave(QUEUE, await registry.enter(QUEUE));
    await registry.setZone(QUEUE, "2026a");
    await registry.setAudit(QUEUE, START);
    expect([await registry.zones(), await registry.audits()]).toEqual([
      new Map([[QUEUE, "2026a"]]),
      new Map([[QUEUE, START]]),
    ]);
    expect(await registry.forgetIfEmpty(QUEUE)).toBe(true);
    // A node that compared the data before is late.
    await registry.setZone(QUEUE, "2026a");
    await registry.setAudit(QUEUE, START);
    expect(await bench.ownKeys()).toEqual([]);
  });

  it("lists nodes while they beat", async () => {
    const node = nodeInfo("n1", { beat: 2 });
    await bench.store.registry.beat({ ...node, id: "n2" });
    await bench.store.registry.beat(node);
    await bench.store.registry.beat({ ...node, beat: 3 });
    expect(await other.store.registry.nodes()).toEqual([
      { ...node, beat: 3 },
      { ...node, id: "n2" },
    ]);
    await bench.store.registry.removeNode("n1");
    await bench.store.registry.removeNode("n2");
    expect(await other.store.registry.nodes()).toEqual([]);
    expect(await bench.ownKeys()).toEqual([]);
  });

  it.each([
    [3 * 5_000, true],
    [3 * 5_000 + 1, false],
    [-3 * 5_000, true],
    [-3 * 5_000 - 1, false],
  ])("reports a node whose last heartbeat was %i ms ago as alive: %s", (ago, alive) => {
    expect(isAlive(nodeInfo("n1", { every: 5_000, beat: START - ago }), START)).toBe(alive);
  });

  it.each([
    [1.5 * 5_000, false],
    [1.5 * 5_000 + 1, true],
    [-1.5 * 5_000 - 1, true],
  ])("reports a node whose last heartbeat was %i ms ago as silent: %s", (ago, silent) => {
    expect(isSilent(nodeInfo("n1", { every: 5_000, beat: START - ago }), START)).toBe(silent);
  });

  it("tests whether Redis takes writes without leaving a key", async () => {
    const before = await bench.dump();
    await bench.store.registry.assertWritable();
    expect(await bench.dump()).toEqual(before);
  });

  it("deletes a queue as a whole, with the rest of an interrupted delete", async () => {
    await bench.put({ id: "t" });
    await bench.clock.advance(10_000);
    await bench.claim("t", "tok");
    await bench.workAll();
    await bench.clock.advance(10_000);
    await bench.reconcile();
    await bench.cutOff("clear-runs", () => bench.store.tasks.delete(bench.name("t")));
    await bench.store.deleteQueue(QUEUE);
    expect(await bench.ownKeys()).toEqual([]);
  });

  it("deletes a queue as a whole, with tasks of a newer format, and loses no concurrent put", async () => {
    const keys = internalsOf(bench.store).keys.queue(QUEUE);
    for (const id of ["a", "b", "c"]) await bench.put({ id });
    await internalsOf(bench.store).link.ask((client) => client.hset(keys.task("system/a"), "v", "99"));
    await internalsOf(bench.store).link.ask((client) =>
      client.hset(keys.task("system/b"), "gen", "nonsense"),
    );
    expect(await bench.store.deleteQueue(QUEUE)).toBe(3);
    expect(await bench.ownKeys()).toEqual([]);
    const remove = bench.store.tasks.delete.bind(bench.store.tasks);
    bench.store.tasks.delete = async (name, which) => {
      const gone = await remove(name, which);
      await bench.put({ id: "new" });
      await bench.run("new");
      return gone;
    };
    await bench.put({ id: "old" });
    await bench.store.deleteQueue(QUEUE);
    bench.store.tasks.delete = remove;
    expect((await bench.store.claims.next(QUEUE)).get(String(shardOf("system/new")))).toBe(START + 10_000);
    // Its job is deleted with the queue's.
    await bench.clock.advance(3_600_000);
    await bench.reconcile();
    expect(await bench.store.runs.list(bench.name("new"), 2)).toMatchObject([{ outcome: "lost" }]);
  });
});
