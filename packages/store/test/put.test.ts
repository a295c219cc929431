import { parseTask, type TaskInput } from "@carillon/core";
import { shardOf } from "@carillon/core/internal";
import { internalsOf } from "@carillon/store/internal";
import { describe, expect, it } from "vitest";
import { onEveryEngine } from "../../../test/helpers.js";
import { Bench, QUEUE, START } from "./bench.js";

onEveryEngine("put", (connection) => {
  const bench = Bench.use(connection);

  const withoutRegistry = async () => {
    // Leaves out the queue's mark in the registry, which each put changes; everything else is compared.
    const { [`{${bench.store.namespace}}:queues`]: _, ...rest } = await bench.dump();
    return rest;
  };
  const dueIndex = async () => {
    const found: Record<string, string[]> = {};
    for (let shard = 0; shard < 8; shard++) {
      const key = internalsOf(bench.store).keys.queue(QUEUE).due(shard);
      const flat = await internalsOf(bench.store).link.client.zrange(key, 0, "-1", "WITHSCORES");
      for (let i = 0; i < flat.length; i += 2)
        found[flat[i] as string] = [String(shard), flat[i + 1] as string];
    }
    return found;
  };

  it("creates: the whole task, its index entries, its queue", async () => {
    expect(await bench.put({ id: "t", tags: ["x"], payload: { a: 1 }, description: "d" })).toEqual({
      name: bench.name("t"),
      outcome: "created",
      state: "scheduled",
      due: START + 10_000,
    });
    const { client } = internalsOf(bench.store).link;
    const keys = internalsOf(bench.store).keys.queue(QUEUE);
    const shard = shardOf("system/t");
    expect(await client.hgetall(keys.task("system/t"))).toEqual({
      type: "noop",
      schedule: '{"every":"10s"}',
      payload: '{"a":1}',
      tags: "x",
      description: "d",
      state: "scheduled",
      gen: `${START}000`,
      rev: `${START}000`,
      nominal: String(START + 10_000),
    });
    expect(await bench.ownKeys()).toEqual(
      [
        keys.task("system/t"),
        keys.due(shard),
        keys.next,
        keys.tagged("x"),
        keys.tags,
        keys.tasks,
        internalsOf(bench.store).keys.queues,
      ].sort(),
    );
    expect(await dueIndex()).toEqual({ "system/t": [String(shard), String(START + 10_000)] });
    expect(await client.zrange(keys.next, 0, "-1", "WITHSCORES")).toEqual([
      String(shard),
      String(START + 10_000),
    ]);
    expect(await bench.store.registry.queues()).toEqual([QUEUE]);
  });

  it("an identical put changes no byte, however much later", async () => {
    const input = { id: "t", tags: ["b", "a"], payload: { a: [1, { b: null }] }, priority: 3, group: "g" };
    await bench.put(input);
    const before = await withoutRegistry();
    await bench.clock.advance(7_000);
    expect(await bench.put({ ...input, tags: ["a", "b", "a"] })).toEqual({
      name: bench.name("t"),
      outcome: "unchanged",
      state: "scheduled",
      due: START + 10_000,
      revision: `${START}000`,
    });
    expect(await withoutRegistry()).toEqual(before);
  });

  it.each<[string, Partial<TaskInput>]>([
    ["payload", { payload: { a: 2 } }],
    ["priority", { priority: 1 }],
    ["overlap", { overlap: "allow" }],
    ["catch-up", { catchUp: "all" }],
    ["type", { type: "other" }],
    ["tags", { tags: ["new"] }],
    ["description", { description: "d" }],
  ])("keeps due, and moves the generation, when its %s changes", async (_what, change) => {
    await bench.put({ id: "t" });
    const before = await bench.stored("t");
    await bench.clock.advance(4_000);
    const result = await bench.put({ id: "t", ...change });
    expect(result).toEqual({
      name: bench.name("t"),
      outcome: "updated",
      state: "scheduled",
      due: START + 10_000,
      before: before.definition,
    });
    const after = await bench.stored("t");
    expect(after).toEqual({
      ...before,
      ...(change.payload === undefined ? {} : { payloadJson: JSON.stringify(change.payload) }),
      definition: { ...before.definition, ...change },
      fields: after.fields,
      generation: String(Number(before.generation) + 1),
      revision: String(Number(before.generation) + 1),
      updated: START + 4_000,
    });
    // Changes it back.
    await bench.put({ id: "t" });
    expect([...(await bench.stored("t")).fields]).toEqual([...before.fields]);
  });

  it("keeps the time of creation, after many generations and changes", async () => {
    await bench.put({ id: "t" });
    const { link, keys } = internalsOf(bench.store);
    for (const priority of [1, 2]) {
      await link.ask((client) => client.hincrby(keys.queue(QUEUE).task("system/t"), "gen", 5_000));
      await bench.put({ id: "t", priority });
      expect(await bench.stored("t")).toMatchObject({ created: START });
    }
  });

  it("an identical put keeps an overdue time, which is still owed", async () => {
    await bench.put({ id: "t", catchUp: "all" });
    await bench.clock.advance(60_000);
    expect(await bench.put({ id: "t", catchUp: "all", priority: 1 })).toMatchObject({ due: START + 10_000 });
    expect(await bench.claim("t", "a")).toEqual(["OK"]);
  });

  it("an edited schedule starts strictly after now", async () => {
    await bench.put({ id: "t" });
    await bench.clock.advance(5_000);
    expect(await bench.put({ id: "t", schedule: { every: "1s" } })).toMatchObject({
      outcome: "updated",
      due: START + 6_000,
    });
    expect(await bench.put({ id: "t", schedule: { every: "1h" } })).toMatchObject({ due: START + 3_600_000 });
    expect(await dueIndex()).toEqual({
      "system/t": [String(shardOf("system/t")), String(START + 3_600_000)],
    });
  });

  it("keeps the authors of the first put and of the last change, in two fields if given", async () => {
    const authors = async () => {
      const { createdBy, updatedBy } = await bench.stored("t");
      return [createdBy, updatedBy];
    };
    const put = (priority: number, by?: string) =>
      bench.store.tasks.put(
        QUEUE,
        [parseTask({ id: "t", type: "noop", queue: QUEUE, schedule: { every: "10s" }, priority })],
        { by },
      );
    await put(1, "ann");
    expect(await authors()).toEqual(["ann", "ann"]);
    await put(2, "bob");
    expect(await authors()).toEqual(["ann", "bob"]);
    const [{ outcome } = {}] = await put(2, "eve");
    expect(outcome).toBe("unchanged");
    expect(await authors()).toEqual(["ann", "bob"]);
    await put(3);
    expect(await authors()).toEqual(["ann", undefined]);
    await bench.store.tasks.delete(bench.name("t"));
    await put(1);
    const key = internalsOf(bench.store).keys.queue(QUEUE).task("system/t");
    const fields = await internalsOf(bench.store).link.ask((client) => client.hkeys(key));
    expect(fields.filter((field) => field.endsWith("By"))).toEqual([]);
  });

  it("never resumes a paused task, nor pauses one", async () => {
    await bench.put({ id: "t" });
    await bench.store.tasks.pause(bench.name("t"), "me", "why");
    const paused = { outcome: "updated", state: "paused", due: undefined };
    expect(await bench.put({ id: "t", priority: 2 })).toMatchObject(paused);
    expect(await bench.put({ id: "t", schedule: { every: "1s" } })).toMatchObject(paused);
    expect(await bench.stored("t")).toMatchObject({ paused: { at: START, by: "me", note: "why" } });
    expect(await dueIndex()).toEqual({});
    await bench.store.tasks.resume(bench.name("t"), "skip");
    expect(await bench.put({ id: "t", enabled: false, schedule: { every: "1s" } })).toMatchObject({
      outcome: "unchanged",
      state: "scheduled",
    });
    expect(await bench.put({ id: "t", enabled: false, priority: 1 })).toMatchObject({ state: "scheduled" });
  });

  it("an identical put of a paused or claimed task returns that task's state", async () => {
    await bench.put({ id: "t" });
    await bench.store.tasks.pause(bench.name("t"));
    expect(await bench.put({ id: "t" })).toEqual({
      name: bench.name("t"),
      outcome: "unchanged",
      state: "paused",
      due: undefined,
      revision: `${START}000`,
    });
    await bench.put({ id: "late" });
    await bench.clock.advance(25_000);
    // Overdue by 15 s: the next execution is the overdue one, not the time 5 s ahead.
    expect(await bench.put({ id: "late" })).toMatchObject({ outcome: "unchanged", due: START + 10_000 });
  });

  it("stores a task that starts disabled as paused, without a due time", async () => {
    expect(await bench.put({ id: "t", enabled: false })).toMatchObject({
      outcome: "created",
      state: "paused",
      due: undefined,
    });
    expect(await dueIndex()).toEqual({});
    expect(await bench.stored("t")).toMatchObject({ state: "paused", paused: { at: START } });
    await bench.store.tasks.resume(bench.name("t"), "skip");
    expect(await dueIndex()).toEqual({ "system/t": [String(shardOf("system/t")), String(START + 10_000)] });
  });

  it("stores a single time in the past as finished, and wakes it when edited to the future", async () => {
    const past = { id: "t", schedule: { at: START - 1 } };
    expect(await bench.put(past)).toMatchObject({ outcome: "created", state: "finished", due: undefined });
    expect(await dueIndex()).toEqual({});
    expect(await bench.put(past)).toMatchObject({ outcome: "unchanged", state: "finished" });
    expect(await bench.put({ ...past, id: "off", enabled: false })).toMatchObject({ state: "finished" });
    // The current millisecond is past too: the first time is strictly after the put.
    expect(await bench.put({ id: "now", schedule: { at: START } })).toMatchObject({ state: "finished" });
    expect(await bench.put({ id: "t", schedule: { at: START + 1 } })).toMatchObject({
      outcome: "updated",
      state: "scheduled",
      due: START + 1,
    });
    await bench.clock.advance(1);
    expect(await bench.claim("t", "a")).toEqual(["OK"]);
    expect(await bench.put({ id: "t", schedule: { at: START + 1 } })).toMatchObject({ state: "finished" });
  });

  it("ten different puts at once make one task", async () => {
    const results = await Promise.all(
      Array.from({ length: 10 }, (_, i) => bench.put({ id: "t", payload: { by: i }, tags: [`tag${i}`] })),
    );
    const outcomes = results.map(({ outcome }) => outcome).sort();
    expect(outcomes).toEqual(["created", ...new Array(9).fill("updated")]);
    const task = await bench.stored("t");
    const winner = (task.definition.payload as { by: number }).by;
    expect(task.generation).toBe(`${START}009`);
    expect(task.definition.tags).toEqual([`tag${winner}`]);
    const tagged = (await bench.ownKeys()).filter((key) => key.includes(":~tag:"));
    expect(tagged).toEqual([internalsOf(bench.store).keys.queue(QUEUE).tagged(`tag${winner}`)]);
    expect(
      await internalsOf(bench.store).link.client.zrange(
        internalsOf(bench.store).keys.queue(QUEUE).tasks,
        0,
        "-1",
      ),
    ).toEqual(["system/t noop"]);
    expect(Object.keys(await dueIndex())).toEqual(["system/t"]);
  });

  it("ten identical puts at once create one and leave it alone", async () => {
    const results = await Promise.all(Array.from({ length: 10 }, () => bench.put({ id: "t" })));
    expect(results.map(({ outcome }) => outcome).sort()).toEqual([
      "created",
      ...new Array(9).fill("unchanged"),
    ]);
    expect((await bench.stored("t")).generation).toBe(`${START}000`);
  });

  it("one call may name a task twice, and the later one counts", async () => {
    const tasks = [1, 2, 3].map((n) =>
      parseTask({ id: "t", type: "noop", queue: QUEUE, schedule: { every: "10s" }, payload: { n } }),
    );
    const results = await bench.store.tasks.put(QUEUE, tasks);
    expect(results.map(({ outcome }) => outcome)).toEqual(["created", "updated", "updated"]);
    expect((await bench.stored("t")).definition.payload).toEqual({ n: 3 });
  });

  it("stores a thousand tasks in one call, each with its own answer", async () => {
    const tasks = Array.from({ length: 1_000 }, (_, i) =>
      parseTask({ id: `t${i}`, type: "noop", queue: QUEUE, schedule: { every: "10s" } }),
    );
    const results = await bench.store.tasks.put(QUEUE, tasks);
    expect(results.map(({ name, outcome }) => `${name.id} ${outcome}`)).toEqual(
      tasks.map((_, i) => `t${i} created`),
    );
    expect(Object.keys(await dueIndex())).toHaveLength(1_000);
  });

  it("sends large payloads and many tags in small batches, others in batches of 100", async () => {
    const { link } = internalsOf(bench.store);
    const run = link.run.bind(link);
    let sizes: number[] = [];
    link.run = (script, keys, args) => {
      if (script.name === "put") sizes.push(args.reduce<number>((sum, arg) => sum + String(arg).length, 0));
      return run(script, keys, args);
    };
    const put = (length: number, tagged = 0, id = "t") => {
      sizes = [];
      const tasks = Array.from({ length: 210 }, (_, i) => {
        const payload = "x".repeat(length);
        const tags = Array.from({ length: tagged }, (_, n) => `tag-${n}`);
        return parseTask({
          id: id + i,
          type: "noop",
          queue: QUEUE,
          schedule: { every: "10s" },
          payload,
          tags,
        });
      });
      return bench.store.tasks.put(QUEUE, tasks);
    };
    expect(await put(10)).toHaveLength(210);
    expect(sizes).toHaveLength(3);
    expect(await put(10, 2, "few-")).toHaveLength(210);
    expect(sizes).toHaveLength(3);
    expect(await put(10, 20, "many-")).toHaveLength(210);
    expect(sizes).toHaveLength(18);
    const results = await put(200_000);
    expect(results.map(({ name, outcome }) => `${name.id} ${outcome}`)).toEqual(
      results.map((_, i) => `t${i} updated`),
    );
    expect(Math.max(...sizes)).toBeLessThan(600_000);
  });

  describe("a put during which the first time passes", () => {
    /** Moves the clock between the put's read of the time and its write. */
    async function late(input: Partial<TaskInput> & { id: string }, ms: number) {
      bench.before("put", () => bench.clock.advance(ms));
      const result = await bench.put(input);
      return result;
    }

    it("starts with the next one, strictly after the put", async () => {
      expect(await late({ id: "t" }, 10_000)).toMatchObject({ outcome: "created", due: START + 20_000 });
      expect(await bench.stored("t")).toMatchObject({ nominal: START + 20_000, due: START + 20_000 });
    });

    it("is finished if there is no next one", async () => {
      expect(await late({ id: "t", schedule: { at: START + 5 } }, 5)).toMatchObject({
        outcome: "created",
        state: "finished",
        due: undefined,
      });
      expect(await dueIndex()).toEqual({});
    });

    it("stores a disabled task as paused all the same", async () => {
      expect(await late({ id: "t", enabled: false }, 10_000)).toMatchObject({
        state: "paused",
        due: undefined,
      });
      expect(await bench.stored("t")).toMatchObject({ state: "paused", nominal: START + 20_000 });
      expect(await dueIndex()).toEqual({});
    });

    it("changes nothing if the time is not new", async () => {
      await bench.put({ id: "t" });
      expect(await late({ id: "t", priority: 1 }, 30_000)).toMatchObject({
        outcome: "updated",
        due: START + 10_000,
      });
    });
  });

  it("leaves a task of a newer format alone, whatever the call", async () => {
    await bench.put({ id: "t", tags: ["x"] });
    const key = internalsOf(bench.store).keys.queue(QUEUE).task("system/t");
    await internalsOf(bench.store).link.client.hset(key, "v", "99", "shape", "new");
    await bench.clock.advance(60_000);
    const before = await withoutRegistry();
    const refused = { code: "UNSUPPORTED_FORMAT", remedy: expect.stringMatching(/^Upgrade/) };
    await expect(bench.put({ id: "t", priority: 1 })).rejects.toMatchObject(refused);
    await expect(bench.stored("t")).rejects.toMatchObject(refused);
    await expect(bench.trigger("t", "a")).rejects.toMatchObject(refused);
    await expect(bench.store.tasks.resume(bench.name("t"), "skip")).rejects.toMatchObject(refused);
    await expect(bench.store.tasks.pause(bench.name("t"))).rejects.toMatchObject(refused);
    expect(await bench.store.tasks.list({}, 10)).toMatchObject({ tasks: [], cursor: undefined });
    const { entries } = await bench.store.claims.readDue(QUEUE, shardOf("system/t"), 10);
    expect(entries.map(({ task }) => task)).toEqual([{ foreign: true, version: "99" }]);
    expect(await withoutRegistry()).toEqual(before);
  });
});
