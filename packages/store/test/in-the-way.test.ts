import { parseTask, type TaskInput } from "@carillon/core";
import { shardOf } from "@carillon/core/internal";
import { internalsOf } from "@carillon/store/internal";
import { beforeEach, describe, expect, it } from "vitest";
import { onEveryEngine } from "../../../test/helpers.js";
import { Bench, QUEUE, START } from "./bench.js";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const ALL = ["a", "b", "c"];

onEveryEngine("foreign data in place of one task's keys", (connection) => {
  const bench = Bench.use(connection);
  const keys = () => internalsOf(bench.store).keys.queue(QUEUE);
  async function write(key: string): Promise<void> {
    await internalsOf(bench.store).link.ask((client) => client.del(key));
    await internalsOf(bench.store).link.ask((client) => client.set(key, "in the way"));
  }
  const parsed = (id: string, more: Partial<TaskInput> = {}) =>
    parseTask({ id, type: "noop", queue: QUEUE, schedule: { every: "10s" }, ...more });
  const next = async (id: string) =>
    (await bench.store.claims.next(QUEUE)).get(String(shardOf(`system/${id}`)));

  describe("in a put of several tasks", () => {
    const refused = { code: "REDIS_ERROR", message: expect.stringContaining("system/b cannot be written") };

    it("in place of a task is reported, and the others are stored and checked in time", async () => {
      await write(keys().task("system/b"));
      await expect(
        bench.store.tasks.put(
          QUEUE,
          ALL.map((id) => parsed(id)),
        ),
      ).rejects.toMatchObject(refused);
      for (const id of ["a", "c"]) {
        expect(await bench.stored(id)).toMatchObject({ state: "scheduled", due: START + 10_000 });
        expect(await next(id)).toBe(START + 10_000);
      }
    });

    it("in each of several batches leaves the others stored", async () => {
      const ids = Array.from({ length: 550 }, (_, i) => `t${i}`);
      const bad = ids.filter((_, i) => i % 100 === 0);
      for (const id of bad) await write(keys().task(`system/${id}`));
      await expect(
        bench.store.tasks.put(
          QUEUE,
          ids.map((id) => parsed(id)),
        ),
      ).rejects.toMatchObject({
        code: "REDIS_ERROR",
      });
      expect((await bench.store.tasks.list({}, 1_000)).tasks).toHaveLength(ids.length - bad.length);
    });

    it("in place of its ledger makes the edit fail as a whole", async () => {
      for (const id of ALL) await bench.put({ id });
      await write(keys().ledger("system/b"));
      await bench.clock.advance(10_000);
      const before = await bench.stored("b");
      const edited = ALL.map((id) => parsed(id, { schedule: { every: "1h" } }));
      await expect(bench.store.tasks.put(QUEUE, edited)).rejects.toMatchObject(refused);
      expect({ ...(await bench.stored("b")), fields: [] }).toEqual({ ...before, fields: [] });
      for (const id of ["a", "c"]) expect(await bench.stored(id)).toMatchObject({ due: START + HOUR });
    });

    it("in place of its tag's set keeps it from being stored, not the others", async () => {
      await write(keys().tagged("x"));
      const tasks = ALL.map((id) => parsed(id, id === "b" ? { tags: ["x"] } : {}));
      await expect(bench.store.tasks.put(QUEUE, tasks)).rejects.toMatchObject(refused);
      expect((await bench.store.tasks.list({}, 10)).tasks.map(({ definition }) => definition.id)).toEqual([
        "a",
        "c",
      ]);
      await expect(bench.store.tasks.put(QUEUE, tasks)).rejects.toMatchObject(refused);
    });

    it("in place of one of its tags' sets makes an edit fail as a whole", async () => {
      await bench.put({ id: "b" });
      await write(keys().tagged("x"));
      await bench.clock.advance(10_000);
      const edit = parsed("b", { tags: ["a", "x"], schedule: { every: "1h" } });
      await expect(bench.store.tasks.put(QUEUE, [edit])).rejects.toMatchObject(refused);
      expect((await bench.store.tasks.list({ tag: "a" }, 10)).tasks).toEqual([]);
      expect(await bench.store.runs.ledger(bench.name("b"))).toEqual([]);
    });

    it("in place of its calendar's index makes an edit fail as a whole", async () => {
      await bench.store.calendars.put("holidays", [], "me");
      await bench.put({ id: "b" });
      await write(keys().planned("holidays"));
      await bench.clock.advance(10_000);
      const schedule = { every: "1h", except: [{ named: "holidays" }] };
      await expect(
        bench.store.tasks.put(QUEUE, [parsed("b", { tags: ["a"], schedule })]),
      ).rejects.toMatchObject(refused);
      expect((await bench.store.tasks.list({ tag: "a" }, 10)).tasks).toEqual([]);
      expect(await bench.store.runs.ledger(bench.name("b"))).toEqual([]);
    });

    it("that no version can read is reported, and the others are edited", async () => {
      for (const id of ALL) await bench.put({ id });
      await internalsOf(bench.store).link.ask((client) =>
        client.hset(keys().task("system/a"), "pending", "nonsense"),
      );
      const edited = ALL.map((id) => parsed(id, { schedule: { every: "1h" } }));
      await expect(bench.store.tasks.put(QUEUE, edited)).rejects.toMatchObject({
        code: "UNSUPPORTED_FORMAT",
      });
      for (const id of ["b", "c"]) expect(await bench.stored(id)).toMatchObject({ due: START + HOUR });
    });
  });

  it.each([
    ["statistics", "succeeded", () => keys().stats("system/b")],
    ["history", "succeeded", () => keys().history("system/b")],
    // Read only if a run has failed.
    ["failures", "failed", () => keys().failures("system/b")],
    ["queue's journal", "succeeded", () => keys().journal],
    ["queue's checks of runs", "succeeded", () => keys().runs],
  ] as const)(
    "in place of its %s makes the end of its run fail, with nothing recorded",
    async (_what, outcome, key) => {
      await bench.put({ id: "b" });
      const run = await bench.run("b");
      const { fence } = await bench.begun("b", run);
      await write(key());
      const before = await bench.dump();
      const settled = bench.settle("b", run, fence, { outcome });
      await expect(settled).rejects.toMatchObject({ code: "REDIS_ERROR" });
      expect(await bench.dump()).toEqual(before);
    },
  );

  describe("after a change of a calendar", () => {
    async function change(entries: readonly string[]): Promise<number> {
      const { calendars } = bench.store;
      await calendars.put("holidays", entries, "me");
      await calendars.refresh();
      return calendars.replanStale(QUEUE);
    }
    const schedule = { every: "1h", except: [{ named: "holidays" }] };
    beforeEach(async () => {
      await change([]);
      for (const id of ALL) await bench.put({ id, schedule });
    });

    it.each([
      ["the task's own", (id: string) => keys().task(id)],
      ["its ledger", (id: string) => keys().ledger(id)],
    ])("in place of %s leaves the others replanned, and checked in time", async (_what, keyOf) => {
      // The times after one o'clock are not owed, which the ledger records.
      await change(["2026-01-01"]);
      for (const id of ALL) {
        const key = keys().task(`system/${id}`);
        await internalsOf(bench.store).link.ask((client) => client.hset(key, "cursor", START + HOUR));
      }
      await bench.clock.set(START + 3 * HOUR);
      await write(keyOf("system/b"));
      expect(await change([])).toBe(2);
      for (const id of ["a", "c"]) {
        expect(await bench.stored(id)).toMatchObject({ due: START + 4 * HOUR });
        expect(await next(id)).toBe(START + 4 * HOUR);
      }
    });

    it("in place of one calendar's index is reported, and users of another are replanned", async () => {
      const { calendars } = bench.store;
      await calendars.put("aaa", [], "me");
      await write(keys().planned("aaa"));
      await expect(change(["2026-01-01"])).rejects.toMatchObject({ code: "REDIS_ERROR" });
      for (const id of ALL) expect(await bench.stored(id)).toMatchObject({ due: START + DAY });
    });
  });

  it.each([
    ["its own", (local: string) => keys().task(local), false, ["OK", "OK"]],
    ["its history", (local: string) => keys().history(local), true, ["OK", "OK", "OK"]],
  ])("in place of %s does not stop others that are due", async (_what, keyOf, isRead, answers) => {
    const ids: string[] = [];
    for (let i = 0; ids.length < 3; i++) if (shardOf(`system/t${i}`) === 0) ids.push(`t${i}`);
    for (const id of ids) {
      await bench.put({ id });
      await bench.trigger(id, id);
    }
    await bench.workAll();
    await bench.clock.advance(10_000);
    await bench.reconcile();
    ids.sort();
    const [first, bad] = ids as [string, string];
    await write(keyOf(`system/${bad}`));
    const { entries } = await bench.store.claims.readDue(QUEUE, 0, 10);
    expect(entries.map(({ local, task }) => [local, task !== undefined])).toEqual(
      ids.map((id) => [`system/${id}`, isRead || id !== bad]),
    );
    const claimed = await bench.claim(first, "a");
    expect(claimed).toEqual(answers);
  });

  it("is not listed, and hides no other task", async () => {
    for (const id of ALL) await bench.put({ id });
    await write(keys().task("system/b"));
    const { tasks } = await bench.store.tasks.list({}, 10);
    expect(tasks.map(({ definition }) => definition.id)).toEqual(["a", "c"]);
  });

  it("is deleted with the task", async () => {
    for (const id of ALL) await bench.put({ id });
    await write(keys().task("system/b"));
    for (const id of ALL) expect(await bench.store.tasks.delete(bench.name(id))).toBe(true);
    expect(await bench.ownKeys()).toEqual([]);
  });

  it("does not stop the delete of a task whose hash is missing", async () => {
    await bench.put({ id: "a" });
    await internalsOf(bench.store).link.ask((client) => client.del(keys().task("system/a")));
    expect(await bench.store.tasks.delete(bench.name("a"))).toBe(true);
    expect(await bench.ownKeys()).toEqual([]);
  });

  it("in place of its tag's set does not stop the delete", async () => {
    await bench.put({ id: "a", tags: ["x"] });
    await write(keys().tagged("x"));
    expect(await bench.store.tasks.delete(bench.name("a"))).toBe(true);
    expect(await bench.ownKeys()).toEqual([keys().tagged("x")]);
  });

  it("in place of a job of its runs does not stop the delete, nor a new put", async () => {
    await bench.put({ id: "a", overlap: "allow" });
    for (const token of ["x", "y", "z"]) await bench.trigger("a", token);
    const [run] = await bench.store.runs.open(bench.name("a"));
    const key = keys().job(run as string);
    await write(key);
    expect(await bench.store.tasks.delete(bench.name("a"))).toBe(true);
    expect(await bench.ownKeys()).toEqual([]);
    expect(await bench.put({ id: "a" })).toMatchObject({ outcome: "created" });
  });

  it("among alerts keeps others in order when a task is deleted", async () => {
    await bench.put({ id: "a" });
    const line = (task: string, at: number) => JSON.stringify({ kind: "failed", task, at });
    const tasks = ["system/a", "system/ba", "x/a", "system/a", "system/a", "system/b"];
    await internalsOf(bench.store).link.ask((client) => client.rpush(keys().alerts, ...tasks.map(line)));
    await bench.store.tasks.delete(bench.name("a"));
    expect(await internalsOf(bench.store).link.ask((client) => client.lrange(keys().alerts, 0, -1))).toEqual([
      line("system/ba", 1),
      line("x/a", 2),
      line("system/b", 5),
    ]);
  });

  it("among the alerts does not stop the delete of a task", async () => {
    await bench.put({ id: "a" });
    await bench.trigger("a", "x");
    await internalsOf(bench.store).link.ask((client) =>
      client.rpush(keys().alerts, "{", "null", "5", '{"task":5}'),
    );
    expect(await bench.store.tasks.delete(bench.name("a"))).toBe(true);
    expect(await bench.ownKeys()).toEqual([keys().alerts]);
    expect(await bench.jobs()).toEqual([]);
  });

  it("in place of a task does not hide the deadlines of others", async () => {
    for (const id of ALL) await bench.put({ id, alertIf: { noSuccessFor: "1m" } });
    await write(keys().task("system/a"));
    await bench.clock.advance(60_000);
    await bench.store.alerts.missed(QUEUE);
    const told = (await bench.store.alerts.waiting(QUEUE)).map(({ alert }) => alert.task?.id);
    expect(told).toEqual(["b", "c"]);
  });

  it.each([
    ["its statistics", () => keys().stats("system/a")],
    ["the backfills", () => keys().backfills],
  ])("in place of %s makes a resume fail as a whole", async (_what, keyOf) => {
    await bench.put({ id: "a" });
    await bench.store.tasks.pause(bench.name("a"));
    await bench.clock.advance(25_000);
    await write(keyOf());
    const before = await bench.dump();
    const range = { from: START + 10_000, to: START + 20_000, at: START, total: 2, every: 0 };
    const resume = bench.store.tasks.resume(bench.name("a"), {
      owed: START + 10_000,
      backfill: { id: "owed", ...range, overlap: undefined, by: "me" },
      after: 0,
    });
    await expect(resume).rejects.toMatchObject({ code: "REDIS_ERROR" });
    expect(await bench.dump()).toEqual(before);
  });

  it("in place of a backfill is not listed, and hides no other", async () => {
    const task = bench.name("a");
    const range = { from: START, to: START, at: START - 1, total: 1, enqueued: 0, skipped: 0, every: 0 };
    for (const id of ["x", "y"]) {
      await bench.store.backfills.put({ id, task, ...range, overlap: undefined, by: "me" });
    }
    await write(keys().backfill("x"));
    expect(
      (await bench.store.backfills.due(QUEUE, Number.MAX_SAFE_INTEGER, 10)).map((one) => one.backfill.id),
    ).toEqual(["y"]);
  });
});
