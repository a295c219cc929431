// The processes of a run: nodes and workers, each behind its own proxy if the topology allows it, and everything that
// they report.
import { join } from "node:path";
import { Child } from "./child.mjs";
import { WrongClock } from "./faketime.mjs";

/** The node's default, in ms. */
const MUTEX_TTL = 3_000;
/** Duration of a worker's lock, in ms: short, so that many expire during a run. */
const LOCK = 2_000;

export class Crew {
  settings = { mutexTtl: MUTEX_TTL, lockMs: LOCK };
  nodes = [];
  workers = [];
  /** Runs that Redis acknowledged to nodes as enqueued, by id. */
  acks = new Map();
  /** Commits that Redis refused because the task had changed since the decision. */
  stale = 0;
  /** Items of fan-outs that workers have done. */
  items = [];
  /** Warnings and errors from their logs. */
  errors = [];
  /** Violations. */
  problems = [];
  /** Whether a failover may have taken fences back: they are no longer compared. */
  fencesMayRepeat = false;
  #fences = new Map();
  #options;

  /**
   * @param {{ servers: any, namespace: string, dir: string, version: string, library?: string, verbose?: boolean,
   * onStarted?: (event: any) => void, onAck?: (event: any) => void }} options `onAck`: instead of keeping them
   */
  constructor(options) {
    this.#options = options;
  }

  get all() {
    return [...this.nodes, ...this.workers];
  }

  async addNode(id) {
    const { servers, dir, version, library } = this.#options;
    const { url, proxy } = await servers.wayFor("node");
    const clock = library && new WrongClock(library, join(dir, `${id}.clock`));
    const env = {
      CARILLON_NODE_ID: id,
      CARILLON_PORT: "0",
      CARILLON_MUTEX_TTL_MS: String(MUTEX_TTL),
      CHAOS_VERSION: version,
      ...clock?.env,
    };
    this.nodes.push(
      Object.assign(this.#child(id, "node.mjs", url, env), { proxy, clock, acks: 0, unheard: 0 }),
    );
  }

  /** @param {Record<string, string>} env its configuration, see worker.mjs */
  async addWorker(id, env) {
    const { url, proxy } = await this.#options.servers.wayFor("default");
    const child = this.#child(id, "worker.mjs", url, { CHAOS_LOCK_MS: String(LOCK), ...env });
    this.workers.push(Object.assign(child, { proxy }));
  }

  #child(id, script, url, own) {
    const { dir, namespace } = this.#options;
    const env = { REDIS_URL: url, CARILLON_NAMESPACE: namespace, ...own };
    return new Child({ id, script, env, dir, onEvent: (event, from) => this.#heard(event, from) });
  }

  async start() {
    for (const child of this.all) child.start();
    await Promise.all(this.all.map((child) => child.ready));
  }

  #heard(event, from) {
    const { verbose, onAck, onStarted } = this.#options;
    if (event.what === "ack") {
      from.acks += 1;
      if (onAck) onAck(event);
      else this.acks.set(event.run, { ...event, node: from.id, version: from.env.CHAOS_VERSION });
    }
    if (event.what === "started") {
      if (onStarted) onStarted(event);
      else this.#compareFence(event);
    }
    if (event.what === "item") this.items.push(event);
    if (event.what === "unheard") from.unheard += 1;
    if (event.what === "stale") this.stale += 1;
    if (event.what !== "error" && event.what !== "warning") return;
    this.errors.push({ message: event.message });
    if (verbose) console.error(from.id, event.what, event.code ?? "", event.message, event.error ?? "");
    if (event.fatal) this.problems.push(`${from.id} ended: ${event.message}`);
  }

  /** Each attempt has its own fence. */
  #compareFence({ queue, task, fence, run, attempt }) {
    if (this.fencesMayRepeat) return;
    const key = `${queue} ${task} ${fence}`;
    const own = `${run} attempt ${attempt}`;
    const before = this.#fences.get(key);
    if (before && before !== own)
      this.problems.push(`${task}: fence ${fence} was given to ${before} and to ${own}`);
    this.#fences.set(key, own);
  }

  /** Ends all faults, and restarts dead processes. */
  async heal() {
    for (const { proxy } of this.all) await proxy?.heal();
    for (const child of this.all) {
      // Also those whose order came too late to be withdrawn.
      if (!child.down) child.thaw();
      child.start();
    }
    await Promise.all(this.all.map((child) => child.ready));
  }

  /** Stops gracefully: nodes first. */
  async stop() {
    await Promise.all(this.nodes.map((node) => node.stop()));
    await Promise.all(this.workers.map((worker) => worker.stop()));
  }

  async kill() {
    await Promise.all(this.all.map((child) => (child.down ? undefined : child.kill())));
  }
}
