import type { TaskInput } from "@carillon/core";
import { type Operator, operatorOf } from "@carillon/ops";
import { Client } from "@carillon/sdk";
import { internalsOf } from "@carillon/store/internal";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { onEveryEngine } from "../../../../test/helpers.js";
import { Bench, QUEUE, START } from "../../../store/test/bench.js";

const HOUR = 3_600_000;
const DAY = 86_400_000;
/** 09:00 UTC of a day in January 2026. */
const nine = (date: number) => START + (date - 1) * DAY + 9 * HOUR;

onEveryEngine("a client's calendars", (connection) => {
  const queues = [QUEUE, "other"];
  const bench = Bench.use(connection, { queues });
  let client: Client;
  let ops: Operator;
  /** A client in another process, and one that is bound to an owner. */
  let far: Bench;
  let bound: Client;
  beforeEach(async () => {
    client = new Client({ store: bench.store });
    ops = operatorOf(client);
    far = await Bench.open(connection(), { queues, namespace: bench.store.namespace });
    bound = new Client({ store: far.store, owner: "acme" });
  });
  afterEach(async () => {
    vi.restoreAllMocks();
    await far.close();
  });

  const daily = (id: string, rest: Partial<TaskInput> = {}): TaskInput => ({
    id,
    type: "noop",
    queue: QUEUE,
    schedule: { cron: "0 9 * * *", except: [{ named: "holidays" }] },
    ...rest,
  });
  const next = async (id: string) => (await client.get(id)).nextExecution;

  it("put a calendar, report the result, and replan its tasks in every queue", async () => {
    const created = await ops.calendars.put({ name: "holidays", entries: [] }, { by: "ann" });
    expect(created).toEqual({
      name: "holidays",
      outcome: "created",
      revision: expect.any(Number),
      replanned: 0,
    });
    expect(await client.put(daily("a"))).toMatchObject({ nextExecution: nine(1) });
    await client.put(daily("b", { queue: "other" }));
    await client.put(daily("c", { schedule: { cron: "0 9 * * *" } }));
    expect(await ops.calendars.put({ name: "holidays", entries: ["2026-01-01"] }, { by: "bob" })).toEqual({
      name: "holidays",
      outcome: "updated",
      revision: created.revision + 1,
      replanned: 2,
    });
    expect([await next("a"), await next("b"), await next("c")]).toEqual([nine(2), nine(2), nine(1)]);
    expect(await ops.calendars.put({ name: "holidays", entries: ["2026-01-01"] })).toEqual({
      name: "holidays",
      outcome: "unchanged",
      revision: created.revision + 1,
      replanned: 0,
    });
    expect(await ops.calendars.get({ name: "holidays" })).toEqual({
      name: "holidays",
      entries: ["2026-01-01"],
      revision: created.revision + 1,
      updated: START,
      by: "bob",
    });
  });

  it("say in a dry run which tasks would get another next time, and store nothing", async () => {
    const { calendars } = ops;
    await calendars.put({ name: "holidays", entries: ["2026-01-09"] });
    await client.put(daily("a"));
    await client.put(daily("b", { queue: "other", enabled: false }));
    await client.put(daily("c", { schedule: { cron: "0 9 3 * *", except: [{ named: "holidays" }] } }));
    await client.put(daily("never", { schedule: { cron: "0 9 1 1 *", except: [{ named: "holidays" }] } }));
    const dry = await calendars.put({ name: "holidays", entries: ["*-01-01"], dryRun: true });
    const moves = (id: string, queue = QUEUE) => ({ queue, owner: "system", id, before: nine(1) });
    expect(dry).toMatchObject({ outcome: "updated", replanned: 4 });
    expect(dry.moved?.count).toBe(3);
    expect(dry.moved?.sample).toEqual(
      expect.arrayContaining([
        { ...moves("a"), after: nine(2) },
        { ...moves("b", "other"), after: nine(2) },
        moves("never"),
      ]),
    );
    expect(await next("a")).toBe(nine(1));
    expect((await calendars.get({ name: "holidays" })).entries).toEqual(["2026-01-09"]);
    const same = await calendars.put({ name: "holidays", entries: ["2026-01-09"], dryRun: true });
    expect(same).toMatchObject({ outcome: "unchanged", moved: { count: 0, sample: [] } });
    const fresh = await calendars.put({ name: "new", entries: [], dryRun: true });
    expect(fresh).toMatchObject({ outcome: "created", revision: 0, replanned: 0 });
    expect((await calendars.list()).calendars).toHaveLength(1);
  });

  it("are listed with their size and the number of their tasks, of all queues and owners", async () => {
    expect((await ops.calendars.list()).calendars).toEqual([]);
    await ops.calendars.put({ name: "holidays", entries: ["2026-01-01", "*-05-01"] });
    await ops.calendars.put({ name: "closing", entries: [] });
    await client.put(daily("a"));
    await client.put(daily("b", { queue: "other" }));
    await bound.put(daily("c"));
    // A finished task still refers to it.
    await client.put(daily("d", { schedule: { at: START - 1, except: [{ named: "holidays" }] } }));
    const about = { revision: expect.any(Number), updated: START, by: "-" };
    expect((await ops.calendars.list()).calendars).toEqual([
      { name: "closing", entries: 0, tasks: 0, ...about },
      { name: "holidays", entries: 2, tasks: 4, ...about },
    ]);
    expect((await operatorOf(bound).calendars.list()).calendars).toEqual([
      { name: "closing", entries: 0, ...about },
      { name: "holidays", entries: 2, ...about },
    ]);
  });

  it("are completed after an interruption by the same put", async () => {
    await ops.calendars.put({ name: "holidays", entries: [] });
    await client.put(daily("a"));
    vi.spyOn(bench.store.calendars, "replanStale").mockRejectedValueOnce(new Error("cut"));
    await expect(ops.calendars.put({ name: "holidays", entries: ["2026-01-01"] })).rejects.toThrow("cut");
    expect(await next("a")).toBe(nine(1));
    expect(await ops.calendars.put({ name: "holidays", entries: ["2026-01-01"] })).toMatchObject({
      outcome: "unchanged",
      replanned: 1,
    });
    expect(await next("a")).toBe(nine(2));
  });

  it("let an interrupted put of a task be completed by the same put", async () => {
    await ops.calendars.put({ name: "holidays", entries: [] });
    const { link } = internalsOf(bench.store);
    const { run } = link;
    link.run = async (sent, keys, args) => {
      if (sent.name !== "put") return run.call(link, sent, keys, args);
      link.run = run;
      await operatorOf(new Client({ store: far.store })).calendars.put({
        name: "holidays",
        entries: ["2026-01-01"],
      });
      const answer = await run.call(link, sent, keys, args);
      vi.spyOn(bench.store.calendars, "refresh").mockRejectedValueOnce(new Error("cut"));
      return answer;
    };
    await expect(client.put(daily("a"))).rejects.toThrow("cut");
    await client.put(daily("a"));
    expect(await next("a")).toBe(nine(2));
  });

  it("are deleted only when no task names them", async () => {
    await ops.calendars.put({ name: "holidays", entries: ["2026-01-01"] });
    await client.put(daily("a", { queue: "other" }));
    await bound.put(daily("b"));
    const before = await bench.dump();
    await bench.clock.advance(1_000);
    await expect(ops.calendars.delete({ name: "holidays" })).rejects.toMatchObject({
      code: "CALENDAR_IN_USE",
      message: expect.stringContaining("2 tasks"),
    });
    expect(await bench.dump()).toEqual(before);
    await client.delete("a");
    await bound.put(daily("b", { schedule: { cron: "0 9 * * *" } }));
    await ops.calendars.delete({ name: "holidays" });
    expect((await ops.calendars.list()).calendars).toEqual([]);
    await expect(client.put(daily("a"))).rejects.toMatchObject({ code: "INVALID_SCHEDULE" });
    await bound.delete("b");
    expect((await bench.ownKeys()).filter((key) => !key.endsWith(":queues"))).toEqual([]);
  });

  it.each([
    [
      "is deleted right before a task's put is written",
      "put",
      () => ops.calendars.delete({ name: "holidays" }),
      () => bound.put(daily("b")),
    ],
    [
      "is named by a task right before its deletion is written",
      "put-calendar",
      () => bound.put(daily("b")),
      () => ops.calendars.delete({ name: "holidays" }),
    ],
  ])("%s: never is there a task without its calendar", async (_what, script, first, then) => {
    await ops.calendars.put({ name: "holidays", entries: ["2026-01-01"] });
    for (const { link } of [bench.store, far.store].map(internalsOf)) {
      const { run } = link;
      link.run = async (sent, keys, args) => {
        if (sent.name === script) {
          for (const one of [bench.store, far.store].map(internalsOf)) one.link.run = run.bind(one.link);
          await first();
        }
        return run.call(link, sent, keys, args);
      };
    }
    await then().catch(() => {});
    const named = (await ops.calendars.list()).calendars.map(({ name }) => name);
    const stored = (await client.list()).tasks.map(({ id }) => id);
    expect([stored, named]).not.toEqual([["b"], []]);
  });

  it("are used by every process after a delete and a new put", async () => {
    await ops.calendars.put({ name: "holidays", entries: ["2026-01-01"] });
    await bound.put(daily("b"));
    await bound.delete("b");
    await ops.calendars.delete({ name: "holidays" });
    await bench.clock.advance(1);
    await ops.calendars.put({ name: "holidays", entries: ["2026-01-02"] });
    expect(await bound.put(daily("b"))).toMatchObject({ nextExecution: nine(1) });
    await bench.clock.set(nine(1));
    expect(await bound.put(daily("c"))).toMatchObject({ nextExecution: nine(3) });
  });

  it("leave no key once tasks and calendars are deleted", async () => {
    await ops.calendars.put({ name: "holidays", entries: [] });
    await ops.calendars.put({ name: "closing", entries: [] });
    await client.put(daily("a", { tags: ["x"] }));
    await client.put(daily("b", { queue: "other" }));
    await ops.calendars.put({ name: "holidays", entries: ["2026-01-01"] });
    for (const id of ["a", "b"]) await client.delete(id);
    for (const name of ["holidays", "closing"]) await ops.calendars.delete({ name });
    expect(await bench.ownKeys()).toEqual([]);
  });

  it("are read and named by a bound client, too", async () => {
    await ops.calendars.put({ name: "holidays", entries: ["2026-01-01"] });
    const read = await operatorOf(bound).calendars.get({ name: "holidays" });
    expect(read).toMatchObject({ entries: ["2026-01-01"] });
    expect(await bound.put(daily("b"))).toMatchObject({ nextExecution: nine(2) });
  });

  it("are named by the error of a put if they do not exist", async () => {
    const field = "schedule.except[0].named";
    const message = expect.stringContaining("holidays");
    await expect(client.put(daily("a"))).rejects.toMatchObject({ code: "INVALID_SCHEDULE", field, message });
  });

  it.each<[string, unknown, unknown, object]>([
    ["the name of the count", "~revision", [], { code: "INVALID_NAME" }],
    [
      "a day that is none",
      "c",
      ["2026-01-01", "2026-02-30"],
      { code: "INVALID_SCHEDULE", field: "entries[1]" },
    ],
    ["an unknown zone", "c", ["*-05-01 Mars/Base"], { code: "INVALID_TIMEZONE", field: "entries[0]" }],
  ])("refuses %s, and stores nothing", async (_what, name, entries, refused) => {
    await expect(
      ops.calendars.put({ name: name as string, entries: entries as string[] }),
    ).rejects.toMatchObject(refused);
    expect(await bench.ownKeys()).toEqual([]);
  });

  it("refuse too long an author", async () => {
    await expect(
      ops.calendars.put({ name: "c", entries: [] }, { by: "x".repeat(501) }),
    ).rejects.toMatchObject({ code: "INVALID_OPTION", field: "by" });
    expect(await bench.ownKeys()).toEqual([]);
  });

  it("stop a put of many tasks if one names a missing calendar, with its position", async () => {
    const tasks = Array.from({ length: 150 }, (_, i) =>
      i === 149 ? daily(`t${i}`, { queue: "other" }) : daily(`t${i}`, { schedule: { every: "1h" } }),
    );
    const error = await client.putMany(tasks).catch((reason: unknown) => reason);
    expect(await client.count()).toBe(0);
    expect(error).toMatchObject({ code: "INVALID_SCHEDULE", field: "[149].schedule.except[0].named" });
  });

  it("are read a few times for a put of 300 tasks, which are replanned after one change", async () => {
    await ops.calendars.put({ name: "holidays", entries: [] });
    const reads = vi.spyOn(bench.store.calendars, "refresh");
    await client.putMany(
      Array.from({ length: 300 }, (_, i) => daily(`t${i}`, { queue: i % 2 === 0 ? QUEUE : "other" })),
    );
    expect(reads.mock.calls.length).toBeLessThan(20);
    expect(await ops.calendars.put({ name: "holidays", entries: ["2026-01-01"] })).toMatchObject({
      replanned: 300,
    });
    const { tasks } = await client.list({ limit: 1_000 });
    expect(new Set(tasks.map(({ nextExecution }) => nextExecution))).toEqual(new Set([nine(2)]));
  });
});
