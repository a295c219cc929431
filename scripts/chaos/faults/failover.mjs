// Common steps of failovers: a master stops, a replica takes its place, and the old master returns as a replica. Writes
// that the old master had acknowledged and not yet replicated are lost.
import { eventually } from "@carillon/testing";
import { pause } from "../../lib/nodes.mjs";
import { ask } from "../servers.mjs";

export const PATIENCE = { timeoutMs: 40_000, intervalMs: 50 };

/** Waits until the server follows the new master and has all of its data. */
export async function back(server) {
  const inSync = async () => {
    const info = String(await ask(server, "INFO", "replication"));
    return info.includes("role:slave") && info.includes("master_link_status:up");
  };
  await eventually(inSync, PATIENCE);
}

const WAYS = {
  "is killed": { go: (server) => server.kill(), comeBack: (server) => server.start() },
  // When it continues, it does not know yet that it is no longer the master.
  freezes: { go: async (server) => server.pause(), comeBack: async (server) => server.continue() },
};

/**
 * @param {string} topology
 * @param {(world: any) => Promise<{ master: any, replaced: () => Promise<boolean>, queues?: string[] }>} find
 */
export function lostMasters(topology, find) {
  return Object.entries(WAYS).map(([how, { go, comeBack }]) => ({
    kind: `master ${how} and a replica takes over`,
    scope: "redis",
    topologies: [topology],
    async run(world) {
      const { master, replaced, queues } = await find(world);
      const before = world.errors();
      world.redisMayLose(true);
      await go(master);
      await eventually(replaced, PATIENCE);
      const healedAt = world.now();
      await pause(500 + world.dice() * 1_000);
      await comeBack(master);
      await back(master);
      world.redisMayLose(false);
      return { effective: world.errors() > before, healedAt, queues };
    },
  }));
}
