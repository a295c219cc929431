// Scheduler replicas as real processes, for chaos and benches.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const SCHEDULER = fileURLToPath(new URL("../../apps/scheduler/bin/carillon-scheduler.js", import.meta.url));

/** Running nodes. They end with this program, even if it gives up. */
const running = new Set();
process.once("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

export class Node {
  /** @param {string} id @param {Record<string, string>} env */
  constructor(id, env) {
    this.id = id;
    this.env = {
      ...process.env,
      CARILLON_NODE_ID: id,
      CARILLON_PORT: "0",
      CARILLON_LOG_LEVEL: "info",
      ...env,
    };
    this.start();
  }

  start() {
    const child = spawn(process.execPath, [SCHEDULER], {
      env: this.env,
      stdio: ["ignore", "pipe", "inherit"],
    });
    this.child = child;
    running.add(child);
    child.once("exit", () => running.delete(child));
    /** Settles when the timer of this process is set. */
    this.running = new Promise((resolve) => {
      createInterface({ input: child.stdout }).on("line", (line) => {
        if (line.includes("node is running")) resolve(undefined);
      });
    });
    this.ended = new Promise((resolve) => child.once("exit", resolve));
  }

  async kill() {
    this.child?.kill("SIGKILL");
    await this.ended;
  }

  async stop() {
    this.child?.kill("SIGTERM");
    await this.ended;
  }
}

export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
