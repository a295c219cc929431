// Faults of the network between a node and Redis, injected by the node's own proxy.
import { pause } from "../../lib/nodes.mjs";
import { monotonic } from "../failpoint.mjs";
import { ask } from "../servers.mjs";

/** Text that identifies a commit: besides a copy of freezes, no other command of a node names this key. */
export const COMMIT = ":~held";

const network = (fault) => ({ scope: "node", topologies: ["single"], ...fault });

/** Whether commands were unanswered, or the node was halfway between two. */
const caught = (target, unanswered) => unanswered > 0 || target.where().critical;

export const networkFaults = [
  network({
    kind: "connection cut",
    async run({ target }) {
      return { effective: caught(target, target.proxy.cut()) };
    },
  }),
  network({
    kind: "connections refused",
    async run({ target, dice }) {
      const effective = caught(target, target.proxy.refuse());
      await pause(300 + dice() * 1_500);
      await target.proxy.heal();
      return { effective };
    },
  }),
  network({
    kind: "commit's reply lost",
    async run({ target, within }) {
      const { proxy } = target;
      const lost = proxy.loseAnswerTo(COMMIT).then(() => true);
      const happened = await Promise.race([lost, pause(within).then(() => false)]);
      proxy.calm();
      return { effective: happened, happened };
    },
  }),
  network({
    kind: "commit withheld and cut",
    async run({ target, within }) {
      const { proxy } = target;
      const withheld = proxy.withhold("question", COMMIT).then(() => true);
      const happened = await Promise.race([withheld, pause(within).then(() => false)]);
      if (happened) {
        await pause(300);
        proxy.cut();
      } else proxy.calm();
      return { effective: happened, happened };
    },
  }),
  network({
    kind: "half-open connections",
    async run({ target, dice }) {
      const { proxy } = target;
      const before = proxy.questions;
      proxy.freeze();
      await pause(1_000 + dice() * 3_500);
      // Commands sent meanwhile got no reply.
      const effective = proxy.questions > before;
      await proxy.heal();
      return { effective };
    },
  }),
  network({
    kind: "slow link",
    async run({ target, dice, acksOf }) {
      const { proxy } = target;
      const before = acksOf(target);
      proxy.slow({ latency: 20 + dice() * 180, bytesPerSecond: 100_000 });
      await pause(2_500);
      const effective = acksOf(target) > before;
      await proxy.heal();
      return { effective };
    },
  }),
];

/** Servers close all connections; possible in any topology. Effective if a node had unanswered commands. */
export const cutFaults = [
  {
    kind: "Redis ends all connections",
    scope: "redis",
    async run({ servers, nodes, errors, errorSince }) {
      const masters = await servers.masters();
      const before = errors();
      const critical = nodes.filter((node) => !node.down && !node.frozen && node.where().critical).length;
      await Promise.all(masters.map((master) => ask(master, "CLIENT", "KILL", "TYPE", "normal")));
      const healedAt = monotonic();
      await pause(1_000);
      return { effective: critical > 0 || errorSince(before, /closed|ECONN|retries/i), healedAt };
    },
  },
];
