// A claim by WATCH and MULTI on ioredis' default client. Carillon does not claim this way; a control run shows why.
import { Scheduler } from "@carillon/scheduler";
import { Store } from "@carillon/store";
import { internalsOf, withSeams } from "@carillon/store/internal";
import { eventually, startFaultProxy } from "@carillon/testing";
import { Redis } from "ioredis";

const SILENT = { debug() {}, info() {}, warn() {}, error() {} };

/**
 * A node that commits with WATCH, a check of each task's generation, MULTI and EXEC. The script itself checks no
 * generation.
 */
function optimisticNode(url, namespace, nodeId) {
  const store = new Store(withSeams({ connection: url, namespace }, { sabotage: ["fence", "mutex"] }));
  const client = new Redis(url);
  client.on("error", () => {});
  const { claims } = store;
  const { link, keys: names } = internalsOf(store);
  const [commit, run] = [claims.commit.bind(claims), link.run.bind(link)];

  claims.commit = async (queue, items, by) => {
    const keys = items.map(({ entry }) => names.queue(queue).task(entry.local));
    await client.watch(...keys);
    const generations = await Promise.all(keys.map((key) => client.hget(key, "gen")));
    /** @type {any} */
    const stale = {
      now: Date.now(),
      took: 0,
      heads: new Map(),
      results: items.map((item) => ({ item, status: "STALE", run: undefined })),
    };
    if (items.some(({ entry }, i) => entry.task.generation !== generations[i])) return stale;
    try {
      return await commit(queue, items, by);
    } catch (error) {
      if (error.message === "the WATCH failed") return stale;
      throw error;
    }
  };
  link.run = async (script, keys, args) => {
    if (script.name !== "commit") return run(script, keys, args);
    const answers = await client
      .multi()
      .eval(script.lua, keys.length, ...keys, ...args)
      .exec();
    if (answers === null) throw new Error("the WATCH failed");
    return answers[0][1];
  };
  const scheduler = new Scheduler({ store, nodeId, logger: SILENT });
  return {
    tick: () => scheduler.tick(),
    async close() {
      client.disconnect();
      await store.close();
    },
  };
}

/**
 * The connection of one node is cut while its MULTI is on the way; another node claims; the first node's client sends
 * it again.
 */
export async function watchMulti(servers, namespace, queue) {
  const proxy = await startFaultProxy(servers.redis);
  const unlucky = optimisticNode(proxy.url, namespace, "unlucky");
  const other = optimisticNode(servers.url, namespace, "other");
  const jobs = async () => Number(await servers.admin.llen(`{${namespace}:${queue}}:${queue}:wait`));
  try {
    // Claims everything that is due, so that the next claim is about a time that neither node has seen.
    await other.tick();
    const before = await jobs();
    const withheld = proxy.withhold("question", "$5\r\nmulti\r\n");
    const claims = (async () => {
      while ((await jobs()) < before + 2) await unlucky.tick();
    })();
    await withheld;
    await eventually(async () => {
      await other.tick();
      return (await jobs()) > before;
    });
    proxy.cut();
    await claims;
  } finally {
    await unlucky.close();
    await other.close();
    await proxy.close();
  }
}
