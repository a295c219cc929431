import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { type ClaimItem, Store } from "@carillon/store";
import { expect, it } from "vitest";
import { decodeTask } from "../src/task/codec.js";

it("a client that enqueues into ever new queues keeps no memory of them", async () => {
  setFlagsFromString("--expose-gc");
  const gc = runInNewContext("gc") as () => void;
  // Never connected, because packing needs no Redis.
  const store = new Store({ connection: "redis://localhost:1" });
  const flat = ["type", "noop", "schedule", '{"every":"10s"}', "gen", "1"];
  const enqueue = { key: "k", nominal: 1, due: 1, trigger: "manual" } as const;
  const decision = { enqueue, skipped: [], next: "kept", pending: [] } as const;
  async function pack(from: number, to: number): Promise<number> {
    for (let i = from; i < to; i++) {
      const task = decodeTask(`q${i}`, "system/t", flat) as ClaimItem["entry"]["task"];
      const entry = { local: "system/t", task, running: undefined, over: [] };
      store.claims.pack(`q${i}`, { entry, decision }, "a", 1);
    }
    await new Promise((resolve) => setImmediate(resolve));
    gc();
    return process.memoryUsage().heapUsed;
  }
  const before = await pack(0, 2_000);
  const each = ((await pack(2_000, 6_000)) - before) / 4_000;
  expect(each).toBeLessThan(1_000);
  await store.close();
});
