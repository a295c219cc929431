import { type Operator, operatorOf } from "@carillon/ops";
import { Client, defineTask } from "@carillon/sdk";
import { type TestKit, testKit } from "@carillon/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { explained } from "../../packages/ops/test/in-words.js";

const QUEUE = "bells";
const ring = defineTask("ring", { queue: QUEUE, payload: z.object({}), handler: () => {} });

describe("a quota", () => {
  let kit: TestKit;
  let ops: Operator;
  beforeEach(async () => {
    kit = await testKit({ types: [ring], queues: [QUEUE], nodes: 2 });
    ops = operatorOf(kit.client);
    return () => kit.close();
  });

  const put = (owner: string, id: string, every = "10m") =>
    kit.client.put(ring, { id, owner, schedule: { every }, payload: {}, overlap: "allow" });
  const skipsOf = async (owner: string, id: string) => (await kit.client.runs.skips({ owner, id })).reverse();

  it("of tasks refuses one more, by owner or in all; stored tasks stay and can be changed", async () => {
    await ops.quotas.set({ scope: "owner:*", tasks: 1 });
    await put("acme", "a");
    await expect(put("acme", "b")).rejects.toMatchObject({ code: "QUOTA_TASKS", statusCode: 409 });
    await put("acme", "a", "5m");
    await put("beta", "a");
    await ops.quotas.set({ scope: "owner:acme", tasks: 3 });
    await ops.quotas.set({ scope: "all", tasks: 3 });
    const more = ["b", "c"].map((id) => ({
      id,
      owner: "acme",
      queue: QUEUE,
      type: "ring",
      payload: {},
      schedule: { every: "1h" },
    }));
    await expect(kit.client.putMany(more)).rejects.toMatchObject({
      code: "QUOTA_TASKS",
      message: expect.stringContaining("[1]"),
    });
    expect(await kit.client.count()).toBe(2);
    await expect(kit.client.enqueue(ring, {}, { owner: "gamma" })).resolves.toBeDefined();
    await ops.quotas.set({ scope: "all", tasks: 3 });
    const moved = ops.tasks.move({ owner: "acme", id: "a", to: "elsewhere" });
    await expect(moved).resolves.toMatchObject({ changed: true });
    expect(await kit.client.count()).toBe(3);
  });

  it("of the interval refuses a shorter one, and thins out a stored schedule with each skip on record", async () => {
    await put("acme", "fast", "10s");
    await ops.quotas.set({ scope: "all", interval: "1m" });
    await expect(put("acme", "other", "30s")).rejects.toMatchObject({
      code: "QUOTA_INTERVAL",
      field: "schedule",
    });
    await expect(
      kit.client.put(ring, { id: "cron", schedule: { cron: "0,30 * * * * *" }, payload: {} }),
    ).rejects.toMatchObject({ code: "QUOTA_INTERVAL" });
    await put("acme", "slow", "1m");
    const start = kit.now;
    await kit.advance("5m");
    const runs = (await kit.client.runs.list({ owner: "acme", id: "fast" })).map(({ nominal }) => nominal);
    expect(runs.length).toBeLessThanOrEqual(6);
    expect(runs.length).toBeGreaterThanOrEqual(5);
    // Each time is a run or in a range, never both.
    const skips = await skipsOf("acme", "fast");
    expect(new Set(skips.map(({ reason }) => reason))).toEqual(new Set(["quota"]));
    for (let time = Math.ceil((start + 1) / 10_000) * 10_000; time <= kit.now; time += 10_000) {
      const ways = [
        ...runs.filter((run) => run === time),
        ...skips.filter(({ from, to }) => from <= time && time <= to),
      ];
      expect(ways, new Date(time).toISOString()).toHaveLength(1);
    }
    await ops.quotas.set({ scope: "all" });
    await kit.advance("2m");
    expect((await kit.client.runs.list({ owner: "acme", id: "fast" })).length).toBeGreaterThan(10);
  });

  it("of waiting jobs skips occurrences and refuses triggers at the limit; other owners continue", async () => {
    await ops.quotas.set({ scope: "owner:acme", waiting: 3 });
    await put("acme", "a", "1m");
    await put("beta", "b", "1m");
    await ops.queues.pause({ queue: QUEUE });
    await kit.advance("10m");
    expect(await kit.client.runs.list({ owner: "acme", id: "a" })).toHaveLength(3);
    expect(await kit.client.runs.list({ owner: "beta", id: "b" })).toHaveLength(10);
    const [skip, ...others] = await skipsOf("acme", "a");
    expect(others).toEqual([]);
    expect(skip).toMatchObject({ reason: "quota", to: (skip?.from ?? 0) + 6 * 60_000 });
    const refused = kit.client.trigger({ owner: "acme", id: "a" });
    await expect(refused).rejects.toMatchObject({ code: "QUOTA_WAITING", statusCode: 429 });
    expect((await explained(kit.client, { owner: "acme", id: "a" }, kit.now)).summary).toContain("quota");
    await ops.quotas.set({ scope: "all", waiting: 5 });
    await kit.advance("2m");
    expect(await kit.client.runs.list({ owner: "beta", id: "b" })).toHaveLength(10);
    await ops.queues.resume({ queue: QUEUE });
    await kit.advance("2m");
    expect((await kit.client.runs.list({ owner: "acme", id: "a" })).length).toBeGreaterThan(4);
  });

  it("of the interval counts a fixed delay too", async () => {
    await ops.quotas.set({ scope: "all", interval: "10s" });
    const of = { id: "t", payload: {} };
    await expect(
      kit.client.put(ring, { ...of, schedule: { every: "1s", anchor: "finish" } }),
    ).rejects.toMatchObject({ code: "QUOTA_INTERVAL" });
    await kit.client.put(ring, { ...of, schedule: { every: "10s", anchor: "finish" } });
  });

  it("of waiting jobs does not count those that workers hold", async () => {
    await kit.close();
    const slow = defineTask("slow", { queue: QUEUE, payload: z.object({}), handler: () => kit.sleep("20m") });
    kit = await testKit({ types: [slow], queues: [QUEUE], concurrency: 2 });
    ops = operatorOf(kit.client);
    await ops.quotas.set({ scope: "owner:acme", waiting: 2 });
    const schedule = { every: "1m" };
    await kit.client.put(slow, { id: "t", owner: "acme", schedule, payload: {}, overlap: "allow" });
    // Two are held and one waits; then two wait, and the quota is used up.
    await kit.advance("7m");
    const runs = await kit.client.runs.list({ owner: "acme", id: "t" });
    expect(runs.map(({ state }) => state).sort()).toEqual(["queued", "queued", "running", "running"]);
  });

  it("is set for all only by an unbound client, with valid values", async () => {
    const acme = new Client({ store: kit.store, owner: "acme" });
    await expect(operatorOf(acme).quotas.set({ scope: "all", tasks: 1 })).rejects.toMatchObject({
      code: "FORBIDDEN",
    });
    const { quotas } = ops;
    await expect(quotas.set({ scope: "everyone" as never })).rejects.toMatchObject({ field: "scope" });
    await expect(quotas.set({ scope: "all", tasks: -1 })).rejects.toMatchObject({ field: "tasks" });
    await expect(quotas.set({ scope: "all", interval: "soon" })).rejects.toMatchObject({ field: "interval" });
    expect(await quotas.set({ scope: "all", tasks: 1, interval: "1s" })).toEqual({ changed: true });
    expect(await quotas.set({ scope: "all", tasks: 1, interval: 1_000 })).toEqual({ changed: false });
    expect(await quotas.list()).toEqual({ quotas: [{ scope: "all", tasks: 1, interval: 1_000 }] });
    expect((await ops.freezes.list()).freezes).toEqual([]);
    expect(await quotas.set({ scope: "all" })).toEqual({ changed: true });
    expect(await quotas.list()).toEqual({ quotas: [] });
    expect(await ops.changes.list()).toMatchObject({ changes: [{ kind: "quota" }, { kind: "quota" }] });
  });
});
