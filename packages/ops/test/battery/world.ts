import type { TaskInput, TaskName } from "@carillon/core";
import { Scheduler } from "@carillon/scheduler";
import { Client } from "@carillon/sdk";
import { Store } from "@carillon/store";
import { internalsOf, withSeams } from "@carillon/store/internal";
import type { RedisServer } from "@carillon/testing";
import { Redis } from "ioredis";
import { attempt, nodeInfo, SILENT, workerInfo } from "../../../../test/helpers.js";
import { operatorOf } from "../../src/operator.js";

export const START = Date.parse("2026-01-01T00:00:00Z");
const MINUTE = 60_000;
export const NOW = START + 12 * MINUTE;
const QUEUE = "bells";
const OTHER = "gongs";
const OWNER = "acme";
const NAMESPACE = "battery";
const CLOCK = `{${NAMESPACE}}:~clock`;
const CLOCK_LUA = `local clock = tonumber(redis.call("GET", "${CLOCK}"))
local time = redis.call("TIME")
local function nowMs() return clock end
local function nowMicros() return string.format("%.0f", clock * 1000) end`;

/** All keys but the change log and those that are kept for a day: marks of changes, which are random, and the like. */
const CONTENT = `local found = {}
local read = { hash = { "HGETALL" }, string = { "GET" }, list = { "LRANGE", 0, -1 }, set = { "SMEMBERS" }, stream = { "XRANGE", "-", "+" },
  zset = { "ZRANGE", 0, -1, "WITHSCORES" } }
for _, key in ipairs(redis.call("KEYS", "*")) do
  local ttl = redis.call("PTTL", key)
  if (ttl < 0 or ttl > 86400000) and not key:find("}:changes$") and not key:find("marks$") then
    local type = redis.call("TYPE", key).ok
    local how = read[type]
    found[#found + 1] = { key, type, redis.call(how[1], key, unpack(how, 2)) }
  end
end
return found`;

/** Random parts of ids: 64 bits as 13 characters, 6 or 8 bytes in hex. */
const RANDOM = /(?<![0-9a-z])(?=\d*[a-z])([0-9a-z]{13}|[0-9a-f]{12}|[0-9a-f]{16})(?![0-9a-z])/g;

/** Ids that the world's own calls have made. */
export type Ids = Readonly<
  Record<
    "run" | "open" | "items" | "backfill" | "batch" | "freeze" | "silence" | "change" | "deleted",
    string
  >
>;

interface StoredKey {
  readonly key: string;
  readonly ttl: number;
  readonly value: Buffer;
}

/** A program with a connection of its own. */
export interface Program {
  readonly store: Store;
  readonly client: Client;
}

/** A namespace with an example of each thing that operations change or read. Built once; `again` restores it. */
export class World {
  readonly redis: Redis;
  readonly ids: Ids;
  readonly #server: RedisServer;
  readonly #keys: readonly StoredKey[];
  readonly #open: Store[] = [];
  now = NOW;

  private constructor(server: RedisServer, redis: Redis, ids: Ids, keys: readonly StoredKey[]) {
    this.#server = server;
    this.redis = redis;
    this.ids = ids;
    this.#keys = keys;
  }

  static async build(server: RedisServer): Promise<World> {
    const redis = new Redis(server.url);
    await redis.flushall();
    const draft = new World(server, redis, {} as Ids, []);
    const ids = await furnish(draft);
    await draft.left();
    return new World(server, redis, ids, await draft.save());
  }

  /** All that is stored. */
  async save(): Promise<readonly StoredKey[]> {
    const names = (await this.redis.keys("*")).sort();
    return Promise.all(
      names.map(async (key) => {
        const [ttl, value] = await Promise.all([this.redis.pttl(key), this.redis.dumpBuffer(key)]);
        return { key, ttl: Math.max(ttl, 0), value };
      }),
    );
  }

