import { parseTask } from "@carillon/core";
import { describe, expect, it } from "vitest";
import { sharedRedis } from "../../../test/helpers.js";
import { Bench, ENTERED, QUEUE, START } from "./bench.js";

describe("the clock of Redis goes back between a node's read and its commit", () => {
  const redis = sharedRedis();
  const bench = Bench.use(() => redis.url);

  it.each(["one", "skip"] as const)("catch-up %s: decides nothing about future times", async (catchUp) => {
    await bench.put({ id: "t", catchUp });
    await bench.clock.set(START + 65_000);
    const half = await bench.read("t");
    await bench.clock.set(START + 45_000);
    expect(await bench.commit(half, "a")).toEqual(["EARLY"]);
    await bench.clock.set(START + 65_000);
    expect(await bench.commit(half, "b")).toEqual(["OK"]);
  });

  it("a trigger is decided again: it is not enqueued before its nominal time", async () => {
    await bench.put({ id: "t" });
    bench.before("commit", () => bench.clock.set(START - 5_000));
    expect(await bench.trigger("t", "m")).toMatchObject({ outcome: "enqueued" });
    const [run] = await bench.store.runs.list(bench.name("t"), 1);
    expect(run).toMatchObject({ nominal: START - 5_000, enqueued: START - 5_000 });
  });

  it("a task of `enqueue` that is not due yet is left to a node", async () => {
    const parsed = parseTask({ id: "t", type: "noop", queue: QUEUE, schedule: { at: START }, payload: {} });
    await bench.clock.advance(-1);
    const by = { key: "k", token: "a", node: "test" };
    expect(await bench.store.claims.enqueueNow(parsed, by, ENTERED)).toBeUndefined();
    expect(await bench.ownKeys()).toEqual([]);
  });

  it("a task that waits for the end of a run also waits for its own time", async () => {
    await bench.put({ id: "t", overlap: "queue-one" });
    await bench.clock.set(START + 10_000);
    await bench.claim("t", "a");
    await bench.clock.set(START + 20_000);
    await bench.claim("t", "b");
    expect(await bench.stored("t")).toMatchObject({ pending: [{ due: START + 20_000 }] });
    await bench.clock.set(START + 12_000);
    const [run] = await bench.store.runs.open(bench.name("t"));
    await bench.work("t", run as string);
    await bench.workAll();
    await bench.clock.set(START + 19_999);
    await bench.claim("t", "c");
    expect(await bench.store.runs.list(bench.name("t"), 10)).toHaveLength(1);
    await bench.clock.set(START + 20_000);
    await bench.claim("t", "d");
    const [newest] = await bench.store.runs.list(bench.name("t"), 10);
    expect(newest).toMatchObject({ nominal: START + 20_000, enqueued: START + 20_000 });
  });

  it("the next time after a run's end is later than all decided times", async () => {
    const name = bench.name("t");
    await bench.put({ id: "t", schedule: { every: "2s", anchor: "finish" } });
    await bench.clock.set(START + 60_000);
    const nominals: number[] = [];
    for (const end of [60_000, 30_000, 90_000]) {
      await bench.claim("t", `a${end}`);
      const [run] = await bench.store.runs.list(name, 1);
      nominals.push(run?.nominal as number);
      await bench.clock.set(START + end);
      await bench.work(name, run?.id as string);
      await bench.workAll();
      const { cursor, nominal } = await bench.stored("t");
      expect(nominal).toBeGreaterThan(cursor as number);
      await bench.clock.set(Math.max(START + end, nominal as number));
    }
    expect(nominals).toEqual([...new Set(nominals)].sort((a, b) => a - b));
  });

  it("retention keeps the newest runs in the order of their ends", async () => {
    const name = bench.name("t");
    await bench.put({ id: "t", schedule: { every: "1h" }, overlap: "allow", retention: { successes: 3 } });
    const ended: string[] = [];
    const end = async (token: string) => {
      await bench.trigger("t", token);
      const [run = ""] = await bench.store.runs.open(name);
      await bench.work(name, run);
      ended.push(run);
    };
    await bench.clock.set(START + 3_600_000);
    for (const token of ["a", "b", "c"]) await end(token);
    await bench.clock.set(START + 1_000);
    for (const token of ["d", "e"]) {
      await bench.clock.advance(1_000);
      await end(token);
    }
    const kept = async () => (await bench.store.runs.list(name, 10)).map(({ id }) => id);
    expect(await kept()).toEqual(ended.slice(2).toReversed());
    await bench.clock.set(START + 7_200_000);
    await end("f");
    expect(await kept()).toEqual(ended.slice(3).toReversed());
  });
});
