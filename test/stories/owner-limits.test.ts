import { type Operator, operatorOf } from "@carillon/ops";
import { Client, defineTask } from "@carillon/sdk";
import { internalsOf } from "@carillon/store/internal";
import { type TestKit, testKit } from "@carillon/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { explained } from "../../packages/ops/test/in-words.js";

const QUEUE = "bells";

/** Runs take 20 s; acme may have two at once. */
describe("a limit by owner", () => {
  const started: string[] = [];
  let open: Record<string, number>;
  let most: Record<string, number>;
  let kit: TestKit;
  let ops: Operator;
  let acme: Client;
  const ring = defineTask("ring", {
    queue: QUEUE,
    payload: z.object({}),
    handler: async (_, { occurrence }) => {
      const { owner, task } = occurrence;
      started.push(`${owner}/${task}`);
      open[owner] = (open[owner] ?? 0) + 1;
      most[owner] = Math.max(most[owner] ?? 0, open[owner]);
      await kit.sleep("20s");
      open[owner] -= 1;
    },
  });
  beforeEach(async () => {
    started.length = 0;
    [open, most] = [{}, {}];
    kit = await testKit({ types: [ring], queues: [QUEUE], nodes: 2 });
    ops = operatorOf(kit.client);
    acme = new Client({ store: kit.store, owner: "acme" });
    await put("beta", "only");
    await ops.queues.limit({ queue: QUEUE, owner: "acme", runs: 2 });
  });
  afterEach(async () => {
    await kit.close();
  });

  const put = (owner: string, id: string) =>
    kit.client.put(ring, { id, owner, schedule: { every: "10m" }, payload: {} });

  it("holds occurrences above it, and delays no other owner", async () => {
    for (const n of [1, 2, 3, 4, 5]) await put("acme", `t${n}`);
    for (const n of [1, 2, 3, 4, 5]) await put("beta", `t${n}`);
    await kit.advance("10m");
    expect(started.filter((one) => one.startsWith("beta"))).toHaveLength(6);
    expect(started.filter((one) => one.startsWith("acme"))).toHaveLength(2);
    const told = await explained(kit.client, { owner: "acme", id: "t5" }, kit.now);
    expect(told.summary).toMatch(/acme has 2 runs in queue bells, as many as it may/);
    await kit.advance("19s");
    expect(started.filter((one) => one.startsWith("acme"))).toHaveLength(2);
    await kit.advance("2s");
    expect(started.filter((one) => one.startsWith("acme"))).toHaveLength(4);
    await kit.advance("40s");
    expect(started.filter((one) => one.startsWith("acme")).sort()).toEqual([
      "acme/t1",
      "acme/t2",
      "acme/t3",
      "acme/t4",
      "acme/t5",
    ]);
    expect(most).toEqual({ acme: 2, beta: 6 });
    // A task that waited has no further wake-up before its next time.
    await kit.advance("8m");
    expect(started.filter((one) => one.startsWith("acme"))).toHaveLength(5);
    await kit.advance("2m");
    expect(started.filter((one) => one.startsWith("acme"))).toHaveLength(10);
    expect(most["acme"]).toBe(2);
  });

  it("lets enqueued tasks wait, and refuses a trigger", async () => {
    const results = [];
    for (let n = 0; n < 3; n++) results.push(await acme.enqueue(ring, {}));
    expect(results.map(({ run }) => run !== undefined)).toEqual([true, true, false]);
    await put("acme", "t");
    await expect(acme.trigger("t")).rejects.toMatchObject({ code: "OWNER_LIMIT", statusCode: 429 });
    expect((await kit.client.trigger({ owner: "beta", id: "only" })).outcome).toBe("enqueued");
    await kit.advance("25s");
    expect(started.filter((one) => one.startsWith("acme"))).toHaveLength(3);
    expect((await acme.trigger("t")).outcome).toBe("enqueued");
  });

  it("lets an enqueue wait whose put is slow", async () => {
    for (let n = 0; n < 2; n++) await acme.enqueue(ring, {});
    const { tasks } = kit.store;
    const { put: real } = tasks;
    let slow = 1;
    tasks.put = async (...args) => {
      if (slow-- > 0) await kit.advance("1500ms");
      return real.apply(tasks, args);
    };
    const { run } = await acme.enqueue(ring, {});
    tasks.put = real;
    expect(run).toBeUndefined();
    await kit.advance("25s");
    expect(started.filter((one) => one.startsWith("acme"))).toHaveLength(3);
    expect(most["acme"]).toBe(2);
  });

  it("does not count runs of a deleted task, nor final ones", async () => {
    await ops.queues.pause({ queue: QUEUE });
    for (const id of ["t1", "t2", "t3"]) await put("acme", id);
    for (const id of ["t1", "t2"]) await acme.trigger(id);
    await expect(acme.trigger("t3")).rejects.toMatchObject({ code: "OWNER_LIMIT" });
    await acme.delete("t1");
    const { run } = (await acme.trigger("t3")) as { run: string };
    await expect(acme.enqueue(ring, {})).resolves.toMatchObject({ run: undefined });
    await kit.client.runs.cancel(run);
    await kit.advance("5s");
    expect((await acme.runs.list("t3"))[0]).toMatchObject({ outcome: "cancelled" });
    expect(await acme.list()).toMatchObject({
      tasks: expect.arrayContaining([expect.objectContaining({ type: "ring", state: "finished" })]),
    });
  });

  it("applies to each owner without a limit of its own, until it is removed", async () => {
    const { queues } = ops;
    expect(await queues.limit({ queue: QUEUE, owner: "*", runs: 1 })).toEqual({ changed: true });
    expect(await queues.limit({ queue: QUEUE, owner: "*", runs: 1 })).toEqual({ changed: false });
    expect(await queues.limits({ queue: QUEUE })).toEqual({ limits: { "*": 1, acme: 2 } });
    for (const n of [1, 2, 3]) await put("beta", `t${n}`);
    await kit.advance("10m");
    expect(started).toHaveLength(1);
    expect(await queues.limit({ queue: QUEUE, owner: "*", runs: null })).toEqual({ changed: true });
    await kit.advance("30s");
    expect(started).toHaveLength(4);
  });

  it("gives an owner its own limit before the one of all, whichever is larger", async () => {
    await ops.queues.limit({ queue: QUEUE, owner: "*", runs: 1 });
    for (const n of [1, 2, 3]) await put("acme", `t${n}`);
    await kit.advance("10m1s");
    expect(most).toEqual({ acme: 2, beta: 1 });
  });

  it("gives its places to scheduled tasks only: paused ones that wait are passed over", async () => {
    await ops.queues.limit({ queue: QUEUE, owner: "acme", runs: 1 });
    const ids = Array.from({ length: 220 }, (_, n) => `t${n}`);
    const of = { type: "ring", queue: QUEUE, owner: "acme", schedule: { every: "1h" }, payload: {} };
    await kit.client.putMany(ids.map((id) => ({ id, ...of })));
    await kit.client.pause({ owner: "beta", id: "only" });
    await kit.advance("1h5s");
    expect(started).toHaveLength(1);
    const waiting = ids.filter((id) => `acme/${id}` !== started[0]);
    for (const id of waiting.slice(0, 200)) await acme.pause(id);
    await kit.advance("6m40s");
    expect(started).toHaveLength(20);
    expect(most["acme"]).toBe(1);
    expect(new Set(started.slice(1))).toEqual(new Set(waiting.slice(200).map((id) => `acme/${id}`)));
    // A task that is resumed waits again, at once.
    await acme.resume(waiting[0] as string, { missed: "catch-up" });
    await kit.advance("5s");
    expect(started.at(-1)).toBe(`acme/${waiting[0]}`);
  });

  it("passes a place on that the woken task does not use", async () => {
    await ops.queues.limit({ queue: QUEUE, owner: "acme", runs: 1 });
    const at = (seconds: number) => ({ at: kit.now + seconds * 1_000 });
    const putAt = (id: string, seconds: number, tags: string[] = []) =>
      kit.client.put(ring, { id, owner: "acme", schedule: at(seconds), tags, payload: {} });
    await putAt("first", 60);
    for (const n of [1, 2, 3]) await putAt(`frozen${n}`, 60 + n, ["cold"]);
    await putAt("last", 70);
    await kit.advance("75s");
    await ops.freezes.put({ tag: "cold" });
    await kit.advance("7s");
    expect(started).toEqual(["acme/first", "acme/last"]);
  });

  it("wakes the task with the oldest nominal time", async () => {
    await ops.queues.limit({ queue: QUEUE, owner: "acme", runs: 1 });
    const times = { x: 60, c: 61, b: 62, a: 63 };
    for (const [id, seconds] of Object.entries(times)) {
      const schedule = { at: kit.now + seconds * 1_000 };
      await kit.client.put(ring, { id, owner: "acme", schedule, payload: {} });
    }
    await kit.advance("3m");
    expect(started).toEqual(["acme/x", "acme/c", "acme/b", "acme/a"]);
  });

  it("gives back the place of a run whose record is gone", async () => {
    await ops.queues.pause({ queue: QUEUE });
    for (const id of ["t1", "t2", "t3"]) await put("acme", id);
    const runs = [];
    for (const id of ["t1", "t2"]) runs.push(((await acme.trigger(id)) as { run: string }).run);
    await expect(acme.trigger("t3")).rejects.toMatchObject({ code: "OWNER_LIMIT" });
    const { link, keys } = internalsOf(kit.store);
    await link.client.del(keys.queue(QUEUE).run(runs[0] as string));
    expect(await acme.trigger("t3")).toMatchObject({ outcome: "enqueued" });
  });

  it("leaves nothing when its queue is deleted", async () => {
    await ops.queues.pause({ queue: QUEUE });
    for (const id of ["t1", "t2", "t3", "t4"]) await put("acme", id);
    await kit.advance("10m");
    const { link, keys } = internalsOf(kit.store);
    const ofLimits = async () => {
      const all = await Promise.all(
        [keys.queue(QUEUE).places("*"), keys.queue(QUEUE).waiting("*")].map((key) => link.client.keys(key)),
      );
      return all.map(({ length }) => length);
    };
    expect(await ofLimits()).toEqual([1, 1]);
    await ops.queues.delete({ queue: QUEUE });
    expect(await ofLimits()).toEqual([0, 0]);
    expect((await ops.queues.limits({ queue: QUEUE })).limits).toEqual({});
  });

  it("is refused with invalid values", async () => {
    const { queues } = ops;
    await expect(queues.limit({ queue: QUEUE, owner: "acme", runs: 0 })).rejects.toMatchObject({
      code: "INVALID_OPTION",
    });
    await expect(queues.limit({ queue: QUEUE, owner: "a b", runs: 1 })).rejects.toMatchObject({
      code: "INVALID_NAME",
    });
    await expect(queues.limit({ queue: "none", owner: "acme", runs: 1 })).rejects.toMatchObject({
      code: "QUEUE_NOT_FOUND",
    });
    await expect(queues.limit({ queue: "carillon-alerts", owner: "*", runs: 1 })).rejects.toMatchObject({
      code: "FORBIDDEN",
    });
    await expect(
      operatorOf(acme).queues.limit({ queue: QUEUE, owner: "acme", runs: 9 }),
    ).rejects.toMatchObject({ code: "FORBIDDEN" });
  });
});
