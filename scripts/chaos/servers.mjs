// The Redis servers of a run, by topology, with the functions that faults need.
import { startCluster, startFaultProxy, startRedis, startSentinel } from "@carillon/testing";
import { Cluster, Redis } from "ioredis";

/** Nodes have their own user, so that an ACL can be taken from them alone. */
const ACL = ["user default on nopass ~* &* +@all", "user node on nopass ~* &* +@all"].join("\n");

/**
 * Asks one server, once.
 *
 * @returns {Promise<any>}
 */
export async function ask(server, ...command) {
  const redis = new Redis({
    host: server.host,
    port: server.port,
    lazyConnect: true,
    enableReadyCheck: false, // the default check would fail on a server that is busy with a script
    retryStrategy: () => null,
    maxRetriesPerRequest: 0,
    commandTimeout: 5_000,
  });
  redis.on("error", () => {});
  try {
    await redis.connect();
    return await redis.call(command[0], ...command.slice(1));
  } finally {
    redis.disconnect();
  }
}

/** Number of these errors that Redis has answered (`OOM`, `NOSCRIPT`, …). */
export async function errorCount(servers, ...kinds) {
  const infos = await Promise.all(servers.map((server) => ask(server, "INFO", "errorstats")));
  const counts = infos.flatMap((info) =>
    kinds.map((kind) => Number(new RegExp(`errorstat_${kind}:count=(\\d+)`).exec(String(info))?.[1] ?? 0)),
  );
  return counts.reduce((sum, count) => sum + count, 0);
}

const PATIENT = {
  maxRetriesPerRequest: null,
  reconnectOnError: ({ message }) => (message.includes("READONLY") ? 1 : false),
};

function watched(client) {
  client.on("error", () => {}); // faults take servers away
  return client;
}

/** One server with AOF, each process behind a proxy of its own. */
async function single(options) {
  // `always`, because a killed Redis must not lose acknowledged writes. The folder blocks snapshots, when one is
  // requested.
  const config = { appendfsync: "always", dbfilename: "appendonlydir", ...options.config };
  const redis = await startRedis({ ...options, config });
  const proxies = [];
  return {
    topology: "single",
    url: redis.url,
    masters: async () => [redis],
    /** A URL through a proxy of its own. */
    async wayFor(user) {
      const proxy = await startFaultProxy(redis);
      proxies.push(proxy);
      return { url: `redis://${user}:x@${proxy.host}:${proxy.port}`, proxy };
    },
    admin: watched(new Redis(redis.url, PATIENT)),
    redis,
    async stop() {
      this.admin.disconnect();
      await Promise.all(proxies.map((proxy) => proxy.close()));
      await redis.stop();
    },
  };
}

/** Three masters with a replica each. */
async function cluster(options) {
  const started = await startCluster({ masters: 3, replicas: 1, ...options });
  const all = [...started.nodes, ...started.replicas];
  const hosts = all.map(({ host, port }) => ({ host, port }));
  const admin = watched(new Cluster(hosts, { redisOptions: PATIENT }));
  const url = all.map((node) => node.url).join(",");
  return {
    topology: "cluster",
    url,
    cluster: started,
    all: () => all.filter(({ pid }) => pid !== undefined),
    masters: () => mastersOf(all),
    wayFor: async (user) => ({ url: as(user, url), proxy: undefined }),
    admin,
    async stop() {
      admin.disconnect();
      await started.stop();
    },
  };
}

/** A master with two replicas, and three Sentinels. */
async function sentinel(options) {
  const started = await startSentinel({ replicas: 2, sentinels: 3, ...options });
  const sentinels = started.sentinels.map(({ host, port }) => ({ host, port }));
  const admin = watched(new Redis({ sentinels, name: started.masterName, ...PATIENT }));
  return {
    topology: "sentinel",
    url: started.url,
    sentinel: started,
    masters: async () => [await started.currentMaster()],
    wayFor: async (user) => ({ url: as(user, started.url), proxy: undefined }),
    admin,
    async stop() {
      admin.disconnect();
      await started.stop();
    },
  };
}

function as(user, url) {
  return url.replaceAll("://", `://${user}:x@`);
}

/** The servers that answer, and report that they are masters. */
async function mastersOf(servers) {
  const roles = await Promise.all(
    servers.map((server) => (server.pid === undefined ? [] : ask(server, "ROLE").catch(() => []))),
  );
  return servers.filter((_server, i) => roles[i][0] === "master");
}

const TOPOLOGIES = { single, cluster, sentinel };
export const TOPOLOGY_NAMES = Object.keys(TOPOLOGIES);

/** @param {string} topology @param {Record<string, string>} [env] of the servers */
export function openServers(topology, env = {}) {
  return TOPOLOGIES[topology]({ appendonly: true, acl: ACL, env });
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
