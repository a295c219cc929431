// A rolling deploy: some nodes are replaced by a next version, which writes a newer format. Old nodes leave its tasks
// alone, and new nodes handle old tasks. The new nodes stay, and are then killed and frozen like the others.
import { pause } from "../../lib/nodes.mjs";
import { NEXT } from "../load.mjs";

const TASKS = 5;
/** Number of nodes that are replaced. */
const REPLACED = 2;

export const deployFault = {
  kind: "rolling deploy",
  scope: "redis",
  once: true,
  async run({ nodes, versions, nextClient, tasks }) {
    const added = Array.from({ length: TASKS }, (_, i) => ({
      id: `next-${i}`,
      type: "none",
      queue: NEXT,
      schedule: { every: "1s" },
      overlap: "allow",
      catchUp: "all",
    }));
    // Put before a node can read them: they wait.
    await nextClient.putMany(added);
    tasks.push(...added);
    for (const node of nodes.slice(0, REPLACED)) {
      if (node.down) await node.ready;
      await node.stop();
      node.env = { ...node.env, CHAOS_VERSION: versions.next };
      node.start();
      await node.ready;
    }
    const before = nodes.slice(0, REPLACED).map(({ acks }) => acks);
    await pause(2_000);
    return { effective: nodes.slice(0, REPLACED).some(({ acks }, i) => acks > before[i]) };
  },
};
