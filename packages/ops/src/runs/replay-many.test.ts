import { Client, defineTask, type TaskInput } from "@carillon/sdk";
import { beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { eachKit } from "../../../../test/each-kit.js";
import { operatorOf } from "../operator.js";

const QUEUE = "bells";
const START = Date.parse("2026-01-01T00:00:00Z");
const MINUTE = 60_000;

let isDown = true;
/** Trigger, nominal time in minutes and payload of each attempt. */
let got: unknown[] = [];
const send = defineTask("send", {
  queue: QUEUE,
  payload: z.looseObject({}),
  handler: (payload, { occurrence: { nominal, trigger } }) => {
    got.push([trigger, (nominal - START) / MINUTE, payload]);
    if (isDown) throw new Error("the receiver is down");
  },
});

describe("replays", () => {
  const { kit, ops } = eachKit({ types: [send], start: START });
  beforeEach(() => {
    isDown = true;
    got = [];
  });

  const put = (id: string, more: Partial<TaskInput> = {}) =>
    kit.client.put({ id, type: "send", queue: QUEUE, schedule: { every: "1m" }, payload: {}, ...more });
  const all = { from: START, perMinute: 60 } as const;

  it("run the failed runs of a range again, with their nominal times and payloads, at a pace", async () => {
    await put("often", { schedule: { every: "1m", maxRuns: 3 } });
    await put("once", { schedule: { at: START + MINUTE } });
    await put("asked", { owner: "acme", schedule: { at: START + 90 * MINUTE }, overlap: "allow" });
    // Two in one millisecond are two occurrences.
    for (const n of [1, 2]) await kit.client.trigger("acme/asked", { payload: { n } });
    await kit.advance("10m");
    const dry = await ops.runs.replayMany({ from: START, perMinute: 6, dryRun: true });
    expect(dry).toMatchObject({
      count: 3,
      total: 6,
      left: 0,
      refused: { count: 0 },
      until: kit.now + MINUTE,
    });
    expect(dry).not.toHaveProperty("batch");
    expect(await ops.runs.replayMany({ from: START, owner: "acme", dryRun: true })).toMatchObject({
      count: 1,
      total: 2,
      sample: [{ owner: "acme", id: "asked", total: 2 }],
    });
    [isDown, got] = [false, []];
    const { batch, total } = await ops.runs.replayMany({ ...all, perMinute: 6 }, { by: "ann" });
    expect(total).toBe(6);
    await kit.advance("25s");
    expect(got.length).toBeGreaterThan(0);
    expect(got.length).toBeLessThan(6);
    await kit.advance("1m");
    expect(got.map((one) => JSON.stringify(one)).sort()).toEqual([
      '["backfill",0,{"n":1}]',
      '["backfill",0,{"n":2}]',
      '["backfill",1,{}]',
      '["backfill",1,{}]',
      '["backfill",2,{}]',
      '["backfill",3,{}]',
    ]);
    const { backfills } = await ops.backfills.list({ batch });
    expect(backfills.map(({ state, total, enqueued }) => [state, total, enqueued]).sort()).toEqual([
      ["done", 1, 1],
      ["done", 2, 2],
      ["done", 3, 3],
    ]);
    expect(await kit.client.get("often")).toMatchObject({ state: "finished", fired: 3 });
    expect((await ops.changes.list()).changes[0]).toMatchObject({
      kind: "backfill",
      by: "ann",
      count: 3,
      details: { batch, runs: 6, perMinute: 6 },
    });
    // They succeeded since.
    expect(await ops.runs.replayMany({ ...all, dryRun: true })).toMatchObject({ total: 0, left: 6 });
  });

  it("are not doubled by a second call, whether it has the key of the first or another", async () => {
    await put("t");
    await kit.advance("3m");
    const asked = { ...all, to: kit.now, key: "k" };
    const [first, again] = [await ops.runs.replayMany(asked), await ops.runs.replayMany(asked)];
    expect(first).toMatchObject({ total: 3, batch: expect.stringMatching(/^b-/) });
    expect(again).toMatchObject({ total: 3, batch: first.batch });
    expect(await ops.runs.replayMany({ ...all, to: asked.to })).toMatchObject({ total: 0, left: 3 });
    await kit.advance("20s");
    // They failed again: the same call still means the same replay, a new one runs them once more.
    expect(await ops.runs.replayMany(asked)).toMatchObject({ total: 3, batch: first.batch });
    await kit.advance("20s");
    const times = () => got.filter((one) => JSON.stringify(one).includes("backfill")).length;
    expect(times()).toBe(3);
    await ops.runs.replayMany({ ...asked, key: "other" });
    await kit.advance("10s");
    expect(times()).toBe(6);
  });

  it("are not doubled by a call at the same time", async () => {
    await put("t");
    await kit.advance("3m");
    const calls = [all, all, { ...all, text: "down" }].map((asked) => ops.runs.replayMany(asked));
    const ended = await Promise.allSettled(calls);
    const refused = ended.filter(({ status }) => status === "rejected");
    for (const one of refused)
      expect(one).toMatchObject({
        reason: { code: "CONFLICT", message: expect.stringContaining("another replay") },
      });
    await kit.advance("20s");
    expect(got.filter((one) => JSON.stringify(one).includes("backfill"))).toHaveLength(3);
  });

  it("leave out occurrences with a retry to come, and wait for a run in their way", async () => {
    await put("retried", { schedule: { at: START + MINUTE }, rerun: { delay: "1h" } });
    await put("t", { schedule: { every: "1m", maxRuns: 1 } });
    await kit.advance("2m");
    await kit.worker.pause();
    await kit.client.trigger("t");
    expect(await ops.runs.replayMany(all)).toMatchObject({ count: 1, total: 1, left: 1 });
    await kit.advance("5s");
    isDown = false;
    expect((await ops.backfills.list()).backfills).toMatchObject([{ state: "running", enqueued: 0 }]);
    await kit.worker.resume();
    await kit.advance("5s");
    expect((await ops.backfills.list()).backfills).toMatchObject([{ state: "done", enqueued: 1 }]);
  });

  it("run named runs again, whatever their outcome, and stop when they are cancelled", async () => {
    isDown = false;
    await put("t", { schedule: { every: "1m", maxRuns: 5 } });
    await put("b", { owner: "acme", schedule: { at: START + MINUTE } });
    await kit.advance("6m");
    await kit.worker.pause();
    const open = (await kit.client.trigger("t")) as { run: string };
    const runs = (await kit.client.runs.journal({})).runs.map(({ id }) => id);
    const bound = operatorOf(new Client({ store: kit.store, owner: "acme" }));
    expect(await bound.runs.replayMany({ runs, dryRun: true })).toMatchObject({
      count: 1,
      total: 1,
      refused: {
        count: 5,
        sample: expect.arrayContaining([expect.objectContaining({ code: "RUN_NOT_FOUND" })]),
      },
    });
    await kit.client.runs.cancel(open.run);
    const asked = { runs: [...runs, ...runs, open.run, "none", "a:b"], perMinute: 1 };
    const { batch, ...answer } = await ops.runs.replayMany(asked);
    expect(answer).toMatchObject({ count: 2, total: 6, left: 0, refused: { count: 3 } });
    expect(answer.refused.sample.map(({ code }) => code)).toEqual([
      "CONFLICT",
      "RUN_NOT_FOUND",
      "RUN_NOT_FOUND",
    ]);
    await kit.worker.resume();
    got = [];
    await kit.advance("2m");
    const before = got.length;
    expect((await ops.backfills.cancel({ id: batch! })).changed).toBe(true);
    await kit.advance("10m");
    expect(got.length).toBe(before);
    expect(before).toBeLessThan(6);
  });

  it("refuse what is missing or wrong, by its field", async () => {
    const many = Array.from({ length: 1_001 }, () => "a@1.x");
    const faults: [object, string][] = [
      [{ perMinute: 1 }, "from"],
      [{ from: START }, "perMinute"],
      [{ from: START, perMinute: 5e-324 }, "perMinute"],
      [{ from: START, perMinute: 1, key: "a b" }, "key"],
      [{ runs: ["a@1.x"], queue: QUEUE, perMinute: 1 }, "queue"],
      [{ runs: many, perMinute: 1 }, "runs"],
      [{ from: START, outcome: "failed", perMinute: 1 }, "outcome"],
    ];
    for (const [input, field] of faults)
      await expect(ops.runs.replayMany(input)).rejects.toMatchObject({ field });
  });
});
