// The Redis of a run, by topology: what the faults need to know of it.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { startCluster, startFaultProxy, startRedis } from "@carillon/testing";
import { Cluster, Redis } from "ioredis";

/** Nodes have a user of their own, so that an ACL can be taken from them alone. */
const ACL = ["user default on nopass ~* &* +@all", "user node on nopass ~* &* +@all"].join("\n");

/** Asks one server, once. */
export async function ask(server, ...command) {
  const redis = new Redis({
    host: server.host,
    port: server.port,
    lazyConnect: true,
    retryStrategy: () => null,
    maxRetriesPerRequest: 0,
    commandTimeout: 5_000,
  });
  redis.on("error", () => {});
  try {
    await redis.connect();
    return await redis.call(...command);
  } finally {
    redis.disconnect();
  }
}

/** How often Redis answered with these errors (`OOM`, `NOSCRIPT`, …). */
export async function errorCount(servers, ...kinds) {
  const infos = await Promise.all(servers.map((server) => ask(server, "INFO", "errorstats")));
  const counts = infos.flatMap((info) =>
    kinds.map((kind) => Number(new RegExp(`errorstat_${kind}:count=(\\d+)`).exec(String(info))?.[1] ?? 0)),
  );
  return counts.reduce((sum, count) => sum + count, 0);
}

function watched(client) {
  client.on("error", () => {}); // faults take servers away
  return client;
}

/** One server with AOF, each process behind a proxy of its own. */
async function single(config) {
  const redis = await startRedis({ appendonly: true, config });
  const proxies = [];
  return {
    topology: "single",
    url: redis.url,
    masters: async () => [redis],
    /** A URL of one's own, with the proxy that it leads through. */
    async wayFor(user) {
      const proxy = await startFaultProxy(redis);
      proxies.push(proxy);
      return { url: `redis://${user}:x@${proxy.host}:${proxy.port}`, proxy };
    },
    admin: watched(new Redis(redis.url, { maxRetriesPerRequest: null })),
    redis,
    async stop() {
      this.admin.disconnect();
      await Promise.all(proxies.map((proxy) => proxy.close()));
      await redis.stop();
    },
  };
}

async function cluster(config) {
  const started = await startCluster({ masters: 3, replicas: 1, appendonly: true, config });
  const url = started.nodes.map((node) => node.url).join(",");
  const hosts = started.nodes.map(({ host, port }) => ({ host, port }));
  const admin = watched(new Cluster(hosts, { redisOptions: { maxRetriesPerRequest: null } }));
  return {
    topology: "cluster",
    url,
    cluster: started,
    masters: async () => mastersOf([...started.nodes, ...(started.replicas ?? [])]),
    wayFor: async (user) => ({ url: url.replaceAll("redis://", `redis://${user}:x@`), proxy: undefined }),
    admin,
    async stop() {
      admin.disconnect();
      await started.stop();
    },
  };
}

async function sentinel(config) {
  const { startSentinel } = await import("@carillon/testing");
  const started = await startSentinel({ replicas: 2, sentinels: 3, appendonly: true, config });
  const hosts = started.sentinels.map(({ host, port }) => ({ host, port }));
  const admin = watched(
    new Redis({ sentinels: hosts, name: started.masterName, maxRetriesPerRequest: null }),
  );
  return {
    topology: "sentinel",
    url: started.url,
    sentinel: started,
    masters: async () => [await started.currentMaster()],
    wayFor: async (user) => ({ url: started.url.replace("://", `://${user}:x@`), proxy: undefined }),
    admin,
    async stop() {
      admin.disconnect();
      await started.stop();
    },
  };
}

/** Those that answer, and say that they are. */
async function mastersOf(servers) {
  const roles = await Promise.all(
    servers.map((server) => (server.pid === undefined ? [] : ask(server, "ROLE").catch(() => []))),
  );
  return servers.filter((_server, i) => roles[i][0] === "master");
}

const TOPOLOGIES = { single, cluster, sentinel };
export const TOPOLOGY_NAMES = Object.keys(TOPOLOGIES);

export async function openServers(topology, dir) {
  const file = join(dir, "users.acl");
  writeFileSync(file, ACL);
  return TOPOLOGIES[topology]({ aclfile: file });
}

/** All keys that match, from every master. */
export async function scanAll(servers, pattern) {
  const keys = new Set();
  for (const server of await servers.masters()) {
    for (let cursor = "0"; ; ) {
      const [next, found] = await ask(server, "SCAN", cursor, "MATCH", pattern, "COUNT", 5_000);
      for (const key of found) keys.add(key);
      cursor = next;
      if (cursor === "0") break;
    }
  }
  return [...keys];
}
