// One run of the battery: servers, nodes, workers and a client as they are in production; faults by plan; then the checks.
import { join } from "node:path";
import { Client } from "@carillon/sdk";
import { eventually } from "@carillon/testing";
import { pause, percentile, random } from "../measure/nodes.mjs";
import { check } from "./checker.mjs";
import { Child } from "./child.mjs";
import { readQueue } from "./evidence.mjs";
import { monotonic } from "./failpoint.mjs";
import { faketimeLibrary, redisClockEnv, WrongClock } from "./faketime.mjs";
import { FAULTS } from "./faults/index.mjs";
import {
  COUNT_QUEUES,
  EDIT,
  endSchedules,
  makeTasks,
  NEXT,
  PLAIN,
  putAll,
  QUEUES,
  startEditing,
  WORK,
} from "./load.mjs";
import { Observer } from "./observer.mjs";
import { makePlan, QUIET } from "./plan.mjs";
import { openServers } from "./servers.mjs";
import { sdkOf } from "./versions.mjs";

const NAMESPACE = "chaos";
/** The node's default, in ms. */
const MUTEX_TTL = 3_000;
/** A worker's lock, in ms: short, so that a run can see many outlived. */
const LOCK = 2_000;
const WORKERS = 2;

/**
 * @param {{ seconds: number, nodes: number, seed: number, topology: string, only: string[], tasks: number, redisBinary: string, dir: string, versions: { current: string, next: string }, verbose?: boolean }} options
 */
export async function runBattery(options) {
  const run = new Run(options);
  try {
    await run.phase("open");
    await run.phase("storm");
    await run.phase("settle");
    return await run.phase("report");
  } finally {
    await run.close();
  }
}

class Run {
  constructor(options) {
    this.options = options;
    this.dice = random(options.seed + 1);
    this.settings = { mutexTtl: MUTEX_TTL, lockMs: LOCK };
    this.namespace = NAMESPACE;
    this.versions = options.versions;
    this.nodes = [];
    this.workers = [];
    this.jumps = [];
    this.acksByRun = new Map();
    this.errors = [];
    this.fences = new Map();
    this.problems = [];
    this.results = [];
    this.underWay = new Set();
    this.skipped = new Set();
    this.lost = false;
    /** One fault of Redis at a time. */
    this.redis = { id: "redis", busy: undefined };
  }

  async phase(name) {
    const began = monotonic();
    const result = await this[name]();
    if (this.options.verbose) console.error(`${name}: ${Math.round(monotonic() - began)} ms`);
    return result;
  }

  async open() {
    const { nodes, topology, tasks, dir } = this.options;
    const library = await faketimeLibrary();
    this.servers = await openServers(topology, this.#redisEnv(dir, library));
    this.client = new Client({ connection: this.servers.url, namespace: NAMESPACE });
    this.nextClient = new (await sdkOf(this.versions.next)).Client({
      connection: this.servers.url,
      namespace: NAMESPACE,
    });
    this.tasks = makeTasks(tasks);
    await putAll(this.client, this.tasks);
    this.observer = new Observer(this.servers, NAMESPACE, QUEUES);
    for (let i = 0; i < nodes; i++) this.nodes.push(await this.#node(`n${i}`, dir, library));
    for (let i = 0; i < WORKERS; i++) this.workers.push(await this.#worker(`w${i}`, dir));
    for (const child of [...this.nodes, ...this.workers]) child.start();
    await Promise.all([...this.nodes, ...this.workers].map((child) => child.ready));
    this.editing = startEditing(this.client, this.tasks, random(this.options.seed + 2), (error) => {
      this.problems.push(`a client's call failed: ${error.stack ?? error}`);
    });
  }

  /** A clock of Redis that can be wrong, where the library is there and this Redis bears it. */
  #redisEnv(dir, library) {
    if (!library || this.options.topology !== "single") return {};
    const clock = new WrongClock(library, join(dir, "redis.clock"));
    const env = redisClockEnv(clock, this.options.redisBinary);
    if (env) this.redisClock = clock;
    return env ?? {};
  }

  async #node(id, dir, library) {
    const { url, proxy } = await this.servers.wayFor("node");
    const clock = library && new WrongClock(library, join(dir, `${id}.clock`));
    const env = {
      REDIS_URL: url,
      CARILLON_NAMESPACE: NAMESPACE,
      CARILLON_NODE_ID: id,
      CARILLON_PORT: "0",
      CARILLON_MUTEX_TTL_MS: String(MUTEX_TTL),
      CHAOS_VERSION: this.versions.current,
      ...clock?.env,
    };
    const child = new Child({
      id,
      script: "node.mjs",
      env,
      dir,
      onEvent: (event, from) => this.#heard(event, from),
    });
    return Object.assign(child, { proxy, clock, acks: 0 });
  }

  async #worker(id, dir) {
    const { url, proxy } = await this.servers.wayFor("default");
    const env = {
      REDIS_URL: url,
      CARILLON_NAMESPACE: NAMESPACE,
      CHAOS_QUEUES: [WORK, EDIT].join(","),
      CHAOS_PLAIN_QUEUE: PLAIN,
      CHAOS_LOCK_MS: String(LOCK),
    };
    const child = new Child({
      id,
      script: "worker.mjs",
      env,
      dir,
      onEvent: (event, from) => this.#heard(event, from),
    });
    return Object.assign(child, { proxy });
  }

