// Inside a node or worker process: what its parent hears of it (a pipe, file descriptor 3, written at once), its black box
// (a small file that says where it is; it can be read when the process is dead or frozen), and the failpoint that obeys.
import { openSync, writeSync } from "node:fs";
import { createInterface } from "node:readline";

/** The monotonic clock of the machine, in ms: the same in all processes, whatever their wall clocks say. */
export const monotonic = () => Number(process.hrtime.bigint() / 1_000n) / 1_000;

/** One line to the parent, before anything else happens. */
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

/** Blocks the event loop, and takes no processor time for it. */
function stall(ms) {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

/** Between these and what follows them a claim, a settle or a reconcile is half way, although no script is under way. */
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
 * The failpoint of this process. Orders come from the parent as lines of JSON: `{ id, at, do, ms }` waits for a point,
 * `{ stall }` blocks the event loop now.
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
    // After a script: its answer is lost. Before it: it was never sent.
    case "lose":
      throw new Error("Connection is closed.");
    default:
      throw new Error(`unknown order: ${what}`);
  }
}
