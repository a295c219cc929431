// Positive controls: the same processes and the same checks with a safety part taken out. Each must fail, every time: a battery
// that finds nothing here would find nothing anywhere.
import { operatorOf } from "@carillon/ops";
import { bullPrefix, Client } from "@carillon/sdk";
import { eventually } from "@carillon/testing";
import { Queue, Worker } from "bullmq";
import { pause } from "../lib/nodes.mjs";
import { check } from "./checker.mjs";
import { Child } from "./child.mjs";
import { readQueue } from "./evidence.mjs";
import { monotonic } from "./failpoint.mjs";
import { Observer } from "./observer.mjs";
import { openServers } from "./servers.mjs";
import { watchMulti } from "./watch-multi.mjs";

const QUEUE = "control";
/** Short, in ms, so that the mutex of a frozen node expires soon. */
const TTL = 300;
const PATIENCE = { timeoutMs: 30_000, intervalMs: 50 };
/** On a busy machine a node may give up a commit before it is thawed: then there is nothing to catch. */
const ATTEMPTS = 3;

/** @returns {Promise<Record<string, { caught: boolean, found: string }>>} */
export async function runControls({ dir, versions }) {
  const servers = await openServers("single");
  const run = async (name, control, attempt = 1) => {
    const namespace = `${name.replace(/\W+/g, "-").toLowerCase()}-${attempt}`;
    const stage = new Stage(servers, namespace, dir, versions.current);
    try {
      await control(stage);
      return await stage.verdict(FINDS[name]);
    } catch (error) {
      if (attempt === ATTEMPTS) throw error;
    } finally {
      await stage.close();
    }
    return run(name, control, attempt + 1);
  };
  try {
    const entries = await Promise.all(
      Object.entries(CONTROLS).map(async ([name, control]) => [name, await run(name, control)]),
    );
    return Object.fromEntries(entries);
  } finally {
    await servers.stop();
  }
}

/** Kinds of violations that each control must show. */
const FINDS = {
  "mutex only": ["duplicates"],
  "fence removed": ["duplicates"],
  "WATCH/MULTI": ["duplicates"],
  "overlap guard removed": ["overlaps"],
  "freeze check removed": ["frozen"],
  "writes lost": ["regressions", "gaps"],
  "limit removed": ["limits"],
  "items swapped": ["items"],
};

