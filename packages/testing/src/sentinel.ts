import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { eventually } from "./eventually.js";
import {
  LOG,
  launch,
  type RedisServer,
  type RedisServerOptions,
  startRedis,
  withConnection,
} from "./redis.js";
import { tlsConfig } from "./tls.js";

const MASTER_NAME = "carillon";
/** Longest wait for a Sentinel's answer. */
const GLANCE_MS = 1_000;
/** Sentinels exchange their state every two seconds, and the machine may be busy. */
const PATIENCE = { timeoutMs: 30_000, intervalMs: 50 };

export interface SentinelOptions
  extends Pick<RedisServerOptions, "appendonly" | "config" | "tls" | "acl" | "password" | "env"> {
  /** Default 2. */
  replicas?: number;
  /** Default 3; more than half of them must agree on a failover. */
  sentinels?: number;
  /** Silence of a master after which a Sentinel considers it down, in ms; default 1,000. */
  downAfterMs?: number;
  /** Password of the Sentinels. */
  sentinelPassword?: string;
}

export interface RedisSentinel {
  /** Value for `REDIS_URL`: the Sentinels, the master's name, and the passwords if there are any. */
  readonly url: string;
  readonly masterName: string;
  /** The master as last known: from the start, `currentMaster()` or `failover()`. */
  readonly master: RedisServer;
  /** Master and replicas. */
  readonly servers: readonly RedisServer[];
  readonly sentinels: readonly RedisServer[];
  /** The current master according to the Sentinels; after `master.kill()` it changes within a few seconds. */
  currentMaster(): Promise<RedisServer>;
  /** Makes the Sentinels promote a replica while the master is up, and waits until all of them report it. */
  failover(): Promise<void>;
  stop(): Promise<void>;
}

/** A real master with replicas, watched by real Sentinels that fail over quickly: about two seconds. */
export async function startSentinel(options: SentinelOptions = {}): Promise<RedisSentinel> {
  const count = options.replicas ?? 2;
  const servers: RedisServer[] = [];
  const sentinels: RedisServer[] = [];
  const stop = async () => {
    await Promise.all(sentinels.map((one) => one.stop()));
    await Promise.all(servers.map((one) => one.stop()));
  };
  try {
    const first = await startRedis(options);
    servers.push(first);
    const replicaof = [first.host, first.port];
    const config = { "replica-read-only": "yes", ...options.config, replicaof };
    await addAll(servers, count, () => startRedis({ ...options, config }));
    await eventually(() => allInSync(first, count), PATIENCE);
    await addAll(sentinels, options.sentinels ?? 3, () => startOne(first, options));
    await Promise.all(sentinels.map(hurry));
    await eventually(() => allKnown(sentinels, count), PATIENCE);
    return new Watched(servers, sentinels, options, stop);
  } catch (error) {
    await stop();
    throw error;
  }
}

async function addAll(to: RedisServer[], count: number, start: () => Promise<RedisServer>): Promise<void> {
  const started = await Promise.allSettled(Array.from({ length: count }, start));
  to.push(...started.flatMap((result) => (result.status === "fulfilled" ? [result.value] : [])));
  const failure = started.find((result) => result.status === "rejected");
  if (failure) throw failure.reason;
}

class Watched implements RedisSentinel {
  readonly url: string;
  readonly masterName = MASTER_NAME;
  readonly stop: () => Promise<void>;
  #master: RedisServer;

  constructor(
    readonly servers: readonly RedisServer[],
    readonly sentinels: readonly RedisServer[],
    options: SentinelOptions,
    stop: () => Promise<void>,
  ) {
    this.#master = servers[0] as RedisServer;
    this.stop = stop;
    const hosts = sentinels.map(({ host, port }) => `${host}:${port}`).join(",");
    const user = options.password === undefined ? "" : `:${encodeURIComponent(options.password)}@`;
    const own = options.sentinelPassword;
    const query = own === undefined ? "" : `?sentinelPassword=${encodeURIComponent(own)}`;
    this.url = `${options.tls ? "rediss" : "redis"}+sentinel://${user}${hosts}/${MASTER_NAME}${query}`;
  }

  get master(): RedisServer {
    return this.#master;
  }

