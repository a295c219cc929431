import { parseTask, shardOf } from "@carillon/core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { ActorTimer } from "./actor.js";
import { Director, START } from "./director.js";
import { post } from "./ears.js";
import type { Equipment, Role } from "./equipment.js";
import { Ground } from "./ground.js";
import { NodeActor } from "./node-actor.js";
import { QUEUE } from "./operations.js";
import { install } from "./virtual-globals.js";
import { pass } from "./virtual-mutex.js";

const AT = START + 10_000;
const TASKS = Array.from({ length: 80 }, (_, i) => ({ id: `t${i}`, shard: shardOf(`system/t${i}`) }));

const MANY = Array.from({ length: 3_200 }, (_, i) => ({ id: `t${i}` }));

/** Two real nodes, Redis, and a time that only passes when the test says so. */
describe("what two nodes share out", () => {
  let ground: Ground;
  let equipment: Equipment;
  let director: Director;
  let nodes: NodeActor[];
  let undo: (() => void)[];
  let wrong: string[];
  /** Claims stop here: nodes that are slow. */
  let slow: boolean;
  /** How long a commit takes, in ms. */
  let takes: number;
  /** By node, the shards whose mutex it asked for, and what it enqueued. */
  let asked: Set<number>[];
  let enqueued: string[][];
  /** The node that enqueued something of a shard last. */
  let last: number[];
  let lost: number;

  beforeAll(async () => {
    ground = await Ground.open();
    equipment = await ground.equipment();
  });
  afterAll(async () => {
    await ground.close();
  });
  beforeEach(async () => {
    await ground.clear();
    director = new Director();
    [slow, takes, lost, wrong] = [false, 0, 0, []];
    [asked, enqueued, last] = [[new Set(), new Set()], [[], []], []];
    nodes = (["node-0", "node-1"] as const).map((role: Role) => {
      const { store } = equipment.of(role);
      return new NodeActor(role, { director, store, wrong: (what) => wrong.push(what) });
    });
    equipment.user = {
      director,
      pass: async (role, point) => {
        const node = nodes.find(({ name }) => name === role);
        if (!node || point !== "before commit") return;
        if (slow) await director.park(node, point);
        if (takes > 0) await new Promise((resolve) => setTimeout(resolve, takes));
      },
    };
    undo = [install(director, () => 0.5)];
    ground.listen((channel, text) => {
      for (const node of nodes) post(node, node.ears, channel, text);
    });
    await equipment.clock.set(START);
    for (const [i, node] of nodes.entries()) {
      // As nodes are, not as in the histories, where everything is a burst.
      const { burst, mutex } = node.store;
      const { take } = mutex;
      Object.assign(node.store, { burst: undefined });
      mutex.take = async (key, ttl) => {
        const [, part] = /:(\d)$/.exec(key) ?? [];
        if (part) asked[i]?.add(Number(part));
        // Nobody stands still within these: what redlock does after its answers is waited for as well.
        const lease = await director.track(take(key, ttl));
        if (!lease) return undefined;
        const { release } = lease;
        return Object.assign(lease, { release: () => director.track(release()) });
      };
      undo.push(() => {
        Object.assign(node.store, { burst });
        mutex.take = take;
      });
      await node.start();
      node.scheduler?.on("decided", ({ task }) => {
        enqueued[i]?.push(task);
        last[shardOf(task)] = i;
      });
      node.scheduler?.on("lost", () => {
        lost += 1;
      });
    }
    await until(START + 1);
  });
  afterEach(async () => {
    for (const back of undo) back();
    equipment.user = undefined;
    await ground.clear();
  });

  /** All that is to be done before that time, and at it. */
  async function until(time: number): Promise<void> {
    for (;;) {
      await rest();
      const timers = nodes.flatMap((node) => [...node.timers]);
      const next = Math.min(time - START, ...timers.map(({ at }) => at));
      if (next <= director.elapsed) return;
      const ms = next - director.elapsed;
      director.elapsed = next;
      await equipment.clock.advance(ms);
      await pass(equipment.observer, equipment.observer.keys.queue(QUEUE), ms);
    }
  }

  /** All that is to be done now. */
  async function rest(): Promise<void> {
    for (;;) {
      await ground.caughtUp();
      const node = nodes.find(({ mail }) => mail.length > 0);
      const mail = node?.mail.shift();
      const [timer] = nodes.flatMap((one) => one.dueTimers(director.elapsed));
      if (node && mail) await director.move(node, () => node.ears?.emit("message", mail.channel, mail.text));
      else if (timer) await director.fire(timer);
      else return;
    }
  }

  /** The slow ones go on. */
  async function goOn(): Promise<void> {
    slow = false;
    for (const node of nodes) {
      for (const park of [...node.parks]) {
        node.release(park);
        await director.move(node, park.go, 3);
      }
    }
  }

  const put = (tasks: readonly { id: string }[] = TASKS) =>
    equipment.observer.tasks.put(
      QUEUE,
      tasks.map(({ id }) => parseTask({ id, type: "noop", queue: QUEUE, schedule: { at: AT } })),
    );

  it.each([
    ["known long before", 5_000],
    ["known when its time was near", 300],
  ])("%s: each node takes its own shards, and nobody tries another's", async (_how, before) => {
    await until(AT - before);
    await put();
    await until(AT - 1);
    expect(asked.map((shards) => shards.size)).toEqual([0, 0]);
    slow = true;
    // The glance at what the other has comes later.
    await until(AT + 149);
    const shares = asked.map((shards) => [...shards].sort());
    expect(shares.map(({ length }) => length)).toEqual([4, 4]);
    expect(shares.flat().sort()).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    expect(enqueued.flat()).toEqual([]);
    await goOn();
    await until(AT + 5_000);
    for (const [i, share] of shares.entries())
      expect(enqueued[i]?.sort()).toEqual(
        TASKS.filter(({ shard }) => share.includes(shard))
          .map(({ id }) => `system/${id}`)
          .sort(),
      );
    expect(lost).toBe(0);
    expect(wrong).toEqual([]);
  });

  it("known too late: it is claimed as ever", async () => {
    await until(AT - 10);
    await put();
    await until(AT + 5_000);
    expect(enqueued.flat().sort()).toEqual(TASKS.map(({ id }) => `system/${id}`).sort());
    expect(wrong).toEqual([]);
  });

  it("of a node that stands still: the other takes what is left once it may", async () => {
    await until(AT - 5_000);
    await put();
    await until(AT - 1);
    const [, still] = nodes as [NodeActor, NodeActor];
    const timers = [...still.timers];
    still.timers.clear();
    await until(AT + 149);
    expect(asked[0]?.size).toBe(4);
    await until(AT + 1_000);
    expect(enqueued[0]?.sort()).toEqual(TASKS.map(({ id }) => `system/${id}`).sort());
    for (const timer of timers) still.timers.add(timer);
    await until(AT + 5_000);
    expect(enqueued[1]).toEqual([]);
    expect(wrong).toEqual([]);
  });

  /** Each shard has more than one turn's work. Node 1 does nothing yet. @returns its timers */
  async function backlog(tasks = MANY): Promise<ActorTimer[]> {
    await until(AT - 10);
    await put(tasks);
    await until(AT - 1);
    takes = 100;
    const { timers } = nodes[1] as NodeActor;
    const still = [...timers];
    timers.clear();
    await until(AT + 500);
    expect(enqueued[1]).toEqual([]);
    return still;
  }

  it("a backlog goes on where its share is, whoever had it first", async () => {
    for (const timer of await backlog()) nodes[1]?.timers.add(timer);
    await until(AT + 1_500);
    const settled = [...last];
    expect(settled.filter((node) => node === 0)).toHaveLength(4);
    const soFar = enqueued.map(({ length }) => length);
    const asks = lost;
    await until(AT + 5_000);
    // Both are at it, nobody gets in the other's way, and there is no going to and fro.
    expect(last).toEqual(settled);
    for (const [i, tasks] of enqueued.entries()) expect(tasks.length).toBeGreaterThan(soFar[i] as number);
    expect(lost - asks).toBeLessThanOrEqual(4);
    await until(AT + 30_000);
    expect(last).toEqual(settled);
    expect(enqueued.flat().sort()).toEqual(MANY.map(({ id }) => `system/${id}`).sort());
    expect(wrong).toEqual([]);
  });

  it("a backlog of which nobody takes its share is not left for long", async () => {
    const others = MANY.filter(({ id }) => (shardOf(`system/${id}`) + shardOf(QUEUE)) % 2 === 1);
    await backlog(others);
    // Four shards side by side, 10 tasks each 100 ms: left after each turn of 200 ms, it would be half.
    await until(AT + 4_000);
    expect(enqueued[0]?.length).toBeGreaterThan(0.9 * 4 * 10 * 40);
    await until(AT + 10_000);
    expect(enqueued[0]?.sort()).toEqual(others.map(({ id }) => `system/${id}`).sort());
    expect(wrong).toEqual([]);
  });
});
