import { operatorOf } from "@carillon/ops";
import { defineTask, Worker } from "@carillon/sdk";
import { storeOf } from "@carillon/sdk/internal";
import { eventually } from "@carillon/testing";
import { describe, expect, it } from "vitest";
import { SILENT } from "../helpers.js";
import { anything, COMMIT, PATIENCE, type Program, Stand } from "./harness.js";

const stand = Stand.use();

const DAY = 86_400_000;

/** A real worker; returns the runs that it handled. */
async function work(): Promise<string[]> {
  const ran: string[] = [];
  const type = defineTask("work", {
    queue: "bells",
    payload: anything,
    handler: (_payload, { occurrence }) => void ran.push(`${occurrence.task}@${occurrence.nominal}`),
  });
  const worker = new Worker({
    connection: stand.redis.url,
    namespace: stand.namespace,
    types: [type],
    logger: SILENT,
  });
  stand.later(() => worker.stop());
  await worker.start();
  return ran;
}

describe("C3 a timestamp runs once, whatever the number of nodes, and its task is finished", () => {
  const HUNDRED = Array.from({ length: 100 }, (_, n) => `t${n}`);

  /**
   * A hundred timestamps of one instant, or of two: then a task goes on after the first, and only its generation says that this one is
   * done. The commits of one node are held on the wire until the other node has committed all of them, and reach Redis after that.
   */
  async function collide(sabotage: string, times: 1 | 2 = 1) {
    const wire = await stand.wire();
    const env = { CARILLON_MUTEX_TTL_MS: "500", CARILLON_TEST_ONLY_SABOTAGE: sabotage };
    const of = (id: string) => ({ ...env, CARILLON_NODE_ID: id });
    const late = await stand
      .node({ ...of("late"), REDIS_URL: wire.url, CARILLON_LOG_LEVEL: "debug" })
      .running();
    const quick = await stand.node(of("quick")).running();
    quick.signal("SIGSTOP");
    const client = stand.client();
    // Held too if the node sends them again on another connection.
    let holding = true;
    const hold = (): Promise<void> => wire.withhold("question", COMMIT).then(() => void (holding && hold()));
    const onTheWire = hold();
    const at = (await stand.time()) + 3_000;
    const schedule = times === 1 ? { at } : { any: [{ at }, { at: at + DAY }] };
    const one = { type: "work", queue: "bells", schedule, overlap: "allow" } as const;
    const puts = await client.putMany(HUNDRED.map((id) => ({ ...one, id })));
    expect(puts.map(({ state }) => state)).toEqual(HUNDRED.map(() => "scheduled"));
    await onTheWire;
    quick.signal("SIGCONT");
    const queue = stand.queue("bells");
    await eventually(async () => expect(await queue.getJobCountByTypes()).toBe(100), PATIENCE);
    holding = false;
    wire.calm();
    wire.release();
    return { at, client, late, queue };
  }

  it("two nodes that commit one after the other make 1 run each", async () => {
    const ran = await work();
    const { at, client, late, queue } = await collide("");
    await late.says({ msg: "claim refused", status: "STALE" });
    await eventually(async () => {
      expect(await queue.getJobCounts("completed", "waiting", "active")).toEqual({
        completed: 100,
        waiting: 0,
        active: 0,
      });
    }, PATIENCE);
    expect([...ran].sort()).toEqual(HUNDRED.map((id) => `${id}@${at}`).sort());
    for (const id of HUNDRED) {
      const task = await client.get(id);
      expect(task).toMatchObject({ state: "finished" });
      expect(task.nextExecution).toBeUndefined();
      expect(await client.runs.list(id)).toMatchObject([{ node: "quick", nominal: at }]);
    }
  });

  it("two nodes that commit one after the other make 1 run of the first of two timestamps", async () => {
    const { at, client, late, queue } = await collide("", 2);
    await late.says({ msg: "claim refused", status: "STALE" });
    for (const id of HUNDRED) {
      expect(await client.get(id)).toMatchObject({ state: "scheduled", nextExecution: at + DAY });
      expect(await client.runs.list(id)).toMatchObject([{ node: "quick", nominal: at }]);
    }
    expect(await queue.getJobCountByTypes()).toBe(100);
  });

  it("without mutex and generation check there is more than 1 run", async () => {
    const { queue } = await collide("mutex,fence");
    await eventually(async () => {
      expect(await queue.getJobCountByTypes()).toBeGreaterThan(100);
    }, PATIENCE);
  });

  it("it never runs again", async () => {
    const type = defineTask("work", { queue: "bells", payload: anything, handler: () => {} });
    const kit = await stand.kit({ types: [type], nodes: 2 });
    const schedule = { at: "2026-02-01T00:00:00+01:00" };
    await kit.client.put(type, { id: "t", schedule, linger: "1000d", payload: {} });
    await kit.advance(2 * 366 * DAY);
    await kit.expect("t").ranAt(["2026-01-31T23:00:00Z"]).skipped(0).state("finished").nextAt(undefined);
  });
});

