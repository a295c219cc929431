import { parseTask } from "@carillon/core";
import { FORMAT_VERSION, shardOf } from "@carillon/core/internal";
import { internalsOf } from "@carillon/store/internal";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { Ownership } from "../../src/claim/ownership.js";
import { Reader } from "../../src/loop/reader.js";
import { Director, START } from "./director.js";
import { post } from "./ears.js";
import type { Equipment, Role } from "./equipment.js";
import { Ground } from "./ground.js";
import { NodeActor } from "./node-actor.js";
import { QUEUE } from "./operations.js";
import { install } from "./virtual-globals.js";
import { pass } from "./virtual-mutex.js";

type Internals = ReturnType<typeof internalsOf>;

const AT = START + 10_000;
const TASKS = Array.from({ length: 80 }, (_, i) => ({ id: `t${i}`, shard: shardOf(`system/t${i}`) }));

/** Two real nodes and Redis, in a time that passes only when the test says so. */
describe("shards of a queue between two nodes", () => {
  let ground: Ground;
  let equipment: Equipment;
  let director: Director;
  let nodes: NodeActor[];
  let undo: (() => void)[];
  let wrong: string[];
  /** Claims stop here: the nodes are slow. */
  let slow: boolean;
  /** The number of times that each node asked for the queue's mutex, and the tasks that it enqueued. */
  let asked: number[];
  let enqueued: string[][];
  let lost: number;
  /** Time in ms that a commit takes. */
  let costs: number;
  /** Commits that were sent, and times that the queue was taken from its owner. */
  let [commits, taken] = [0, 0];

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
    [slow, costs, lost, commits, taken, wrong] = [false, 0, 0, 0, 0, []];
    asked = [0, 0];
    enqueued = [[], []];
    nodes = (["node-0", "node-1"] as const).map((role: Role) => {
      const { store } = equipment.of(role);
      return new NodeActor(role, { director, store, wrong: (what) => wrong.push(what) });
    });
    equipment.user = {
      director,
      pass: async (role, point) => {
        const node = nodes.find(({ name }) => name === role);
        if (point === "before commit") commits += 1;
        if (point === "before free") taken += 1;
        if (costs > 0 && node && point === "before commit")
          await director.park(node, point, String(director.elapsed + costs));
        if (slow && node && point === "before commit") await director.park(node, point);
      },
    };
    undo = [install(director, () => 0.5)];
    ground.listen((channel, text) => {
      for (const node of nodes) post(node, node.ears, channel, text);
    });
    await equipment.clock.set(START);
    for (const [i, node] of nodes.entries()) {
      const { mutex } = internalsOf(node.store);
      const { take } = mutex;
      mutex.take = async (key, ttl) => {
        if (key.endsWith(":shards")) asked[i] = (asked[i] ?? 0) + 1;
        // Actors never stop within these calls: waits for redlock's work after its answers too.
        const lease = await director.track(take(key, ttl));
        if (!lease) return undefined;
        const { extend, release } = lease;
        return Object.assign(lease, {
          extend: (more: number) => director.track(extend(more)),
          release: () => director.track(release()),
        });
      };
      undo.push(() => {
        mutex.take = take;
      });
      await node.start();
      node.scheduler?.on("decided", ({ task }) => enqueued[i]?.push(task));
      node.scheduler?.on("lost", () => {
        lost += 1;
      });
    }
    await until(START + 1);
  });
  afterEach(async () => {
    vi.restoreAllMocks();
    for (const back of undo) back();
    equipment.user = undefined;
    await ground.clear();
  });

  /** Does all work that is due before that time, and at it. */
  async function until(time: number): Promise<void> {
    for (;;) {
      await rest();
      const timers = nodes.flatMap((node) => [...node.timers]);
      const ends = costly().map(({ park }) => Number(park.key));
      const next = Math.min(time - START, ...ends, ...timers.map(({ at }) => at));
      if (next <= director.elapsed) return;
      const ms = next - director.elapsed;
      director.elapsed = next;
      await equipment.clock.advance(ms);
      await pass(equipment.observer, internalsOf(equipment.observer).keys.queue(QUEUE), ms);
    }
  }

  /** Commits that take a while; their keys are the times of their ends. */
  const costly = () =>
    nodes.flatMap((node) => node.parks.filter(({ key }) => key !== "").map((park) => ({ node, park })));

  /** Does all work that is due now. */
  async function rest(): Promise<void> {
    for (;;) {
      await ground.caughtUp();
      const node = nodes.find(({ mail }) => mail.length > 0);
      const mail = node?.mail.shift();
      const [timer] = nodes.flatMap((one) => one.dueTimers(director.elapsed));
      const end = costly().find(({ park }) => Number(park.key) <= director.elapsed);
      if (end) {
        end.node.release(end.park);
        await director.move(end.node, end.park.go, 3);
      } else if (node && mail)
        await director.move(node, () => node.ears?.emit("message", mail.channel, mail.text));
      else if (timer) await director.fire(timer);
      else return;
    }
  }

  /** Loses the messages that were published so far. */
  async function loseMail(): Promise<void> {
    await ground.caughtUp();
    for (const node of nodes) node.mail.length = 0;
  }

  /** Lets the slow nodes continue. */
  async function goOn(): Promise<void> {
    [slow, costs] = [false, 0];
    for (const node of nodes) {
      for (const park of [...node.parks]) {
        node.release(park);
        await director.move(node, park.go, 3);
      }
    }
  }

  const put = () =>
    equipment.observer.tasks.put(
      QUEUE,
      TASKS.map(({ id }) => parseTask({ id, type: "noop", queue: QUEUE, schedule: { at: AT } })),
    );

  /** Whether each node asks for the mutex, if tasks become known that long before. The nodes stop before the commit. */
  async function tried(before: number): Promise<boolean[]> {
    await until(AT - before);
    await put();
    slow = true;
    // The check of the other node's shards comes later.
    await until(AT + 149);
    return asked.map((times) => times > 0);
  }

  /** The node that asks for the mutex, and the other. */
  function inOrder(): [owner: number, other: number] {
    const owner = asked.findIndex((times) => times > 0);
    return [owner, 1 - owner];
  }

  it.each([
    ["known long before", 5_000],
    ["known when its time was near", 300],
  ])("%s: one node claims from all shards, and the other tries none", async (_how, before) => {
    const tries = await tried(before);
    const [owner, other] = inOrder();
    expect([tries[owner], tries[other]]).toEqual([true, false]);
    expect(enqueued.flat()).toEqual([]);
    await goOn();
    await until(AT + 5_000);
    expect(enqueued[owner]?.sort()).toEqual(TASKS.map(({ id }) => `system/${id}`).sort());
    expect(enqueued[other]).toEqual([]);
    expect(lost).toBe(0);
    expect(wrong).toEqual([]);
  });

  it("control: nodes that know no shares all try", async () => {
    vi.spyOn(Ownership.prototype, "learn").mockResolvedValue(false);
    expect(await tried(5_000)).toEqual([true, true]);
  });

  it("is claimed as usual if it is detected too late", async () => {
    await until(AT - 10);
    await put();
    await until(AT + 5_000);
    expect(enqueued.flat().sort()).toEqual(TASKS.map(({ id }) => `system/${id}`).sort());
    expect(wrong).toEqual([]);
  });

  it("control: a frozen owner that nobody relieves keeps its shards", async () => {
    vi.spyOn(Ownership.prototype, "takeOver").mockResolvedValue(false);
    await until(AT - 5_000);
    await put();
    await until(AT - 1);
    nodes[inOrder()[0]]?.timers.clear();
    await until(AT + 250);
    expect(enqueued.flat()).toEqual([]);
  });

  it("a frozen owner is relieved within 250 ms, and its decided batches change nothing when it wakes", async () => {
    await until(AT - 5_000);
    await put();
    await until(AT - 1);
    const [owner, other] = inOrder();
    const still = nodes[owner] as NodeActor;
    const timers = [...still.timers];
    still.timers.clear();
    await until(AT + 190);
    expect(enqueued.flat()).toEqual([]);
    await until(AT + 250);
    expect(enqueued[other]?.sort()).toEqual(TASKS.map(({ id }) => `system/${id}`).sort());
    // Frozen for longer than its lease.
    await until(AT + 4_000);
    for (const timer of timers) still.timers.add(timer);
    await until(AT + 8_000);
    expect(enqueued[owner]).toEqual([]);
    expect(wrong).toEqual([]);
  });

  it("an owner that is late, but has just claimed, keeps its shards", async () => {
    await until(AT - 5_000);
    await put();
    await until(AT - 1);
    nodes[inOrder()[0]]?.timers.clear();
    await until(AT + 190);
    const { link, keys } = internalsOf(equipment.observer);
    await link.ask((client) => client.set(keys.queue(QUEUE).late, `${AT} ${AT + 190}`));
    await until(AT + 350);
    expect(enqueued.flat()).toEqual([]);
    await until(AT + 700);
    expect(enqueued.flat()).toHaveLength(TASKS.length);
    expect(wrong).toEqual([]);
  });

  it("nodes that are late themselves take no shards from each other", async () => {
    await equipment.observer.tasks.put(
      QUEUE,
      TASKS.map(({ id }) =>
        parseTask({
          id,
          type: "noop",
          queue: QUEUE,
          schedule: { every: "1s" },
          overlap: "allow",
          catchUp: "all",
        }),
      ),
    );
    await until(AT);
    // A backlog of a minute, and nodes that take long for each commit.
    await equipment.clock.advance(60_000);
    costs = 400;
    await until(AT + 20_000);
    await goOn();
    expect(taken).toBeLessThan(20);
  });

  it("owners wait for a clock of Redis that went back, and do not send their decisions again and again", async () => {
    await until(AT - 5_000);
    await put();
    await until(AT - 1);
    await equipment.clock.advance(-3_000);
    await until(AT + 2_999);
    expect(enqueued.flat()).toEqual([]);
    expect(commits).toBeLessThan(50);
    await until(AT + 3_500);
    expect(enqueued.flat().sort()).toEqual(TASKS.map(({ id }) => `system/${id}`).sort());
    expect(wrong).toEqual([]);
  });

  it("a lost wake message delays claims until the next re-read at most", async () => {
    await until(AT - 5_000);
    await put();
    await loseMail();
    await until(AT + 31_000);
    expect(enqueued.flat().sort()).toEqual(TASKS.map(({ id }) => `system/${id}`).sort());
    expect(wrong).toEqual([]);
  });

  it("control: tasks whose wake message is lost are never claimed if nobody reads again", async () => {
    await until(AT - 5_000);
    await put();
    await loseMail();
    vi.spyOn(Reader.prototype, "read").mockReturnValue();
    vi.spyOn(Reader.prototype, "nextAt", "get").mockReturnValue(Number.POSITIVE_INFINITY);
    await until(AT + 61_000);
    expect(enqueued.flat()).toEqual([]);
  });

  it("an owner renews its mutex while tasks come due, and leaves none behind when nothing does", async () => {
    const { observer } = equipment;
    const ids = TASKS.slice(0, 40).map(({ id }) => id);
    await observer.tasks.put(
      QUEUE,
      ids.map((id) =>
        parseTask({ id, type: "noop", queue: QUEUE, schedule: { every: "1s" }, overlap: "allow" }),
      ),
    );
    await until(AT);
    asked = [0, 0];
    await until(AT + 5_000);
    // Renewed, not taken again.
    expect(asked).toEqual([0, 0]);
    expect(lost).toBe(0);
    const { link, keys } = internalsOf(observer);
    const held = () => link.ask((client) => client.exists(keys.queue(QUEUE).mutex("shards")));
    expect(await held()).toBe(1);
    await observer.tasks.delete({ queue: QUEUE, owner: "system", id: ids[0] as string });
    for (const id of ids.slice(1)) await observer.tasks.delete({ queue: QUEUE, owner: "system", id });
    await until(AT + 15_000);
    expect(await held()).toBe(0);
    expect(wrong).toEqual([]);
  });

  /** The number of runs that a node enqueues in the seconds after it has joined another. */
  async function joined(before: () => void = () => {}): Promise<number> {
    await equipment.observer.tasks.put(
      QUEUE,
      TASKS.map(({ id }) =>
        parseTask({ id, type: "noop", queue: QUEUE, schedule: { every: "1s" }, overlap: "allow" }),
      ),
    );
    await until(AT);
    const [owner, other] = inOrder();
    const [first, second] = [nodes[other], nodes[owner]] as [NodeActor, NodeActor];
    await director.move(second, () => void second.scheduler?.stop());
    await until(AT + 8_000);
    expect(new Set(enqueued[other]?.slice(-TASKS.length)).size).toBe(TASKS.length);
    before();
    await second.start();
    second.scheduler?.on("decided", ({ task }) => enqueued[owner]?.push(task));
    const earlier = enqueued[owner]?.length ?? 0;
    await until(AT + 20_000);
    expect(first.scheduler?.ready).toBe(true);
    expect(wrong).toEqual([]);
    return (enqueued[owner]?.length ?? 0) - earlier;
  }

  it("a node that joins takes its queue over from the owner", async () => {
    expect(await joined()).toBeGreaterThan(4 * 20);
  });

  it("control: an owner that does not learn of a new node gives up nothing", async () => {
    const runs = await joined(() => void vi.spyOn(Ownership.prototype, "learn").mockResolvedValue(false));
    expect(runs).toBe(0);
  });

  const { local, shard: SHARD } = { local: "system/t0", shard: shardOf("system/t0") };
  const newer = ({ link, keys }: Internals) =>
    link.ask((client) => client.hset(keys.queue(QUEUE).task(local), "v", FORMAT_VERSION + 1));
  const dueNow = ({ link, keys }: Internals, part: string) =>
    link.ask((client) => client.zadd(keys.queue(QUEUE).next, 1, part));

  it.each<[what: string, part: string, rest: number, make: (internals: Internals) => Promise<unknown>]>([
    ["a part of a newer node", "z", 1_000, (internals) => dueNow(internals, "z")],
    ["a shard of nothing but a newer node's tasks", String(SHARD), 1_000, newer],
    [
      "a shard that cannot be claimed",
      String(SHARD),
      2_000,
      ({ link, keys }) => link.ask((client) => client.set(keys.queue(QUEUE).due(SHARD), "not ours")),
    ],
    [
      "nothing but alerts of a newer node's tasks",
      "a",
      1_000,
      async (internals) => {
        await newer(internals);
        const alert = JSON.stringify({ kind: "failed", task: local, run: "r1", at: AT });
        await internals.link.ask((client) => client.rpush(internals.keys.queue(QUEUE).alerts, alert));
        await dueNow(internals, "a");
      },
    ],
  ])("what a node cannot do is left alone for a moment: %s", async (_what, part, rest, make) => {
    const [only, other] = nodes as [NodeActor, NodeActor];
    await director.move(other, () => void other.scheduler?.stop());
    await until(AT - 1_000);
    const { observer } = equipment;
    const task = parseTask({ id: "t0", type: "noop", queue: QUEUE, schedule: { every: "1s" } });
    await observer.tasks.put(QUEUE, [task]);
    await make(internalsOf(observer));
    await loseMail();
    const begun: number[] = [];
    const { mutex, keys } = internalsOf(only.store);
    const { take } = mutex;
    mutex.take = (key, ttl) => {
      if (key === keys.queue(QUEUE).mutex(part) && part !== String(SHARD)) begun.push(director.elapsed);
      return take(key, ttl);
    };
    // The mutex of the shards stays with their owner.
    const { claims } = only.store;
    const { readDue } = claims;
    claims.readDue = (queue, shard, limit, which = {}) => {
      if (String(shard) === part && which.names === undefined) begun.push(director.elapsed);
      return readDue.call(claims, queue, shard, limit, which);
    };
    undo.push(() => {
      claims.readDue = readDue;
    });
    await until(AT + 60_000);
    const waits = begun.slice(1).map((at, i) => at - (begun[i] as number));
    expect(waits.length).toBeGreaterThan(10);
    expect(Math.min(...waits)).toBeGreaterThanOrEqual(rest);
  });
});
