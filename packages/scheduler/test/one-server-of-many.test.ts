import { parseTask } from "@carillon/core";
import { shardOf } from "@carillon/core/internal";
import { Scheduler } from "@carillon/scheduler";
import { Store } from "@carillon/store";
import { eventually, type RedisCluster, type RedisServer, startCluster } from "@carillon/testing";
import { Cluster } from "ioredis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { SILENT } from "../../../test/helpers.js";

// One server of a cluster freezes: its connections stay open, and nothing answers.
describe("while one server of a cluster does not answer", () => {
  let cluster: RedisCluster;
  let store: Store;
  let slots: Cluster;
  const url = () => cluster.nodes.map((node) => node.url).join(",");

  beforeAll(async () => {
    cluster = await startCluster({ config: { "cluster-require-full-coverage": "no" } });
    slots = new Cluster(cluster.nodes.map(({ host, port }) => ({ host, port })));
    store = new Store({ connection: url(), namespace: "frozen" });
  });
  afterAll(async () => {
    slots?.disconnect();
    await store?.close();
    await cluster?.stop();
  });

  const serverOf = async (tag: string): Promise<RedisServer> => {
    const slot = Number(await slots.cluster("KEYSLOT", tag));
    return cluster.nodes[Math.floor((slot * 3) / 16_384)] as RedisServer;
  };

  test.each([
    ["a queue", (queue: string) => `{frozen:${queue}}`],
    ["the list of queues", () => "{frozen}"],
  ])("queues on other servers continue unaffected: the server of %s", async (_, tagOf) => {
    const frozen = await serverOf(tagOf("bells0"));
    const queues: string[] = [];
    for (let i = 1; queues.length < 2; i++) {
      if ((await serverOf(`{frozen:bells${i}}`)) !== frozen) queues.push(`bells${i}`);
    }
    for (const queue of ["bells0", ...queues]) {
      // One task in each shard, so that several calls to the frozen server hang.
      for (const id of oneInEachShard()) {
        const task = {
          id,
          type: "noop",
          queue,
          schedule: { every: "200ms" },
          overlap: "allow",
          catchUp: "all",
        };
        await store.tasks.put(queue, [parseTask(task)]);
      }
    }
    const count = new Map<string, number>();
    const logger = SILENT;
    const node = new Scheduler({ connection: url(), namespace: "frozen", unsafeRedis: "warn", logger });
    node.on("decided", ({ queue }) => count.set(queue, (count.get(queue) ?? 0) + 1));
    await node.start();
    await eventually(() => expect(count.get("bells0")).toBeGreaterThan(8));
    try {
      frozen.pause();
      count.clear();
      // Before any call to the frozen server gives up, which takes 5 s.
      await eventually(() => {
        for (const queue of queues) expect(count.get(queue) ?? 0).toBeGreaterThan(40);
      });
    } finally {
      frozen.continue();
      await node.stop();
      for (const queue of ["bells0", ...queues]) await store.deleteQueue(queue);
    }
  });
});

function oneInEachShard(): string[] {
  const ids = new Map<number, string>();
  for (let i = 0; ids.size < 8; i++) {
    const shard = shardOf(`system/t${i}`);
    if (!ids.has(shard)) ids.set(shard, `t${i}`);
  }
  return [...ids.values()];
}