describe("C6 a task two months away neither fires early nor is forgotten", () => {
  const SIXTY = 60 * DAY;

  it("in virtual time it fires at its moment, not before", async () => {
    const type = defineTask("work", { queue: "bells", payload: anything, handler: () => {} });
    const kit = await stand.kit({ types: [type], nodes: 2 });
    const [first, due] = [kit.now, kit.now + SIXTY];
    await kit.client.put(type, { id: "t", schedule: { at: due }, payload: {} });
    await kit.client.put(type, {
      id: "again",
      schedule: { every: "60d", origin: new Date(first).toISOString() },
      payload: {},
    });
    // Beyond the longest delay of a timer, 2^31 - 1 ms.
    await kit.advance(25 * DAY);
    await kit.expect("t").fired(0).nextAt(due);
    await kit.advanceTo(due - 1);
    await kit.expect("t").fired(0).nextAt(due);
    await kit.advance(1);
    await kit.expect("t").ranAt([due]);
    await kit.advanceTo(first + 3 * SIXTY);
    await kit.expect("again").ranAt([due, due + SIXTY, due + 2 * SIXTY]);
  });

  it("a real node waits without a timer overflow, and notices an earlier time", async () => {
    const ran = await work();
    const client = stand.client();
    const put = (at: number) => client.put({ id: "t", type: "work", queue: "bells", schedule: { at } });
    await put((await stand.time()) + SIXTY);
    const node = await stand.node().running();
    // Other work continues meanwhile, and each check of Redis sets the timer again.
    const soon = (await stand.time()) + 3_000;
    await client.putMany(
      [0, 1, 2, 3].map((n) => ({
        id: `s${n}`,
        type: "work",
        queue: "bells",
        schedule: { at: soon + n * 250 },
      })),
    );
    await eventually(() => expect(ran).toHaveLength(4), PATIENCE);
    expect(ran.some((one) => one.startsWith("t@"))).toBe(false);
    const near = (await stand.time()) + 3_000;
    await put(near);
    await eventually(() => expect(ran).toContain(`t@${near}`), PATIENCE);
    const [run] = await client.runs.list("t");
    expect(run?.enqueued).toBeGreaterThanOrEqual(near);
    await node.kill();
    const { stderr } = await node.ended;
    expect(stderr).not.toContain("TimeoutOverflowWarning");
  });
});

describe("C7 a mutex whose lease ran out cannot be freed by its old holder", () => {
  it("a late release leaves the new holder's lock", async () => {
    const client = stand.client();
    const at = (await stand.time()) + 3_000;
    await client.put({ id: "t", type: "work", queue: "bells", schedule: { at } });
    const part = "shards";
    const key = `{${stand.namespace}:bells}:~lock:${part}`;
    const [slow, quick] = [storeOf(client), storeOf(stand.client())];
    const old = await slow.lease("bells", part, 200);
    const its = await stand.admin.get(key);
    expect([old !== undefined, its]).toEqual([true, expect.any(String)]);
    // The lease expires on its own, and another node takes the mutex.
    await eventually(async () => expect(await quick.lease("bells", part, 60_000)).toBeDefined(), PATIENCE);
    const holder = await stand.admin.get(key);
    expect(holder).not.toBe(its);
    expect(await old?.extend(60_000)).toBe(false);
    await old?.release();
    expect(await stand.admin.get(key)).toBe(holder);
    expect(await stand.admin.pttl(key)).toBeGreaterThan(30_000);

    await stand.admin.del(key);
    await stand.node({ CARILLON_MUTEX_TTL_MS: "200" }).running();
    await eventually(
      async () => expect(await client.get("t")).toMatchObject({ state: "finished" }),
      PATIENCE,
    );
    expect(await client.runs.list("t")).toHaveLength(1);
  });
});

