import { Scheduler } from "@carillon/scheduler";
import { defineTask, Worker } from "@carillon/sdk";
import { eventually } from "@carillon/testing";
import { describe, expect, it } from "vitest";
import { anything, PATIENCE, type Program, Stand } from "./harness.js";

const stand = Stand.use({ appendonly: true });

const DAY = 86_400_000;
const silent = { debug() {}, info() {}, warn() {}, error() {} };

/** A real worker, and what it ran. */
async function work(): Promise<string[]> {
  const ran: string[] = [];
  const type = defineTask("work", {
    queue: "bells",
    payload: anything,
    handler: (_payload, { occurrence }) => void ran.push(`${occurrence.task}@${occurrence.nominal}`),
  });
  const worker = new Worker({ connection: stand.redis.url, namespace: stand.namespace, types: [type] });
  stand.later(() => worker.stop());
  await worker.start();
  return ran;
}

describe("C3 a timestamp runs once, whatever the number of nodes, and its task is finished", () => {
  it("two nodes: 1 run", async () => {
    const ran = await work();
    await Promise.all([stand.node().running(), stand.node().running()]);
    const client = stand.client();
    const at = (await stand.time()) + 700;
    // More than one, so that both nodes have something to win; the last one says that the others' time is over.
    const ids = Array.from({ length: 10 }, (_, n) => `t${n}`);
    const once = (id: string, time: number) => ({ id, type: "work", queue: "bells", schedule: { at: time } });
    await client.putMany([...ids.map((id) => once(id, at)), once("last", at + 1_500)]);
    await eventually(() => expect(ran).toContain(`last@${at + 1_500}`), PATIENCE);
    expect(ran).toHaveLength(11);
    expect(new Set(ran)).toEqual(new Set([...ids.map((id) => `${id}@${at}`), `last@${at + 1_500}`]));
    for (const id of ids) {
      const task = await client.get(id);
      expect(task).toMatchObject({ state: "finished" });
      expect(task.nextExecution).toBeUndefined();
      expect(await client.runs(id)).toHaveLength(1);
    }
  });

  it("and never again", async () => {
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

  it("in virtual time: at its moment, and not before", async () => {
    const type = defineTask("work", { queue: "bells", payload: anything, handler: () => {} });
    const kit = await stand.kit({ types: [type], nodes: 2 });
    const [first, due] = [kit.now, kit.now + SIXTY];
    await kit.client.put(type, { id: "t", schedule: { at: due }, payload: {} });
    await kit.client.put(type, {
      ...{ id: "again", schedule: { every: "60d", origin: new Date(first).toISOString() }, payload: {} },
    });
    // Past what a timer can wait for: 2^31 - 1 ms.
    await kit.advance(25 * DAY);
    await kit.expect("t").fired(0).nextAt(due);
    await kit.advanceTo(due - 1);
    await kit.expect("t").fired(0).nextAt(due);
    await kit.advance(1);
    await kit.expect("t").ranAt([due]);
    await kit.advanceTo(first + 3 * SIXTY);
    await kit.expect("again").ranAt([due, due + SIXTY, due + 2 * SIXTY]);
  });

  it("a real node waits for it without a timer that overflows, and hears when it comes nearer", async () => {
    const ran = await work();
    const client = stand.client();
    const put = (at: number) => client.put({ id: "t", type: "work", queue: "bells", schedule: { at } });
    await put((await stand.time()) + SIXTY);
    const node = await stand.node().running();
    // Other work goes on meanwhile, and each look at Redis arms the timer anew.
    const soon = (await stand.time()) + 500;
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
    const near = (await stand.time()) + 300;
    await put(near);
    await eventually(() => expect(ran).toContain(`t@${near}`), PATIENCE);
    const [run] = await client.runs("t");
    expect(run?.enqueued).toBeGreaterThanOrEqual(near);
    await node.kill();
    const { stderr } = await node.ended;
    expect(stderr).not.toContain("TimeoutOverflowWarning");
  });
});

describe("C7 a mutex whose lease ran out cannot be freed by its old holder", () => {
  it("its release comes late: the new holder's lock stays", async () => {
    const wire = await stand.wire();
    const client = stand.client();
    await client.put({
      id: "t",
      type: "work",
      queue: "bells",
      schedule: { at: (await stand.time()) + 1_000 },
    });
    const slow = new Scheduler({
      ...{ connection: wire.url, namespace: stand.namespace, logger: silent, unsafeRedis: "warn" },
      mutexTtl: 2_000,
    });
    stand.later(() => slow.stop());
    await slow.start();
    // It holds the mutex and reads what is due, and whose runs are open; the answer stays on the wire.
    await wire.withhold("answer", ":~open:\r\n");
    const [key = ""] = await stand.admin.keys(`{${stand.namespace}:bells}:~lock:[0-9]`);
    const itsId = await stand.admin.get(key);
    expect(itsId).not.toBeNull();
    expect(await stand.admin.pttl(key)).toBeLessThanOrEqual(2_000);

    const monitor = await stand.admin.monitor();
    stand.later(() => monitor.disconnect());
    const freed = new Promise<string[]>((resolve) => {
      monitor.on("monitor", (_time: string, args: string[]) => {
        // The lock's key with its old id, or without any: a release, whether or not it minds whose lock it is.
        const [command = ""] = args;
        if (args.includes(key) && (args.includes(itsId as string) || /^(del|unlink)$/i.test(command)))
          resolve(args);
      });
    });
    // The lease runs out by itself, and someone else has the mutex.
    await eventually(async () => {
      expect(await stand.admin.set(key, "the new holder", "PX", 60_000, "NX")).toBe("OK");
    }, PATIENCE);
    // Back on the wire, the old holder ends its work, and frees what it thinks it holds.
    wire.cut();
    await freed;
    expect(await stand.admin.get(key)).toBe("the new holder");
    expect(await stand.admin.pttl(key)).toBeGreaterThan(30_000);

    await stand.admin.del(key);
    await stand.node({ CARILLON_MUTEX_TTL_MS: "200" }).running();
    await eventually(
      async () => expect(await client.get("t")).toMatchObject({ state: "finished" }),
      PATIENCE,
    );
    expect(await client.runs("t")).toHaveLength(1);
  });
});

describe("C8 nodes with wrong clocks agree: one run for each of 20 occurrences", () => {
  /** A node whose `Date` is wrong by so many ms; all else, the program and its Redis, is as ever. */
  function skewed(ms: number): Promise<Program> {
    const code = `const Real = globalThis.Date;
      const now = () => Real.now() + ${ms};
      globalThis.Date = new Proxy(Real, {
        construct: (target, args, self) => Reflect.construct(target, args.length ? args : [now()], self),
        apply: () => new Real(now()).toString(),
        get: (target, key) => (key === "now" ? now : Reflect.get(target, key)),
      });`;
    const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(code).replaceAll("'", "%27")}`;
    return stand.node({ NODE_OPTIONS, CARILLON_NODE_ID: `skew${ms}` }).running();
  }

  it("nodes skewed by -10 min, +10 min and +1 h, and one that is right and dies", async () => {
    const OFFSETS = [0, -600_000, 600_000, 3_600_000];
    const ran = await work();
    const nodes = await Promise.all(OFFSETS.map(skewed));
    const client = stand.client();
    await eventually(async () => expect(await client.nodes()).toHaveLength(4), PATIENCE);
    for (const { id, clockOffset } of await client.nodes()) {
      const offset = Number(id.slice("skew".length));
      expect(Math.abs(clockOffset - offset)).toBeLessThan(5_000);
    }

    await client.put({
      ...{ id: "t", type: "work", queue: "bells", overlap: "allow", catchUp: "all" },
      schedule: { every: "500ms", maxRuns: 20 },
    });
    await eventually(() => expect(ran.length).toBeGreaterThanOrEqual(5), PATIENCE);
    await nodes[0]?.kill();
    await eventually(async () => {
      expect(await client.stats("t")).toMatchObject({ successes: 20, open: 0 });
    }, PATIENCE);
    expect(await client.get("t")).toMatchObject({ state: "finished" });

    const runs = await client.runs("t", { limit: 100 });
    expect(runs).toHaveLength(20);
    const nominals = runs.map(({ nominal }) => nominal).sort((a, b) => a - b);
    const first = nominals[0] ?? 0;
    expect(nominals).toEqual(Array.from({ length: 20 }, (_, n) => first + 500 * n));
    expect([...ran].sort()).toEqual(nominals.map((nominal) => `t@${nominal}`).sort());
    // By the clock of Redis none came before its time, and none was passed over.
    for (const { enqueued, started, nominal } of runs) {
      expect(enqueued).toBeGreaterThanOrEqual(nominal);
      expect(started).toBeGreaterThanOrEqual(nominal);
    }
    expect(await client.ledger("t")).toEqual([]);
    expect(await stand.queue("bells").getCompletedCount()).toBe(20);
    // Wrong clocks kept nobody from working.
    expect(runs.filter(({ node }) => node !== "skew0").length).toBeGreaterThanOrEqual(10);
  }, 60_000);
});