const CONTROLS = {
  /** A frozen holder of the mutex wakes up after another node has taken it. */
  async "mutex only"(stage) {
    await stage.put({ overlap: "allow", catchUp: "all" });
    const [frozen] = await stage.nodes(2, "fence");
    const hit = await frozen.order({ at: "before commit", do: "stop" }, PATIENCE.timeoutMs);
    if (!hit) throw new Error("it never came to a commit");
    await stage.another(hit.mono);
    frozen.thaw();
    await stage.another(hit.mono, frozen.id);
  },

  /** Two nodes claim the same due tasks. */
  async "fence removed"(stage) {
    await stage.put({ overlap: "allow", catchUp: "all" });
    const [slow] = await stage.nodes(2, "mutex,fence");
    const hit = await slow.order({ at: "before commit", do: "stop" }, PATIENCE.timeoutMs);
    if (!hit) throw new Error("it never came to a commit");
    await stage.another(hit.mono);
    slow.thaw();
    await stage.another(hit.mono, slow.id);
  },

  /** A reconnect drops the WATCH, and the client sends its MULTI again. */
  async "WATCH/MULTI"(stage) {
    await stage.put({ overlap: "allow", catchUp: "all" });
    await watchMulti(stage.servers, stage.namespace, QUEUE);
  },

  /** A failed job is retried from outside between a node's read and its commit. */
  async "overlap guard removed"(stage) {
    await stage.put({ overlap: "skip", catchUp: "one" });
    const [node] = await stage.nodes(1, "overlap-guard");
    await stage.failFirstJob();
    const hit = await node.order({ at: "before commit", do: "stop" }, PATIENCE.timeoutMs);
    if (!hit) throw new Error("it never came to a commit");
    await stage.retryFirstJob();
    node.thaw();
    await stage.another(hit.mono);
  },

  /** A node that decided before a freeze commits during it. */
  async "freeze check removed"(stage) {
    await stage.put({ overlap: "allow", catchUp: "all" });
    const [node] = await stage.nodes(1, "freeze");
    const hit = await node.order({ at: "before commit", do: "stop" }, PATIENCE.timeoutMs);
    if (!hit) throw new Error("it never came to a commit");
    await stage.freeze();
    node.thaw();
    await stage.another(hit.mono);
  },

  /** Redis loses acknowledged writes without a failover. */
  async "writes lost"(stage) {
    await stage.put({ overlap: "allow", catchUp: "all" });
    const [node] = await stage.nodes(1, "");
    await stage.another(0);
    const loseWrites = await stage.snapshot();
    await stage.another(monotonic());
    const hit = await node.order({ at: "before commit", do: "stop" }, PATIENCE.timeoutMs);
    if (!hit) throw new Error("it never came to a commit");
    await stage.looked();
    await loseWrites();
    await stage.looked();
  },

  /** A node enqueues a second run of an owner whose limit is one. */
  async "limit removed"(stage) {
    await stage.put({ overlap: "allow", catchUp: "all" });
    await stage.limit(1);
    await stage.nodes(1, "limit");
    await stage.another(await stage.another(0));
  },

  /** Two tenants get an item of each other's runs. */
  async "items swapped"(stage) {
    const runs = [];
    for (const owner of ["acme", "globex"]) {
      const spec = {
        id: "sync",
        owner,
        type: "fan",
        schedule: { every: "1d" },
        payload: { items: 5, ms: 300 },
      };
      await stage.put(spec);
      runs.push((await stage.client.trigger({ queue: QUEUE, owner, id: "sync" })).run);
    }
    await stage.worker();
    await stage.swapItems(...runs.map((run) => `${run}_4`));
    await stage.ended(runs);
  },
};

/** A namespace of its own on the controls' Redis. */
class Stage {
  #children = [];
  #acks = [];
  #items = [];
  #tasks = [];
  #job;
  #limits = {};
  #freezes = [];

  constructor(servers, namespace, dir, version) {
    this.servers = servers;
    this.namespace = namespace;
    this.dir = dir;
    this.version = version;
    this.client = new Client({ connection: servers.url, namespace });
    this.observer = new Observer(servers, namespace, [QUEUE]);
  }

  async put(policies) {
    const task = { id: "t", type: "none", queue: QUEUE, schedule: { every: "1s" }, ...policies };
    this.#tasks.push(task);
    await this.client.put(task);
  }

  async limit(runs) {
    await operatorOf(this.client).queues.setLimit({ queue: QUEUE, owner: "system", runs });
    this.#limits = { [QUEUE]: { system: runs } };
  }

  async freeze() {
    const { id } = await operatorOf(this.client).freezes.put({ all: true });
    const from = (await this.client.serverTime()) + 1;
    this.#freezes.push({ id, scope: { all: true }, from, to: Number.POSITIVE_INFINITY, mono: 0 });
  }

  /** @returns a function that restores the task and its runs to their present state */
  async snapshot() {
    const { admin } = this.servers;
    const tag = `{${this.namespace}:${QUEUE}}`;
    const keys = async () => [
      ...(await admin.keys(`${tag}:~r:*`)),
      ...(await admin.keys(`${tag}:${QUEUE}:t@*`)),
    ];
    const task = `${tag}:~t:system/t`;
    const [dump, kept] = [await admin.dumpBuffer(task), new Set(await keys())];
    return async () => {
      await admin.restore(task, 0, dump, "REPLACE");
      await admin.del((await keys()).filter((key) => !kept.has(key)));
    };
  }

  /** Resolves when the observer has read the queue. */
  async looked() {
    const { looks } = this.observer;
    await eventually(() => {
      if (this.observer.looks < looks + 2) throw new Error("the observer reads nothing");
    }, PATIENCE);
  }

