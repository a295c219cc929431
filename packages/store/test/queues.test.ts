import { internalsOf } from "@carillon/store/internal";
import { eventually } from "@carillon/testing";
import { Queue, Worker } from "bullmq";
import { describe, expect, it } from "vitest";
import { onEveryEngine } from "../../../test/helpers.js";
import { bullPrefix } from "../src/keys.js";
import { Bench, QUEUE, START } from "./bench.js";

onEveryEngine("queues", (connection) => {
  const bench = Bench.use(connection);

  const state = () => bench.store.queues.state(QUEUE);
  const bull = () => internalsOf(bench.store).keys.queue(QUEUE).bull;
  const bullKeys = async () =>
    Object.keys(await bench.dump())
      .filter((key) => key.startsWith(bull()))
      .map((key) => key.slice(bull().length));
  /** A plain BullMQ queue that writes no settings on its own. */
  const plain = () =>
    new Queue(QUEUE, {
      connection: bench.connect(),
      prefix: bullPrefix(bench.store.namespace, QUEUE),
      skipMetasUpdate: true,
    });
  const triggered = (id: string) => bench.run(id, `token-${id}`, "allow");

  describe("a pause", () => {
    it("is BullMQ's own, with who, when and why of the first call, until a resume", async () => {
      const queue = plain();
      expect(await bench.store.queues.pause(QUEUE, "ann", "deploy")).toBe(true);
      expect([await queue.isPaused(), (await queue.getMeta()).paused]).toEqual([true, true]);
      await bench.clock.advance(1_000);
      expect(await bench.store.queues.pause(QUEUE, "bob", "")).toBe(false);
      expect((await state())?.paused).toEqual({ at: START, by: "ann", note: "deploy" });
      expect(await bench.store.queues.resume(QUEUE)).toBe(true);
      expect(await queue.isPaused()).toBe(false);
      expect((await state())?.paused).toBeUndefined();
      expect(await bench.store.queues.resume(QUEUE)).toBe(false);
      expect(await bullKeys()).toEqual(["events"]);
      await queue.close();
    });

    it("counts if BullMQ paused or resumed the queue; our record is shown only during the pause", async () => {
      const queue = plain();
      await queue.pause();
      expect((await state())?.paused).toEqual({});
      expect(await bench.store.queues.pause(QUEUE, "ann", "deploy")).toBe(false);
      expect(await bench.store.queues.resume(QUEUE)).toBe(true);
      await bench.store.queues.pause(QUEUE, "ann", "deploy");
      await queue.resume();
      expect((await state())?.paused).toBeUndefined();
      await queue.close();
    });

    it("keeps jobs from workers until the resume, then releases all, whatever their priority", async () => {
      await bench.store.queues.pause(QUEUE, "", "");
      await bench.put({ id: "plain" });
      await bench.put({ id: "urgent", priority: 1 });
      const runs = [await triggered("plain"), await triggered("urgent")].sort();
      const done: string[] = [];
      const worker = new Worker(QUEUE, async (job) => void done.push(`${job.id}`), {
        connection: bench.connect(),
        prefix: bullPrefix(bench.store.namespace, QUEUE),
      });
      await worker.waitUntilReady();
      expect(await state()).toMatchObject({ waiting: 2, active: 0 });
      expect(done).toEqual([]);
      await bench.store.queues.resume(QUEUE);
      await eventually(() => expect(done.sort()).toEqual(runs));
      await worker.close();
    });

    it("returns jobs that an older BullMQ had put aside", async () => {
      const { client } = internalsOf(bench.store).link;
      await bench.store.queues.pause(QUEUE, "", "");
      const ids = Array.from({ length: 7_500 }, (_, i) => `job-${i}`);
      await client.rpush(`${bull()}paused`, ...ids);
      await client.rpush(`${bull()}wait`, "new");
      expect((await state())?.waiting).toBe(7_501);
      expect(await bench.store.queues.resume(QUEUE)).toBe(true);
      expect(await client.llen(`${bull()}wait`)).toBe(7_501);
      await client.del(`${bull()}wait`);
    });
  });

  it("report the age of the oldest waiting job of any priority, since its enqueueing or last attempt", async () => {
    expect(await state()).toEqual({
      paused: undefined,
      limit: undefined,
      waiting: 0,
      active: 0,
      oldestWaitingMs: undefined,
    });
    await bench.put({ id: "low", priority: 9 });
    await bench.put({ id: "high", priority: 2 });
    await bench.put({ id: "none" });
    await triggered("low");
    await bench.clock.advance(1_000);
    await triggered("high");
    const none = await triggered("none");
    await bench.clock.advance(500);
    expect(await state()).toMatchObject({ waiting: 3, oldestWaitingMs: 1_500 });
    const { client } = internalsOf(bench.store).link;
    await client.del(`${bull()}prioritized`);
    expect(await state()).toMatchObject({ waiting: 1, oldestWaitingMs: 500 });
    await client.hset(internalsOf(bench.store).keys.queue(QUEUE).job(none), "processedOn", START + 1_400);
    expect(await state()).toMatchObject({ oldestWaitingMs: 100 });
  });

  it("tolerate foreign data in their keys", async () => {
    const { client } = internalsOf(bench.store).link;
    await client.hset(`${bull()}meta`, { paused: 1, "carillon.pause": "nonsense" });
    expect((await state())?.paused).toEqual({});
    await client.hset(`${bull()}meta`, { "carillon.pause": '{"at":"soon","by":7,"note":null}' });
    expect((await state())?.paused).toEqual({});
    await client.lpush(`${bull()}wait`, "gone");
    await client.set(`${bull()}gone`, "no job");
    expect(await state()).toMatchObject({ waiting: 1, oldestWaitingMs: undefined });
    await client.del(`${bull()}wait`);
    await client.set(`${bull()}wait`, "no list");
    expect(await state()).toBeUndefined();
  });

  it("count workers as BullMQ counts them, whatever their names", async () => {
    const options = () => ({
      connection: bench.connect(),
      prefix: bullPrefix(bench.store.namespace, QUEUE),
    });
    const count = async () => {
      const counted = await bench.store.queues.workers([QUEUE, "bell"]);
      return [counted?.get(QUEUE), counted?.get("bell")];
    };
    expect(await count()).toEqual([0, 0]);
    const workers = [
      new Worker(QUEUE, async () => {}, { ...options(), name: "host-1" }),
      new Worker(QUEUE, async () => {}, options()),
      new Worker(QUEUE, async () => {}, { ...options(), prefix: "{other:bells}" }),
    ];
    await Promise.all(workers.map((worker) => worker.waitUntilReady()));
    // In a cluster the first command opens the connection to the queue's master.
    await eventually(async () => expect(await count()).toEqual([2, 0]));
    expect(await bench.queue().getWorkersCount()).toBe(2);
    await Promise.all(workers.map((worker) => worker.close()));
  });

  describe("when the last task is deleted", () => {
    const emptied = async () => {
      await bench.put({ id: "t" });
      await triggered("t");
      await bench.store.tasks.delete(bench.name("t"));
      expect(await bench.ownKeys()).toEqual([]);
      return bullKeys();
    };

    it("leave no key of BullMQ", async () => {
      bench.queue(); // writes its version into the settings
      await bench.queue().waitUntilReady();
      expect(await emptied()).toEqual([]);
    });

    it("keep a pause for later tasks", async () => {
      await bench.store.queues.pause(QUEUE, "ann", "");
      expect(await emptied()).toEqual(["meta"]);
      expect((await state())?.paused).toEqual({ at: START, by: "ann" });
    });

    it("other settings stay", async () => {
      const queue = plain();
      await queue.setGlobalConcurrency(3);
      expect(await emptied()).toEqual(["meta"]);
      expect(await queue.getGlobalConcurrency()).toBe(3);
      await queue.close();
    });

    it.each(["wait", "delayed", "prioritized"])(
      "keep everything while others have jobs there (%s)",
      async (kind) => {
        const queue = plain();
        const options = { delayed: { delay: 60_000 }, prioritized: { priority: 1 }, wait: {} }[kind];
        const job = await queue.add("theirs", {}, options ?? {});
        const left = await emptied();
        expect(left).toEqual(expect.arrayContaining([kind, "events", "id", "meta"]));
        expect(await queue.getJob(`${job.id}`)).toBeDefined();
        await queue.close();
      },
    );
  });
});
