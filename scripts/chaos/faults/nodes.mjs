// Faults of a node's process: killed, frozen or stalled, at any moment or at a point of a claim, a settle or a
// reconcile.
import { pause } from "../../lib/nodes.mjs";

const CLAIM = [
  "after lock",
  "before read-due",
  "after read-due",
  "before commit",
  "after commit",
  "before unlock",
];
const RECONCILE = ["before reconcile", "after reconcile", "before settle-run", "after settle-run"];

/** Longer than the mutex lives: a holder returns to find that others have continued. */
const beyondMutex = (dice, { mutexTtl }) => Math.round(mutexTtl * (1.1 + dice() * 0.3));

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
  kind: "SIGSTOP beyond the mutex",
  scope: "node",
  async run({ target, dice, settings }) {
    target.freeze();
    await pause(20); // by now the signal is delivered, and the box is written
    const { critical, text } = target.where();
    await pause(beyondMutex(dice, settings));
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
        const ms = what === "stop" ? beyondMutex(dice, settings) : 200 + dice() * settings.mutexTtl * 1.3;
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

export const nodeFaults = [killAtAnyTime, freezeAtAnyTime, stallAtAnyTime];
