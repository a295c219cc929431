import { Client, defineTask, type TaskInput } from "@carillon/sdk";
import { PARTS } from "@carillon/store";
import { internalsOf } from "@carillon/store/internal";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { type EachKit, eachKit } from "../../../../test/each-kit.js";
import { operatorOf } from "../operator.js";

const QUEUE = "bells";
const START = Date.parse("2026-01-01T00:00:00Z");
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

const payload = z.looseObject({});
const ring = defineTask("ring", { queue: QUEUE, payload, handler: () => {} });
/** Fails at even minutes, except in a backfill. */
const fickle = defineTask("fickle", {
  queue: QUEUE,
  payload,
  handler: (_payload, { occurrence: { nominal, trigger } }) => {
    if (trigger !== "backfill" && (nominal / MINUTE) % 2 === 0) throw new Error("no");
  },
});

/** Its first run takes two and a half minutes. */
const slow = defineTask("slow", {
  queue: QUEUE,
  payload,
  handler: async (_payload, { occurrence: { nominal } }) => {
    if (nominal === START + MINUTE) await kit.sleep("150s");
  },
});
/** Takes an hour in a backfill. */
const long = defineTask("long", {
  queue: QUEUE,
  payload,
  handler: async (_payload, { occurrence: { trigger } }) => {
    if (trigger === "backfill") await kit.sleep("1h");
  },
});
/** Fails in a backfill. */
const hopeless = defineTask("hopeless", {
  queue: QUEUE,
  payload,
  handler: (_payload, { occurrence: { trigger } }) => {
    if (trigger === "backfill") throw new Error("no");
  },
});

const { kit, ops }: EachKit = eachKit({ types: [ring, fickle, slow, long, hopeless], start: START });

