import { parseTask, type TaskInput } from "@carillon/core";
import { shardOf } from "@carillon/core/internal";
import { Scheduler } from "@carillon/scheduler";
import { Store } from "@carillon/store";
import { eventually } from "@carillon/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { SILENT, sharedRedis } from "../../../test/helpers.js";
import { Bench, QUEUE, START } from "../../store/test/bench.js";
import { TOGETHER } from "../src/part.js";
import { type Claims, claimsOn, idsOf } from "./claiming.js";

const AT = START + 10_000;

describe("a claim that is decided ahead of its time", () => {
  const redis = sharedRedis();
  const bench = Bench.use(() => redis.url);
  let node: Claims;
  beforeEach(async () => {
    node = claimsOn(bench, () => 0);
  });

  /** Advances the virtual clock, and lets the node observe it. */
  async function to(time: number): Promise<void> {
    await bench.clock.set(time);
    node.clock.observe(time, node.clock.mark());
  }
  const put = (input: Partial<TaskInput> = {}) => bench.put({ id: "t", ...input });
  const prepare = () => node.prepare(QUEUE, AT - START);
  const claim = () => node.claim(QUEUE);
  /** Counts reads of due tasks. */
  function reads(): () => number {
    const { claims } = bench.store;
    const { readDue } = claims;
    let count = 0;
    claims.readDue = (...all) => {
      count += 1;
      return readDue.apply(claims, all);
    };
    return () => count;
  }
  const enqueued = async () =>
    (await bench.jobs()).map(({ data }) => [data.occurrence.task, data.occurrence.nominal, data.payload]);

  it("is committed at its time without another read, with the same result", async () => {
    await put({ payload: { n: 1 } });
    await prepare();
    expect(await bench.jobs()).toEqual([]);
    await to(AT);
    const count = reads();
    const { decided, refused } = await claim();
    expect(decided).toMatchObject([{ task: "system/t", nominal: AT, due: AT, at: AT, outcome: "enqueued" }]);
    expect(refused).toEqual([]);
    expect(count()).toBe(0);
    expect(await enqueued()).toEqual([["t", AT, { n: 1 }]]);
    expect(await bench.stored("t")).toMatchObject({ cursor: AT, nominal: AT + 10_000, fired: 1 });
  });

  it("is not committed before its time, and is not lost if the clock of Redis is slightly behind", async () => {
    await put();
    await prepare();
    await to(AT - 1);
    expect(await claim()).toMatchObject({ decided: [], refused: [] });
    // The node's estimate is ahead of the server's clock.
    node.clock.observe(AT, node.clock.mark());
    expect(await claim()).toMatchObject({ left: [], decided: [], refused: [] });
    await to(AT);
    expect((await claim()).decided).toHaveLength(1);
    expect(await enqueued()).toHaveLength(1);
  });

  it.each<[string, () => Promise<unknown>, unknown[]]>([
    ["edited", () => put({ payload: { n: 2 } }), [["t", AT, { n: 2 }]]],
    ["moved", () => put({ schedule: { at: AT + 1 } }), []],
    ["paused", () => bench.store.tasks.pause(bench.name("t")), []],
    ["deleted", () => bench.store.tasks.delete(bench.name("t")), []],
  ])("a task that was %s meanwhile is decided again", async (_how, change, jobs) => {
    await put({ payload: { n: 1 } });
    await prepare();
    await change();
    await to(AT);
    // A second claim in the same turn.
    await claim();
    expect(await enqueued()).toEqual(jobs);
  });

  it("enqueues nothing twice if another node was first", async () => {
    await put();
    await prepare();
    await to(AT);
    expect(await bench.claim("t", "other")).toEqual(["OK"]);
    const { decided, refused } = await claim();
    expect(decided).toEqual([]);
    expect(refused).toMatchObject([{ status: "STALE" }]);
    expect(await enqueued()).toHaveLength(1);
  });

  it("obeys the overlap policy if a run has started meanwhile", async () => {
    await put();
    await prepare();
    await bench.trigger("t", "m");
    await to(AT);
    const { decided, refused } = await claim();
    // Refused at first, then read again together with the run.
    expect(refused).toHaveLength(1);
    expect(decided).toMatchObject([{ outcome: "skipped", reason: "behind", nominal: AT }]);
    expect(await bench.jobs()).toHaveLength(1);
  });

  it("does not prepare tasks that depend on the end of a run", async () => {
    await put();
    await bench.trigger("t", "m");
    await prepare();
    await bench.workAll();
    await to(AT);
    expect((await claim()).decided).toMatchObject([{ outcome: "enqueued", nominal: AT }]);
  });

  describe("a task whose run workers have not begun", () => {
    const NEXT = START + 2_000;
    beforeEach(async () => {
      await put({ schedule: { every: "1s" } });
      await to(NEXT - 1_000);
      await claim();
      await to(NEXT - 400);
    });
    const late = () => node.prepare(QUEUE, 400);
    const end = async () => {
      const [run = ""] = await bench.store.runs.open(bench.name("t"));
      await bench.work("t", run);
      await bench.workAll();
    };
    const waiting = async () => (await bench.stored("t"))?.pending.map(({ nominal }) => nominal);

    it("waits for its end, without another read", async () => {
      await late();
      const count = reads();
      await to(NEXT);
      expect(await claim()).toMatchObject({ decided: [], refused: [] });
      expect(count()).toBe(0);
      expect(await waiting()).toEqual([NEXT]);
      await end();
      expect((await claim()).decided).toMatchObject([{ outcome: "enqueued", nominal: NEXT }]);
    });

    it("is enqueued if that run ends before its time", async () => {
      await late();
      await end();
      await to(NEXT);
      const { decided, refused } = await claim();
      expect(refused).toMatchObject([{ status: "STALE" }]);
      expect(decided).toMatchObject([{ outcome: "enqueued", nominal: NEXT }]);
      expect(await waiting()).toEqual([]);
    });

    it("is read at its time if the run may have begun long before it", async () => {
      await to(NEXT - 600);
      await node.prepare(QUEUE, 600);
      const count = reads();
      await to(NEXT);
      await claim();
      expect(count()).toBe(1);
      expect(await waiting()).toEqual([NEXT]);
    });
  });

  it("is kept when the node is late for another task of the shard", async () => {
    const [first, second] = idsOf(2) as [string, string];
    await bench.put({ id: first, schedule: { at: AT } });
    await prepare();
    await bench.put({ id: second, schedule: { at: AT - 1_000 } });
    await to(AT - 500);
    const count = reads();
    expect((await claim()).decided).toMatchObject([{ task: `system/${second}` }]);
    expect(count()).toBe(1);
    await to(AT);
    expect((await claim()).decided).toMatchObject([{ task: `system/${first}` }]);
    expect(count()).toBe(1);
  });

  it("is read together with those of other shards that are due soon after it", async () => {
    const ids = Array.from({ length: 20 }, (_, i) => `t${i}`);
    const shard = (id: string) => shardOf(`system/${id}`);
    const [first = "", ...others] = ids;
    const other = others.find((id) => shard(id) !== shard(first)) ?? "";
    await bench.put({ id: first, schedule: { at: AT } });
    await bench.put({ id: other, schedule: { at: AT + TOGETHER } });
    const shards = [shard(first), shard(other)];
    const count = reads();
    await node.prepare(QUEUE, AT - START, shards);
    await to(AT + TOGETHER);
    await node.prepare(QUEUE, 1, shards);
    expect(count()).toBe(1);
    expect((await enqueued()).map(([task]) => task)).toEqual([first, other]);
  });

  it("is read again once it is too old", async () => {
    await put({ schedule: { every: "1s" } });
    await node.prepare(QUEUE, 1_000);
    await to(START + 7_000);
    expect((await claim()).decided).toMatchObject([
      { outcome: "skipped", reason: "missed" },
      { outcome: "enqueued", trigger: "catch-up", nominal: START + 7_000 },
    ]);
  });

  it("is decided again once it is too late for its policy", async () => {
    node = claimsOn(bench, undefined, { grace: 500 });
    await put({ catchUp: "skip" });
    await prepare();
    await to(AT + 501);
    expect((await claim()).decided).toMatchObject([{ outcome: "skipped", reason: "missed", nominal: AT }]);
  });

  it.each([
    ["claims late, but without a break, loses no time", 2_000, false],
    ["claims nothing for longer than 5 s loses times", 6_000, true],
  ])("of a node that %s", async (_, step, loses) => {
    await bench.putAll(
      QUEUE,
      idsOf(80).map((id) => ({ id, overlap: "allow", schedule: { every: "1s" } })),
    );
    const decided = [];
    for (let at = START; at < START + 24_000; at += step) {
      await to(at);
      let steps = 0;
      // A read, and a commit of half the tasks.
      decided.push(...(await node.claim(QUEUE, () => ++steps < 2)).decided);
    }
    expect(decided.some(({ at, due }) => at - due > 10_000)).toBe(true);
    expect(decided.some(({ outcome }) => outcome === "skipped")).toBe(loses);
  });

  it("takes no longer than a turn, and keeps its progress for the next one", async () => {
    await bench.putAll(
      QUEUE,
      idsOf(60).map((id) => ({ id })),
    );
    await prepare();
    await to(AT);
    const count = reads();
    expect((await node.claim(QUEUE, () => false)).decided).toHaveLength(40);
    expect(count()).toBe(0);
    expect((await claim()).decided).toHaveLength(20);
    expect(count()).toBe(0);
  });

  it("comes with others of its queue in one commit, each at its time", async () => {
    const [first, second] = idsOf(2) as [string, string];
    await bench.put({ id: first, schedule: { at: AT } });
    await bench.put({ id: second, schedule: { at: AT + 1 } });
    await node.prepare(QUEUE, AT + 1 - START);
    const count = reads();
    await to(AT);
    expect((await claim()).decided).toMatchObject([{ task: `system/${first}` }]);
    await to(AT + 1);
    expect((await claim()).decided).toMatchObject([{ task: `system/${second}` }]);
    expect(count()).toBe(0);
  });

  it("a task put meanwhile, between the others, is claimed at its time", async () => {
    const [first, second, third] = idsOf(3) as [string, string, string];
    await bench.put({ id: first, schedule: { at: AT } });
    await bench.put({ id: third, schedule: { at: AT + 20 } });
    await node.prepare(QUEUE, AT + 100 - START);
    // Nothing announces it: another time of the shard is earlier.
    await bench.put({ id: second, schedule: { at: AT + 10 } });
    for (const [at, id] of [
      [AT, first],
      [AT + 10, second],
      [AT + 20, third],
    ] as const) {
      await to(at);
      expect((await claim()).decided).toMatchObject([{ task: `system/${id}`, nominal: at }]);
    }
  });

  it("an earlier time of a task is decided as usual", async () => {
    const [often, seldom] = idsOf(2) as [string, string];
    await bench.put({ id: often, schedule: { every: "1s" }, overlap: "allow" });
    await bench.put({ id: seldom, schedule: { every: "1h" } });
    await node.prepare(QUEUE, 1_000);
    await to(START + 2_000);
    expect((await claim()).decided).toMatchObject([
      { outcome: "enqueued", trigger: "schedule", nominal: START + 1_000 },
      { outcome: "enqueued", trigger: "schedule", nominal: START + 2_000 },
    ]);
  });

  it("goes on to commit while it waits for a read", async () => {
    const ids = idsOf(300).sort();
    await bench.putAll(
      QUEUE,
      ids.map((id) => ({ id })),
    );
    await prepare();
    await bench.put({ id: ids[0] as string, payload: { n: 2 } });
    await to(AT);
    const { claims } = bench.store;
    const { readDue, commit } = claims;
    let [begun, committed, reads] = [0, 0, 0];
    claims.commit = async (...all) => {
      begun += 1;
      // The edited task is in the first one: refused, it is read again while the others are under way.
      if (begun > 1) await eventually(async () => reads > 0);
      const answer = await commit.apply(claims, all);
      committed += answer.results.filter(({ status }) => status === "OK").length;
      return answer;
    };
    claims.readDue = async (...all) => {
      reads += 1;
      await eventually(async () => committed === 299);
      return readDue.apply(claims, all);
    };
    expect((await claim()).decided).toHaveLength(300);
  });

  it("takes no more memory than its limit, whatever the payloads", async () => {
    const text = "x".repeat(100_000);
    await bench.putAll(
      QUEUE,
      idsOf(300).map((id) => ({ id, payload: { text } })),
    );
    const count = reads();
    await prepare();
    // A read of 40 tasks and one of 160: 20 million characters. All tasks would need three reads.
    expect(count()).toBe(2);
    await to(AT);
    expect((await claim()).decided).toHaveLength(300);
  });

  it("a changed task keeps its place by priority", async () => {
    const [edited, ...others] = idsOf(60) as [string, ...string[]];
    await bench.put({ id: edited, priority: 1 });
    await bench.putAll(
      QUEUE,
      others.map((id) => ({ id, priority: 2 })),
    );
    await prepare();
    await bench.put({ id: edited, priority: 1, payload: { n: 2 } });
    await to(AT);
    const { decided } = await claim();
    expect(decided).toHaveLength(60);
    // Comes after the rest of its batch.
    expect(decided.findIndex(({ task }) => task === `system/${edited}`)).toBe(39);
  });

  it("prepares nothing behind a task of higher priority that cannot be prepared", async () => {
    const [first, second, third] = idsOf(3) as [string, string, string];
    await bench.put({ id: first, priority: 1 });
    await bench.put({ id: second, priority: 2, overlap: "allow" });
    await bench.put({ id: third, priority: 3 });
    // Its next occurrence waits for the end of this run.
    await bench.trigger(first, "m", "allow");
    await bench.workAll();
    await bench.trigger(first, "m2", "allow");
    await prepare();
    await bench.workAll();
    await to(AT);
    const { decided } = await claim();
    expect(decided.map(({ task }) => task)).toEqual([first, second, third].map((id) => `system/${id}`));
  });

  it("repeats a commit whose answer was lost, and enqueues nothing twice", async () => {
    await put();
    await prepare();
    await to(AT);
    const { claims } = bench.store;
    const { commit } = claims;
    claims.commit = async (...all) => {
      await commit.apply(claims, all);
      claims.commit = commit;
      throw new Error("Connection is closed.");
    };
    await expect(claim()).rejects.toThrow("closed");
    expect((await claim()).decided).toMatchObject([{ outcome: "enqueued", nominal: AT }]);
    expect(await enqueued()).toHaveLength(1);
  });
});

