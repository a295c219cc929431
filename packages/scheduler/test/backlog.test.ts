import { parseTask, type TaskInput } from "@carillon/core";
import { shardOf } from "@carillon/core/internal";
import { Scheduler } from "@carillon/scheduler";
import { Store } from "@carillon/store";
import { internalsOf } from "@carillon/store/internal";
import { eventually, virtualStore } from "@carillon/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { SILENT, sharedRedis } from "../../../test/helpers.js";
import { Backlog } from "../src/claim/backlog.js";
import { Agenda } from "../src/loop/agenda.js";
import { Round } from "../src/loop/round.js";
import { Slots } from "../src/loop/slots.js";
import { TOGETHER } from "../src/part.js";

const QUEUE = "bells";
const redis = sharedRedis();
let namespace: string;
let serial = 0;
beforeEach(() => {
  serial += 1;
  namespace = `backlog${serial}`;
});

const task = (id: string, at: number, rest: Partial<TaskInput> = {}) =>
  parseTask({ id, type: "noop", queue: QUEUE, schedule: { at }, ...rest });

describe("a small backlog of one queue", () => {
  async function node() {
    const { store, clock } = await virtualStore({ connection: redis.url, namespace, queues: [QUEUE] });
    const scheduler = new Scheduler({ store, logger: SILENT });
    const claimed = async () =>
      (await scheduler.tick()).decided.map((one) => one.task.replace("system/", ""));
    return { store, clock, claimed, [Symbol.asyncDispose]: () => store.close() };
  }

  it("is claimed in the order of its time over all shards, at one instant by priority", async () => {
    await using its = await node();
    const ids = Array.from({ length: 30 }, (_, n) => `t${(n * 7) % 30}`);
    expect(new Set(ids.map((id) => shardOf(`system/${id}`))).size).toBe(8);
    const { now } = its.clock;
    await its.store.tasks.put(QUEUE, [
      ...ids.map((id, n) => task(id, now + 1_000 + 2 * n)),
      task("low", now + 900, { priority: 5 }),
      task("high", now + 900, { priority: 1 }),
    ]);
    await its.clock.advance(2_000);
    expect(await its.claimed()).toEqual(["high", "low", ...ids]);
  });

  it("is claimed whole, shard by shard, if it does not fit in a batch", async () => {
    await using its = await node();
    const ids = Array.from({ length: 200 }, (_, n) => `t${n}`);
    await its.store.tasks.put(
      QUEUE,
      ids.map((id, n) => task(id, its.clock.now + 1_000 + n)),
    );
    await its.clock.advance(2_000);
    expect((await its.claimed()).sort()).toEqual(ids.sort());
  });

  it("leaves no mutex taken if Redis refuses a read", async () => {
    await using its = await node();
    await its.store.tasks.put(QUEUE, [task("t", its.clock.now + 1_000)]);
    await its.clock.advance(2_000);
    its.store.claims.readDue = () => Promise.reject(new Error("NOPERM"));
    await expect(its.claimed()).rejects.toThrow("NOPERM");
    const { link, keys } = internalsOf(its.store);
    expect(await link.ask((client) => client.exists(keys.queue(QUEUE).mutex("shards")))).toBe(0);
  });

  it("is claimed except for a shard that cannot be", async () => {
    const store = new Store({ connection: redis.url, namespace });
    const ids = Array.from({ length: 30 }, (_, n) => `t${n}`);
    const start = (await store.serverTime()) + 3_000;
    await store.tasks.put(
      QUEUE,
      ids.map((id, n) => task(id, start + n)),
    );
    const { due } = internalsOf(store).keys.queue(QUEUE);
    await internalsOf(store).link.ask((client) => client.del(due(0)));
    await internalsOf(store).link.ask((client) => client.set(due(0), "not ours"));
    await eventually(async () => expect(await store.serverTime()).toBeGreaterThan(start + 30));
    const scheduler = new Scheduler({ store, logger: SILENT });
    const claimed: string[] = [];
    scheduler.on("decided", (one) => claimed.push(one.task.replace("system/", "")));
    await scheduler.start();
    const expected = ids.filter((id) => shardOf(`system/${id}`) !== 0);
    await eventually(() => expect([...claimed].sort()).toEqual(expected.sort()));
    await scheduler.stop();
    await store.close();
  });
});

