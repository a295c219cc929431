// Wrong wall clocks, which jump while their processes run.
import { eventually } from "@carillon/testing";
import { pause } from "../../lib/nodes.mjs";
import { monotonic } from "../failpoint.mjs";
import { Unknown } from "./unknown.mjs";

/** Offsets in seconds. */
const OFFSETS = [3, -3, 600, -600, 3_600, 0];

export const clockFaults = OFFSETS.map((seconds) => ({
  kind: "node's clock jumps",
  scope: "node",
  needs: "clock",
  beside: true,
  /** The clock stays wrong; the next fault moves it again. Effective if the node claims meanwhile. */
  async run({ target, acksOf }) {
    const before = acksOf(target);
    target.clock.set(seconds);
    await pause(2_500);
    return { effective: acksOf(target) > before, note: `to ${seconds} s` };
  },
}));

/** Seconds by which a Redis clock is put forward: more than a node accepts at once. */
const FORWARD = 75;

async function redisTime(servers) {
  const [seconds, micros] = await servers.admin.time();
  return Number(seconds) * 1_000 + Number(micros) / 1_000;
}

/**
 * Sets the clock of Redis, which all nodes follow.
 * @returns {Promise<number>} the last time before the jump
 */
async function jump({ servers, redisClock }, seconds) {
  let [at, seen] = [await redisTime(servers), monotonic()];
  redisClock.set(redisClock.offset + seconds);
  // The library reads the file once a second.
  const moved = async () => {
    const now = await redisTime(servers);
    if (Math.abs(now - at - (monotonic() - seen)) > Math.abs(seconds) * 900) return true;
    [at, seen] = [now, monotonic()];
    return false;
  };
  try {
    await eventually(moved, { timeoutMs: 60_000, intervalMs: 20 });
  } catch (error) {
    // The library may read the file at any later time. Times after that could not be converted.
    throw new Unknown(`the clock of Redis did not jump by ${seconds} s`, { cause: error });
  }
  return at;
}

const HELD = "the Redis clock jumped forward";

export const redisClockFaults = [
  {
    kind: "Redis clock jumps back",
    scope: "redis",
    topologies: ["single"],
    needs: "redisClock",
    async run(world) {
      const seconds = 3;
      world.observer.clockGoesBack(seconds * 1_000);
      const before = monotonic();
      const at = await jump(world, -seconds);
      world.jumps.push({ at, back: seconds * 1_000, mono: { before, after: monotonic() } });
      const acks = world.acks();
      await pause(seconds * 1_500);
      return { effective: world.acks() > acks };
    },
  },
  {
    kind: "Redis clock jumps forward",
    scope: "redis",
    topologies: ["single"],
    needs: "redisClock",
    /** Each task then has more than a minute of backlog. */
    last: true,
    async run(world) {
      const at = await jump(world, FORWARD);
      world.jumps.push({ at, forward: FORWARD * 1_000 });
      // Claims are held until a second read, 5 s later, agrees.
      const held = await eventually(() => world.errorsOf(HELD) > 0, { timeoutMs: 4_000 }).catch(() => false);
      const before = world.acks();
      await pause(6_500);
      return { effective: held && world.acks() > before };
    },
  },
];
