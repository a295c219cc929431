// Faults of a node's process: killed, frozen or stalled, at any moment or at a point of a claim, a settle or a
// reconcile.
import { pause } from "../../lib/nodes.mjs";

const CLAIM = [
  "after lock",
  "before read-due",
  "after read-due",
  "decided",
  "before commit",
  "after commit",
  "before renew",
  "after renew",
  "before free",
  "after free",
  "before unlock",
];
const RECONCILE = ["before reconcile", "after reconcile", "before settle-run", "after settle-run"];

/** Longer than the mutex lives: a holder returns to find that others have continued. */
const beyondMutex = (dice, { mutexTtl }) => Math.round(mutexTtl * (1.1 + dice() * 0.3));
/** Long enough to be relieved, or longer than the mutex lives. In the first case its decisions still hold when it returns. */
const frozenFor = (dice, settings) => (dice() < 0.5 ? 300 + dice() * 1_500 : beyondMutex(dice, settings));

/** Kills a process, and starts a new one after a moment. */
export async function restart(child, dice) {
  await child.ended;
  await pause(50 + dice() * 500);
  child.start();
}

const killAtAnyTime = {
  kind: "kill -9",
  scope: "node",
  ends: true,
  async run({ target, dice }) {
    await target.kill();
    const { critical, text } = target.where();
    await restart(target, dice);
    return { effective: critical, note: text };
  },
};

const freezeAtAnyTime = {
  kind: "SIGSTOP",
  scope: "node",
  async run({ target, dice, settings }) {
    target.freeze();
    await pause(20); // by now the signal is delivered, and the box is written
    const { critical, text } = target.where();
    await pause(frozenFor(dice, settings));
    target.thaw();
    return { effective: critical, note: text };
  },
};

const stallAtAnyTime = {
  kind: "event loop stalled",
  scope: "node",
  async run({ target, dice, settings }) {
    const ms = 200 + dice() * settings.mutexTtl * 1.3;
    const event = await target.order({ stall: ms }, 3_000);
    await pause(ms);
    return { effective: event?.critical === true };
  },
};

const ACTIONS = {
  die: { kind: "dies at a point", at: () => true },
  stop: { kind: "SIGSTOP at a point", at: () => true },
  stall: { kind: "stalls at a point", at: () => true },
  lose: { kind: "reply lost at a point", at: (point) => point.startsWith("after") },
  fail: { kind: "request lost at a point", at: (point) => point.startsWith("before") },
};

/** Every action at every point. An order waits until its node reaches the point; only then is the node busy. */
function atPoints(scope, points, actions) {
  return actions.flatMap((what) =>
    points.filter(ACTIONS[what].at).map((point) => ({
      kind: ACTIONS[what].kind,
      point,
      scope,
      waits: true,
      ends: what === "die",
      async run({ target, dice, settings, within, hit }) {
        const ms = what === "stop" ? frozenFor(dice, settings) : 200 + dice() * settings.mutexTtl * 1.3;
        const order = { at: point, do: what === "fail" ? "lose" : what, ms };
        const event = await target.order(order, within);
        if (!event) return { effective: false, happened: false };
        await hit(async () => {
          if (what === "die") await restart(target, dice);
          if (what === "stall") await pause(ms);
          if (what !== "stop") return;
          await pause(ms);
          target.thaw();
        });
        return { effective: true, note: point };
      },
    })),
  );
}

export const pointFaults = [
  ...atPoints("node", CLAIM, ["die", "stop", "stall", "lose", "fail"]),
  ...atPoints("node", RECONCILE, ["die", "stop", "lose", "fail"]),
];

const SPEEDS = [0.2, 0.7, 1.5, 4];

const wrongSpeeds = SPEEDS.map((speed) => ({
  kind: "node's clock has another speed",
  scope: "node",
  beside: true,
  /** Effective if the node claims meanwhile. */
  async run({ target, acksOf }) {
    await target.set("speed", speed);
    const before = acksOf(target);
    await pause(3_000);
    const effective = acksOf(target) > before;
    await target.set("speed", 1);
    return { effective, note: String(speed) };
  },
}));

const losesMessages = {
  kind: "pub/sub lost",
  scope: "node",
  beside: true,
  async run({ target }) {
    const before = target.unheard;
    await target.set("deaf", true);
    await pause(3_000);
    await target.set("deaf", false);
    return { effective: target.unheard > before };
  },
};

/** Announces a node that does not exist. @returns a function that makes it vanish */
async function joined(admin, namespace, id) {
  const key = `{${namespace}}:nodes`;
  const [seconds] = await admin.time();
  const beat = { id, beat: Number(seconds) * 1_000, every: 10_000, tzdata: process.versions.tz, ready: true };
  await admin.hset(key, id, JSON.stringify(beat));
  return () => admin.hdel(key, id);
}

/** A second of one share of the shards, then of another: a node leaves and joins, and nodes that do not exist report and vanish. */
const sharesChange = {
  kind: "shares change each second",
  scope: "node",
  ends: true,
  /** Effective if tasks were claimed by one node, and then by another. */
  async run({ target, servers, namespace, claims, now }) {
    const began = now();
    for (let second = 0; second < 4; second++) {
      const next = pause(1_000);
      // Redis may refuse it: another fault.
      const leave = await joined(servers.admin, namespace, `ghost-${second}`).catch(() => undefined);
      if (second % 2 === 0) await target.stop();
      else target.start();
      await next;
      await leave?.().catch(() => {});
    }
    await target.ready;
    const owners = new Map();
    for (const { mono, queue, task, node } of claims()) {
      if (mono < began) continue;
      const key = `${queue} ${task}`;
      owners.set(key, (owners.get(key) ?? new Set()).add(node));
    }
    const moved = [...owners.values()].filter(({ size }) => size > 1).length;
    return { effective: moved > 0, note: `${moved} tasks moved` };
  },
};

export const nodeFaults = [
  killAtAnyTime,
  freezeAtAnyTime,
  stallAtAnyTime,
  ...wrongSpeeds,
  losesMessages,
  sharesChange,
];