  /** The world as it was built. @param keys or as it was saved since */
  async again(keys = this.#keys): Promise<void> {
    const pipeline = this.redis.pipeline().flushall();
    for (const { key, ttl, value } of keys) pipeline.restore(key, ttl, value);
    await pipeline.exec();
    this.now = NOW;
  }

  async setTime(time: number): Promise<void> {
    this.now = time;
    await this.redis.set(CLOCK, String(time));
  }

  program(options: { owner?: string } = {}): Program {
    const store = this.#store();
    return { store, client: new Client({ store, ...options }) };
  }

  #store(): Store {
    const options = { connection: this.#server.url, namespace: NAMESPACE, readyTimeout: 20_000 };
    const store = new Store(withSeams(options, { time: { lua: CLOCK_LUA } }));
    store.serverTime = async () => this.now;
    this.#open.push(store);
    return store;
  }

  node(): Scheduler {
    return new Scheduler({ store: this.#store(), nodeId: "node", logger: SILENT });
  }

  /** A value for an input field of an operation that its example does not give. @param noun before it in the path, "" none */
  valueOf(operation: string, noun: string, field: string): unknown {
    const { ids } = this;
    const of: Readonly<Record<string, unknown>> = {
      "backfills.cancel.id": ids.batch,
      "runs.cancel.id": ids.open,
      "runs.id": ids.items,
      "changes.id": ids.change,
      "freezes.id": ids.freeze,
      "silences.id": ids.silence,
      "backfills.id": ids.backfill,
      "calendars.name": "holidays",
      "sets.set": "crew",
      "types.type": "ring",
      from: START,
      to: NOW,
      time: NOW,
      at: NOW,
      zone: "UTC",
      id: "t1",
      queue: QUEUE,
      owner: OWNER,
    };
    return of[`${operation}.${field}`] ?? of[`${noun}.${field}`] ?? of[field];
  }

  /** Lets nodes do all that is due in the next minutes. */
  async runOut(): Promise<void> {
    const node = this.node();
    for (const span of [0, 3, 3, 3, 3, MINUTE, MINUTE, MINUTE, MINUTE, 4 * MINUTE]) {
      await this.setTime(this.now + span);
      await node.tick();
    }
  }

  /** The newest change that can be undone, if it is not the world's own. */
  async undoable(): Promise<string | undefined> {
    const { changes } = await operatorOf(this.program().client).changes.list({ limit: 10 });
    const id = changes.find(({ undo }) => undo !== undefined)?.id;
    return id === this.ids.change ? undefined : id;
  }

  /** All that is stored, as one text, with random ids masked. */
  async content(): Promise<string> {
    const found = (await this.redis.eval(CONTENT, 0)) as [key: string, type: string, value: unknown][];
    const lines = found.map(([key, type, value]) => {
      const pairs =
        type === "hash"
          ? (value as string[]).flatMap((one, i, all) => (i % 2 ? [] : [`${one}=${all[i + 1]}`])).sort()
          : value;
      return JSON.stringify([key, pairs]).replace(RANDOM, "#");
    });
    return lines.sort().join("\n");
  }

  /** Closes all programs and nodes. */
  async left(): Promise<void> {
    await Promise.all(this.#open.splice(0).map((store) => store.close()));
  }

  async close(): Promise<void> {
    await this.left();
    this.redis.disconnect();
  }
}

export const nameOf = (id: string, queue = QUEUE): TaskName => ({ queue, owner: OWNER, id });

async function furnish(world: World): Promise<Ids> {
  await world.setTime(START);
  const { store, client } = world.program();
  const ops = operatorOf(client);
  const put = (id: string, more: Partial<TaskInput> = {}) =>
    client.put({
      ...nameOf(id),
      type: "ring",
      schedule: { every: "1m" },
      overlap: "allow",
      catchUp: "all",
      payload: {},
      ...more,
    });
  for (const name of ["holidays", "spare"]) await ops.calendars.put({ name, entries: ["2026-12-25"] });
  for (const id of ["t1", "t2"]) await put(id, { tags: ["due"] });
  for (const id of ["p1", "p2"]) {
    await put(id, { tags: ["paused"], schedule: { every: "4m" } });
    await client.pause(nameOf(id), { by: "ann", note: "incident" });
  }
  const nightly = (hour: number, more: object = {}) => ({
    schedule: { cron: `0 ${hour} * * *`, ...more } as TaskInput["schedule"],
  });
  await put("m1", { ...nightly(2), tags: ["moved"] });
  for (const id of ["u1", "u2"]) await put(id, { ...nightly(3), tags: ["nightly"] });
  for (const id of ["v1", "v2"]) await put(id, nightly(4));
  await put("k1", nightly(5, { except: [{ named: "holidays" }] }));
  for (const id of ["f1", "f2"]) await put(id, { ...nightly(6), tags: ["failing"] });
  await put("c1", { ...nightly(7), tags: ["open"] });
  await put("d1", nightly(8));
  await client.delete(nameOf("d1"));
  await put("g1", { queue: OTHER, ...nightly(9) });
  await ops.sets.apply({
    set: "crew",
    version: "1",
    tasks: ["s1", "s2"].map((id) => ({ ...nameOf(id), type: "ring", ...nightly(10) })),
  });
  await ops.tasks.spread({ at: START + 4 * 60 * MINUTE, jitter: "5m" });
  await world.setTime(NOW);
  const node = world.node();
  for (let n = 0; n < 20; n++) await node.tick();
  const runs: string[] = [];
  for (const id of ["f1", "f2", "f2"]) {
    const { run } = (await client.trigger(nameOf(id))) as { run: string };
    const { fence } = (await store.runs.start(nameOf(id), run, attempt())) as { fence: number };
    const end = { fence, outcome: "failed", error: "no" } as const;
    await store.runs.settle(nameOf(id), run, end);
    runs.push(run);
  }
  const open = (await client.trigger(nameOf("c1"))) as { run: string };
  const { run, open: items } = { run: runs[0] as string, open: runs[1] as string };
  const { link, keys } = internalsOf(store);
  await link.ask((redis) =>
    redis.hset(keys.queue(QUEUE).items(items), {
      n: 2,
      most: 1,
      0: "failed 1 1 1 1 - - 0\n{}",
      d0: "0",
      1: "completed 1 1 1 1 - - 0\n{}",
      d1: "1",
    }),
  );
  const backfill = await ops.backfills.start({
    ...nameOf("t2"),
    from: START,
    to: START + 3 * MINUTE,
    every: "1m",
  });
  const { batch } = await ops.backfills.startMany({
    tag: "nightly",
    from: START - 86_400_000,
    to: NOW,
    perMinute: 60,
  });
  const freeze = await ops.freezes.put({ owner: "cold" });
  const silence = await ops.silences.put({ owner: OWNER, until: Date.now() + 3_600_000 });
  await ops.tokens.create({ name: "ci", role: "viewer" });
  await ops.quotas.set({ scope: "all", tasks: 1_000 });
  await ops.defaults.set({ scope: "owner:cold", policies: { timeLimit: "1h" } });
  await ops.queues.limit({ queue: QUEUE, owner: "cold", runs: 5 });
  await ops.queues.pause({ queue: OTHER });
  await store.registry.beat(nodeInfo("old"));
  await store.registry.beatWorker(workerInfo("worker", { queues: [QUEUE], types: ["ring"] }));
  const { changes } = await ops.changes.list({});
  const change = changes.find(({ undo }) => undo !== undefined);
  return {
    run,
    items,
    open: open.run,
    backfill: backfill.id as string,
    batch: batch as string,
    freeze: freeze.id,
    silence: silence.id,
    change: change?.id as string,
    deleted: "d1",
  };
}
