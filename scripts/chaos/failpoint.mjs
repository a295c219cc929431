// Runs in a node or worker process. Reports events to the parent (a pipe, file descriptor 3, written at once), keeps a
// black box (a small file with its position, which can be read when the process is dead or frozen), and has a failpoint
// that obeys the parent.
import { openSync, writeSync } from "node:fs";
import { createInterface } from "node:readline";

/** The monotonic clock of the machine, in ms: the same in all processes, whatever their wall clocks say. */
export const monotonic = () => Number(process.hrtime.bigint() / 1_000n) / 1_000;

/** Writes one line to the parent, before anything else happens. */
export function tell(event) {
  const line = Buffer.from(`${JSON.stringify({ ...event, mono: monotonic() })}\n`);
  for (let at = 0; at < line.length; ) {
    try {
      at += writeSync(3, line, at);
    } catch (error) {
      if (error.code !== "EAGAIN") return; // the parent is gone
    }
  }
}

/** Blocks the event loop without using processor time. */
function stall(ms) {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

/** Points after which a claim, a settle or a reconcile is incomplete, although no script is running. */
const HALF_WAY = new Set([
  "after commit",
  "after reconcile",
  "after read-settle",
  "after start-run",
  "after turn",
]);
const WIDTH = 96;

/** Time after a read at which a node has decided about what it read, and waits for its time, in ms. */
const DECIDED = 60;

/** Whether wake messages are dropped. */
let deaf = false;

/** Makes a store lose wake messages while the parent says so. @param {{ prototype: any }} Store */
export function makeDeafening({ prototype }) {
  const { listen } = prototype;
  prototype.listen = function (channel, ears) {
    const message = (text) => (deaf ? tell({ what: "unheard" }) : ears.message(text));
    return listen.call(this, channel, channel === "wake" ? { ...ears, message } : ears);
  };
}

/** Timers of this many ms and more are time limits. */
const LIMITS_FROM = 4_000;

/**
 * Makes the monotonic clock, by which a node reckons the time of Redis, and its timers run too fast or too slowly.
 * @returns a function that takes their speed
 */
function wrongSpeed() {
  const { performance, setTimeout: later } = globalThis;
  const reading = performance.now.bind(performance);
  let [since, shown, speed] = [reading(), reading(), 1];
  performance.now = () => shown + (reading() - since) * speed;
  // Time limits of commands stay: on a busy machine nothing would be in time.
  const real = (ms) => (ms < LIMITS_FROM ? ms / speed : ms);
  globalThis.setTimeout = Object.assign((act, ms, ...args) => later(act, real(ms), ...args), later);
  return (value) => {
    [since, shown, speed] = [reading(), performance.now(), value];
  };
}

/**
 * The failpoint of this process. Orders of the parent are lines of JSON: `{ id, at, do, ms }` waits for a point, `{
 * stall }` blocks the event loop now, `{ condition, value }` changes one of the conditions. The point `decided` lies
 * between a read and the commit: the node holds decisions that it has not sent.
 */
export function obeyingFailpoint() {
  const box = openSync(String(process.env.CHAOS_BOX), "w+");
  const orders = [];
  const underWay = new Map();
  let last = "";
  /** Queues, by their hash tags, of which decisions may be held: read, and not committed since. */
  const decided = new Set();
  const conditions = {
    deaf: (on) => {
      deaf = on;
    },
    speed: wrongSpeed(),
  };

  const isCritical = () =>
    decided.size > 0 || HALF_WAY.has(last) || [...underWay.values()].some((count) => count > 0);

  const note = () => {
    const scripts = [...underWay].filter(([, count]) => count > 0).map(([name]) => name);
    const text = `${isCritical() ? 1 : 0} ${monotonic().toFixed(3)} ${last} [${scripts.join(",")}]`;
    writeSync(
      box,
      text
        .slice(0, WIDTH - 1)
        .padEnd(WIDTH - 1)
        .concat("\n"),
      0,
    );
  };

  createInterface({ input: process.stdin })
    .on("line", (line) => {
      const order = JSON.parse(line);
      if (order.stall) {
        tell({ what: "stalled", id: order.id, critical: isCritical() });
        stall(order.stall);
      } else if (order.condition) {
        conditions[order.condition](order.value);
        tell({ what: "hit", id: order.id });
      } else if (order.cancel) {
        const at = orders.findIndex(({ id }) => id === order.cancel);
        if (at >= 0) orders.splice(at, 1);
      } else orders.push(order);
    })
    .on("close", () => process.exit(1)); // the parent is gone

  const obey = (order, point) => {
    orders.splice(orders.indexOf(order), 1);
    tell({ what: "hit", id: order.id, point });
    act(order);
  };

  const obeyOnceDecided = (tag) => {
    const order = orders.find(({ at }) => at === "decided");
    if (order)
      setTimeout(() => orders.includes(order) && decided.has(tag) && obey(order, "decided"), DECIDED);
  };

  return function failpoint(point, key) {
    const space = point.indexOf(" ");
    const [when, script] = [point.slice(0, space), point.slice(space + 1)];
    underWay.set(script, Math.max(0, (underWay.get(script) ?? 0) + (when === "before" ? 1 : -1)));
    last = point;
    const tag = key.slice(0, key.indexOf("}"));
    if (point === "before commit") decided.delete(tag);
    if (point === "after read-due") {
      decided.add(tag);
      obeyOnceDecided(tag);
    }
    note();
    const order = orders.find(({ at }) => at === point);
    if (order) obey(order, point);
  };
}

function act({ do: what, ms }) {
  switch (what) {
    case "die":
      process.kill(process.pid, "SIGKILL");
      return stall(60_000);
    case "stop":
      return process.kill(process.pid, "SIGSTOP");
    case "stall":
      return stall(ms);
    // After a script its answer is lost; before a script it is never sent.
    case "lose":
      throw new Error("Connection is closed.");
    default:
      throw new Error(`unknown order: ${what}`);
  }
}
