import { operatorOf } from "@carillon/ops";
import { Client, defineTask, type TaskInput } from "@carillon/sdk";
import { internalsOf } from "@carillon/store/internal";
import { describe, expect, it, vi } from "vitest";
import { eachBells, MINUTE, putBell, QUEUE, START } from "../../../test/bells.js";
import { enqueued } from "../../../test/helpers.js";

describe("what runs tell", () => {
  const { kit, ops, renew } = eachBells();

  const put = (id: string, type: string, rest: Partial<TaskInput>) => putBell(kit, id, type, rest);

  it("shows how late a run was enqueued, and how long it waited for a worker", async () => {
    await put("t", "fine", {});
    const shown = async () => {
      const [run] = await kit.client.runs.list("t", { limit: 1 });
      const { tasks } = await ops.runs.statsMany();
      const stats = [await kit.client.runs.stats("t"), ...tasks];
      return [run, ...stats.map(({ lastLateMs: lateMs, lastWaitMs: waitMs }) => ({ lateMs, waitMs }))];
    };
    expect(await shown()).toEqual([undefined, ...Array(2).fill({ lateMs: undefined, waitMs: undefined })]);
    await kit.client.pause("t");
    await kit.advance("65m");
    await ops.queues.pause({ queue: QUEUE });
    await kit.client.resume("t", { missed: "catch-up" });
    await kit.advance("2m");
    expect((await kit.client.runs.list("t"))[0]).not.toHaveProperty("waitMs");
    await ops.queues.resume({ queue: QUEUE });
    await kit.advance("1m");
    const expected = { lateMs: 5 * MINUTE, waitMs: 2 * MINUTE };
    expect(await shown()).toMatchObject(Array(3).fill(expected));
    const backfill = await ops.backfills.start({ id: "t", from: START + 1, to: START + 60 * MINUTE });
    await kit.advance("1m");
    expect(await ops.backfills.get({ id: backfill.id! })).toMatchObject({ enqueued: 1 });
    const [again] = await kit.client.runs.list("t", { limit: 1 });
    expect(again).toMatchObject({ trigger: "backfill" });
    expect(again).not.toHaveProperty("lateMs");
  });

  it("lists the slowest runs of a range, and those of an owner, a text or a least duration", async () => {
    const tookLong = { at: START + MINUTE };
    for (const [id, owner] of [
      ["a", "acme"],
      ["b", "acme"],
      ["c", "other"],
    ] as const)
      await put(id, "fine", { owner, schedule: tookLong });
    await kit.advance("2m");
    const { runs } = kit.client;
    // Durations of 30, 10 and 20 s, as if they had started earlier.
    const { keys, link } = internalsOf(kit.store);
    for (const run of (await runs.journal()).runs) {
      const took = { a: 30_000, b: 10_000, c: 20_000 }[run.task.id] ?? 0;
      const started = String((run.finished ?? 0) - took);
      await link.ask((client) => client.hset(keys.queue(QUEUE).run(run.id), "started", started));
    }
    const ids = async (filter: Parameters<typeof runs.journal>[0]) =>
      (await runs.journal(filter)).runs.map(({ task }) => task.id).join("");
    expect(await ids({ sort: "took" })).toBe("acb");
    expect(await ids({ sort: "took", limit: 2, from: START })).toBe("ac");
    expect(await ids({ sort: "took", to: START })).toBe("");
    expect(await ids({ sort: "took", owner: "acme" })).toBe("ab");
    expect(await ids({ sort: "took", took: "20s" })).toBe("ac");
    expect(await ids({ text: "OTHER/c" })).toBe("c");
    expect((await ops.runs.journal({ owner: "other" })).runs).toHaveLength(1);
    const refused = (filter: object) => runs.journal(filter).catch(({ field }) => field);
    expect(await refused({ sort: "size" })).toBe("sort");
    expect(await refused({ sort: "took", cursor: "x" })).toBe("cursor");
    expect(await refused({ took: "soon" })).toBe("took");
    const bound = new Client({ store: kit.store, owner: "acme" });
    expect((await bound.runs.journal({ sort: "took" })).runs).toHaveLength(2);
    await expect(bound.runs.journal({ owner: "other" })).rejects.toMatchObject({ code: "FORBIDDEN" });
  });

  it("replays a run with its own payload, or with the task's", async () => {
    await put("t", "fine", { payload: { n: 1 } });
    const { client } = kit;
    const { runs } = ops;
    const payloads = async () => (await client.runs.list("t")).map(({ payload }) => payload);
    const triggered = async (payload?: object) =>
      enqueued(await client.trigger("t", { payload } as never)).run;
    const own = await triggered({ n: 2 });
    await kit.advance("1m");
    await runs.replay({ id: own }, { by: "ann" });
    await kit.advance("1m");
    expect(await payloads()).toEqual([{ n: 2 }, { n: 2 }]);
    expect((await client.runs.list("t"))[0]).toMatchObject({ trigger: "manual", by: "ann" });
    const plain = await triggered();
    await kit.advance("1m");
    await runs.replay({ id: plain });
    await kit.advance("1m");
    expect((await payloads()).slice(0, 2)).toEqual([undefined, undefined]);
    const long = await triggered({ text: "x".repeat(20_000) });
    await kit.advance("1m");
    await expect(runs.replay({ id: long })).rejects.toMatchObject({ code: "CONFLICT" });
    const other = operatorOf(new Client({ store: kit.store, owner: "other" }));
    await expect(other.runs.replay({ id: own })).rejects.toMatchObject({ code: "RUN_NOT_FOUND" });
  });

  describe("the journal, page by page", () => {
    async function ended(count: number): Promise<string[]> {
      const ids = Array.from({ length: count }, (_, n) => `t${String(n).padStart(3, "0")}`);
      const schedule = { at: START + MINUTE };
      await kit.client.putMany(ids.map((id) => ({ id, type: "fine", queue: QUEUE, schedule })));
      await kit.advance("1m");
      return ids.reverse();
    }
    const idsOf = (runs: readonly { task: { id: string } }[]) => runs.map(({ task }) => task.id);
    /** All, read by pages. */
    const paged = async (limit: number, cursor?: string): Promise<string[]> => {
      const page = await kit.client.runs.journal({ limit, cursor });
      return [...idsOf(page.runs), ...(page.cursor ? await paged(limit, page.cursor) : [])];
    };

    it("continues at its position, even if the last run of a page is deleted", async () => {
      const ids = await ended(5);
      const first = await kit.client.runs.journal({ limit: 2 });
      await kit.client.delete(ids[1] as string);
      const rest = await kit.client.runs.journal({ cursor: first.cursor });
      expect([...idsOf(first.runs), ...idsOf(rest.runs)]).toEqual(ids);
    });

    it("lists each of very many runs once: of one millisecond, and while others come and go", async () => {
      const ids = await ended(450);
      await kit.client.put({ id: "other", type: "fine", queue: "another", schedule: { every: "1h" } });
      expect(await paged(130)).toEqual(ids);
      const { journal } = internalsOf(kit.store).keys.queue(QUEUE);
      const redis = internalsOf(kit.store).link.client;
      const members = await redis.zrevrange(journal, 0, -1);
      // Ends two runs in each millisecond, in the order of the listing.
      for (const [n, member] of members.entries())
        await redis.zadd(journal, START - Math.floor(n / 2), member);
      const read = vi.spyOn(kit.store.runs, "journal");
      for (const act of [
        () => redis.zadd(journal, START + 1, "one@more.1"),
        () => redis.zrem(journal, "one@more.1", members[0] as string, members[1] as string),
      ]) {
        read.mockImplementationOnce(async (...given) => {
          const found = await kit.store.runs.journal(...given);
          await act();
          return found;
        });
        expect(idsOf((await kit.client.runs.journal({ limit: 1_000 })).runs)).toEqual(ids);
      }
    });

    it("lists all queues together, newest first, on every page", async () => {
      const queues = ["zz", "aa", "mm"];
      const types = queues.map((queue) => defineTask(queue, { queue, handler: () => {} }));
      await renew({ types });
      for (const [n, queue] of ["zz", "aa", "mm", "zz", "aa", "zz"].entries())
        await put(`t${n}`, queue, { queue, schedule: { at: START + (n + 1) * MINUTE } });
      // Ends in the same millisecond as t5 of another queue.
      await put("t6", "aa", { queue: "aa", schedule: { at: START + 6 * MINUTE } });
      await kit.advance("6m");
      for (let limit = 1; limit <= 8; limit++)
        expect([limit, ...(await paged(limit))]).toEqual([limit, "t6", "t5", "t4", "t3", "t2", "t1", "t0"]);
    });
  });
});
