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
import { COMMIT } from "./faults/network.mjs";
import { Observer } from "./observer.mjs";
import { ask, openServers } from "./servers.mjs";
import { watchMulti } from "./watch-multi.mjs";

const QUEUE = "control";
/** Short, in ms, so that the mutex of a frozen node expires soon. */
const TTL = 300;
const PATIENCE = { timeoutMs: 30_000, intervalMs: 50 };
/** On a busy machine a node may give up a commit before it is thawed: then there is nothing to catch. */
const ATTEMPTS = 5;
/** Controls that run at the same time. */
const AT_ONCE = 8;

/** @returns {Promise<Record<string, { caught: boolean, found: string }>>} */
export async function runControls({ dir, versions, controls }) {
  const servers = await openServers("single");
  const run = async (name, control, attempt = 1) => {
    const namespace = `${name.replace(/\W+/g, "-").toLowerCase()}-${attempt}`;
    const stage = new Stage(servers, namespace, dir, versions.current);
    try {
      await control(stage);
      const verdict = await stage.verdict(FINDS[name]);
      // A fault may strike nothing by chance: a check that sees nothing never catches it.
      if (verdict.caught || attempt === ATTEMPTS) return verdict;
    } catch (error) {
      if (attempt === ATTEMPTS) throw error;
    } finally {
      await stage.close();
    }
    return run(name, control, attempt + 1);
  };
  const results = {};
  const left = Object.entries(CONTROLS).filter(([name]) => controls.includes(name));
  const runSome = async () => {
    for (let next = left.shift(); next; next = left.shift()) results[next[0]] = await run(...next);
  };
  try {
    await Promise.all(Array.from({ length: AT_ONCE }, runSome));
    return Object.fromEntries(controls.map((name) => [name, results[name]]));
  } finally {
    await servers.stop();
  }
}

