import { eventually } from "./eventually.js";
import { type RedisServer, type RedisServerOptions, startRedis, withConnection } from "./redis.js";

const SLOTS = 16_384;

export interface ClusterOptions extends Pick<RedisServerOptions, "appendonly" | "config"> {
  /** Default 3, the least that Redis Cluster calls a cluster. */
  masters?: number;
}

export interface RedisCluster {
  /** The masters, in slot order; pass them to `new Cluster(nodes)`. */
  readonly nodes: readonly RedisServer[];
  stop(): Promise<void>;
}

/** A real Redis Cluster of masters without replicas, ready for use: about a second. */
export async function startCluster(options: ClusterOptions = {}): Promise<RedisCluster> {
  const masters = options.masters ?? 3;
  const started = await Promise.allSettled(Array.from({ length: masters }, () => startNode(options)));
  const nodes = started.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
  const stop = async () => {
    await Promise.all(nodes.map((node) => node.stop()));
  };
  try {
    const failure = started.find((result) => result.status === "rejected");
    if (failure) throw failure.reason;
    await Promise.all(nodes.map((node, index) => assignSlots(node, index, masters)));
    await Promise.all(nodes.map((node) => introduce(node, nodes)));
    await Promise.all(nodes.map((node) => ready(node, masters)));
  } catch (error) {
    await stop();
    throw error;
  }
  return { nodes, stop };
}

function startNode(options: ClusterOptions): Promise<RedisServer> {
  return startRedis({
    appendonly: options.appendonly ?? false,
    config: {
      "cluster-enabled": "yes",
      "cluster-config-file": "nodes.conf",
      "cluster-node-timeout": 2_000,
      ...options.config,
    },
  });
}

async function assignSlots(node: RedisServer, index: number, masters: number): Promise<void> {
  const first = Math.ceil((SLOTS * index) / masters);
  const end = Math.ceil((SLOTS * (index + 1)) / masters);
  const slots = Array.from({ length: end - first }, (_, offset) => first + offset);
  await withConnection(node, async (redis) => {
    // Distinct epochs from the start: otherwise the nodes first have to settle who is older.
    await redis.call("CLUSTER", "SET-CONFIG-EPOCH", index + 1);
    // Not ADDSLOTSRANGE: Redis 6.2 does not know it.
    await redis.call("CLUSTER", "ADDSLOTS", ...slots);
  });
}

/** Everyone meets everyone: waiting for gossip takes seconds. */
async function introduce(node: RedisServer, nodes: readonly RedisServer[]): Promise<void> {
  await withConnection(node, async (redis) => {
    for (const other of nodes) {
      if (other !== node) await redis.call("CLUSTER", "MEET", other.host, other.port);
    }
  });
}

async function ready(node: RedisServer, masters: number): Promise<void> {
  await withConnection(node, (redis) =>
    eventually(
      async () => {
        const info = String(await redis.call("CLUSTER", "INFO"));
        return (
          info.includes("cluster_state:ok") &&
          info.includes(`cluster_known_nodes:${masters}\r`) &&
          info.includes(`cluster_size:${masters}\r`)
        );
      },
      { timeoutMs: 20_000 },
    ),
  );
}
