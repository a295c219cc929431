import { defineTask, Worker } from "@carillon/sdk";
import { eventually } from "@carillon/testing";
import { afterEach, describe, expect, it } from "vitest";
import { Bench, nothing, QUEUE } from "./bench.js";

const bench = Bench.use("refused");
const noop = defineTask("noop", { queue: QUEUE, payload: nothing, handler: () => {} });

describe("a Redis that refuses to hand out jobs", () => {
  const set = (maxmemory: string) => bench.admin.config("SET", "maxmemory", maxmemory);
  afterEach(() => set("0"));

  it("is asked once a second, not all the time, and the jobs are worked when it takes writes again", async () => {
    const run = await bench.run("t", "noop");
    await set("1");
    const worker = new Worker({ connection: bench.redis.url, namespace: bench.namespace, types: [noop] });
    const errors: { at: number; message: string }[] = [];
    worker.on("error", ({ message }) => errors.push({ at: performance.now(), message }));
    await worker.start();
    await eventually(() => expect(errors.length).toBeGreaterThanOrEqual(3), { timeoutMs: 20_000 });
    const [first, , third] = errors as [(typeof errors)[0], unknown, (typeof errors)[0]];
    expect(first.message).toMatch(/OOM/);
    expect(third.at - first.at).toBeGreaterThan(1_500);
    await set("0");
    await eventually(async () => expect(await bench.record(run)).toMatchObject({ outcome: "succeeded" }));
    await worker.stop();
  });
});
