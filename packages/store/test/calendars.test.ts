import { parseTask, type TaskInput } from "@carillon/core";
import { decide, FORMAT_VERSION, shardOf } from "@carillon/core/internal";
import { type ClaimItem, dueTask, isForeign, type SharedCalendar, Store } from "@carillon/store";
import { internalsOf } from "@carillon/store/internal";
import { eventually } from "@carillon/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { onEveryEngine } from "../../../test/helpers.js";
import { Bench, type Half, QUEUE, START } from "./bench.js";

const HOUR = 3_600_000;
const DAY = 86_400_000;

/** 09:00 UTC of a day in January 2026. */
const nine = (date: number) => START + (date - 1) * DAY + 9 * HOUR;
const except = [{ named: "holidays" }];
const daily = { cron: "0 9 * * *", except };

onEveryEngine("shared calendars", (connection) => {
  const bench = Bench.use(connection);
  /** Another process, which knows only what it has read itself. */
  let other: Bench;
  beforeEach(async () => {
    other = await Bench.open(connection(), { namespace: bench.store.namespace });
  });
  afterEach(async () => {
    await other.close();
  });

  const put = (input: Partial<TaskInput> = {}, from = bench) =>
    from.put({ id: "t", schedule: daily, ...input });
  const store = (entries: readonly string[], name = "holidays", by = "me") =>
    bench.store.calendars.put(name, entries, by);
  /**
   * Changes a calendar as a client does: stores it, then plans its tasks again. Returns the number of planned tasks.
   */
  async function change(entries: readonly string[], name = "holidays", from = bench): Promise<number> {
    const { calendars } = from.store;
    await calendars.put(name, entries, "me");
    await calendars.refresh();
    return calendars.replanStale(QUEUE);
  }
  const ledger = async (id = "t") =>
    (await bench.store.runs.ledger(bench.name(id))).map(({ reason, from, to }) => [reason, from, to]);
  const nominals = async () =>
    (await bench.jobs()).map((job) => job.data.occurrence.nominal).sort((a, b) => a - b);
  const generation = async (id = "t") => BigInt((await bench.stored(id)).generation);
  async function indexed(id = "t"): Promise<number | undefined> {
    const shard = shardOf(`system/${id}`);
    const score = await internalsOf(bench.store).link.ask((client) =>
      client.zscore(internalsOf(bench.store).keys.queue(QUEUE).due(shard), `system/${id}`),
    );
    const next = (await bench.store.claims.next(QUEUE)).get(String(shard));
    const due = score === null ? undefined : Number(score);
    // The time that nodes wait for is never later than the due time.
    if (due !== undefined) expect(next).toBeLessThanOrEqual(due);
    return due;
  }
  /** The tasks of a calendar's index, each with the revision that it was planned with. */
  async function planned(name = "holidays"): Promise<[string, number][]> {
    const flat = await internalsOf(bench.store).link.ask((client) =>
      client.zrange(internalsOf(bench.store).keys.queue(QUEUE).planned(name), 0, "-1", "WITHSCORES"),
    );
    return flat.flatMap((local, i) => (i % 2 === 0 ? [[local, Number(flat[i + 1])]] : []));
  }
  /** Checks that task, due index and the calendar's index agree. */
  async function expectNext(nominal: number, id = "t"): Promise<void> {
    expect(await bench.stored(id)).toMatchObject({ state: "scheduled", nominal, due: nominal });
    expect(await indexed(id)).toBe(nominal);
  }

  /** The read half of a claim, with this process's knowledge of the calendars. */
  async function read(id = "t", from = bench): Promise<Half> {
    const { store } = from;
    const shard = shardOf(`system/${id}`);
    const { now, entries } = await store.claims.readDue(QUEUE, shard, 50);
    const items = entries.flatMap((entry): ClaimItem[] => {
      const { task } = entry;
      if (!task || isForeign(task)) return [];
      const item = { ...entry, task };
      return [{ entry: item, decision: decide(dueTask(item, store.calendars.schedules), now) }];
    });
    return { items, now, shard };
  }
  const claim = async (token: string, id = "t") => bench.commit(await read(id), token);

  describe("when it is stored, changed or deleted", () => {
    it("counts each change, with its author and time", async () => {
      const { outcome, revision: first } = await store(["2026-01-02", "*-05-01"], "holidays", "ann lee");
      expect(outcome).toBe("created");
      await bench.clock.advance(1_000);
      expect(await store(["2026-01-02", "*-05-01"], "holidays", "bob")).toEqual({
        outcome: "unchanged",
        revision: first,
      });
      expect(await store([], "closing")).toEqual({ outcome: "created", revision: first + 1 });
      expect(await store(["*-05-01", "2026-01-02"], "holidays", "bob")).toEqual({
        outcome: "updated",
        revision: first + 2,
      });
      const wanted: SharedCalendar[] = [
        { name: "closing", entries: [], revision: first + 1, updated: START + 1_000, by: "me" },
        {
          name: "holidays",
          entries: ["*-05-01", "2026-01-02"],
          revision: first + 2,
          updated: START + 1_000,
          by: "bob",
        },
      ];
      expect(await bench.store.calendars.list()).toEqual(wanted);
      expect(await other.store.calendars.list()).toEqual(wanted);
      expect(await bench.store.calendars.delete("closing")).toBe(true);
      expect(await bench.store.calendars.delete("closing")).toBe(false);
      expect(await bench.store.calendars.list()).toEqual([wanted[1]]);
      // A deletion is a change too.
      await other.store.calendars.refresh();
      expect(other.store.calendars.revision).toBe(first + 3);
    });

    it("accepts an author with spaces, or none", async () => {
      await store([], "a", "ann lee\nof accounts");
      await store([], "b", "");
      expect((await bench.store.calendars.list()).map(({ by }) => by)).toEqual(["ann_lee_of_accounts", "-"]);
    });

    it("is read again only if something has changed", async () => {
      expect(await other.store.calendars.refresh()).toBe(false);
      await store(["2026-01-02"]);
      expect(await other.store.calendars.refresh()).toBe(true);
      expect(await other.store.calendars.refresh()).toBe(false);
      await store(["2026-01-02"]);
      expect(await other.store.calendars.refresh()).toBe(false);
      await bench.store.calendars.delete("holidays");
      expect(await other.store.calendars.refresh()).toBe(true);
      expect(other.store.calendars.revision).toBe(0);
    });

    it.each<[string, unknown]>([
      ["entries[1]", ["2026-01-02", "2026-02-30"]],
      ["entries[0]", ["someday"]],
      ["entries[0]", [5]],
      ["entries", "2026-01-02"],
      ["entries", Array.from({ length: 4_097 }, () => "2026-01-02")],
    ])("refuses what is no calendar, naming %s, and stores nothing", async (field, entries) => {
      await expect(store(entries as string[])).rejects.toMatchObject({ code: "INVALID_SCHEDULE", field });
      expect(await bench.ownKeys()).toEqual([]);
    });

    it("keeps the largest calendar whole", async () => {
      const entries = Array.from({ length: 4_096 }, (_, i) =>
        new Date(START + i * DAY).toISOString().slice(0, 10),
      );
      await store(entries);
      expect((await other.store.calendars.list())[0]?.entries).toEqual(entries);
      await put();
      expect(await bench.stored("t")).toMatchObject({ nominal: START + 4_096 * DAY + 9 * HOUR });
    });

    it.each(["__proto__", "constructor", "..", "revision"])("may be named %s", async (name) => {
      const { revision } = await store(["2026-01-01"], name);
      expect((await other.store.calendars.list()).map((one) => [one.name, one.entries])).toEqual([
        [name, ["2026-01-01"]],
      ]);
      await put({ schedule: { cron: "0 9 * * *", except: [{ named: name }] } }, other);
      await expectNext(nine(2));
      expect(await planned(name)).toEqual([["system/t", revision]]);
    });

    it("continues the count when the last calendar was deleted and another one stored", async () => {
      const revisions: number[] = [];
      for (let i = 0; i < 3; i++) {
        revisions.push((await store(["2026-01-02"])).revision, (await store(["2026-01-03"])).revision);
        await other.store.calendars.refresh();
        await bench.store.calendars.delete("holidays");
        expect(await bench.ownKeys()).toEqual([]);
        await bench.clock.advance(1_000);
      }
      expect(revisions).toEqual([...new Set(revisions)].sort((a, b) => a - b));
      await store(["2026-01-01"]);
      expect(await other.store.calendars.refresh()).toBe(true);
    });
  });

  it("count on the server's own clock too without repeating, however fast they change", async () => {
    const real = new Store({ connection: connection(), namespace: `real-${bench.store.namespace}` });
    let last = 0;
    let repeated = 0;
    for (let i = 0; i < 300; i++) {
      const { revision } = await real.calendars.put("holidays", [], "me");
      if (revision <= last) repeated += 1;
      last = revision;
      await real.calendars.delete("holidays");
    }
    await real.close();
    // A process that knows the old calendar would take the new one for it.
    expect(repeated).toBe(0);
  });

  describe("that a task names", () => {
    it("plan the task, and record their revision", async () => {
      const { revision } = await store(["2026-01-01", "2026-01-02"]);
      expect(await put()).toMatchObject({ outcome: "created", state: "scheduled", due: nine(3) });
      await expectNext(nine(3));
      expect(await bench.stored("t")).toMatchObject({ calendarRevision: revision });
      expect(await planned()).toEqual([["system/t", revision]]);
      expect(await bench.store.calendars.users(QUEUE, "holidays")).toBe(1);
      const before = await bench.dump();
      expect(await put({}, other)).toMatchObject({ outcome: "unchanged", due: nine(3) });
      // A put changes only the queue's mark in the registry.
      const registry = internalsOf(bench.store).keys.queues;
      expect({ ...(await bench.dump()), [registry]: 0 }).toEqual({ ...before, [registry]: 0 });
    });

    it("refuse the task if there is none of that name, and leave what is stored", async () => {
      await store(["2026-01-02"]);
      await put();
      const before = await bench.dump();
      const unknown = { cron: "0 9 * * *", except: [{ named: "holidays" }, { named: "nowhere" }] };
      const refused = { code: "INVALID_SCHEDULE", field: "schedule.except[1].named" };
      await expect(put({ schedule: unknown })).rejects.toMatchObject(refused);
      await expect(put({ id: "new", schedule: unknown }, other)).rejects.toMatchObject(refused);
      const registry = internalsOf(bench.store).keys.queues;
      expect({ ...(await bench.dump()), [registry]: 0 }).toEqual({ ...before, [registry]: 0 });
    });

    it("leave no key of a refused task, not even its queue in the registry", async () => {
      await expect(put()).rejects.toMatchObject({ code: "INVALID_SCHEDULE" });
      expect(await bench.ownKeys()).toEqual([]);
    });

    it("remove the task from their index when it is edited or deleted", async () => {
      const { revision } = await store(["2026-01-02"]);
      await store(["2026-01-03"], "closing");
      await put();
      await put({ schedule: { cron: "0 9 * * *", except: [{ named: "closing" }, { named: "holidays" }] } });
      expect(await planned("holidays")).toEqual([["system/t", revision + 1]]);
      expect(await planned("closing")).toEqual([["system/t", revision + 1]]);
      await put({ schedule: { cron: "0 9 * * *", except: [{ named: "closing" }] }, priority: 1 });
      expect(await planned("holidays")).toEqual([]);
      await put({ id: "u", schedule: { any: [{ cron: "0 9 * * *", except }, { cron: "0 8 * * *" }] } });
      expect(await planned("holidays")).toEqual([["system/u", revision + 1]]);
      await bench.store.tasks.delete(bench.name("t"));
      await put({ id: "u", schedule: { cron: "0 9 * * *" } });
      expect(await bench.ownKeys()).not.toContainEqual(expect.stringContaining(":~cal:"));
      expect(await bench.stored("u")).toMatchObject({ nominal: nine(1) });
    });

    it("exclude times of the union's member that names them, and no others", async () => {
      await store(["2026-01-01"]);
      await put({ schedule: { any: [{ cron: "0 9 * * *", except }, { cron: "0 10 * * *" }] } });
      await expectNext(nine(1) + HOUR);
      await change(["2026-01-02"]);
      await expectNext(nine(1));
    });

    it("keep the task's revision if only its plain fields change", async () => {
      const { revision } = await store(["2026-01-02"]);
      await put();
      await store(["2026-01-01"]);
      // Before the task is planned again, another process stores another priority.
      other.store.calendars.replanStale = async () => 0;
      await put({ priority: 3 }, other);
      expect(await planned()).toEqual([["system/t", revision]]);
      expect(await bench.stored("t")).toMatchObject({ calendarRevision: revision });
      await bench.store.calendars.refresh();
      expect(await bench.store.calendars.replanStale(QUEUE)).toBe(1);
      await expectNext(nine(2));
    });
  });

  describe("after a change", () => {
    it("move a task whose next time is excluded now, and move it back when it no longer is", async () => {
      await store(["2026-01-03"]);
      await put();
      await expectNext(nine(1));
      const first = await generation();
      expect(await change(["2026-01-01", "2026-01-02"])).toBe(1);
      await expectNext(nine(3));
      expect(await generation()).toBe(first + 1n);
      const heard: string[] = [];
      const listener = bench.connect();
      listener.on("message", (_channel: string, text: string) => heard.push(text));
      await listener.subscribe(internalsOf(bench.store).keys.wake);
      expect(await change(["2026-01-01"])).toBe(1);
      await expectNext(nine(2));
      expect(await generation()).toBe(first + 2n);
      const { revision } = bench.store.calendars;
      expect(await planned()).toEqual([["system/t", revision]]);
      expect(await bench.stored("t")).toMatchObject({ calendarRevision: revision, cursor: undefined });
      // An earlier time is published to the nodes. In a cluster, messages from before the subscription may arrive after
      // it.
      const told = `${QUEUE} ${shardOf("system/t")} ${nine(2)}`;
      await eventually(() => expect(heard).toContain(told));
      expect(await ledger()).toEqual([]);
    });

    it("supersede past times that are new, and only once", async () => {
      await store([]);
      await put();
      await bench.clock.set(nine(1));
      expect(await claim("a")).toEqual(["OK"]);
      await change(["2026-01-02"]);
      await bench.clock.set(nine(2) + HOUR);
      await change([]);
      await change(["2026-06-01"]);
      expect(await ledger()).toEqual([["superseded", nine(2), nine(2)]]);
      expect(await bench.stored("t")).toMatchObject({ cursor: nine(2), nominal: nine(3) });
    });

    it("leave nothing stale after replanning", async () => {
      await store([]);
      await put();
      expect(await change(["2026-01-01"])).toBe(1);
      const before = await bench.dump();
      expect(await bench.store.calendars.replanStale(QUEUE)).toBe(0);
      await other.store.calendars.refresh();
      expect(await other.store.calendars.replanStale(QUEUE)).toBe(0);
      expect(await change(["2026-01-01"])).toBe(0);
      expect(await bench.dump()).toEqual(before);
    });

    it("make an earlier claim stale if its time is excluded now", async () => {
      await store([]);
      await put();
      await bench.clock.set(nine(1));
      const half = await read();
      expect(half.items).toHaveLength(1);
      await change(["2026-01-01"]);
      expect(await bench.commit(half, "a")).toEqual(["STALE"]);
      expect(await nominals()).toEqual([]);
      await expectNext(nine(2));
    });

    it("make an earlier claim stale if only the time after it differs", async () => {
      await store([]);
      await put();
      await bench.clock.set(nine(1));
      const half = await read();
      await change(["2026-01-02"]);
      expect(await bench.commit(half, "a")).toEqual(["STALE"]);
      expect(await claim("b")).toEqual(["OK"]);
      expect(await nominals()).toEqual([nine(1)]);
      await expectNext(nine(3));
    });

    it("touch no task that does not name them", async () => {
      await store([]);
      await store([], "closing");
      await put();
      await put({ id: "u", schedule: { cron: "0 9 * * *", except: [{ named: "closing" }] } });
      await put({ id: "plain", schedule: { cron: "0 9 * * *" } });
      const [u, plain] = [await bench.stored("u"), await bench.stored("plain")];
      expect(await change(["2026-01-01"])).toBe(1);
      expect([await bench.stored("u"), await bench.stored("plain")]).toEqual([u, plain]);
      expect(await change(["2026-01-01"], "closing")).toBe(1);
      await expectNext(nine(2), "u");
      expect(await bench.stored("plain")).toEqual(plain);
    });

    it("count for either of two calendars, and both have the new revision", async () => {
      await store([]);
      await store([], "closing");
      const both = { cron: "0 9 * * *", except: [{ named: "closing" }, { named: "holidays" }] };
      await put({ schedule: both });
      await change(["2026-01-01"]);
      await expectNext(nine(2));
      await change(["2026-01-02"], "closing");
      await expectNext(nine(3));
      const { revision } = bench.store.calendars;
      expect([await planned(), await planned("closing")]).toEqual([
        [["system/t", revision]],
        [["system/t", revision]],
      ]);
    });

    it("keep the jitter: the due time follows the new nominal time", async () => {
      await store([]);
      const schedule = { ...daily, jitter: "1h" };
      await put({ schedule });
      await change(["2026-01-01"]);
      const moved = await bench.stored("t");
      expect(moved).toMatchObject({ nominal: nine(2) });
      await bench.store.tasks.delete(bench.name("t"));
      expect(await put({ schedule })).toMatchObject({ due: moved.due });
      // Between its nominal and its due time the occurrence is owed: it stays.
      await bench.clock.set(nine(2) + 1);
      await change(["2026-01-01", "2026-01-05"]);
      expect(await bench.stored("t")).toMatchObject({ nominal: nine(2), due: moved.due });
      expect(await indexed()).toBe(moved.due);
    });

    describe("that happens while times are owed", () => {
      beforeEach(async () => {
        await store([]);
        await put({ catchUp: "all", overlap: "allow" });
        await bench.clock.set(nine(3) + HOUR);
      });

      it("keep times owed that still hold", async () => {
        await change(["2026-01-20"]);
        await expectNext(nine(1));
        for (const token of ["a", "b", "c"]) expect(await claim(token)).toEqual(["OK"]);
        expect(await nominals()).toEqual([nine(1), nine(2), nine(3)]);
      });

      it("keep the others owed if the first is excluded", async () => {
        await change(["2026-01-01"]);
        await expectNext(nine(2));
        expect(await claim("a")).toEqual(["OK"]);
        expect(await claim("b")).toEqual(["OK"]);
        expect(await nominals()).toEqual([nine(2), nine(3)]);
        await expectNext(nine(4));
      });

      it("leave nothing owed if all are excluded", async () => {
        await change(["2026-01-01", "2026-01-02", "2026-01-03"]);
        await expectNext(nine(4));
        expect((await read()).items).toEqual([]);
      });

      it("do not make earlier times owed that come back", async () => {
        await change(["2026-01-01"]);
        await change([]);
        await expectNext(nine(2));
      });
    });

    describe("that happens while the task is paused", () => {
      beforeEach(async () => {
        await store([]);
        await put({ catchUp: "all", overlap: "allow" });
        await bench.store.tasks.pause(bench.name("t"), "ann");
      });
      const resume = (missed: "skip" | "catch-up", by = bench) => by.store.tasks.resume(by.name("t"), missed);

      it("keep the task paused and out of the index, with another next time", async () => {
        expect(await change(["2026-01-01"])).toBe(1);
        expect(await bench.stored("t")).toMatchObject({
          state: "paused",
          nominal: nine(2),
          due: nine(2),
          paused: { at: START, by: "ann" },
        });
        expect(await indexed()).toBeUndefined();
        expect(await resume("skip")).toBe("OK");
        await expectNext(nine(2));
      });

      it("keep owed times owed", async () => {
        await bench.clock.set(nine(3) + HOUR);
        await change(["2026-01-02"]);
        expect(await bench.stored("t")).toMatchObject({ state: "paused", nominal: nine(1) });
        expect(await indexed()).toBeUndefined();
        await resume("catch-up");
        for (const token of ["a", "b"]) expect(await claim(token)).toEqual(["OK"]);
        expect(await nominals()).toEqual([nine(1), nine(3)]);
      });

      it("leave the task without times, and give it some again", async () => {
        const end = new Date(nine(2)).toISOString();
        await put({ schedule: { ...daily, end } });
        await change(["2026-01-01", "2026-01-02"]);
        expect(await bench.stored("t")).toMatchObject({ state: "paused", nominal: undefined });
        await change(["2026-01-01"]);
        expect(await bench.stored("t")).toMatchObject({ state: "paused", nominal: nine(2) });
        await resume("skip");
        await expectNext(nine(2));
      });

      it("apply to a resume by a process that does not know of the change", async () => {
        await other.store.calendars.refresh();
        await bench.clock.set(nine(1) + HOUR);
        await change(["2026-01-02"]);
        expect(await resume("skip", other)).toBe("OK");
        await expectNext(nine(3));
      });

      it("apply to a resume that has read before the change", async () => {
        await bench.clock.set(nine(1) + HOUR);
        bench.before("resume", () => change(["2026-01-02"], "holidays", other));
        expect(await resume("skip")).toBe("OK");
        await expectNext(nine(3));
      });
    });

    describe("to a finished task", () => {
      const FINISHED = { state: "finished", nominal: undefined, due: undefined };

      it("give it its only time back", async () => {
        await store(["2026-01-02"]);
        const once = { at: nine(2), except };
        expect(await put({ schedule: once })).toMatchObject({ state: "finished" });
        expect(await change(["2026-01-03"])).toBe(1);
        await expectNext(nine(2));
        await bench.clock.set(nine(2));
        expect(await claim("a")).toEqual(["OK"]);
        expect(await bench.stored("t")).toMatchObject(FINISHED);
        // The task has run: no change makes it run again.
        await change(["2026-01-02"]);
        await change([]);
        expect(await bench.stored("t")).toMatchObject({ ...FINISHED, cursor: nine(2) });
        expect(await indexed()).toBeUndefined();
      });

      it("finish a task whose last time is excluded", async () => {
        await store([]);
        await put({ schedule: { at: nine(2), except } });
        await change(["2026-01-02"]);
        expect(await bench.stored("t")).toMatchObject(FINISHED);
        expect(await indexed()).toBeUndefined();
        // The time has passed before the calendar allows it again: nothing is owed.
        await bench.clock.set(nine(2) + 1);
        await change([]);
        expect(await bench.stored("t")).toMatchObject(FINISHED);
      });

      it("do not finish a task with a pending occurrence, which runs first", async () => {
        await store([]);
        await put({ schedule: { at: nine(2), except }, overlap: "queue-one" });
        expect(await bench.trigger("t", "a")).toMatchObject({ outcome: "enqueued" });
        expect(await bench.trigger("t", "b")).toMatchObject({ outcome: "queued" });
        await change(["2026-01-02"]);
        expect(await bench.stored("t")).toMatchObject({ state: "scheduled", nominal: undefined });
        await bench.workAll();
        await bench.clock.advance(1_000);
        expect(await claim("c")).toEqual(["OK"]);
        expect(await nominals()).toHaveLength(2);
        expect(await bench.stored("t")).toMatchObject({ ...FINISHED, pending: [] });
      });

      it("keep a task finished that has used up its maxRuns", async () => {
        await store([]);
        await put({ schedule: { ...daily, maxRuns: 1 } });
        await bench.clock.set(nine(1));
        await claim("a");
        await change(["2026-01-05"]);
        expect(await bench.stored("t")).toMatchObject({ ...FINISHED, fired: 1 });
      });

      it("wake a task with a delay after each run, too", async () => {
        await store(["*-*-*"]);
        const schedule = { every: "1h", anchor: "finish", except } as const;
        expect(await put({ schedule })).toMatchObject({ state: "finished" });
        await change(["2026-01-20"]);
        await expectNext(START + HOUR);
      });
    });

    describe("of a task with a delay after each run", () => {
      const schedule = { every: "1h", anchor: "finish", except } as const;
      async function fired(): Promise<string> {
        await store([]);
        await put({ schedule });
        await bench.clock.advance(HOUR);
        expect(await claim("a")).toEqual(["OK"]);
        return (await bench.stored("t")).waiting?.run as string;
      }
      const finish = (run: string) => bench.work("t", run);

      it("keep the task waiting for its run", async () => {
        const run = await fired();
        expect(await change(["2026-01-20"])).toBe(1);
        expect(await bench.stored("t")).toMatchObject({
          state: "scheduled",
          nominal: undefined,
          waiting: { run },
        });
        expect(await indexed()).toBeUndefined();
        await finish(run);
        await expectNext(bench.clock.now + HOUR);
      });

      it("plan again if the run ends meanwhile", async () => {
        const run = await fired();
        await store(["2026-01-20"]);
        await bench.store.calendars.refresh();
        bench.before("replan", () => finish(run));
        await bench.store.calendars.replanStale(QUEUE);
        await expectNext(bench.clock.now + HOUR);
      });

      it("skip its time when it comes, with the reason", async () => {
        const run = await fired();
        await finish(run);
        await bench.workAll();
        const excluded = bench.clock.now + HOUR;
        await change(["2026-01-01"]);
        await expectNext(excluded);
        await bench.clock.set(excluded);
        expect(await claim("b")).toEqual(["OK"]);
        expect(await ledger()).toEqual([["excluded", excluded, excluded]]);
        await expectNext(START + DAY);
        expect(await nominals()).toHaveLength(1);
      });
    });
  });

  describe("with several processes", () => {
    it("are replanned by another process if one dies before", async () => {
      await store([]);
      await put();
      await store(["2026-01-01"]);
      await expectNext(nine(1));
      await other.store.calendars.refresh();
      expect(await other.store.calendars.replanStale(QUEUE)).toBe(1);
      await expectNext(nine(2));
    });

    it("plan a task with the newest copy, even if the process that puts it has an older one", async () => {
      await store([]);
      await other.store.calendars.refresh();
      await store(["2026-01-01"]);
      expect(await put({}, other)).toMatchObject({ due: nine(2) });
      await expectNext(nine(2));
    });

    it.each([
      ["a new task", async () => {}],
      ["another schedule", () => bench.put({ id: "t" }).then(() => {})],
    ])("plan %s that another process puts meanwhile, with the change", async (_what, first) => {
      await store([]);
      await first();
      other.before("put", () => change(["2026-01-01"]));
      expect(await put({}, other)).toMatchObject({ state: "scheduled" });
      await expectNext(nine(2));
      expect(await planned()).toEqual([["system/t", bench.store.calendars.revision]]);
    });

    it("apply to an edit by a process that never read them, while a time is owed", async () => {
      await store([]);
      await put();
      await bench.clock.set(nine(2) + HOUR);
      expect(await put({ schedule: { cron: "0 10 * * *" } }, other)).toMatchObject({ outcome: "updated" });
      expect(await ledger()).toEqual([["superseded", nine(1), nine(2)]]);
    });

    it("apply to a failed run that such a process settles: it is retried", async () => {
      await store([]);
      await put({ rerun: { delay: "1m" } });
      await bench.clock.set(nine(1));
      expect(await claim("a")).toEqual(["OK"]);
      const [run = ""] = await bench.store.runs.open(bench.name("t"));
      await other.work("t", run, { outcome: "failed", error: "no" });
      expect((await bench.stored("t")).pending).toMatchObject([{ trigger: "retry", nominal: nine(1) }]);
    });

    it("count an owed time as superseded by an edit, even if it is excluded by now", async () => {
      await store([]);
      await put();
      await store(["2026-01-01"]);
      await bench.clock.set(nine(1) + HOUR);
      await put({ schedule: { cron: "0 10 * * *" } }, other);
      expect(await ledger()).toEqual([["superseded", nine(1), nine(1)]]);
      expect(await bench.stored("t")).toMatchObject({ cursor: nine(1) });
    });

    it("compute superseded times with the present calendar", async () => {
      await store([]);
      await other.store.calendars.refresh();
      await put();
      await change(["2026-01-02"]);
      await bench.clock.set(nine(2) + HOUR);
      await put({ schedule: { cron: "0 10 * * *" } }, other);
      expect(await ledger()).toEqual([["superseded", nine(1), nine(1)]]);
    });
  });

  describe("of many tasks", () => {
    const ids = Array.from({ length: 300 }, (_, i) => `t${i}`);
    async function putAll(): Promise<void> {
      await bench.store.tasks.put(
        QUEUE,
        ids.map((id) => parseTask({ id, type: "noop", queue: QUEUE, schedule: daily })),
      );
    }

    it("replan all, and leave nothing when these are deleted", async () => {
      await store([]);
      await putAll();
      expect(await change(["2026-01-01"])).toBe(300);
      const { tasks } = await bench.store.tasks.list({ queue: QUEUE }, 1_000);
      expect(tasks).toHaveLength(300);
      expect(new Set(tasks.map(({ nominal, due }) => `${nominal} ${due}`))).toEqual(
        new Set([`${nine(2)} ${nine(2)}`]),
      );
      expect([...(await bench.store.claims.next(QUEUE)).values()]).toEqual(Array(8).fill(nine(2)));
      expect(await bench.store.calendars.users(QUEUE, "holidays")).toBe(300);
      for (const id of ids) await bench.store.tasks.delete(bench.name(id));
      expect(await bench.store.calendars.users(QUEUE, "holidays")).toBe(0);
      expect(await bench.store.calendars.delete("holidays")).toBe(true);
      expect(await bench.ownKeys()).toEqual([]);
    });

    it("replan a task again that changes meanwhile", async () => {
      await store([]);
      await putAll();
      await store(["2026-01-01"]);
      await bench.store.calendars.refresh();
      bench.before("replan", () => put({ id: "t7", priority: 4 }, other));
      await bench.store.calendars.replanStale(QUEUE);
      const { revision } = bench.store.calendars;
      expect(new Set((await planned()).map(([, with_]) => with_))).toEqual(new Set([revision]));
      await expectNext(nine(2), "t7");
      expect(await bench.stored("t7")).toMatchObject({ definition: { priority: 4 } });
    });

    it("log a task that keeps changing, and replan the others", async () => {
      await store([]);
      await put();
      await put({ id: "restless" });
      await store(["2026-01-01"]);
      await bench.store.calendars.refresh();
      const quiet = await Bench.open(connection(), { namespace: bench.store.namespace });
      quiet.store.calendars.replanStale = async () => 0;
      const { link } = internalsOf(bench.store);
      const { run } = link;
      let n = 0;
      link.run = async (sent, keys, args) => {
        n += 1;
        if (sent.name === "replan") await put({ id: "restless", priority: n }, quiet);
        return run.call(link, sent, keys, args);
      };
      await expect(bench.store.calendars.replanStale(QUEUE)).rejects.toMatchObject({ code: "CONFLICT" });
      await quiet.close();
      link.run = run;
      await expectNext(nine(2));
    });
  });

  describe("of a task that this version cannot plan", () => {
    const taskKey = (id: string) => internalsOf(bench.store).keys.queue(QUEUE).task(`system/${id}`);
    const tamper = (id: string, field: string, value: string) =>
      internalsOf(bench.store).link.ask((client) => client.hset(taskKey(id), field, value));
    const hash = (id: string) => internalsOf(bench.store).link.ask((client) => client.hgetall(taskKey(id)));

    it.each([
      ["is of a newer format", "v", String(FORMAT_VERSION + 1)],
      ["cannot be read", "schedule", "{broken"],
    ])("leave it unchanged because it %s, and replan the others", async (_what, field, value) => {
      await store([]);
      await store([], "closing");
      await put({ id: "a" });
      await put({ id: "b" });
      await put({ id: "c", schedule: { cron: "0 9 * * *", except: [{ named: "closing" }] } });
      await tamper("a", field, value);
      const left = await hash("a");
      await bench.store.calendars.put("closing", ["2026-01-01"], "me");
      expect(await change(["2026-01-01"])).toBe(2);
      await expectNext(nine(2), "b");
      await expectNext(nine(2), "c");
      expect(await hash("a")).toEqual(left);
    });

    it("leave it unchanged because its calendar was deleted, and replan the others", async () => {
      await store([]);
      await store([], "closing");
      const both = { cron: "0 9 * * *", except: [{ named: "holidays" }, { named: "closing" }] };
      await put({ id: "a", schedule: both });
      await put({ id: "b" });
      // A calendar must not be deleted while it is in use. If it is, only the tasks that use it suffer.
      await bench.store.calendars.delete("closing");
      const left = await hash("a");
      await change(["2026-01-01"]).catch(() => {});
      await expectNext(nine(2), "b");
      expect(await hash("a")).toEqual(left);
    });

    it("replan others behind more of these than a batch holds", async () => {
      await store([]);
      const ids = Array.from({ length: 120 }, (_, i) => `a${String(i).padStart(3, "0")}`);
      await bench.store.tasks.put(
        QUEUE,
        [...ids, "z"].map((id) => parseTask({ id, type: "noop", queue: QUEUE, schedule: daily })),
      );
      for (const id of ids) await tamper(id, "v", String(FORMAT_VERSION + 1));
      await change(["2026-01-01"]).catch(() => {});
      await expectNext(nine(2), "z");
    });
  });
});