describe("C8 nodes with wrong clocks agree: one run for each of 20 occurrences", () => {
  /** A node whose `Date` is off by `ms`. Everything else, including its Redis, is normal. */
  function skewed(ms: number, env: Record<string, string> = {}): Promise<Program> {
    const code = `const Real = globalThis.Date;
      const now = () => Real.now() + ${ms};
      globalThis.Date = new Proxy(Real, {
        construct: (target, args, self) => Reflect.construct(target, args.length ? args : [now()], self),
        apply: () => new Real(now()).toString(),
        get: (target, key) => (key === "now" ? now : Reflect.get(target, key)),
      });`;
    const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(code).replaceAll("'", "%27")}`;
    return stand.node({ NODE_OPTIONS, CARILLON_NODE_ID: `skew${ms}`, ...env }).running();
  }

  it.each([
    ["-10 min", -600_000],
    ["+10 min", 600_000],
    ["+1 h", 3_600_000],
  ])(
    "a node skewed by %s, alone: on time by Redis, and at rest until then",
    async (_what, ms) => {
      const [wire, client] = [await stand.wire(), stand.client()];
      await skewed(ms, { REDIS_URL: wire.url });
      const at = (await stand.time()) + 3_000;
      const { questions } = wire;
      const put = await client.put({ id: "t", type: "work", queue: "bells", schedule: { at } });
      expect(put).toMatchObject({ state: "scheduled" });
      // By its own clock it would claim ten minutes late, or send tens of thousands of commands until the time comes.
      // The limit allows for a slow machine and a few heartbeats.
      const [run] = await eventually(async () => {
        const runs = await client.runs.list("t");
        return runs.length > 0 && runs;
      }, PATIENCE);
      expect(run?.enqueued).toBeGreaterThanOrEqual(at);
      expect(wire.questions - questions).toBeLessThan(50);
      expect(await client.get("t")).toMatchObject({ state: "finished" });
    },
    120_000,
  );

  it("a node skewed by +1 h, alone, is late by less than 1 s", async () => {
    await skewed(3_600_000);
    await stand.onTime(stand.client(), 1_000, 6);
  });

  it("nodes skewed by -10 min, +10 min and +1 h, and a correct one that dies", async () => {
    const OFFSETS = [0, -600_000, 600_000, 3_600_000];
    const ran = await work();
    const nodes = await Promise.all(OFFSETS.map((ms) => skewed(ms)));
    const client = stand.client();
    await eventually(
      async () => expect((await operatorOf(client).nodes.list()).nodes).toHaveLength(4),
      PATIENCE,
    );
    for (const { id, clockOffset } of (await operatorOf(client).nodes.list()).nodes) {
      const offset = Number(id.slice("skew".length));
      expect(Math.abs(clockOffset - offset)).toBeLessThan(5_000);
    }

    await client.put({
      id: "t",
      type: "work",
      queue: "bells",
      overlap: "allow",
      catchUp: "all",
      schedule: { every: "500ms", maxRuns: 20 },
    });
    await eventually(() => expect(ran.length).toBeGreaterThanOrEqual(5), PATIENCE);
    await nodes[0]?.kill();
    await eventually(async () => {
      expect(await client.runs.stats("t")).toMatchObject({ successes: 20, open: 0 });
    }, PATIENCE);
    expect(await client.get("t")).toMatchObject({ state: "finished" });

    const runs = await client.runs.list("t", { limit: 100 });
    expect(runs).toHaveLength(20);
    const nominals = runs.map(({ nominal }) => nominal).sort((a, b) => a - b);
    const first = nominals[0] ?? 0;
    expect(nominals).toEqual(Array.from({ length: 20 }, (_, n) => first + 500 * n));
    expect([...ran].sort()).toEqual(nominals.map((nominal) => `t@${nominal}`).sort());
    // By the clock of Redis, no occurrence was early and none was passed over.
    for (const { enqueued, started, nominal } of runs) {
      expect(enqueued).toBeGreaterThanOrEqual(nominal);
      expect(started).toBeGreaterThanOrEqual(nominal);
    }
    expect(await client.runs.skips("t")).toEqual([]);
    expect(await stand.queue("bells").getCompletedCount()).toBe(20);
    // Nodes with wrong clocks took part.
    expect(runs.filter(({ node }) => node !== "skew0").length).toBeGreaterThanOrEqual(10);
  });
});
