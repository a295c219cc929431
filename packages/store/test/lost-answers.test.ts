import { parseTask } from "@carillon/core";
import { internalsOf } from "@carillon/store/internal";
import { type FaultProxy, type RedisServer, startFaultProxy, startRedis } from "@carillon/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Bench, ENTERED, QUEUE, START } from "./bench.js";

/**
 * Runs each act twice: undisturbed, and with one of its answers lost, for each answer in turn. The state must be the
 * same.
 */
describe("a lost answer", () => {
  let shaken: RedisServer;
  let proxy: FaultProxy;
  let serial = 0;
  beforeAll(async () => {
    shaken = await startRedis();
    proxy = await startFaultProxy(shaken);
  });
  afterAll(async () => {
    await proxy.close();
    await shaken.stop();
  });

  type Act = (bench: Bench) => Promise<unknown>;
  const nothing: Act = async () => {};
  async function due(bench: Bench): Promise<void> {
    await bench.put({ id: "t", overlap: "allow", tags: ["x"] });
    await bench.clock.advance(10_000);
  }
  async function claimed(bench: Bench): Promise<void> {
    await due(bench);
    await bench.claim("t", "first");
  }
  const run = async (bench: Bench) => (await bench.store.runs.list(bench.name("t"), 1))[0]?.id as string;
  async function running(bench: Bench): Promise<void> {
    await claimed(bench);
    await bench.begin("t", await run(bench));
  }
  const fence = async (bench: Bench) =>
    internalsOf(bench.store).link.ask(async (client) =>
      Number(
        await client.hget(
          internalsOf(bench.store)
            .keys.queue(QUEUE)
            .run(await run(bench)),
          "fence",
        ),
      ),
    );
  async function finished(bench: Bench): Promise<void> {
    await claimed(bench);
    await bench.workAll();
    await bench.clock.advance(10_000);
  }

  const acts: [string, Act, Act][] = [
    ["put a new task", nothing, (bench) => bench.put({ id: "t", tags: ["a"] })],
    ["put a changed task", due, (bench) => bench.put({ id: "t", priority: 3 })],
    [
      "put another schedule over an owed time",
      due,
      (bench) => bench.put({ id: "t", schedule: { every: "1h" } }),
    ],
    ["pause", due, (bench) => bench.store.tasks.pause(bench.name("t"), "me", "why")],
    [
      "resume",
      async (bench) => {
        await due(bench);
        await bench.store.tasks.pause(bench.name("t"));
        await bench.clock.advance(60_000);
      },
      (bench) => bench.store.tasks.resume(bench.name("t"), "skip"),
    ],
    ["delete", claimed, (bench) => bench.store.tasks.delete(bench.name("t"))],
    ["claim", due, (bench) => bench.claim("t", "tok")],
    [
      "claim that skips",
      async (bench) => {
        await bench.put({ id: "t" });
        await bench.clock.advance(10_000);
        await bench.claim("t", "first");
        await bench.clock.advance(10_000);
      },
      (bench) => bench.claim("t", "tok"),
    ],
    ["trigger", due, (bench) => bench.trigger("t", "tok")],
    [
      "enqueue now",
      nothing,
      (bench) =>
        bench.store.claims.enqueueNow(
          parseTask({ id: "t", type: "noop", queue: QUEUE, schedule: { at: START } }),
          { key: "k", token: "tok", node: "test" },
          ENTERED,
        ),
    ],
    [
      "settle",
      running,
      async (bench) => {
        const end = { fence: await fence(bench), outcome: "failed", error: "no" } as const;
        // A resend is still the report of this attempt, not of another one.
        expect(await bench.store.runs.settle(bench.name("t"), await run(bench), end)).toBe("OK");
      },
    ],
    [
      "settle an attempt, another is left",
      running,
      async (bench) => {
        const end = { fence: await fence(bench), outcome: undefined, error: "no" } as const;
        await bench.store.runs.settle(bench.name("t"), await run(bench), end);
      },
    ],
    [
      "reconcile that removes",
      async (bench) => {
        await finished(bench);
        await bench.store.runs.reconcile(QUEUE);
        await bench.clock.advance(600_000);
      },
      (bench) => bench.store.runs.reconcile(QUEUE),
    ],
  ];

  /** State after the act, without ids of streams and marks of the registry, which always differ. */
  async function outcome(url: string, namespace: string, before: Act, act: Act, lose?: number) {
    const bench = await Bench.open(url, { namespace });
    await before(bench);
    if (lose !== undefined) proxy.lose(lose);
    await act(bench);
    const lost = lose !== undefined && !proxy.calm();
    const state: Record<string, unknown> = {};
    for (const [key, held] of Object.entries(await bench.dump())) {
      const value = (held as { value: unknown }).value;
      if (key.endsWith(":stalled-check")) continue;
      if (key.endsWith(":completed")) state[key] = (value as string[])[0];
      else if (key.endsWith(":queues")) state[key] = Object.keys(value as object);
      else if (key.endsWith(":events") || key.endsWith("~skips"))
        state[key] = (value as [string, string[]][]).map(([, fields]) => fields);
      else if (key.includes(":bells:t@")) {
        const { processedOn: _, finishedOn: __, ...rest } = value as Record<string, string>;
        state[key] = rest;
      } else state[key] = value;
      if (typeof state[key] === "object" && "started" in (state[key] as object)) {
        delete (state[key] as Record<string, unknown>)["started"];
      }
    }
    await bench.close();
    return { state: JSON.parse(JSON.stringify(state).replaceAll(`{${namespace}`, "{s")), lost };
  }

  it.each(acts)("to %s has no second effect", async (_what, before, act) => {
    serial += 1;
    // Loads the scripts into the server: otherwise the first lost answer is only NOSCRIPT.
    const wanted = await outcome(proxy.url, `s${serial}`, before, act);
    for (let n = 0; ; n++) {
      const got = await outcome(proxy.url, `s${serial}n${n}`, before, act, n);
      expect(got.state).toEqual(wanted.state);
      if (!got.lost) {
        // Every answer of the act was lost once.
        expect(n).toBeGreaterThan(0);
        return;
      }
    }
  });

  it("to a reconcile repeats it soon, and settles each run once", async () => {
    for (let n = 0; ; n++) {
      const bench = await Bench.open(proxy.url, { namespace: `reconcile${n}` });
      // Loads the script into the server.
      await bench.store.runs.reconcile(QUEUE);
      await finished(bench);
      proxy.lose(n);
      await bench.store.runs.reconcile(QUEUE);
      const lost = !proxy.calm();
      await bench.clock.advance(5_000);
      await bench.store.runs.reconcile(QUEUE);
      const [settled] = await bench.store.runs.list(bench.name("t"), 1);
      expect(settled).toMatchObject({ state: "final", outcome: "succeeded" });
      expect(await bench.store.runs.stats(bench.name("t"))).toMatchObject({ succeeded: "1" });
      await bench.close();
      if (lost) continue;
      expect(n).toBeGreaterThan(0);
      return;
    }
  });

  it("to a start keeps the attempt, with the fence of the last answer", async () => {
    const bench = await Bench.open(proxy.url, { namespace: "start" });
    await claimed(bench);
    const id = await run(bench);
    proxy.lose(0);
    await bench.work("t", id);
    await bench.close();
  });

  it("to a trigger adds no second one, even if others came in between", async () => {
    const bench = await Bench.open(shaken.url, { namespace: "asked" });
    await bench.put({ id: "t", overlap: "queue-one" });
    await bench.trigger("t", "first");
    const { link } = internalsOf(bench.store);
    const { run: send } = link;
    let sent = 0;
    /** Ends the run in the way, and starts the pending occurrence. */
    const goOn = async (token: string) => {
      await bench.workAll();
      await bench.reconcile();
      await bench.clock.advance(10_000);
      await bench.reconcile();
      await bench.claim("t", token);
    };
    link.run = async (script, keys, args) => {
      const answer = await send.call(link, script, keys, args);
      if (script.name !== "commit" || sent++ > 0) return answer;
      // Its answer is lost. Meanwhile other claims come: some that enqueue nothing, triggers, and the one that this
      // test is about.
      for (const token of ["x", "y"]) {
        await bench.clock.advance(10_000);
        await bench.claim("t", token);
      }
      for (let n = 0; n < 40; n++) await bench.trigger("t", `other-${n}`);
      await goOn("z");
      return send.call(link, script, keys, args);
    };
    expect(await bench.trigger("t", "tok")).toMatchObject({ outcome: "queued" });
    link.run = send;
    await goOn("zz");
    const keys = (await bench.jobs()).map(({ data }) => data.occurrence.key);
    expect(keys.filter((key) => key === "key-tok")).toHaveLength(1);
    await bench.close();
  });

  it("to a registry mark keeps the queue registered", async () => {
    for (let n = 0; n < 6; n++) {
      const bench = await Bench.open(proxy.url, { namespace: `mark${n}` });
      proxy.lose(n);
      await bench.put({ id: "t" });
      proxy.calm();
      expect(await bench.store.registry.queues()).toEqual([QUEUE]);
      await bench.store.tasks.delete(bench.name("t"));
      // Everything is deleted, including the queue's entry in the registry.
      expect(await bench.ownKeys()).toEqual([]);
      await bench.close();
    }
  });

  it("flushed scripts are sent again", async () => {
    const bench = await Bench.open(shaken.url, { namespace: "flush" });
    const { client } = internalsOf(bench.store).link;
    const flush = () => Promise.all([client.script("FLUSH"), client.function("FLUSH")]);
    await flush();
    await bench.put({ id: "t", overlap: "allow" });
    await bench.clock.advance(10_000);
    await flush();
    const half = await bench.read("t");
    await flush();
    expect(await bench.commit(half, "a")).toEqual(["OK"]);
    await flush();
    expect(await bench.commit(half, "a")).toEqual(["DONE"]);
    await flush();
    expect(await bench.trigger("t", "m")).toMatchObject({ outcome: "enqueued" });
    await flush();
    expect(await bench.store.tasks.pause(bench.name("t"))).toBe("OK");
    await flush();
    expect(await bench.store.tasks.resume(bench.name("t"), "skip")).toBe("OK");
    await flush();
    expect((await bench.store.runs.reconcile(QUEUE)).seen).toEqual([]);
    await flush();
    expect(await bench.jobs()).toHaveLength(2);
    await bench.store.tasks.delete(bench.name("t"));
    expect(await bench.ownKeys()).toEqual([]);
    await bench.close();
  });
});