/** These tests use real time. The order of claims is tested in virtual time, in simulation/shares.long.isolated.test.ts. */
describe("nodes on real time", () => {
  const redis = sharedRedis();
  const store = () => new Store({ connection: redis.url, namespace: "real" });

  it.each([
    ["both live", 0],
    ["one of them is dead and still on the list", 1],
  ])("%s: each of many tasks due at one instant is enqueued once", async (_how, dead) => {
    const client = store();
    const queue = `q${dead}`;
    const nodes = Array.from(
      { length: 2 },
      (_, i) => new Scheduler({ connection: redis.url, namespace: "real", nodeId: `n${i}`, logger: SILENT }),
    );
    const seen: [node: number, task: string, late: number][] = [];
    for (const [i, node] of nodes.entries())
      node.on("decided", ({ task, at, due }) => seen.push([i, task, at - due]));
    await Promise.all(nodes.map((node) => node.start()));
    // Waits for a heartbeat that shows the node alive.
    const beats = await client.registry.nodes();
    if (dead) {
      await nodes[1]?.stop();
      for (const beat of beats) if (beat.id === "n1") await client.registry.beat(beat);
    }
    const at = (await client.serverTime()) + 5_000;
    await client.tasks.put(
      queue,
      Array.from({ length: 80 }, (_, i) => parseTask({ id: `t${i}`, type: "noop", queue, schedule: { at } })),
    );
    await eventually(() => expect(seen.length).toBeGreaterThanOrEqual(80));
    await Promise.all(nodes.map((node) => node.stop()));
    expect(new Set(seen.map(([, task]) => task)).size).toBe(80);
    expect(seen).toHaveLength(80);
    expect(seen.every(([, , late]) => late >= 0)).toBe(true);
    if (dead) expect(seen.every(([node]) => node === 0)).toBe(true);
    await client.registry.removeNode("n1");
    await client.close();
  });
});