describe("backfills", () => {
  const put = (id: string, more: Partial<TaskInput> = {}) =>
    kit.client.put({ id, type: "ring", queue: QUEUE, schedule: { every: "1h" }, ...more });
  /** The two days before the start. */
  const PAST = { from: START - 48 * HOUR, to: START - 1 } as const;
  const backfilled = async (id: string) => {
    const { runs } = await kit.client.runs.journal({ task: id, limit: 1_000 });
    return runs.filter(({ trigger }) => trigger === "backfill").sort((a, b) => a.nominal - b.nominal);
  };

  it("of many tasks keep their rate per minute, and end at the same time", async () => {
    const day = { from: START - 24 * HOUR, to: START - 1 };
    await put("hourly", { tags: ["x"] });
    await put("often", { tags: ["x"], schedule: { cron: "*/20 * * * *" }, overlap: "allow" });
    for (let n = 0; n < 12; n++) await put(`daily-${n}`, { tags: ["x"], schedule: { cron: "0 3 * * *" } });
    await put("drifting", { tags: ["x"], schedule: { every: "1h", anchor: "finish" } });
    await put("other");
    const dry = await ops.backfills.startMany({ tag: "x", ...day, dryRun: true });
    expect(dry).toMatchObject({
      count: 14,
      total: 24 + 72 + 12,
      sample: [{ id: "daily-0", total: 1 }, ...Array.from({ length: 9 }, () => ({ total: 1 }))],
      refused: { count: 1, sample: [{ task: { id: "drifting" }, code: "INVALID_OPTION" }] },
    });
    const started = await ops.backfills.startMany({ tag: "x", ...day, perMinute: 10, overlap: "allow" });
    expect(started).toMatchObject({ count: 14, total: 108, batch: expect.stringMatching(/^b-/) });
    await kit.advance("11m");
    const all = (await ops.backfills.list({ batch: started.batch, state: "done" })).backfills;
    expect(all).toHaveLength(14);
    const { runs } = await kit.client.runs.journal({ limit: 1_000 });
    const minutes = new Array(11).fill(0);
    for (const { trigger, enqueued } of runs)
      if (trigger === "backfill") minutes[Math.floor((enqueued - START) / MINUTE)] += 1;
    expect(minutes.reduce((sum, count) => sum + count)).toBe(108);
    // Ten per minute on average; single minutes differ by the times of the first steps.
    expect(Math.max(...minutes)).toBeLessThanOrEqual(13);
    expect(minutes[9]).toBeGreaterThan(3);
  });

  it("of failed occurrences leave out those that succeeded since, are running, or wait for a retry", async () => {
    await put("t", { type: "fickle", schedule: { every: "1m" } });
    await put("again", { type: "fickle", schedule: { at: START + 2 * MINUTE }, rerun: { delay: "1h" } });
    await kit.advance("6m");
    await kit.client.trigger("t");
    const range = { from: START, to: START + 6 * MINUTE, only: "failed" } as const;
    expect(await ops.backfills.start({ id: "again", ...range, dryRun: true })).toMatchObject({ total: 0 });
    const { id, total } = await ops.backfills.start({ id: "t", ...range, overlap: "allow" });
    expect(total).toBe(3);
    await kit.advance("1s");
    expect(await ops.backfills.get({ id: id as string })).toMatchObject({ state: "done", enqueued: 3 });
    const nominals = (await backfilled("t")).map(({ nominal }) => (nominal - START) / MINUTE);
    expect(nominals).toEqual([2, 4, 6]);
    const many = await ops.backfills.startMany({ queue: QUEUE, ...range, dryRun: true });
    expect(many).toMatchObject({ count: 0, total: 0, refused: { count: 0 } });
  });

  it("of frozen occurrences run those that a freeze skipped, and no others", async () => {
    await put("t", { schedule: { cron: "* * * * *" }, overlap: "allow" });
    await put("fixed", { schedule: { every: "1m" }, overlap: "allow" });
    const freeze = { from: START + 90_000, until: START + 210_000, tag: undefined, all: true };
    await ops.freezes.put(freeze);
    await kit.advance("6m");
    const range = { from: START, to: kit.now, only: "frozen", perMinute: 60 } as const;
    expect(await ops.backfills.startMany({ queue: QUEUE, ...range })).toMatchObject({ count: 2, total: 4 });
    await kit.advance("10s");
    for (const id of ["t", "fixed"])
      expect((await backfilled(id)).map(({ nominal }) => (nominal - START) / MINUTE)).toEqual([2, 3]);
  });

  /** A task of each minute, of which the occurrences of the minutes 2 and 3 are skipped for a reason; it is minute 5 then. */
  const SKIPS: Record<string, (more: Partial<TaskInput>) => Promise<unknown>> = {
    frozen: async (more) => {
      await put("t", { schedule: { every: "1m" }, overlap: "allow", ...more });
      const freeze = { from: START + 90_000, until: START + 210_000, all: true };
      await ops.freezes.put(freeze);
      await kit.advance("5m");
    },
    paused: async (more) => {
      await put("t", { schedule: { every: "1m" }, overlap: "allow", ...more });
      await kit.advance("90s");
      await kit.client.pause("t");
      await kit.advance("2m");
      await kit.client.resume("t");
      await kit.advance("90s");
    },
    missed: async (more) => {
      await put("t", { schedule: { every: "1m" }, overlap: "allow", catchUp: "skip", ...more });
      await kit.advance("90s");
      await kit.client.pause("t");
      await kit.advance("2m");
      await kit.client.resume("t", { missed: "catch-up" });
      await kit.advance("90s");
    },
    overlap: async (more) => {
      await put("t", { type: "slow", schedule: { every: "1m" }, ...more });
      await kit.advance("5m");
    },
  };
  const fiveMinutes = (only: "frozen" | "paused" | "missed" | "overlap" | "failed") =>
    ({ from: START, to: START + 5 * MINUTE, only, overlap: "allow" }) as const;

  it.each(["frozen", "paused", "missed", "overlap"] as const)(
    "of %s occurrences run none a second time",
    async (only) => {
      await SKIPS[only]?.({});
      const { backfills } = ops;
      const [start, startMany] = [
        () => backfills.start({ id: "t", ...fiveMinutes(only) }),
        () => backfills.startMany({ queue: QUEUE, ...fiveMinutes(only), perMinute: 60 }),
      ];
      expect(await backfills.start({ id: "t", ...fiveMinutes(only), dryRun: true })).toEqual({
        total: 2,
        left: 0,
      });
      // At one instant: at most one of them starts it.
      const both = await Promise.allSettled([start(), startMany(), start()]);
      const totals = both.flatMap((one) => (one.status === "fulfilled" ? [one.value.total] : []));
      if (!totals.some((total) => total > 0)) totals.push((await start()).total);
      expect(totals.reduce((sum, total) => sum + total)).toBe(2);
      for (const one of both)
        if (one.status === "rejected") expect(one.reason).toMatchObject({ code: "CONFLICT" });
      // About to be run, then run.
      expect(await startMany()).toMatchObject({ count: 0, total: 0, left: 2 });
      await kit.advance("2m");
      expect(await start()).toEqual({ total: 0, left: 2 });
      expect((await backfilled("t")).map(({ nominal }) => (nominal - START) / MINUTE)).toEqual([2, 3]);
    },
  );

  it("of skipped occurrences run again those that failed, and leave out those that are open", async () => {
    await SKIPS["frozen"]?.({ type: "hopeless" });
    const start = () => ops.backfills.start({ id: "t", ...fiveMinutes("frozen") });
    await start();
    await kit.advance("1s");
    expect(await start()).toMatchObject({ total: 2, left: 0 });
    await kit.advance("1s");
    await put("t", { type: "long", schedule: { every: "1m" }, overlap: "allow" });
    const { id } = await start();
    await kit.advance("1s");
    expect(await ops.backfills.get({ id: id as string })).toMatchObject({ state: "done" });
    expect(await start()).toEqual({ total: 0, left: 2 });
    // Those that ended.
    expect(await backfilled("t")).toHaveLength(4);
  });

  it("know what they have run when its records are no longer kept", async () => {
    await SKIPS["frozen"]?.({ retention: { successes: 1, failures: 1 } });
    const start = () => ops.backfills.start({ id: "t", ...fiveMinutes("frozen") });
    await start();
    await kit.advance("3m");
    expect(await backfilled("t")).toEqual([]);
    expect(await start()).toEqual({ total: 0, left: 2 });
  });

  it("are refused if a resume has left another one since the backfills were read", async () => {
    await put("t", { schedule: { every: "1m" }, overlap: "allow" });
    await kit.client.pause("t");
    await kit.advance("4m30s");
    const { runs } = kit.store;
    const { ledger } = runs;
    runs.ledger = async (name) => {
      runs.ledger = ledger;
      await ops.tasks.resumeMany({ queue: QUEUE, missed: "all", perMinute: 60 });
      return ledger.call(runs, name);
    };
    const start = () => ops.backfills.start({ id: "t", ...fiveMinutes("paused"), to: kit.now });
    await expect(start()).rejects.toMatchObject({ code: "CONFLICT" });
    expect(await start()).toEqual({ total: 0, left: 4 });
    await kit.advance("20s");
    expect(await backfilled("t")).toHaveLength(4);
  });

  it("of failed occurrences and replays leave each other's out", async () => {
    await put("t", { type: "fickle", schedule: { every: "1m" } });
    await kit.advance("5m");
    const { backfills, runs } = ops;
    const replay = () => runs.replayMany({ from: START, perMinute: 60 });
    const start = () => backfills.start({ id: "t", ...fiveMinutes("failed"), every: "1m" });
    const { id } = await start();
    expect(await replay()).toMatchObject({ total: 0, left: 2 });
    await backfills.cancel({ id: id as string });
    expect(await replay()).toMatchObject({ total: 2, left: 0 });
    expect(await start()).toEqual({ total: 0, left: 2 });
  });

  it("are listed, newest first, and stopped together; each bound client has its own", async () => {
    await put("a");
    await put("b", { owner: "acme", queue: "other" });
    const { id } = await ops.backfills.start({ id: "a", ...PAST, every: "1h" });
    await kit.advance("1s");
    const { batch } = await ops.backfills.startMany(
      { tasks: ["a", "acme/b"], ...PAST, perMinute: 1 },
      { by: "ann" },
    );
    const { list } = ops.backfills;
    const { backfills: all } = await list();
    expect(
      all
        .map(({ task, by }) => [task.id, by === "ann"])
        .slice(0, 2)
        .sort(),
    ).toEqual([
      ["a", true],
      ["b", true],
    ]);
    expect(all[2]).toMatchObject({ id, state: "running" });
    expect((await ops.backfills.list({ limit: 1 })).backfills).toEqual(all.slice(0, 1));
    expect((await ops.backfills.list({ queue: "other" })).backfills).toMatchObject([
      { task: { id: "b" }, batch },
    ]);
    const bound = new Client({ store: kit.store, owner: "acme" });
    expect((await operatorOf(bound).backfills.list()).backfills).toMatchObject([
      { task: { owner: "acme", id: "b" } },
    ]);
    expect((await operatorOf(bound).backfills.list({ owner: "system" })).backfills).toEqual([]);
    expect((await operatorOf(bound).backfills.cancel({ id: batch as string })).changed).toBe(true);
    expect(
      (await ops.backfills.list({ batch, state: "running" })).backfills.map(({ task }) => task.id),
    ).toEqual(["a"]);
    expect((await ops.backfills.cancel({ id: batch as string }, { by: "eve" })).changed).toBe(true);
    expect((await ops.backfills.cancel({ id: batch as string })).changed).toBe(false);
    expect((await ops.backfills.list({ state: "running" })).backfills).toMatchObject([{ id }]);
    await expect(ops.backfills.cancel({ id: "b-000000000000" })).rejects.toMatchObject({
      code: "BACKFILL_NOT_FOUND",
    });
    const { changes } = await ops.changes.list();
    expect(changes.map(({ kind, by, count }) => [kind, by, count])).toEqual([
      ["backfill.cancel", "eve", 1],
      ["backfill.cancel", undefined, 1],
      ["backfill", "ann", 2],
      ["backfill", undefined, undefined],
      ["put", undefined, undefined],
      ["put", undefined, undefined],
    ]);
  });

  it("of a deleted task end with it, even if the task is put again", async () => {
    await put("a");
    const { id } = await ops.backfills.start({ id: "a", ...PAST, every: "1m" });
    await kit.advance("90s");
    const { link, keys } = internalsOf(kit.store);
    const { backfill, backfills, next } = keys.queue(QUEUE);
    const kept = await link.client.hgetall(backfill(id as string));
    await kit.client.delete("a");
    await put("a");
    // The backfill is left over, because the delete met more of them than it checks.
    const left = "0123456789abcdef";
    await link.client.hset(backfill(left), kept);
    await link.client.zadd(backfills, START, left);
    await link.client.zadd(next, START, PARTS.backfills);
    await kit.advance("2m");
    expect((await ops.backfills.list()).backfills).toEqual([]);
    expect(await backfilled("a")).toEqual([]);
  });

  it.each<[object, string | undefined]>([
    [{}, "perMinute"],
    [{ perMinute: 0 }, "perMinute"],
    [{ perMinute: 5e-324 }, "perMinute"],
    [{ perMinute: 1, every: "1m" }, "every"],
    [{ perMinute: 1, to: START + HOUR }, "to"],
    [{ perMinute: 1, from: START }, "from"],
    [{ perMinute: 1, from: START - 50 * HOUR }, undefined],
  ])("of many tasks are refused with %j", async (more, field) => {
    for (let n = 0; n < 11; n++)
      await put(`t${n}`, { schedule: { every: "5m", origin: new Date(START).toISOString() } });
    const call = ops.backfills.startMany({ queue: QUEUE, ...PAST, ...(more as object) });
    if (field === undefined) await expect(call).resolves.toMatchObject({ count: 0 });
    else await expect(call).rejects.toMatchObject({ code: "INVALID_OPTION", field });
    await expect(ops.backfills.startMany({ ...PAST, perMinute: 1 })).rejects.toThrow();
    expect((await ops.backfills.list()).backfills).toEqual([]);
  });
});