/** Kinds of violations that each control must show. */
const FINDS = {
  "mutex only": ["duplicates"],
  "fence removed": ["duplicates"],
  "shares without a fence": ["duplicates"],
  "death without a fence": ["duplicates"],
  "edits without a fence": ["paused", "stale"],
  "no re-read": ["pending"],
  "scripts not sent again": ["pending"],
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
    const hit = await stopAtCommit(frozen);
    await stage.another(hit.mono);
    frozen.thaw();
    await stage.another(hit.mono, frozen.id);
  },

  /** Two nodes claim the same due tasks. */
  async "fence removed"(stage) {
    await stage.put({ overlap: "allow", catchUp: "all" });
    const [slow] = await stage.nodes(2, "mutex,fence");
    const hit = await stopAtCommit(slow);
    await stage.another(hit.mono);
    slow.thaw();
    await stage.another(hit.mono, slow.id);
  },

  /** The owner of a shard is frozen with its decisions, and the shard becomes another node's share. */
  async "shares without a fence"(stage) {
    await stage.put({ overlap: "allow", catchUp: "all" });
    const nodes = await stage.nodes(2, "fence");
    const owner = await stage.owner(nodes);
    const hit = await stopAtCommit(owner);
    await stage.vanished(owner);
    await stage.another(hit.mono);
    owner.thaw();
    await stage.another(hit.mono, owner.id);
  },

  /** An owner dies with a batch under way, which arrives when another node has taken the queue. */
  async "death without a fence"(stage) {
    await stage.put({ overlap: "allow", catchUp: "all" });
    const owner = await stage.owner(await stage.nodes(2, "fence"));
    const batches = owner.proxy.copy(COMMIT);
    const mono = monotonic();
    const withheld = owner.proxy.withhold("question", COMMIT).then(() => true);
    const taken = stage.acked((ack) => ack.mono > mono && ack.node !== owner.id).then(() => false);
    if (!(await Promise.race([withheld, taken]))) throw new Error("the other node took the queue before");
    await owner.kill();
    await stage.another(monotonic());
    await batches.deliver();
  },

  /** One task is paused, and the payload of another is changed, while a node holds decisions about both. */
  async "edits without a fence"(stage) {
    await stage.put({ overlap: "allow", catchUp: "all" });
    await stage.put({ id: "u", overlap: "allow", catchUp: "all" });
    const [node] = await stage.nodes(1, "fence");
    const hit = await stopAtCommit(node);
    await stage.edit("t", { what: "paused" }, (task) => stage.client.pause(task));
    await stage.edit("u", { what: "stale", edit: 1 }, (task) =>
      stage.client.put({ ...task, payload: { edit: 1 } }),
    );
    node.thaw();
    await stage.another(hit.mono);
  },

  /** A wake message is lost, and the node does not read again by itself. */
  async "no re-read"(stage) {
    const [node] = await stage.nodes(1, "");
    // It reads again when it has subscribed.
    await pause(2_000);
    await node.set("deaf", true);
    await stage.put({ overlap: "allow", catchUp: "all" });
    await pause(2_500);
  },

  /** Scripts and functions are flushed, and their text is not sent. */
  async "scripts not sent again"(stage) {
    await stage.put({ overlap: "allow", catchUp: "all" });
    // Another text than that of all other nodes here, which would load it again.
    await stage.nodes(1, "freeze,limit", "node");
    await stage.another(0);
    const [master] = await stage.servers.masters();
    await ask(master, "ACL", "SETUSER", "node", "-eval", "-function");
    await ask(master, "SCRIPT", "FLUSH");
    await ask(master, "FUNCTION", "FLUSH");
    await pause(2_000);
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
    const hit = await stopAtCommit(node);
    await stage.retryFirstJob();
    node.thaw();
    await stage.another(hit.mono);
  },

  /** A node that decided before a freeze commits during it. */
  async "freeze check removed"(stage) {
    await stage.put({ overlap: "allow", catchUp: "all" });
    const [node] = await stage.nodes(1, "freeze");
    const hit = await stopAtCommit(node);
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
    await stopAtCommit(node);
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

/** Freezes a node that has decided, right before its commit. */
async function stopAtCommit(node) {
  const hit = await node.order({ at: "before commit", do: "stop" }, PATIENCE.timeoutMs);
  if (!hit) throw new Error("it never came to a commit");
  return hit;
}

export const CONTROL_NAMES = Object.keys(CONTROLS);

/** A namespace of its own on the controls' Redis. */
class Stage {
  #children = [];
  #acks = [];
  #items = [];
  #tasks = [];
  #job;
  #limits = {};
  #holds = [];

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
    await operatorOf(this.client).queues.limit({ queue: QUEUE, owner: "system", runs });
    this.#limits = { [QUEUE]: { system: runs } };
  }

  async freeze() {
    await operatorOf(this.client).freezes.put({ all: true });
    await this.#holdsNow({ what: "frozen", scope: { all: true } });
  }

  /** Makes an edit of a task, and remembers what holds from then on. */
  async edit(id, after, make) {
    await make(this.#tasks.find((task) => task.id === id));
    await this.#holdsNow({ scope: { task: id }, ...after });
  }

  async #holdsNow(hold) {
    const from = (await this.client.serverTime()) + 1;
    this.#holds.push({ id: "a hold", from, to: Number.POSITIVE_INFINITY, mono: 0, ...hold });
  }

  /** The node that claims, once every node is in the list of live ones. */
  async owner(nodes) {
    await eventually(async () => {
      const fields = await this.servers.admin.hkeys(`{${this.namespace}}:nodes`);
      // A field is an id and, after a space, the process that has it.
      const live = new Set(fields.map((field) => field.split(" ")[0])).size;
      if (live < nodes.length) throw new Error(`${live} nodes live`);
    }, PATIENCE);
    await this.another(monotonic());
    const { node } = this.#acks.at(-1);
    return nodes.find(({ id }) => id === node);
  }

  /** Takes a node from the list of live nodes: its shares become those of the others. */
  async vanished({ env }) {
    const key = `{${this.namespace}}:nodes`;
    const fields = await this.servers.admin.hkeys(key);
    const own = fields.filter((field) => field.split(" ")[0] === env.CARILLON_NODE_ID);
    if (own.length > 0) await this.servers.admin.hdel(key, ...own);
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

  /** @param {string} [user] of Redis */
  async nodes(count, sabotage, user) {
    for (let i = 0; i < count; i++) {
      const { url, proxy } = await this.servers.wayFor(user ?? "default");
      const env = {
        REDIS_URL: url,
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
      this.#children.push(Object.assign(child, { proxy }));
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
    const found = await this.acked((ack) => ack.mono > mono && (node === undefined || ack.node === node));
    return found.mono;
  }

  /** Waits for such an answer to a commit. */
  async acked(such) {
    return eventually(() => {
      const found = this.#acks.find(such);
      if (found) return found;
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
    const deadline = await this.client.serverTime();
    const found = check({
      tasks: this.#tasks,
      queues: [held],
      observer,
      acks: new Map(this.#acks.map((ack) => [ack.run, ack])),
      items: this.#items,
      // Time for what is due to be claimed.
      deadline: deadline - 1_000,
      jumps: [],
      limits: this.#limits,
      holds: this.#holds,
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
