// Faults of a cluster: slots move while their tasks fire, masters are lost.
import { eventually } from "@carillon/testing";
import { pause } from "../../lib/nodes.mjs";
import { COUNT_QUEUES, WORK } from "../load.mjs";
import { ask, errorCount } from "../servers.mjs";
import { lostMasters, PATIENCE } from "./failover.mjs";

/** One of the queues, and its master. */
async function someQueue({ servers: { cluster }, namespace, dice }) {
  const queues = [...COUNT_QUEUES, WORK];
  const queue = queues[Math.floor(dice() * queues.length)];
  const slot = cluster.slotOf(`{${namespace}:${queue}}`);
  return { queue, slot, master: await cluster.masterOf(slot) };
}

/** Replies of a server about a slot that is moving or has moved. */
const REDIRECTIONS = ["MOVED", "ASK", "TRYAGAIN"];

export const clusterFaults = [
  {
    kind: "slot moves while its tasks fire",
    scope: "redis",
    topologies: ["cluster"],
    async run(world) {
      const { servers, dice } = world;
      const { queue, slot, master } = await someQueue(world);
      const masters = await servers.masters();
      const others = masters.filter((one) => one !== master);
      const before = await errorCount(masters, ...REDIRECTIONS);
      let steps = 0;
      await servers.cluster.moveSlot(slot, others[Math.floor(dice() * others.length)], {
        onStep: async () => {
          steps += 1;
          if (steps % 10 === 1) await pause(dice() * 60);
        },
      });
      const healedAt = world.now();
      await pause(500);
      return { effective: (await errorCount(masters, ...REDIRECTIONS)) > before, healedAt, queues: [queue] };
    },
  },
  {
    kind: "replica takes over on demand",
    scope: "redis",
    topologies: ["cluster"],
    async run(world) {
      const { queue, slot, master } = await someQueue(world);
      const replicas = await replicasOf(world.servers, master);
      const before = await errorCount(world.servers.all(), ...REDIRECTIONS);
      await ask(replicas[0], "CLUSTER", "FAILOVER");
      await eventually(async () => (await world.servers.cluster.masterOf(slot)) !== master, PATIENCE);
      const healedAt = world.now();
      await pause(500);
      return {
        effective: (await errorCount(world.servers.all(), ...REDIRECTIONS)) > before,
        healedAt,
        queues: [queue],
      };
    },
  },
  ...lostMasters("cluster", async (world) => {
    const { queue, slot, master } = await someQueue(world);
    const replaced = async () => (await world.servers.cluster.masterOf(slot)) !== master;
    return { master, replaced, queues: [queue] };
  }),
];

async function replicasOf(servers, master) {
  const info = String(await ask(master, "INFO", "replication"));
  return servers
    .all()
    .filter(({ port }) => new RegExp(`^slave\\d+:.*port=${port},state=online`, "m").test(info));
}