  #heard(event, from) {
    if (event.what === "ack") {
      from.acks += 1;
      this.acksByRun.set(event.run, { ...event, node: from.id, version: from.env.CHAOS_VERSION });
    }
    if (event.what === "started") this.#checkFence(event);
    if (event.what === "error" || event.what === "warning") {
      this.errors.push({ ...event, from: from.id });
      if (this.options.verbose) console.error(from.id, event.what, event.code ?? "", event.message);
      if (event.fatal) this.problems.push(`${from.id} ended: ${event.message}`);
    }
  }

  /** An attempt's fence is its own, and higher than those before it were. */
  #checkFence({ task, fence, run, attempt }) {
    if (this.lost) return; // a failover may have taken fences back
    const before = this.fences.get(`${task} ${fence}`);
    const own = `${run} attempt ${attempt}`;
    if (before && before !== own)
      this.problems.push(`${task}: fence ${fence} was given to ${before} and to ${own}`);
    this.fences.set(`${task} ${fence}`, own);
  }

  /** Which faults this run can have. */
  #available() {
    const { topology, only } = this.options;
    return FAULTS.filter((fault) => {
      if (only.length > 0 && !only.includes(fault.kind)) return false;
      if (fault.topologies && !fault.topologies.includes(topology)) return false;
      const missing =
        (fault.needs === "clock" && !this.nodes[0].clock) ||
        (fault.needs === "redisClock" && !this.redisClock);
      if (missing) this.skipped.add(fault.kind);
      return !missing;
    });
  }

  async storm() {
    const faults = this.#available();
    const ms = this.options.seconds * 1_000;
    // The worst that a node can do to the others: die with the mutex in its hands, and nothing claimed.
    const worst = faults.filter(
      ({ kind, point }) =>
        kind === "dies at a point" && (point === "after lock" || point === "before commit"),
    );
    const restarts = faults.filter(({ kind }) => kind === "Redis kill -9 and restart");
    const plan = makePlan({ faults, probes: [...worst, ...restarts], ms, seed: this.options.seed });
    this.planned = plan.length;
    let began = monotonic();
    const left = (until) => Math.max(0, began + until - monotonic());
    for (const entry of plan) {
      await pause(left(entry.at));
      if (entry.probe) {
        // Alone: what the storm began is over first, and the next one waits for the end of this.
        await Promise.all(this.underWay);
        await this.#do(entry, () => QUIET);
        await pause(left(entry.storm));
        began += Math.max(0, monotonic() - began - entry.storm);
      } else this.#start(this.#do(entry, left));
    }
    await pause(left(ms));
    await Promise.all(this.underWay);
  }

  #start(promise) {
    const tracked = promise.finally(() => this.underWay.delete(tracked));
    this.underWay.add(tracked);
  }

  async #do(entry, left) {
    const { fault, dice } = entry;
    const within = Math.max(200, left(entry.storm) - 200);
    const targets = fault.scope === "node" ? this.nodes : fault.scope === "worker" ? this.workers : [];
    const target = fault.scope === "redis" ? this.redis : this.#free(targets, dice);
    if (!target || target.busy) return;
    if (!fault.waits && !fault.beside) target.busy = fault.kind;
    const result = {
      kind: fault.kind,
      point: fault.point,
      target: target?.id,
      probe: entry.probe,
      began: monotonic(),
    };
    try {
      const hit = async (work) => {
        result.began = monotonic();
        target.busy = fault.kind;
        const recovered = entry.probe ? this.#untilClaimed() : undefined;
        await work();
        if (recovered) result.recovered = (await recovered) - result.began;
      };
      const end = await fault.run({ ...this.#world(), target, dice, within, hit });
      if (end.happened === false) return;
      Object.assign(result, end, { ended: monotonic() });
      if (end.healed) result.healedAt = result.ended;
      this.results.push(result);
      if (this.options.verbose)
        console.error(`${fault.kind} ${target.id}: ${end.effective ? "hit" : "no effect"} ${end.note ?? ""}`);
    } catch (error) {
      this.problems.push(`${fault.kind} could not be injected: ${error.stack ?? error}`);
    } finally {
      if (target.busy === fault.kind) target.busy = undefined;
    }
  }

  /** Until all that is due now is claimed, or looked at. */
  async #untilClaimed() {
    const { admin } = this.servers;
    const now = await this.client.store.serverTime();
    const shards = QUEUES.filter((queue) => queue !== NEXT).flatMap((queue) =>
      Array.from({ length: 8 }, (_, shard) => `{${NAMESPACE}:${queue}}:~due:${shard}`),
    );
    for (;;) {
      const counts = await Promise.all(shards.map((key) => admin.zcount(key, "-inf", now)));
      if (counts.every((count) => count === 0)) return monotonic();
      await pause(10);
    }
  }

  /** One to which nothing happens just now. One is always left alone. */
  #free(children, dice) {
    const free = children.filter(({ busy, down }) => !busy && !down);
    const busy = children.length - free.length;
    if (busy >= children.length - 1) return undefined;
    return free[Math.floor(dice() * free.length)];
  }

  #world() {
    const {
      servers,
      nodes,
      workers,
      settings,
      namespace,
      observer,
      jumps,
      redisClock,
      versions,
      nextClient,
      tasks,
    } = this;
    return {
      ...{
        servers,
        nodes,
        workers,
        settings,
        namespace,
        observer,
        jumps,
        redisClock,
        versions,
        nextClient,
        tasks,
      },
      now: monotonic,
      acks: () => this.acksByRun.size,
      errors: () => this.errors.length,
      acksOf: (node) => node.acks,
      acksIn: (queue, version) =>
        [...this.acksByRun.values()].filter((ack) => ack.version === version && queue(ack.queue)).length,
      errorsOf: (text) => this.errors.filter(({ message }) => message.includes(text)).length,
      afterwards: (pattern, ms) => this.#errorSoon(pattern, ms),
      redisMayLose: () => {
        this.lost = true;
        observer.redisMayHaveLost();
      },
    };
  }

  async #errorSoon(pattern, ms) {
    const from = this.errors.length;
    await pause(ms / 2);
    return this.errors.slice(from).some(({ message }) => pattern.test(message));
  }

  /** All is well again, and everyone alive: what is owed is done. */
  async settle() {
    await this.editing.stop();
    for (const { proxy } of [...this.nodes, ...this.workers]) await proxy?.heal();
    for (const child of [...this.nodes, ...this.workers]) {
      if (child.frozen) child.thaw();
      child.start();
    }
    const patience = { timeoutMs: 120_000, intervalMs: 500 };
    const end = await eventually(() => this.client.store.serverTime(), patience);
    await eventually(() => endSchedules(this.client, this.tasks, end).then(() => true), patience);
    this.deadline = await eventually(() => this.client.store.serverTime(), patience);
    const began = monotonic();
    this.rest = await eventually(async () => {
      const waiting = await this.#waiting();
      if (this.options.verbose)
        console.error(`waiting for ${waiting.length}: ${waiting.slice(0, 3).join(", ")}`);
      if (waiting.length > 0) throw new Error(`not at rest: ${waiting.slice(0, 5).join(", ")}`);
      return monotonic() - began;
    }, patience).catch((error) => {
      this.problems.push(`it did not come to rest: ${error.message}`);
      return undefined;
    });
    await this.observer.stop();
    await Promise.all(this.nodes.map((node) => node.stop()));
    await Promise.all(this.workers.map((worker) => worker.stop()));
  }

  async #waiting() {
    const { admin } = this.servers;
    const waiting = [];
    for (const queue of QUEUES) {
      const ours = `{${NAMESPACE}:${queue}}:~`;
      for (let shard = 0; shard < 8; shard++) {
        for (const name of await admin.zrangebyscore(`${ours}due:${shard}`, "-inf", this.deadline))
          waiting.push(`${queue} ${name}`);
      }
      if (COUNT_QUEUES.includes(queue) || queue === NEXT) continue;
      for (const name of await admin.zrange(`${ours}tasks`, 0, "-1")) {
        if ((await admin.zcard(`${ours}open:${name}`)) > 0) waiting.push(`${queue} ${name} runs`);
        if (await admin.hexists(`${ours}t:${name}`, "pending"))
          waiting.push(`${queue} ${name} has something pending`);
      }
    }
    return waiting;
  }

  async report() {
    const held = [];
    for (const queue of QUEUES) held.push(await readQueue(this.servers, NAMESPACE, queue));
    const found = check({
      ...{ tasks: this.tasks, queues: held, observer: this.observer, acks: this.acksByRun },
      ...{ deadline: this.deadline, jumps: this.jumps, mayLose: this.lost },
    });
    found.mended = [];
    for (const queue of QUEUES) {
      const mended = await this.client.store.tasks.audit(queue);
      if (mended > 0) found.mended.push(`${queue}: ${mended} entries of its indexes were wrong`);
    }
    const foreign = [...this.acksByRun.values()].filter(
      ({ queue, version }) => queue === NEXT && version !== this.versions.next,
    );
    for (const ack of foreign)
      this.problems.push(`${ack.node} of this version claimed ${ack.task}, which is a newer one's`);
    // What the Redis clock jumped over was never due on time.
    const jumpedOver = (due) => this.jumps.some(({ at, forward = 0 }) => due > at && due < at + forward);
    const late = held.flatMap(({ jobs }) =>
      jobs
        .filter(({ trigger, due }) => trigger && trigger !== "manual" && !jumpedOver(due))
        .map(({ due, enqueued }) => enqueued - due),
    );
    return {
      options: this.options,
      found,
      problems: this.problems,
      results: this.results,
      skipped: [...this.skipped],
      occurrences: held.reduce((sum, { jobs }) => sum + jobs.length, 0),
      latenessMs: { p50: percentile(late, 0.5), p99: percentile(late, 0.99), max: Math.max(0, ...late) },
      recoveryMs: this.#recovery(),
      restMs: this.rest,
      looks: this.observer.looks,
      edits: this.editing.edits,
    };
  }

  /** Of probes: until all that was due is claimed. Of Redis: from its return to the first commit. */
  #recovery() {
    const recovery = {};
    const keep = (kind, ms) => {
      recovery[kind] = Math.max(recovery[kind] ?? 0, Math.round(ms));
    };
    const acks = [...this.acksByRun.values()].sort((a, b) => a.mono - b.mono);
    for (const { kind, healedAt, queues } of this.results) {
      if (healedAt === undefined) continue;
      const first = acks.find(({ mono, queue }) => mono > healedAt && (!queues || queues.includes(queue)));
      if (first) keep(kind, first.mono - healedAt);
    }
    for (const { kind, recovered } of this.results) {
      if (recovered !== undefined) keep(kind === "dies at a point" ? "kill -9" : kind, recovered);
    }
    return recovery;
  }

  async close() {
    for (const child of [...this.nodes, ...this.workers]) if (!child.down) await child.kill();
    await this.client?.close();
    await this.nextClient?.close();
    await this.servers?.stop();
  }
}