  async nodes(count, sabotage) {
    for (let i = 0; i < count; i++) {
      const env = {
        REDIS_URL: this.servers.url,
        CARILLON_NAMESPACE: this.namespace,
        CARILLON_NODE_ID: `n${i}`,
        CARILLON_PORT: "0",
        CARILLON_MUTEX_TTL_MS: String(TTL),
        CARILLON_TEST_ONLY_SABOTAGE: sabotage,
        CHAOS_VERSION: this.version,
      };
      const onEvent = (event, from) => {
        if (event.what === "ack") this.#acks.push({ ...event, node: from.id });
      };
      const id = `${this.namespace}-${i}`;
      const child = new Child({ id, script: "node.mjs", env, dir: this.dir, onEvent });
      this.#children.push(child);
      child.start();
    }
    await Promise.all(this.#children.map(({ ready }) => ready));
    return this.#children;
  }

  /** A worker that does one job after the other. */
  async worker() {
    const env = {
      REDIS_URL: this.servers.url,
      CARILLON_NAMESPACE: this.namespace,
      CHAOS_QUEUES: QUEUE,
      CHAOS_CONCURRENCY: "1",
      CHAOS_LOCK_MS: "30000",
    };
    const onEvent = (event) => event.what === "item" && this.#items.push(event);
    const child = new Child({ id: `${this.namespace}-w`, script: "worker.mjs", env, dir: this.dir, onEvent });
    this.#children.push(child);
    child.start();
    await child.ready;
  }

  /** Exchanges what two jobs that wait are to do, and nothing else. */
  async swapItems(...ids) {
    const queue = new Queue(QUEUE, this.#bull);
    const [one, other] = await eventually(async () => {
      const [first, second] = await Promise.all(ids.map((id) => queue.getJob(id)));
      if (first && second) return [first, second];
      throw new Error("there are no items");
    }, PATIENCE);
    const { item } = one.data;
    await one.updateData({ ...one.data, item: other.data.item });
    await other.updateData({ ...other.data, item });
    await queue.close();
  }

  async ended(runs) {
    await eventually(async () => {
      for (const run of runs)
        if ((await this.client.runs.get(run))?.state !== "final") throw new Error(`${run} has not ended`);
    }, PATIENCE);
  }

  /** Waits for a commit of this node after this moment. Returns its time. */
  async another(mono, node) {
    return eventually(() => {
      const found = this.#acks.find((ack) => ack.mono > mono && (node === undefined || ack.node === node));
      if (found) return found.mono;
      throw new Error("nothing was enqueued");
    }, PATIENCE);
  }

  get #bull() {
    return { connection: this.servers.admin, prefix: bullPrefix(this.namespace, QUEUE) };
  }

  async failFirstJob() {
    const worker = new Worker(QUEUE, null, { ...this.#bull, autorun: false, lockDuration: 60_000 });
    worker.on("error", () => {});
    this.#job = await eventually(async () => {
      const job = await worker.getNextJob("token", { block: false });
      if (job) return job;
      throw new Error("there is no job");
    }, PATIENCE);
    await this.#job.moveToFailed(new Error("it failed, as it was to"), "token", false);
    await worker.close(true);
  }

  async retryFirstJob() {
    const queue = new Queue(QUEUE, this.#bull);
    const job = await queue.getJob(this.#job.id);
    await job?.retry("failed");
    await queue.close();
  }

  /** @param {string[]} kinds of violations that must be found */
  async verdict(kinds) {
    await pause(200);
    await this.observer.stop();
    const held = await readQueue(this.servers, this.namespace, QUEUE);
    const { observer } = this;
    const found = check({
      tasks: this.#tasks,
      queues: [held],
      observer,
      acks: new Map(this.#acks.map((ack) => [ack.run, ack])),
      items: this.#items,
      deadline: 0,
      jumps: [],
      limits: this.#limits,
      freezes: this.#freezes,
    });
    const texts = kinds.flatMap((kind) => found[kind][0] ?? []);
    return {
      caught: texts.length === kinds.length,
      found: `${kinds.map((kind) => `${found[kind].length} ${kind}`).join(", ")}: ${texts.join("; ")}`,
    };
  }

  async close() {
    await this.observer.stop();
    await Promise.all(this.#children.map((child) => (child.down ? undefined : child.kill())));
    await this.client.close();
  }
}
