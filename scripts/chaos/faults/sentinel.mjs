// Failovers under Sentinel: on demand, and after the loss of the master.
import { back, lostMasters } from "./failover.mjs";

export const sentinelFaults = [
  {
    kind: "Sentinel failover on demand",
    scope: "redis",
    topologies: ["sentinel"],
    async run(world) {
      const { sentinel } = world.servers;
      const before = world.errors();
      const master = await sentinel.currentMaster();
      world.redisMayLose(true);
      await sentinel.failover();
      const healedAt = world.now();
      await back(master);
      world.redisMayLose(false);
      return { effective: world.errors() > before, healedAt };
    },
  },
  ...lostMasters("sentinel", async ({ servers: { sentinel } }) => {
    const master = await sentinel.currentMaster();
    return { master, replaced: async () => (await sentinel.currentMaster()) !== master };
  }),
];
