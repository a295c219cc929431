// A private Redis of the bench, configured as in production, and its statistics.
import { startCluster, startRedis } from "@carillon/testing";
import { Redis } from "ioredis";

/** AOF with a sync each second. It is never rewritten, so that no round has an additional fork. */
const SETTINGS = {
  appendonly: true,
  config: { appendfsync: "everysec", "auto-aof-rewrite-percentage": 0, "slowlog-log-slower-than": 1_000 },
};

export async function startServer() {
  return ofServer(await startRedis(SETTINGS));
}

/** A cluster with this many masters, each configured like the server of `startServer`. */
export async function startMasters(count) {
  const cluster = await startCluster({ ...SETTINGS, masters: count });
  const masters = await Promise.all(cluster.nodes.map(ofServer));
  return {
    url: cluster.url,
    masters,
    /** The index of the master that has the key. */
    async indexOf(key) {
      return cluster.nodes.indexOf(await cluster.masterOf(cluster.slotOf(key)));
    },
    async stop() {
      for (const master of masters) master.admin.disconnect();
      await cluster.stop();
    },
  };
}

async function ofServer(server) {
  const admin = new Redis(server.url, { maxRetriesPerRequest: null });
  await admin.config("SET", "slowlog-max-len", 20_000);
  return new Server(server, admin);
}

class Server {
  #server;

  constructor(server, admin) {
    this.#server = server;
    this.url = server.url;
    this.admin = admin;
  }

  async version() {
    return field(await this.admin.info("server"), "redis_version");
  }

  /** CPU seconds of all of its threads. */
  async cpu() {
    const info = await this.admin.info("cpu");
    return Number(field(info, "used_cpu_user")) + Number(field(info, "used_cpu_sys"));
  }

  async memory() {
    return Number(field(await this.admin.info("memory"), "used_memory"));
  }

  /** Calls by command, including those in scripts. */
  async calls() {
    return callsOf(await this.admin.info("commandstats"));
  }

  /** Commands, including those in scripts and without these queries, and CPU seconds, since its start. */
  async work() {
    const [calls, cpu] = await Promise.all([this.calls(), this.cpu()]);
    const commands = [...calls]
      .filter(([name]) => name !== "info")
      .reduce((sum, [, number]) => sum + number, 0);
    return { commands, cpu };
  }

  /** Milliseconds of each script that blocked Redis for 1 ms or more since the last call. */
  async blocks() {
    const entries = await this.admin.slowlog("GET", 20_000);
    await this.admin.slowlog("RESET");
    return entries
      .filter(([, , , args]) => /^eval/i.test(String(args[0])))
      .map(([, , micros]) => micros / 1000);
  }

  /** Deletes everything but the list of live nodes, and waits until the memory is freed. */
  async clear() {
    const lists = await this.admin.keys("*:nodes");
    const kept = await Promise.all(lists.map(async (key) => [key, await this.admin.dumpBuffer(key)]));
    // In one step, because a node's heartbeat may come at any time.
    const all = this.admin.multi().flushall("SYNC");
    for (const [key, dump] of kept) all.restore(key, 0, dump, "REPLACE");
    await all.exec();
    await this.admin.slowlog("RESET");
  }

  /** ms, by the server's clock. */
  async time() {
    const [seconds, micros] = await this.admin.time();
    return Number(seconds) * 1000 + Number(micros) / 1000;
  }

  async stop() {
    this.admin.disconnect();
    await this.#server.stop();
  }
}

/** @param info the section `commandstats` */
export function callsOf(info) {
  return new Map(
    [...info.matchAll(/cmdstat_(\S+?):calls=(\d+)/g)].map(([, name, calls]) => [name, Number(calls)]),
  );
}

export function field(info, name) {
  return new RegExp(`^${name}:(.*)\\r?$`, "m").exec(info)?.[1]?.trim() ?? "?";
}
