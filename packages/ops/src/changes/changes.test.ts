import { Client, defineTask } from "@carillon/sdk";
import { internalsOf } from "@carillon/store/internal";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { eachKit } from "../../../../test/each-kit.js";
import { operatorOf } from "../operator.js";

const QUEUE = "bells";
const START = Date.parse("2026-01-01T00:00:00Z");
const ring = defineTask("ring", { queue: QUEUE, payload: z.looseObject({}), handler: () => {} });

const { kit, ops } = eachKit({ types: [ring], start: START });

const task = (id: string, more: object = {}) => ({
  ...{ id, type: "ring", queue: QUEUE, schedule: { every: "1h" } },
  ...more,
});
const clientOf = (by: string, owner?: string) => new Client({ store: kit.store, by, origin: "test", owner });
const revisionsOf = async (client: Client, ref: { id: string; owner?: string }) =>
  (await operatorOf(client).tasks.revisions(ref)).revisions;
const listed = async (client = kit.client, filter = {}) =>
  (await operatorOf(client).changes.list(filter)).changes.map(({ kind, by, scope }) => [kind, by, scope.id]);

describe("the change log", () => {
  it("has the author, origin and time of a task's change, and the fields that differ", async () => {
    const ann = clientOf("ann");
    const name = { queue: QUEUE, owner: "system", id: "a" };
    await ann.put(task("a", { payload: { n: 1 } }));
    await kit.advance("1m");
    await ann.put(task("a", { payload: { n: 2 }, description: "two" }), { by: "bob" });
    await ann.put(task("a", { payload: { n: 2 }, description: "two" }));
    await ann.update("a", (stored) => ({ ...stored, priority: 3 }));
    await ann.delete("a", { by: "carol" });
    const { changes, cursor } = await ops.changes.list();
    expect(cursor).toBeUndefined();
    expect(changes).toMatchObject([
      { kind: "delete", by: "carol", before: { type: "ring", payload: { n: 2 }, priority: 3 } },
      { kind: "put", by: "ann", before: { priority: 0 }, after: { priority: 3 } },
      { kind: "put", by: "bob", at: START + 60_000, scope: name, origin: "test" },
      { kind: "put", by: "ann", at: START, scope: name, after: { type: "ring", payload: { n: 1 } } },
    ]);
    expect(changes[2]).toMatchObject({
      before: { payload: { n: 1 } },
      after: { payload: { n: 2 }, description: "two" },
    });
    expect(Object.keys(changes[2]?.before ?? {})).toEqual(["payload"]);
    expect(changes[3]).not.toHaveProperty("before");
  });

  it("names alert destinations without their secrets, and shows that these differ", async () => {
    const alerts = (path: string) => [{ on: ["failed" as const], url: `https://hooks.example/${path}` }];
    await kit.client.put(task("a", { alerts: alerts("s3cret") }));
    await kit.client.put(task("a", { alerts: alerts("an0ther") }));
    await ops.defaults.set({ scope: "all", policies: { alerts: alerts("s3cret") } });
    const { changes } = await ops.changes.list();
    const shown = (mark: string) => [
      { format: "json", on: ["failed"], url: `https://hooks.example/[hidden ${mark}]` },
    ];
    expect(changes.map(({ kind, after }) => [kind, after?.["alerts"]])).toEqual([
      ...[
        ["defaults", shown("e3e18be5")],
        ["put", shown("720b5363")],
        ["put", shown("e3e18be5")],
      ],
    ]);
    expect(JSON.stringify(changes)).not.toMatch(/s3cret|an0ther/);
  });

  it("keeps replaced definitions, and restores one", async () => {
    const { client } = kit;
    await client.put(task("a", { payload: { n: 1 } }), { by: "ann" });
    expect(await revisionsOf(client, { id: "a" })).toEqual([]);
    await client.put(task("a", { payload: { n: 2 }, retry: { attempts: 5 } }), { by: "bob" });
    await client.put(task("a", { payload: { n: 3 } }));
    await client.pause("a");
    const revisions = await revisionsOf(client, { id: "a" });
    expect(revisions).toMatchObject([
      { number: 2, by: "bob", definition: { payload: { n: 2 }, retry: { attempts: 5 } } },
      { number: 1, by: "ann", until: START, definition: { id: "a", payload: { n: 1 } } },
    ]);
    expect(revisions[1]?.definition).not.toHaveProperty("enabled");
    const dry = await operatorOf(client).tasks.restore({ id: "a", number: 2, dryRun: true });
    expect(dry).toMatchObject({
      outcome: "updated",
      preview: { before: { payload: { n: 3 } }, after: { payload: { n: 2 }, retry: { attempts: 5 } } },
    });
    expect(await client.get("a")).toMatchObject({ payload: { n: 3 } });
    expect(await operatorOf(client).tasks.restore({ id: "a", number: 2 }, { by: "carol" })).toMatchObject({
      outcome: "updated",
    });
    expect(await client.get("a")).toMatchObject({
      ...{ payload: { n: 2 }, retry: { attempts: 5 }, state: "paused", updatedBy: "carol" },
    });
    expect((await revisionsOf(client, { id: "a" }))[0]).toMatchObject({
      number: 3,
      definition: { payload: { n: 3 } },
    });
    await expect(operatorOf(client).tasks.restore({ id: "a", number: 9 })).rejects.toMatchObject({
      code: "REVISION_NOT_FOUND",
      field: "number",
    });
    await expect(operatorOf(client).tasks.restore({ id: "a", number: 0 })).rejects.toMatchObject({
      code: "INVALID_OPTION",
      field: "number",
    });
    await expect(revisionsOf(clientOf("x", "other"), { id: "a", owner: "system" })).rejects.toMatchObject({
      code: "TASK_NOT_FOUND",
    });
  });

  it("restores a deleted task as it was, also after the last one of its queue", async () => {
    const { client } = kit;
    const { queue } = (await client.put(task("a", { payload: { n: 1 } }))).task;
    await client.put(task("a", { payload: { n: 2 } }), { by: "bob" });
    await client.put(task("b"));
    await client.put(task("b", { owner: "other" }));
    await client.pause("a");
    await operatorOf(client).tasks.deleteMany({ queue });
    expect(await kit.store.registry.queues()).toEqual([]);

    const deletedOf = async (one = client, filter = {}) =>
      (await operatorOf(one).deleted.list(filter)).deleted;
    const deleted = await deletedOf();
    expect(deleted.map((one) => `${one.task.queue} ${one.task.owner}/${one.task.id}`).sort()).toEqual([
      `${queue} other/b`,
      `${queue} system/a`,
      `${queue} system/b`,
    ]);
    expect(deleted.every(({ at, until }) => at >= START && until === at + 7 * 86_400_000)).toBe(true);
    expect(await deletedOf(client, { from: "2100-01-01T00:00:00Z" })).toEqual([]);
    expect((await deletedOf(clientOf("x", "other"))).map((one) => one.task.owner)).toEqual(["other"]);

    expect(await revisionsOf(client, { id: "a" })).toMatchObject([
      { number: 2, by: "bob", deleted: "paused", definition: { payload: { n: 2 } } },
    ]);
    await expect(
      operatorOf(clientOf("x", "other")).tasks.restore({ id: "a", owner: "system" }),
    ).rejects.toMatchObject({
      code: "TASK_NOT_FOUND",
    });
    expect(await operatorOf(client).tasks.restore({ id: "a" }, { by: "carol" })).toMatchObject({
      outcome: "created",
    });
    expect(await client.get("a")).toMatchObject({ payload: { n: 2 }, state: "paused", createdBy: "carol" });
    const dry = await operatorOf(client).tasks.restore({ id: "b", dryRun: true });
    expect(dry).toMatchObject({ outcome: "created", preview: { times: { before: [] } } });
    expect(await operatorOf(client).tasks.restore({ id: "b" })).toMatchObject({ outcome: "created" });
    expect(await client.get("b")).toMatchObject({ state: "scheduled" });
    expect((await deletedOf()).map((one) => one.task.owner)).toEqual(["other"]);

    await client.put(task("a", { payload: { n: 3 } }));
    expect((await revisionsOf(client, { id: "a" })).map(({ number }) => number)).toEqual([3, 2]);
    // The revisions of a task do not expire.
    const { keys, link } = internalsOf(kit.store);
    const kept = ["system/a", "other/b"].map((name) => keys.queue(queue).revisions(name));
    const expiry = await Promise.all(kept.map((key) => link.ask((redis) => redis.pttl(key))));
    expect(expiry).toEqual([-1, expect.closeTo(7 * 86_400_000, -6)]);
    // Nothing is due meanwhile, which would only take time.
    for (const id of ["a", "b"]) await client.put(task(id, { schedule: { manual: true } }));
    await kit.advance("8d");
    expect((await revisionsOf(client, { id: "a" })).map(({ number }) => number)).toEqual([4, 3, 2]);
    expect(await deletedOf()).toEqual([]);
  });

  it("keeps no definition of one-off tasks, which go by themselves", async () => {
    const { client } = kit;
    const soon = { at: new Date(START + 1_000).toISOString() };
    await client.put(task("once", { schedule: soon, linger: "1m" }));
    await kit.advance("10m");
    await expect(client.get("once")).rejects.toMatchObject({ code: "TASK_NOT_FOUND" });
    expect(await operatorOf(client).deleted.list()).toEqual({ deleted: [] });
  });

  it("keeps the last twenty, and fewer of large ones", async () => {
    for (let n = 0; n <= 25; n++) await kit.client.put(task("a", { payload: { n } }));
    const numbers = (await revisionsOf(kit.client, { id: "a" })).map(({ number }) => number);
    expect(numbers).toEqual(Array.from({ length: 20 }, (_, i) => 25 - i));
    const text = "x".repeat(60_000);
    for (let n = 0; n < 3; n++) await kit.client.put(task("a", { payload: { n, text } }));
    expect((await revisionsOf(kit.client, { id: "a" })).map(({ number }) => number)).toEqual([28]);
  });

  it("has who froze which tasks, and who lifted the freeze", async () => {
    const { id } = await operatorOf(clientOf("ann")).freezes.put({ owner: "acme", note: "INC-43" });
    await operatorOf(clientOf("bob")).freezes.delete({ id });
    const scope = { owner: "acme", freeze: id };
    expect((await ops.changes.list()).changes).toMatchObject([
      { kind: "unfreeze", by: "bob", scope },
      { kind: "freeze", by: "ann", scope, after: { note: "INC-43" } },
    ]);
    expect((await operatorOf(clientOf("x", "other")).changes.list()).changes).toEqual([]);
  });

  it("has each change of tasks, queues, calendars and defaults once", async () => {
    const ann = clientOf("ann");
    await ann.put(task("a"));
    for (let i = 0; i < 2; i++) {
      await ann.pause("a", { note: "why" });
      await operatorOf(ann).queues.pause({ queue: QUEUE });
      await operatorOf(ann).queues.limit({ queue: QUEUE, owner: "acme", runs: 3 });
      await operatorOf(ann).calendars.put({ name: "feast", entries: ["2026-12-25"] });
      await operatorOf(ann).defaults.set({ scope: "all", policies: { timeLimit: "1m" } });
      await operatorOf(ann).types.allow({ types: ["ring"] });
    }
    await ann.resume("a");
    await operatorOf(ann).queues.resume({ queue: QUEUE });
    await operatorOf(ann).calendars.delete({ name: "feast" });
    const triggered = await ann.trigger("a");
    if (triggered.outcome === "enqueued") await ann.runs.cancel(triggered.run).catch(() => {});
    const { id } = await operatorOf(ann).backfills.start({ id: "a", from: START - 7_200_000, to: START });
    await operatorOf(ann).backfills.cancel({ id: id as string });
    const kinds = (await listed()).map(([kind]) => kind).reverse();
    expect(kinds.filter((kind) => kind !== "cancel" && kind !== "backfill.cancel")).toEqual([
      ...["put", "pause", "queue.pause", "queue.limit", "calendar.put", "defaults", "types"],
      ...["resume", "queue.resume", "calendar.delete", "trigger", "backfill"],
    ]);
  });

  it("has one entry for many tasks, with their number and a sample", async () => {
    const ann = clientOf("ann");
    const many = Array.from({ length: 30 }, (_, i) => task(`t${i}`, { owner: "acme" }));
    await ann.putMany(many);
    await ann.putMany(many);
    await operatorOf(ann).tasks.pauseMany({ owner: "acme", note: "incident", dryRun: true });
    await operatorOf(ann).tasks.pauseMany({ owner: "acme", note: "incident" });
    const { changes } = await ops.changes.list({ task: "acme/t29" });
    expect(changes).toMatchObject([
      { kind: "pause", by: "ann", scope: { owner: "acme" }, count: 30, details: { note: "incident" } },
      {
        kind: "put",
        scope: { owner: "acme", queue: QUEUE },
        count: 30,
        details: { created: 30, updated: 0 },
      },
    ]);
    expect(changes.map(({ sample }) => sample?.length)).toEqual([10, 10]);
    // A change that names all its tasks is not listed for others.
    await operatorOf(ann).tasks.resumeMany({ tasks: ["acme/t3", "acme/t4"] });
    const kinds = async (id: string) =>
      (await ops.changes.list({ task: `acme/${id}` })).changes.map((one) => one.kind);
    expect(await kinds("t4")).toEqual(["resume", "pause", "put"]);
    expect(await kinds("t29")).toEqual(["pause", "put"]);
  });

  it("has the tasks that a call for many stored, although another one could not be", async () => {
    const { link, keys } = internalsOf(kit.store);
    await link.ask((redis) => redis.set(keys.queue("foreign").task("system/b"), "no hash"));
    const [a, b, c] = [task("a"), task("b", { queue: "foreign" }), task("c", { queue: "foreign" })];
    await expect(clientOf("ann").putMany([a, b, c])).rejects.toMatchObject({ code: "REDIS_ERROR" });
    const { changes } = await ops.changes.list();
    expect(changes).toMatchObject([{ kind: "put", by: "ann", count: 2, sample: [{ id: "a" }, { id: "c" }] }]);
  });

  it("brings back what a change deleted, and nothing that somebody deleted since", async () => {
    await kit.client.putMany([task("a", { tags: ["old"] }), task("b", { tags: ["old"] })]);
    const { change = "" } = await ops.tasks.deleteMany({ tag: "old" });
    await kit.client.put(task("b", { payload: { of: "ben" } }));
    await kit.client.delete("b");
    const undone = { count: 1, sample: [{ id: "a" }] };
    const refused = { count: 1, sample: [{ task: { id: "b" }, code: "CONFLICT" }] };
    for (const dryRun of [true, false])
      expect(await ops.changes.undo({ id: change, dryRun })).toMatchObject({ ...undone, refused });
    expect((await kit.client.list()).tasks.map(({ id }) => id)).toEqual(["a"]);
  });

  it("keeps the deleted tasks of each owner, whatever others delete", async () => {
    const { link, keys } = internalsOf(kit.store);
    const { deleted, deletedOf, revisions } = keys.queue(QUEUE);
    const [most, ofAll] = [10_000, 100_000];
    /** Stores that others were deleted before, a millisecond apart. */
    const deletedBefore = async (owner: string, count: number) => {
      for (let at = 0; at < count; at += 10_000) {
        const some = Array.from({ length: Math.min(10_000, count - at) }, (_, i) => [
          String(START - count + at + i),
          `${owner}/t${at + i}`,
        ]).flat();
        for (const key of [deleted, deletedOf(owner)]) await link.ask((client) => client.zadd(key, ...some));
      }
      await link.ask((client) => client.rpush(revisions(`${owner}/t0`), "oldest"));
    };
    const isKept = async (name: string) =>
      (await link.ask((client) => client.exists(revisions(name)))) === 1 &&
      (await link.ask((client) => client.zscore(deleted, name))) !== null;
    const deletes = async (owner: string, id: string) => {
      await kit.client.put(task(id, { owner }));
      await kit.client.delete({ owner, id });
    };
    await deletedBefore("few", 2);
    await deletedBefore("many", most);
    await deletes("many", "one-more");
    expect([await isKept("few/t0"), await isKept("many/t0"), await isKept("many/one-more")]).toEqual([
      ...[true, false, true],
    ]);
    // The queue is full: who deletes one more loses the oldest of their own.
    await deletedBefore("rest", ofAll - most);
    await deletes("few", "one-more");
    expect([await isKept("few/t0"), await isKept("few/one-more"), await isKept("rest/t0")]).toEqual([
      ...[false, true, true],
    ]);
    await deletes("new", "first");
    expect([await isKept("new/first"), await isKept("few/one-more")]).toEqual([true, true]);
    expect((await kit.client.put(task("first", { owner: "new" }))).outcome).toBe("created");
    expect(await isKept("new/first")).toBe(false);
    expect(await link.ask((client) => client.exists(deletedOf("new")))).toBe(0);
  });

  it("is filtered by task, author and time, in pages; a bound client reads its owner's", async () => {
    const ann = clientOf("ann");
    await ann.put(task("a"));
    await ann.put(task("a", { owner: "acme" }));
    await kit.advance("1m");
    await clientOf("bob").put(task("b"));
    await ann.delete("a");
    expect(await listed(kit.client, { by: "bob" })).toEqual([["put", "bob", "b"]]);
    expect(await listed(kit.client, { task: "a" })).toEqual([
      ["delete", "ann", "a"],
      ["put", "ann", "a"],
    ]);
    expect(await listed(kit.client, { from: START + 60_000 })).toHaveLength(2);
    const before = { to: START + 60_000, limit: 1 };
    expect((await ops.changes.list(before)).changes[0]?.at).toBe(START);
    expect(await listed(clientOf("eve", "acme"))).toEqual([["put", "ann", "a"]]);
    const first = await ops.changes.list({ limit: 3 });
    const rest = await ops.changes.list({ cursor: first.cursor });
    expect([first.changes.length, rest.changes.length, rest.cursor]).toEqual([3, 1, undefined]);
    const { changes } = ops;
    const large = `${2n ** 64n}-0`;
    await expect(changes.undo({ id: large })).rejects.toMatchObject({ field: "id" });
    await expect(changes.list({ cursor: large })).rejects.toMatchObject({
      field: "cursor",
    });
  });

  it("replaces long values by their size", async () => {
    await kit.client.put(task("a", { payload: { text: "x".repeat(5_000) } }));
    const [change] = (await ops.changes.list()).changes;
    expect(change?.after?.["payload"]).toBe("(5011 characters)");
  });
});
