// A process of a node or a worker that can be killed, frozen, or told to fail at a point. Its black box shows its
// position.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const children = new Set();
process.on("exit", () => {
  for (const child of children) child.kill("SIGKILL");
});

let serial = 0;

export class Child {
  /**
   * @param {{ id: string, script: "node.mjs" | "worker.mjs", env: Record<string, string>, dir: string, onEvent: (event:
   * any, child: Child) => void }} options
   */
  constructor({ id, script, env, dir, onEvent }) {
    this.id = id;
    this.env = env;
    /** The fault in progress, or undefined. */
    this.busy = undefined;
    this.frozen = false;
    this.down = true;
    this.box = join(dir, `${id}.box`);
    this.#file = fileURLToPath(new URL(script, import.meta.url));
    this.#onEvent = onEvent;
  }

  #file;
  #onEvent;
  #process;
  #orders = new Map();
  #waiters = new Set();

  get pid() {
    return this.#process.pid;
  }

  start() {
    if (!this.down) return;
    this.down = false;
    /** @type {any} a pipe for each of the three */
    const child = spawn(process.execPath, [this.#file], {
      env: { ...process.env, ...this.env, CHAOS_BOX: this.box },
      stdio: ["pipe", "inherit", "inherit", "pipe"],
    });
    this.#process = child;
    children.add(child);
    child.stdin.on("error", () => {});
    this.ready = new Promise((resolve, reject) => {
      this.on("ready", resolve);
      // A process that was killed before it was ready is replaced; one that ended on its own is not.
      child.once("exit", (code) => code && reject(new Error(`${this.id} ended with ${code}.`)));
    });
    this.ready.catch(() => {});
    this.ended = new Promise((resolve) => {
      child.once("exit", (code, signal) => {
        children.delete(child);
        if (this.#process === child) this.down = true;
        resolve({ code, signal });
      });
    });
    createInterface({ input: child.stdio[3] }).on("line", (line) => this.#heard(line));
  }

  #heard(line) {
    const event = JSON.parse(line);
    if (event.what === "hit" || event.what === "stalled") {
      this.#orders.get(event.id)?.(event);
      this.#orders.delete(event.id);
    }
    for (const waiter of [...this.#waiters]) if (waiter.what === event.what) waiter.heard(event);
    this.#onEvent(event, this);
  }

  /** Calls `heard` for the first event of this kind. */
  on(what, heard) {
    const waiter = {
      what,
      heard: (event) => {
        this.#waiters.delete(waiter);
        heard(event);
      },
    };
    this.#waiters.add(waiter);
    return () => this.#waiters.delete(waiter);
  }

  /** Orders a fault at a point; resolves with the event when it was hit, or with undefined after `within` ms. */
  order(order, within) {
    serial += 1;
    const id = serial;
    this.#process.stdin.write(`${JSON.stringify({ id, ...order })}\n`);
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        if (!this.#orders.delete(id)) return;
        if (!this.down) this.#process.stdin.write(`${JSON.stringify({ cancel: id })}\n`);
        resolve(undefined);
      }, within);
      this.#orders.set(id, (event) => {
        clearTimeout(timer);
        resolve(event);
      });
    });
  }

  /** Changes one of its conditions (failpoint.mjs). A new process begins without. Resolves when it holds. */
  set(condition, value) {
    return this.order({ condition, value }, 5_000);
  }

  /**
   * The point that it has reached, or had reached when it died.
   * @returns {{ critical: boolean, mono: number, text: string }}
   */
  where() {
    const [critical, mono, ...rest] = readFileSync(this.box, "utf8").trim().split(" ");
    return { critical: critical === "1", mono: Number(mono), text: rest.join(" ") };
  }

  async kill() {
    this.#process.kill("SIGKILL");
    await this.ended;
    this.frozen = false;
  }

  freeze() {
    this.frozen = true;
    this.#process.kill("SIGSTOP");
  }

  thaw() {
    this.frozen = false;
    this.#process.kill("SIGCONT");
  }

  /** Stops it gracefully; kills it if that takes longer than `within` ms. */
  async stop(within = 15_000) {
    if (this.down) return;
    this.#process.kill("SIGCONT");
    this.#process.kill("SIGTERM");
    const hard = setTimeout(() => this.#process.kill("SIGKILL"), within);
    await this.ended;
    clearTimeout(hard);
  }
}
