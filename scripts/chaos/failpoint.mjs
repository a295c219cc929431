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

/** Points between which a claim, a settle or a reconcile is incomplete, although no script is running. */
const HALF_WAY = new Set([
  "after read-due",
  "after commit",
  "after reconcile",
  "after read-settle",
  "after start-run",
  "after turn",
]);
const WIDTH = 96;

/**
 * The failpoint of this process. Orders of the parent are lines of JSON: `{ id, at, do, ms }` waits for a point, `{
 * stall }` blocks the event loop now.
 */
export function obeyingFailpoint() {
  const box = openSync(String(process.env.CHAOS_BOX), "w+");
  const orders = [];
  const underWay = new Map();
  let last = "";

  const note = () => {
    const scripts = [...underWay].filter(([, count]) => count > 0).map(([name]) => name);
    const critical = scripts.length > 0 || HALF_WAY.has(last) ? 1 : 0;
    const text = `${critical} ${monotonic().toFixed(3)} ${last} [${scripts.join(",")}]`;
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
        tell({
          what: "stalled",
          id: order.id,
          critical: HALF_WAY.has(last) || [...underWay.values()].some(Boolean),
        });
        stall(order.stall);
      } else if (order.cancel) {
        const at = orders.findIndex(({ id }) => id === order.cancel);
        if (at >= 0) orders.splice(at, 1);
      } else orders.push(order);
    })
    .on("close", () => process.exit(1)); // the parent is gone

  return function failpoint(point) {
    const space = point.indexOf(" ");
    const [when, script] = [point.slice(0, space), point.slice(space + 1)];
    underWay.set(script, Math.max(0, (underWay.get(script) ?? 0) + (when === "before" ? 1 : -1)));
    last = point;
    note();
    const at = orders.findIndex((order) => order.at === point);
    if (at < 0) return;
    const [order] = orders.splice(at, 1);
    tell({ what: "hit", id: order.id, point });
    act(order);
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
