// Failovers under Sentinel: on demand, and because the master is gone.
import { lostMasters } from "./failover.mjs";

export const sentinelFaults = [
  {
    kind: "Sentinel failover on demand",
    scope: "redis",
    topologies: ["sentinel"],
    async run(world) {
      const before = world.errors();
      world.redisMayLose(true);
      await world.servers.sentinel.failover();
      world.redisMayLose(false);
      return { effective: world.errors() > before, healedAt: world.now() };
    },
  },
  ...lostMasters("sentinel", async ({ servers: { sentinel } }) => {
    const master = await sentinel.currentMaster();
    return { master, replaced: async () => (await sentinel.currentMaster()) !== master };
  }),
];
