import { migrateSlot, type SlotMove, slotOf, slotOwner } from "./cluster-slots.js";
import { eventually } from "./eventually.js";
import { type RedisServer, type RedisServerOptions, startRedis, withConnection } from "./redis.js";

const SLOTS = 16_384;

export interface ClusterOptions
  extends Pick<RedisServerOptions, "appendonly" | "config" | "tls" | "acl" | "env"> {
  /** Number of masters; default 3, the least that Redis Cluster accepts. */
  masters?: number;
  /**
   * Replicas of each master; default 0. One takes over when its master was down for `cluster-node-timeout`, by default
   * 2,000 ms, and more than half of the masters are left.
   */
  replicas?: number;
}

export interface RedisCluster {
  /** Value for `REDIS_URL`: the first masters. */
  readonly url: string;
  /** The first masters, in slot order; pass them to `new Cluster(nodes)`. */
  readonly nodes: readonly RedisServer[];
  /** The replicas of `nodes`, in the same order. */
  readonly replicas: readonly RedisServer[];
  /** A replica that this master had at the start. @param master one of `nodes` */
  replicaOf(master: RedisServer): RedisServer;
  slotOf(key: string): number;
  /** The master that serves the slot now, according to the nodes that are up. @throws while there is none */
  masterOf(slot: number): Promise<RedisServer>;
  /** Moves a slot with its keys to another master, as `redis-cli --cluster reshard` does. */
  moveSlot(slot: number, to: RedisServer, options?: SlotMove): Promise<void>;
  stop(): Promise<void>;
}

/** Starts a real Redis Cluster and waits until it is ready: two seconds, three with replicas. */
export async function startCluster(options: ClusterOptions = {}): Promise<RedisCluster> {
  const masters = options.masters ?? 3;
  const all = masters * (1 + (options.replicas ?? 0));
  const started = await Promise.allSettled(Array.from({ length: all }, () => startNode(options)));
  const servers = started.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
  const stop = async () => {
    await Promise.all(servers.map((node) => node.stop()));
  };
  const nodes = servers.slice(0, masters);
  const replicas = servers.slice(masters);
  try {
    const failure = started.find((result) => result.status === "rejected");
    if (failure) throw failure.reason;
    await Promise.all(servers.map((node, index) => configure(node, index, masters)));
    await Promise.all(servers.map((node) => introduce(node, servers)));
    await Promise.all(servers.map((node) => ready(node, all, masters)));
    await Promise.all(replicas.map((node, index) => follow(node, nodes[index % masters] as RedisServer)));
    if (replicas.length > 0) await Promise.all(servers.map((node) => knows(node, replicas.length)));
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    url: nodes.map(({ url }) => url).join(","),
    nodes,
    replicas,
    replicaOf(master) {
      const replica = replicas[nodes.indexOf(master)];
      if (!replica) throw new Error("This server was not started as a master with a replica.");
      return replica;
    },
    slotOf,
    masterOf: (slot) => slotOwner(servers, slot),
    moveSlot: (slot, to, move) => migrateSlot(servers, slot, to, move),
    stop,
  };
}

function startNode(options: ClusterOptions): Promise<RedisServer> {
  return startRedis({
    ...options,
    config: {
      "cluster-enabled": "yes",
      "cluster-config-file": "nodes.conf",
      "cluster-node-timeout": 2_000,
      // A replica that lagged takes over too: a test cluster that stays down is useless.
      "cluster-replica-validity-factor": 0,
      ...options.config,
    },
  });
}

async function configure(node: RedisServer, index: number, masters: number): Promise<void> {
  const first = Math.ceil((SLOTS * index) / masters);
  const end = Math.ceil((SLOTS * (index + 1)) / masters);
  await withConnection(node, async (redis) => {
    // Distinct epochs from the start: otherwise the nodes must first resolve the conflict.
    await redis.call("CLUSTER", "SET-CONFIG-EPOCH", index + 1);
    if (index >= masters) return;
    const slots = Array.from({ length: end - first }, (_, offset) => first + offset);
    // Not ADDSLOTSRANGE: Redis 6.2 does not know it.
    await redis.call("CLUSTER", "ADDSLOTS", ...slots);
  });
}

/** Introduces all nodes to each other, because waiting for gossip takes seconds. */
async function introduce(node: RedisServer, nodes: readonly RedisServer[]): Promise<void> {
  await withConnection(node, async (redis) => {
    for (const other of nodes) {
      if (other !== node) await redis.call("CLUSTER", "MEET", other.host, other.port);
    }
  });
}

async function ready(node: RedisServer, all: number, masters: number): Promise<void> {
  await withConnection(node, (redis) =>
    eventually(
      async () => {
        const info = String(await redis.call("CLUSTER", "INFO"));
        return (
          info.includes("cluster_state:ok") &&
          info.includes(`cluster_known_nodes:${all}\r`) &&
          info.includes(`cluster_size:${masters}\r`)
        );
      },
      { timeoutMs: 20_000 },
    ),
  );
}

async function follow(node: RedisServer, master: RedisServer): Promise<void> {
  const id = await withConnection(master, (redis) => redis.call("CLUSTER", "MYID"));
  await withConnection(node, async (redis) => {
    await redis.call("CLUSTER", "REPLICATE", String(id));
    await eventually(async () => (await redis.info("replication")).includes("master_link_status:up"), {
      timeoutMs: 20_000,
    });
  });
}

/** Waits until a node knows the replicas, because masters vote only for known replicas. */
async function knows(node: RedisServer, replicas: number): Promise<void> {
  await withConnection(node, (redis) =>
    eventually(
      async () => {
        const lines = String(await redis.call("CLUSTER", "NODES")).split("\n");
        return lines.filter((line) => line.includes("slave")).length === replicas;
      },
      { timeoutMs: 20_000 },
    ),
  );
}
