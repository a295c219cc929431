import { parseTask, type TaskInput } from "@carillon/core";
import { shardOf } from "@carillon/core/internal";
import { type Logger, Scheduler } from "@carillon/scheduler";
import type { Store } from "@carillon/store";
import { internalsOf } from "@carillon/store/internal";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { nodeInfo, sharedRedis } from "../../../test/helpers.js";
import { Bench, QUEUE, START } from "../../store/test/bench.js";
import { checked } from "../src/options.js";
import { Repairs } from "../src/upkeep/repairs.js";
import { claimsOn } from "./claiming.js";

const HOUR = 3_600_000;
const DAY = 86_400_000;
const LATER = 600_001;
/** 09:00 UTC of a day in January 2026. */
const nine = (date: number) => START + (date - 1) * DAY + 9 * HOUR;
const daily = { cron: "0 9 * * *", except: [{ named: "holidays" }] };

describe("replanning", () => {
  const redis = sharedRedis();
  const queues = [QUEUE, "other"];
  /** A client process, which puts tasks and calendars. */
  const bench = Bench.use(() => redis.url, { queues });
  /** The node process, which knows only what it has read itself. */
  let node: Bench;
  let said: [level: string, message: string, details: object][];
  let logger: Logger;
  beforeEach(async () => {
    node = await Bench.open(redis.url, { queues, namespace: bench.store.namespace });
    said = [];
    const hear = (level: string) => (details: object, message: string) =>
      said.push([level, message, details]);
    logger = { debug() {}, info: hear("info"), warn: hear("warn"), error: hear("error") };
  });
  afterEach(async () => {
    vi.restoreAllMocks();
    await node.close();
  });

  const put = (input: Partial<TaskInput> = {}) => bench.put({ id: "t", schedule: daily, ...input });
  /** Stores a calendar without planning its tasks, as a client does that dies in between. */
  const store = (entries: readonly string[], from = bench) =>
    from.store.calendars.put("holidays", entries, "me");
  async function change(entries: readonly string[]): Promise<void> {
    await store(entries);
    await bench.store.calendars.refresh();
    for (const queue of await bench.store.registry.queues()) await bench.store.calendars.replanStale(queue);
  }
  const nominals = async () =>
    (await bench.jobs()).map((job) => job.data.occurrence.nominal).sort((a, b) => a - b);
  const nominalIn = async (queue: string, id = "t") =>
    (await bench.store.tasks.get({ queue, owner: "system", id }))?.nominal;
  const settings = (nodeId = "n1") => checked({ store: node.store, nodeId, logger });

  describe("by a claim", () => {
    /** A claimer without the rest of a node, which would report changed calendars. */
    const claim = (from: Store = node.store) => claimsOn({ store: from }, undefined, { logger }).claim(QUEUE);

    it.each([
      ["knows older calendars", async () => void (await node.store.calendars.refresh())],
      ["never read the calendars", async () => {}],
    ])("a node that %s reads the calendars before it decides", async (_what, know) => {
      await store([]);
      await put();
      await know();
      await change(["2026-01-02"]);
      await bench.clock.set(nine(1));
      const { decided, refused } = await claim();
      expect(decided.map(({ outcome, nominal }) => [outcome, nominal])).toEqual([["enqueued", nine(1)]]);
      expect(refused).toEqual([]);
      expect(await bench.stored("t")).toMatchObject({ cursor: nine(1), nominal: nine(3), due: nine(3) });
    });

    it("answers STALE to a change between read and commit, reads again, and decides with the change", async () => {
      await store([]);
      await put();
      await bench.clock.set(nine(1));
      const { claims } = node.store;
      const { commit } = claims;
      claims.commit = async (...all) => {
        claims.commit = commit;
        await change(["2026-01-01"]);
        return commit.apply(claims, all);
      };
      const { decided, refused } = await claim();
      expect(refused).toEqual([{ task: "system/t", status: "STALE" }]);
      expect(decided).toEqual([]);
      expect(await nominals()).toEqual([]);
      expect(await bench.stored("t")).toMatchObject({ nominal: nine(2), due: nine(2) });
    });

    it("leaves a task alone whose calendar was deleted, and serves the others of its shard", async () => {
      await store([]);
      await put();
      const shard = shardOf("system/t");
      const beside = Array.from({ length: 100 }, (_, i) => `u${i}`).find(
        (id) => shardOf(`system/${id}`) === shard,
      ) as string;
      await put({ id: beside, schedule: { cron: "0 9 * * *" } });
      await bench.store.calendars.delete("holidays");
      await bench.clock.set(nine(1));
      const { decided } = await claim();
      expect(decided.map(({ task }) => task)).toEqual([`system/${beside}`]);
      expect(said).toMatchObject([["warn", "cannot be decided on this node: skipped", { task: "system/t" }]]);
    });
  });

  describe("by a node that maintains the calendars", () => {
    const repairs = () => new Repairs(node.store, settings(), "2026a");

    it("completes a change that was interrupted between the calendar's write and the replanning", async () => {
      await store([]);
      await put();
      const [look, { generation }] = [repairs(), await bench.stored("t")];
      await look.check([QUEUE]);
      await store(["2026-01-01"]);
      await look.check([QUEUE]);
      expect(await bench.stored("t")).toMatchObject({
        nominal: nine(2),
        due: nine(2),
        generation: String(Number(generation) + 1),
      });
      // Planned once: up-to-date tasks are not changed.
      const before = await bench.dump();
      await look.check([QUEUE]);
      await repairs().check([QUEUE]);
      expect(await bench.dump()).toEqual(before);
    });

    it("replans in its tick, before it claims", async () => {
      await store([]);
      await put();
      const scheduler = new Scheduler({ store: node.store, logger });
      await scheduler.tick();
      await store(["2026-01-01"]);
      await bench.clock.set(nine(1) - 1);
      await scheduler.tick();
      await bench.clock.set(nine(1));
      expect((await scheduler.tick()).decided).toEqual([]);
      await bench.clock.set(nine(2));
      expect((await scheduler.tick()).decided.map(({ nominal }) => nominal)).toEqual([nine(2)]);
      expect(await nominals()).toEqual([nine(2)]);
    });

    it("replans every queue, even if one of them cannot be read", async () => {
      await store([]);
      for (const queue of [QUEUE, "other"]) await put({ queue });
      await store(["2026-01-01"]);
      const { link, keys } = internalsOf(bench.store);
      await link.ask((client) => client.del(keys.queue(QUEUE).planned("holidays")));
      await link.ask((client) => client.set(keys.queue(QUEUE).planned("holidays"), "not ours"));
      await repairs()
        .check([QUEUE, "other"])
        .catch(() => {});
      expect(await nominalIn("other")).toBe(nine(2));
    });

    it.each([
      ["the index of a calendar", (name: string) => internalsOf(bench.store).keys.queue(QUEUE).planned(name)],
      ["the names of its tasks", () => internalsOf(bench.store).keys.queue(QUEUE).tasks],
    ])("maintains zones and indexes of the others if %s cannot be read", async (_what, keyOf) => {
      await store([]);
      const schedule = { cron: "0 9 * * *", timezone: "Europe/Berlin" };
      for (const queue of [QUEUE, "other"]) await put({ queue, schedule });
      for (const queue of [QUEUE, "other"]) await bench.store.registry.setZone(queue, "2020a");
      const { link } = internalsOf(bench.store);
      await link.ask((client) => client.del(keyOf("holidays")));
      await link.ask((client) => client.set(keyOf("holidays"), "not ours"));
      await store(["2026-01-01"]);
      await expect(repairs().check([QUEUE, "other"])).rejects.toMatchObject({ code: "REDIS_ERROR" });
      const [zones, audits] = [await bench.store.registry.zones(), await bench.store.registry.audits()];
      expect([zones.get("other"), audits.has("other")]).toEqual(["2026a", true]);
    });

    it("tries again after a failure", async () => {
      await store([]);
      await put();
      const look = repairs();
      await look.check([QUEUE]);
      await store(["2026-01-01"]);
      const { calendars } = node.store;
      const failing = vi.spyOn(calendars, "replanStale").mockRejectedValueOnce(new Error("cut"));
      look.begin([QUEUE]);
      await look.stop();
      expect(said.filter(([level]) => level === "error")).toEqual([
        ["error", "repairs failed", { code: "REDIS_ERROR", error: expect.stringContaining("cut") }],
      ]);
      expect(await bench.stored("t")).toMatchObject({ nominal: nine(1) });
      look.begin([QUEUE]);
      await look.stop();
      expect(failing).toHaveBeenCalledTimes(2);
      expect(await bench.stored("t")).toMatchObject({ nominal: nine(2) });
    });

    it("runs one check at a time", async () => {
      await store([]);
      await put();
      const look = repairs();
      const planning = vi.spyOn(node.store.calendars, "replanStale");
      look.begin([QUEUE]);
      look.begin([QUEUE]);
      await look.stop();
      expect(planning).toHaveBeenCalledTimes(1);
      await look.stop();
    });

    it("misses no change that arrives while it replans", async () => {
      await store([]);
      for (const queue of [QUEUE, "other"]) await put({ queue });
      const look = repairs();
      await look.check([QUEUE, "other"]);
      await store(["2026-01-01"]);
      const { calendars } = node.store;
      const replanStale = calendars.replanStale.bind(calendars);
      vi.spyOn(calendars, "replanStale").mockImplementationOnce(async (queue) => {
        const replanned = await replanStale(queue);
        // The calendar changes again, a claim of this node has read it, and the client that changed it died.
        await store(["2026-01-01", "2026-01-02"]);
        await calendars.refresh();
        return replanned;
      });
      await look.check([QUEUE, "other"]);
      await look.check([QUEUE, "other"]);
      expect([await nominalIn(QUEUE), await nominalIn("other")]).toEqual([nine(3), nine(3)]);
    });

    it("completes an interrupted put whose calendar had changed meanwhile", async () => {
      await store([]);
      await put({ id: "before" });
      const scheduler = new Scheduler({ store: node.store, logger });
      await scheduler.tick();
      const { calendars } = bench.store;
      const { link } = internalsOf(bench.store);
      const { run } = link;
      link.run = async (sent, keys, args) => {
        if (sent.name !== "put") return run.call(link, sent, keys, args);
        link.run = run;
        // The calendar changes, its tasks are planned, the node has read it; then the put is written, and its process
        // dies.
        await store(["2026-01-01"], node);
        await scheduler.tick();
        const answer = await run.call(link, sent, keys, args);
        vi.spyOn(calendars, "refresh").mockRejectedValueOnce(new Error("killed"));
        return answer;
      };
      await expect(put()).rejects.toThrow("killed");
      await scheduler.tick();
      await bench.clock.set(nine(1));
      await scheduler.tick();
      expect(await nominals()).toEqual([]);
      expect(await bench.stored("t")).toMatchObject({ nominal: nine(2), due: nine(2) });
    });
  });

  describe("after an update of the time zone data", () => {
    const NEW = "2099z";
    const repairs = (tzdata = NEW, nodeId = "n1") => new Repairs(node.store, settings(nodeId), tzdata);
    const zones = async () => Object.fromEntries(await bench.store.registry.zones());
    const warnings = () => said.filter(([level]) => level === "warn");
    const schedule = { cron: "0 9 * * *", timezone: "Europe/Berlin" };
    const berlin = (date: number) => nine(date) - HOUR;

    /** Stores the time that a node with other time zone data would have computed, an hour off. */
    async function tamper(id: string, nominal: number): Promise<void> {
      const keys = internalsOf(bench.store).keys.queue(QUEUE);
      const shard = shardOf(`system/${id}`);
      await internalsOf(bench.store).link.ask((client) =>
        client.hset(keys.task(`system/${id}`), { nominal: String(nominal), due: String(nominal) }),
      );
      await internalsOf(bench.store).link.ask((client) =>
        client.zadd(keys.due(shard), nominal, `system/${id}`),
      );
    }
    async function beat(id: string, tzdata: string, ago = 0): Promise<void> {
      const at = (await bench.store.serverTime()) - ago;
      await bench.store.registry.beat(nodeInfo(id, { tzdata, beat: at }));
    }
    /** Offset of the clock: nodes and queues are asked for their data every ten minutes. */
    let skew: number;
    beforeEach(() => {
      skew = 0;
      const now = performance.now.bind(performance);
      vi.spyOn(performance, "now").mockImplementation(() => now() + skew);
    });
    async function checkLater(look: Repairs, queues = [QUEUE]): Promise<void> {
      skew += LATER;
      await look.check(queues);
    }

    /** Puts a task that is an hour off, in a queue that was planned with older data. */
    async function outdated(): Promise<void> {
      await put({ schedule });
      await bench.store.registry.setZone(QUEUE, "2020a");
      await tamper("t", nine(1));
    }
    async function expectCorrected(): Promise<void> {
      expect(await bench.stored("t")).toMatchObject({
        state: "scheduled",
        nominal: berlin(1),
        due: berlin(1),
      });
      expect((await bench.store.claims.next(QUEUE)).get(String(shardOf("system/t")))).toBe(berlin(1));
    }
    const expectOff = async () => expect(await bench.stored("t")).toMatchObject({ nominal: nine(1) });

    it("a queue without a stamp is stamped, not replanned: its tasks are new", async () => {
      await put({ schedule });
      await tamper("t", nine(1));
      await repairs().check([QUEUE]);
      await expectOff();
      expect(await zones()).toEqual({ [QUEUE]: NEW });
    });

    it("corrects wrong times, keeps right ones, and logs it", async () => {
      await outdated();
      const { generation } = await bench.stored("t");
      await put({ id: "right", schedule });
      await put({ id: "every", schedule: { every: "1h" } });
      const untouched = [await bench.stored("right"), await bench.stored("every")];
      await repairs().check([QUEUE]);
      await expectCorrected();
      expect((await bench.stored("t")).generation).toBe(String(Number(generation) + 1));
      expect([await bench.stored("right"), await bench.stored("every")]).toEqual(untouched);
      expect(await zones()).toEqual({ [QUEUE]: NEW });
      expect(said).toEqual([
        ["info", expect.stringContaining("replanned"), { queue: QUEUE, replanned: 1, tzdata: NEW }],
      ]);
      expect(await bench.ownKeys()).not.toContainEqual(expect.stringContaining(":~lock:"));
    });

    it("replans hundreds of tasks, in every outdated queue", async () => {
      const ids = Array.from({ length: 450 }, (_, i) => `t${i}`);
      const tasks = ids.map((id) => parseTask({ id, type: "noop", queue: QUEUE, schedule }));
      await bench.store.tasks.put(QUEUE, tasks);
      await put({ queue: "other", schedule });
      for (const queue of [QUEUE, "other"]) await bench.store.registry.setZone(queue, "2020a");
      const off = ids.filter((_, i) => i % 50 === 49);
      for (const id of off) await tamper(id, nine(1));
      await repairs().check([QUEUE, "other"]);
      const { tasks: all } = await bench.store.tasks.list({ queue: QUEUE }, 1_000);
      expect(new Set(all.map(({ nominal }) => nominal))).toEqual(new Set([berlin(1)]));
      expect(said.map(([, , details]) => details)).toEqual([
        { queue: QUEUE, replanned: off.length, tzdata: NEW },
        { queue: "other", replanned: 0, tzdata: NEW },
      ]);
      expect(await zones()).toEqual({ [QUEUE]: NEW, other: NEW });
    });

    it("keeps owed times owed, paused tasks paused and finished ones finished", async () => {
      await outdated();
      await put({ id: "owed", schedule });
      await put({ id: "paused", schedule });
      await bench.store.tasks.pause(bench.name("paused"));
      await put({ id: "over", schedule: { at: START - 1 } });
      const right = () => Promise.all(["owed", "paused", "over"].map((id) => bench.stored(id)));
      const before = await right();
      // An hour too early: the correct time is owed as well.
      await tamper("t", berlin(1) - HOUR);
      await bench.clock.set(nine(1));
      await repairs().check([QUEUE]);
      await expectCorrected();
      expect(await right()).toEqual(before);
    });

    it("a time that moved into the past is owed, or in the ledger: not lost", async () => {
      await outdated();
      await tamper("t", berlin(1));
      await bench.clock.set(berlin(1));
      await bench.claim("t", "a");
      // The day's time was an hour too late, and half of that hour has passed.
      await tamper("t", nine(2));
      await bench.clock.set(berlin(2) + HOUR / 2);
      await repairs().check([QUEUE]);
      const { nominal } = await bench.stored("t");
      const passedOver = await bench.store.runs.ledger(bench.name("t"));
      expect([nominal, ...passedOver.map(({ from }) => from)]).toContain(berlin(2));
    });

    it("makes a claim stale that an older node has read", async () => {
      await put({ schedule });
      await bench.store.registry.setZone(QUEUE, "2020a");
      await tamper("t", berlin(1) - HOUR);
      await bench.clock.set(berlin(1) - HOUR);
      const half = await bench.read("t");
      expect(half.items).toHaveLength(1);
      await repairs().check([QUEUE]);
      expect(await bench.commit(half, "a")).toEqual(["STALE"]);
      expect(await nominals()).toEqual([]);
      await expectCorrected();
    });

    it("data that is equal or older changes nothing", async () => {
      await outdated();
      await bench.store.registry.setZone(QUEUE, NEW);
      await repairs(NEW).check([QUEUE]);
      const before = await bench.dump();
      await repairs(NEW).check([QUEUE]);
      await repairs("2098a").check([QUEUE]);
      expect(await bench.dump()).toEqual(before);
      expect(said).toEqual([]);
    });

    it("checks every ten minutes, not with each tick", async () => {
      await put({ schedule });
      const look = repairs();
      await look.check([QUEUE]);
      await bench.store.registry.setZone(QUEUE, "2020a");
      await tamper("t", nine(1));
      await look.check([QUEUE]);
      await expectOff();
      await checkLater(look);
      await expectCorrected();
    });

    it("warns once of nodes with older data, and replans again when they have stopped", async () => {
      await outdated();
      await beat("old", "2020a");
      await beat("n1", NEW);
      const look = repairs();
      await look.check([QUEUE]);
      await expectCorrected();
      expect(warnings()).toEqual([
        ["warn", expect.stringContaining("time zone data"), { tzdata: ["2020a", NEW], own: NEW }],
      ]);
      // The older node has claimed since, and computed a time that is an hour off.
      await tamper("t", nine(1));
      await checkLater(look);
      await expectOff();
      expect(warnings()).toHaveLength(1);
      await bench.store.registry.removeNode("old");
      await checkLater(look);
      await expectCorrected();
      expect(await zones()).toEqual({ [QUEUE]: NEW });
      // Nothing corrects it a second time.
      await tamper("t", nine(1));
      await checkLater(look);
      await expectOff();
      expect(warnings()).toHaveLength(1);
    });

    it("counts an older node that has stopped before the next check", async () => {
      await outdated();
      await beat("old", "2020a");
      const look = repairs();
      await look.check([QUEUE]);
      await tamper("t", nine(1));
      await bench.store.registry.removeNode("old");
      await checkLater(look);
      await expectCorrected();
    });

    it("ignores a node whose heartbeats have stopped", async () => {
      await outdated();
      await beat("old", "2020a", 30_001);
      await repairs().check([QUEUE]);
      expect(warnings()).toEqual([]);
      expect(await zones()).toEqual({ [QUEUE]: NEW });
    });

    it("ignores a node whose last beat is from before the clock of Redis went back", async () => {
      await outdated();
      await beat("old", "2020a", -3_600_000);
      await repairs().check([QUEUE]);
      expect(warnings()).toEqual([]);
      expect(await zones()).toEqual({ [QUEUE]: NEW });
    });

    it("compares the indexes again if the last time is from before the clock of Redis went back", async () => {
      await put({ schedule });
      const now = await bench.store.serverTime();
      await bench.store.registry.setAudit(QUEUE, now + 365 * DAY);
      await repairs().check([QUEUE]);
      expect((await bench.store.registry.audits()).get(QUEUE)).toBeLessThan(now + DAY);
    });

    it("forgets a queue that a process left empty when it died", async () => {
      await put({ schedule });
      const { registry } = bench.store;
      const forget = vi.spyOn(registry, "forgetIfEmpty").mockRejectedValueOnce(new Error("dead"));
      await expect(bench.store.tasks.delete(bench.name("t"))).rejects.toThrow("dead");
      expect(await registry.queues()).toEqual([QUEUE]);
      await repairs().check([QUEUE]);
      expect(forget).toHaveBeenCalledTimes(1);
      expect(await bench.ownKeys()).toEqual([]);
    });

    it("warns again about another pair of versions", async () => {
      await put({ schedule });
      await beat("old", "2020a");
      const look = repairs();
      await look.check([QUEUE]);
      await beat("older", "2019c");
      await checkLater(look);
      await checkLater(look);
      expect(warnings().map(([, , details]) => details)).toEqual([
        { tzdata: ["2020a", NEW], own: NEW },
        { tzdata: ["2019c", "2020a", NEW], own: NEW },
      ]);
    });

    it("the older of two nodes warns too, and replans nothing", async () => {
      await put({ schedule });
      await bench.store.registry.setZone(QUEUE, NEW);
      await tamper("t", nine(1));
      await beat("new", NEW);
      await repairs("2020a", "old").check([QUEUE]);
      await expectOff();
      expect(warnings()).toHaveLength(1);
      expect(await zones()).toEqual({ [QUEUE]: NEW });
    });

    it("replans again after an older node has come and stopped", async () => {
      await outdated();
      const look = repairs();
      await look.check([QUEUE]);
      await expectCorrected();
      await beat("old", "2020a");
      await checkLater(look);
      await tamper("t", nine(1));
      await bench.store.registry.removeNode("old");
      await checkLater(look);
      await expectCorrected();
    });

    it("only one of two nodes replans", async () => {
      await outdated();
      const { generation } = await bench.stored("t");
      await Promise.all([repairs(NEW, "n1").check([QUEUE]), repairs(NEW, "n2").check([QUEUE])]);
      await expectCorrected();
      expect((await bench.stored("t")).generation).toBe(String(Number(generation) + 1));
      expect(await zones()).toEqual({ [QUEUE]: NEW });
    });

    it("leaves replanning to another node that has begun, and checks again later", async () => {
      await outdated();
      const key = internalsOf(bench.store).keys.queue(QUEUE).mutex("zone");
      const lease = await internalsOf(bench.store).mutex.take(key, 60_000);
      const look = repairs();
      await look.check([QUEUE]);
      await expectOff();
      expect(await zones()).toEqual({ [QUEUE]: "2020a" });
      expect(said).toEqual([]);
      await lease?.release();
      await checkLater(look);
      await expectCorrected();
      expect(await zones()).toEqual({ [QUEUE]: NEW });
    });

    it("an interrupted replanning is not stamped, and is repeated at the next check", async () => {
      await outdated();
      const look = repairs();
      vi.spyOn(node.store.tasks, "replanAll").mockRejectedValueOnce(new Error("cut"));
      await expect(look.check([QUEUE])).rejects.toThrow("cut");
      expect(await zones()).toEqual({ [QUEUE]: "2020a" });
      // Ten minutes have not passed, and the mutex is free.
      await look.check([QUEUE]);
      await expectCorrected();
      expect(await zones()).toEqual({ [QUEUE]: NEW });
    });

    it("the stamp is deleted with its queue, and is not set without it", async () => {
      await put({ schedule });
      const look = repairs();
      await look.check([QUEUE]);
      await bench.store.tasks.delete(bench.name("t"));
      expect(await bench.ownKeys()).toEqual([]);
      // The node has read the list of queues before the last task was deleted.
      await checkLater(look);
      expect(await bench.ownKeys()).toEqual([]);
    });

    it("a task that cannot be read does not stop the others", async () => {
      await outdated();
      await put({ id: "a", schedule });
      const key = internalsOf(bench.store).keys.queue(QUEUE).task("system/a");
      await internalsOf(bench.store).link.ask((client) => client.hset(key, "schedule", "{broken"));
      await repairs()
        .check([QUEUE])
        .catch(() => {});
      await expectCorrected();
    });

    it("logs the number of tasks that could not be replanned", async () => {
      await outdated();
      await put({ id: "a", schedule });
      const key = internalsOf(bench.store).keys.queue(QUEUE).task("system/a");
      await internalsOf(bench.store).link.ask((client) => client.hset(key, "schedule", "{broken"));
      await repairs().check([QUEUE]);
      const message = "could not replan tasks: put them again";
      expect(said).toContainEqual(["error", message, { queue: QUEUE, left: 1 }]);
    });
  });
});