  async currentMaster(): Promise<RedisServer> {
    const seen = await Promise.allSettled(this.#alive().map(view));
    const views = seen.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
    views.sort((a, b) => b.epoch - a.epoch);
    const server = this.servers.find(({ port }) => port === views[0]?.port);
    if (!server) throw new Error("No Sentinel answers.");
    this.#master = server;
    return server;
  }

  async failover(): Promise<void> {
    // A Sentinel that does not know of the previous failover yet would fail over from the previous master.
    await eventually(async () => (await this.#agreed()) !== undefined, PATIENCE);
    const before = await this.currentMaster();
    const [sentinel] = this.#alive() as [RedisServer];
    await eventually(async () => {
      const port = await this.#agreed();
      if (port !== undefined && port !== before.port) return true;
      // Refused while a failover is in progress, and while no replica is known to be healthy. On a busy machine one may end without a
      // new master.
      if ((await view(sentinel)).port === before.port) {
        await withConnection(sentinel, (redis) => redis.call("SENTINEL", "FAILOVER", MASTER_NAME));
      }
      return false;
    }, PATIENCE);
    await eventually(async () => (await replication(await this.currentMaster())).role === "master", PATIENCE);
  }

  /** The port of the master on which all live Sentinels agree; undefined while they differ. */
  async #agreed(): Promise<number | undefined> {
    const views = await Promise.all(this.#alive().map(view));
    const ports = new Set(views.map(({ port }) => port));
    return ports.size === 1 ? [...ports][0] : undefined;
  }

  #alive(): RedisServer[] {
    return this.sentinels.filter(({ pid }) => pid !== undefined);
  }
}

function startOne(master: RedisServer, options: SentinelOptions): Promise<RedisServer> {
  const { sentinels = 3, downAfterMs = 1_000, tls = false, password, sentinelPassword } = options;
  const about = (what: string, value: string | number) => `sentinel ${what} ${MASTER_NAME} ${value}`;
  const own = { tls, ...(sentinelPassword === undefined ? {} : { password: sentinelPassword }) };
  return launch(own, async (dir, port) => {
    const file = join(dir, "sentinel.conf"); // a file: the Sentinel stores its discoveries there
    const base = { port, bind: master.host, dir, logfile: join(dir, LOG), ...(tls ? tlsConfig(port) : {}) };
    const lines = [
      ...Object.entries(base).map(([name, value]) => `${name} ${value}`),
      `sentinel monitor ${MASTER_NAME} ${master.host} ${master.port} ${Math.floor(sentinels / 2) + 1}`,
      about("down-after-milliseconds", downAfterMs),
      // After an election without a winner, Sentinels wait for twice this time.
      about("failover-timeout", 3_000),
      about("parallel-syncs", options.replicas ?? 2),
      ...(password === undefined ? [] : [about("auth-pass", password)]),
      ...(sentinelPassword === undefined
        ? []
        : [`requirepass ${sentinelPassword}`, `sentinel sentinel-pass ${sentinelPassword}`]),
    ];
    await writeFile(file, `${lines.join("\n")}\n`);
    return [file, "--sentinel"];
  });
}

/** Shortens default periods of ten and two seconds. Redis before 7.0 cannot, and is slower. */
async function hurry(sentinel: RedisServer): Promise<void> {
  await withConnection(sentinel, (redis) =>
    redis.call("SENTINEL", "DEBUG", "INFO-PERIOD", 500, "PUBLISH-PERIOD", 500).catch(() => {}),
  );
}

async function allInSync(master: RedisServer, replicas: number): Promise<boolean> {
  const { connected_slaves, ...rest } = await replication(master);
  const online = Object.values(rest).filter((value) => value.includes("state=online"));
  return connected_slaves === String(replicas) && online.length === replicas;
}

async function replication(server: RedisServer): Promise<Record<string, string>> {
  const text = await withConnection(server, (redis) => redis.info("replication"));
  return Object.fromEntries([...text.matchAll(/^(\w+):(.*?)\r?$/gm)].map(([, name, value]) => [name, value]));
}

/** Whether every Sentinel knows all others and all replicas: before that, no replica would be promoted. */
async function allKnown(sentinels: readonly RedisServer[], replicas: number): Promise<boolean> {
  const views = await Promise.all(sentinels.map(view));
  return views.every((one) => one.sentinels === sentinels.length && one.replicas === replicas);
}

async function view(sentinel: RedisServer) {
  const [fields, address] = await withConnection(
    sentinel,
    (redis) =>
      Promise.all([
        redis.call("SENTINEL", "MASTER", MASTER_NAME) as Promise<string[]>,
        // The address that clients get: in a failover the new one appears here first.
        redis.call("SENTINEL", "GET-MASTER-ADDR-BY-NAME", MASTER_NAME) as Promise<string[]>,
      ]),
    GLANCE_MS,
  );
  const number = (name: string) => Number(fields[fields.indexOf(name) + 1]);
  return {
    port: Number(address[1]),
    epoch: number("config-epoch"),
    replicas: number("num-slaves"),
    sentinels: number("num-other-sentinels") + 1,
  };
}