describe("a crowd of one owner in a queue", () => {
  const CROWD = 5_000;
  const OWNERS = Array.from({ length: 10 }, (_, n) => `owner${n}`);
  const START = Date.parse("2026-01-01T00:00:00Z");

  /** Puts the crowd and three tasks of each other owner. @returns the batches that a node commits, in their order */
  async function batchesOf(crowd: (n: number) => TaskInput["schedule"], others: TaskInput["schedule"]) {
    const { store, clock } = await virtualStore({ connection: redis.url, namespace, queues: [QUEUE] });
    const of = (owner: string, count: number, schedule: (n: number) => TaskInput["schedule"]) =>
      Array.from({ length: count }, (_, n) =>
        parseTask({ id: `t${n}`, owner, type: "noop", queue: QUEUE, schedule: schedule(n) }),
      );
    const tasks = [...of("giant", CROWD, crowd), ...OWNERS.flatMap((owner) => of(owner, 3, () => others))];
    for (let i = 0; i < tasks.length; i += 500) await store.tasks.put(QUEUE, tasks.slice(i, i + 500));
    const { commit, dueNames } = store.claims;
    let names = 0;
    store.claims.dueNames = async (...all) => {
      const found = await dueNames.apply(store.claims, all);
      names += found.names.length;
      return found;
    };
    const batches: string[][] = [];
    store.claims.commit = (...all) => {
      batches.push(all[1].map(({ entry }) => entry.local));
      return commit.apply(store.claims, all);
    };
    await clock.advance(120_000);
    await new Scheduler({ store, logger: SILENT }).tick();
    await store.close();
    // The names are read about once, however many batches follow.
    expect(names).toBeLessThan(2 * tasks.length);
    return batches;
  }

  it.each<[string, (n: number) => TaskInput["schedule"], TaskInput["schedule"]]>([
    ["at the same instant", () => ({ at: START + 10_000 }), { at: START + 10_000 }],
    ["spread over a minute", (n) => ({ at: START + 10_000 + n * 12 }), { at: START + 40_000 }],
  ])("due %s does not keep the tasks of other owners waiting", async (_how, crowd, others) => {
    const batches = await batchesOf(crowd, others);
    expect(new Set(batches.flat()).size).toBe(CROWD + 3 * OWNERS.length);
    // 33 tasks in three rounds of all owners, in batches of 10 or more.
    const last = batches.findLastIndex((names) => names.some((name) => !name.startsWith("giant/")));
    expect(last).toBeLessThan(4);
  });
});

