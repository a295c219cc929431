import { defineTask } from "@carillon/sdk";
import { internalsOf } from "@carillon/store/internal";
import { beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { eachKit } from "../../../../test/each-kit.js";

const QUEUE = "bells";
const START = Date.parse("2026-01-01T00:00:00Z");

describe("a retry of failed items", () => {
  let broken = true;
  let paid: number[] = [];
  const pay = defineTask("pay", {
    queue: QUEUE,
    payload: z.looseObject({}),
    generate: () => [0, 1, 2],
    process: (item: number) => {
      if (broken && item === 1) throw new Error("the bank is closed");
      paid.push(item);
    },
  });
  const { kit, ops } = eachKit({ types: [pay], start: START, retention: { successes: 2 } });
  beforeEach(() => {
    [broken, paid] = [true, []];
  });
  const retry = (id: string) => ops.runs.retryItems({ id });

  async function failedAtOne(): Promise<string> {
    await kit.client.put({ id: "t", type: "pay", queue: QUEUE, schedule: { every: "1d" }, payload: {} });
    await kit.client.trigger("t");
    await kit.advance("1m");
    const [run] = await kit.client.runs.list("t");
    expect(run).toMatchObject({ outcome: "failed" });
    [broken, paid] = [false, []];
    return run?.id as string;
  }

  it("is known when the record and the job of the new run are deleted", async () => {
    const failed = await failedAtOne();
    const first = await retry(failed);
    await kit.advance("1m");
    expect(paid).toEqual([1]);
    for (let n = 0; n < 3; n++) {
      await kit.client.trigger("t");
      await kit.advance("1m");
    }
    await expect(kit.client.runs.get(first.run)).rejects.toMatchObject({ code: "RUN_NOT_FOUND" });
    paid = [];
    expect(await retry(failed)).toEqual(first);
    const { link, keys } = internalsOf(kit.store);
    await link.ask((client) => client.del(keys.queue(QUEUE).job(first.run)));
    expect(await retry(failed)).toEqual(first);
    await kit.advance("1m");
    expect(paid).toEqual([]);
  });

  it("is one, however many ask at the same time", async () => {
    const failed = await failedAtOne();
    const runs = await Promise.all(Array.from({ length: 5 }, () => retry(failed)));
    expect(new Set(runs.map(({ run }) => run)).size).toBe(1);
    await kit.advance("1m");
    expect(paid).toEqual([1]);
  });

  it("is that of another call which comes after this one has found none", async () => {
    const failed = await failedAtOne();
    const { items } = kit.store;
    const page = items.page.bind(items);
    let other: unknown;
    items.page = async (...asked) => {
      items.page = page;
      other = await retry(failed);
      return page(...asked);
    };
    expect(await retry(failed)).toEqual(other);
    await kit.advance("1m");
    expect(paid).toEqual([1]);
  });

  it("is made again if the new run ended before it had items", async () => {
    const failed = await failedAtOne();
    const first = await retry(failed);
    await kit.client.runs.cancel(first.run);
    await kit.advance("1m");
    const second = await retry(failed);
    expect(second.run).not.toBe(first.run);
    await kit.advance("1m");
    expect(paid).toEqual([1]);
    expect(await retry(failed)).toEqual(second);
  });
});