describe("the names of a backlog", () => {
  const BY = 1_000;
  const name = (local: string, at = BY, priority = 0, shard = 0) => ({ shard, local, at, priority });
  /** A backlog with these names, read by that time. */
  function backlogOf(names: readonly ReturnType<typeof name>[]) {
    const backlog = new Backlog();
    backlog.begin([{ shard: 0, by: BY }]);
    backlog.add(names, []);
    return backlog;
  }
  function taken(backlog: Backlog, most = Number.POSITIVE_INFINITY): string[] {
    const all: string[] = [];
    for (let one = backlog.take(); one && all.length < most; one = backlog.take()) all.push(one.local);
    return all;
  }

  it("are dealt out to owners in turn", () => {
    const backlog = backlogOf(["a/1", "a/2", "a/3", "b/1", "c/1", "c/2"].map((local) => name(local)));
    expect(taken(backlog)).toEqual(["a/1", "b/1", "c/1", "a/2", "c/2", "a/3"]);
    expect(backlog.empty).toBe(true);
  });

  it("are an owner's oldest and newest in turn, at one instant the higher priority first", () => {
    const backlog = backlogOf([
      name("a/old5", 1, 5),
      name("a/old1", 1, 1),
      name("a/middle", 2),
      name("a/new2", 3, 2),
      name("a/new0", 3, 0),
    ]);
    expect(taken(backlog)).toEqual(["a/old1", "a/new0", "a/old5", "a/new2", "a/middle"]);
    const crowd = Array.from({ length: 9 }, (_, n) => name(`a/${n}`, BY, 8 - n));
    expect(taken(backlogOf(crowd))).toEqual(crowd.map(({ local }) => local).reverse());
  });

  it("that come due meanwhile get half of the turns, whoever has the others", () => {
    const backlog = backlogOf(Array.from({ length: 1_000 }, (_, n) => name(`o${n}/t`)));
    const parts = new Set(["0"]);
    expect(backlog.unread(parts, BY + 49)).toEqual([]);
    const ranges = backlog.unread(parts, BY + 50);
    expect(ranges).toEqual([{ shard: 0, after: BY, by: BY + 50 }]);
    backlog.add([name("new/t", BY + 1), name("o5/u", BY + 2)], []);
    expect(backlog.unread(parts, BY + 99)).toEqual([]);
    expect(taken(backlog, 4)).toEqual(["new/t", "o0/t", "o5/u", "o1/t"]);
  });

  it("are read on where they were left, and a shard that is not visited is left out", () => {
    const backlog = new Backlog();
    const range = (shard: number) => ({ shard, by: BY });
    backlog.begin([range(0), range(1)]);
    backlog.add([name("a/1"), name("a/2", BY, 0, 1)], [{ ...range(1), pass: 250 }]);
    expect(backlog.unread(new Set(["0", "1"]), BY)).toEqual([{ ...range(1), pass: 250 }]);
    expect(backlog.unread(new Set(["0"]), BY)).toEqual([]);
  });

  it("are no more than 100,000, of which no owner loses all", () => {
    const crowd = Array.from({ length: 250_000 }, (_, n) => name(`giant/${n}`, n));
    const small = Array.from({ length: 50 }, (_, n) => name(`small${n}/t`, 250_000 + n));
    const backlog = backlogOf([...crowd, ...small]);
    const all = taken(backlog);
    expect(all.length).toBeLessThanOrEqual(100_000);
    expect(all.filter((local) => local.startsWith("small"))).toHaveLength(50);
    expect(all.slice(0, 52)).toEqual(["giant/0", ...small.map(({ local }) => local), "giant/249999"]);
    expect(backlog.first("0")).toBeUndefined();
  });
});

describe("a round of claims", () => {
  const at = (times: Record<string, number>, now: number, apart = false) => {
    const agenda = new Agenda();
    agenda.set(QUEUE, new Map(Object.entries(times)));
    const round = new Round(agenda, new Slots());
    if (apart) round.apart(QUEUE);
    const turns: string[][] = [];
    for (let turn = round.next(now); turn; turn = round.next(now)) {
      turns.push(turn.map(({ part }) => part).sort());
      // Marks the parts as done for now.
      for (const { part } of turn) agenda.hold(QUEUE, part, now, 1_000);
    }
    return turns.sort();
  };

  it("claims the shards of a queue that are due, or soon after, together, and other parts alone", () => {
    const soon = 20 + TOGETHER;
    expect(at({ 1: 10, 3: 12, 4: soon, 5: soon + 1, r: 5, a: 21 }, 20)).toEqual([["1", "3", "4"], ["r"]]);
  });

  it("claims from no shard before one of its queue is due", () => {
    expect(at({ 1: 21, 3: 22, r: 5 }, 20)).toEqual([["r"]]);
  });

  it("claims each shard alone after a turn of the queue has failed", () => {
    expect(at({ 1: 10, 3: 12, 5: 21 }, 20, true)).toEqual([["1"], ["3"]]);
  });
});
