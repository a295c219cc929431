// One run of the battery: servers, nodes, workers and a client as in production; planned faults; then the checks.
import { join } from "node:path";
import { Client } from "@carillon/sdk";
import { storeOf } from "@carillon/store/internal";
import { eventually } from "@carillon/testing";
import { percentile } from "../bench/lib/report.mjs";
import { pause } from "../lib/nodes.mjs";
import { randomOf } from "../lib/random.mjs";
import { check } from "./checker.mjs";
import { Crew } from "./crew.mjs";
import { namesOf, readQueue } from "./evidence.mjs";
import { monotonic } from "./failpoint.mjs";
import { faketimeLibrary, redisClockEnv, WrongClock } from "./faketime.mjs";
import { availableFaults, probesAmong } from "./faults/index.mjs";
import { Freezer } from "./holds.mjs";
import {
  COUNT_QUEUES,
  endSchedules,
  LIMITS,
  makeTasks,
  NEXT,
  PLAIN,
  putAll,
  QUEUES,
  startEditing,
  WORKED_QUEUES,
} from "./load.mjs";
import { Observer } from "./observer.mjs";
import { makePlan } from "./plan.mjs";
import { openServers } from "./servers.mjs";
import { Storm } from "./storm.mjs";
import { sdkOf } from "./versions.mjs";

const NAMESPACE = "chaos";
const WORKERS = 2;
const PATIENCE = { timeoutMs: 120_000, intervalMs: 500 };

/**
 * @param {{ seconds: number, nodes: number, seed: number, topology: string, only: string[], tasks: number, redisBinary:
 * string, dir: string, versions: { current: string, next: string }, verbose?: boolean }} options
 */
export async function runBattery(options) {
  const battery = new Battery(options);
  try {
    for (const phase of ["open", "storm", "settle"]) await battery.phase(phase);
    return await battery.phase("report");
  } finally {
    await battery.close();
  }
}

class Battery {
  #options;
  #servers;
  #redisClock;
  #crew;
  #client;
  #nextClient;
  #tasks;
  #observer;
  #editing;
  #freezer;
  #storm;
  #deadline;
  /** Jumps of the Redis clock: the time before, and the size. */
  #jumps = [];
  #notRun = [];

  constructor(options) {
    this.#options = options;
  }

  async phase(name) {
    const began = monotonic();
    const result = await this[name]();
    if (this.#options.verbose) console.error(`${name}: ${Math.round(monotonic() - began)} ms`);
    return result;
  }

  async open() {
    const { nodes, topology, tasks, dir, versions, seed, verbose } = this.#options;
    const library = await faketimeLibrary();
    this.#servers = await openServers(topology, this.#redisEnv(library));
    const connection = { connection: this.#servers.url, namespace: NAMESPACE };
    this.#client = new Client(connection);
    this.#nextClient = new (await sdkOf(versions.next)).Client(connection);
    this.#tasks = makeTasks(tasks);
    await putAll(this.#client, this.#tasks);
    this.#observer = new Observer(this.#servers, NAMESPACE, QUEUES, (failover) => {
      this.#crew.fencesMayRepeat = true;
      if (verbose) console.error("a replica took over:", JSON.stringify(failover));
    });
    const crew = {
      servers: this.#servers,
      namespace: NAMESPACE,
      dir,
      version: versions.current,
      library,
      verbose,
    };
    this.#crew = new Crew(crew);
    for (let i = 0; i < nodes; i++) await this.#crew.addNode(`n${i}`);
    const worked = { CHAOS_QUEUES: WORKED_QUEUES.join(","), CHAOS_PLAIN_QUEUE: PLAIN };
    for (let i = 0; i < WORKERS; i++) await this.#crew.addWorker(`w${i}`, worked);
    await this.#crew.start();
    const onUnexpected = (error) => {
      this.#crew.problems.push(`a client's call failed: ${error.stack ?? error}`);
    };
    this.#editing = startEditing(this.#client, this.#tasks, randomOf(seed + 2), onUnexpected);
    this.#freezer = new Freezer(this.#client, randomOf(seed + 3), onUnexpected);
  }

  /** A Redis clock that can be wrong, if the library is installed and this Redis works with it. */
  #redisEnv(library) {
    const { topology, dir, redisBinary } = this.#options;
    if (!library || topology !== "single") return {};
    const clock = new WrongClock(library, join(dir, "redis.clock"));
    const env = redisClockEnv(clock, redisBinary);
    if (env) this.#redisClock = clock;
    return env ?? {};
  }

  async storm() {
    const { topology, only, seconds, seed, verbose, versions } = this.#options;
    const has = { clock: Boolean(this.#crew.nodes[0].clock), redisClock: Boolean(this.#redisClock) };
    const { faults, missing } = availableFaults({ topology, only, has });
    this.#notRun = missing;
    const ms = seconds * 1_000;
    const plan = makePlan({ faults, probes: probesAmong(faults), ms, seed });
    const world = {
      servers: this.#servers,
      namespace: NAMESPACE,
      observer: this.#observer,
      jumps: this.#jumps,
      redisClock: this.#redisClock,
      versions,
      nextClient: this.#nextClient,
      tasks: this.#tasks,
      redisMayLose: (now) => {
        this.#crew.fencesMayRepeat = true;
        this.#observer.redisMayLose(now);
      },
    };
    this.#storm = new Storm(this.#crew, world, { verbose, untilClaimed: () => this.#untilClaimed() });
    await this.#storm.run(plan, ms);
  }

  /** Resolves when everything that is due now is claimed or checked. */
  async #untilClaimed() {
    const { admin } = this.#servers;
    const now = await this.#client.serverTime();
    const shards = QUEUES.filter((queue) => queue !== NEXT).flatMap((queue) =>
      Array.from({ length: 8 }, (_, shard) => `{${NAMESPACE}:${queue}}:~due:${shard}`),
    );
    for (;;) {
      const counts = await Promise.all(shards.map((key) => admin.zcount(key, "-inf", now)));
      if (counts.every((count) => count === 0)) return monotonic();
      await pause(10);
    }
  }

  /** After the faults: lets nodes claim owed occurrences, and pending ones run. */
  async settle() {
    await this.#editing.stop();
    await this.#freezer.stop(PATIENCE);
    await this.#crew.heal();
    const end = await eventually(() => this.#client.serverTime(), PATIENCE);
    await eventually(() => endSchedules(this.#client, this.#tasks, end), PATIENCE);
    this.#deadline = await eventually(() => this.#client.serverTime(), PATIENCE);
    const rest = async () => {
      const waiting = await this.#waiting();
      if (waiting.length > 0) throw new Error(`${waiting.length} wait: ${waiting.slice(0, 5).join(", ")}`);
    };
    await eventually(rest, PATIENCE).catch((error) => {
      this.#crew.problems.push(`it did not come to rest: ${error.message}`);
    });
    await this.#observer.stop();
    await this.#crew.stop();
  }

  async #waiting() {
    const { admin } = this.#servers;
    const waiting = [];
    for (const queue of QUEUES) {
      const ours = `{${NAMESPACE}:${queue}}:~`;
      for (let shard = 0; shard < 8; shard++) {
        const due = await admin.zrangebyscore(`${ours}due:${shard}`, "-inf", this.#deadline);
        waiting.push(...due.map((name) => `${queue} ${name}`));
      }
      if (COUNT_QUEUES.includes(queue) || queue === NEXT) continue;
      for (const name of await namesOf(admin, ours)) {
        const [open, pending, state, nominal, due] = await admin.hmget(
          ...[`${ours}t:${name}`, "open", "pending", "state", "nominal", "due"],
        );
        // The next check of a task that waits for a place is later than its time.
        const owed = state === "scheduled" && Number(due ?? nominal ?? Number.NaN) <= this.#deadline;
        if (open || pending || owed) waiting.push(`${queue} ${name} (open: ${open || "none"})`);
      }
    }
    return waiting;
  }

  async report() {
    const { acks, items, problems } = this.#crew;
    const held = [];
    for (const queue of QUEUES) held.push(await readQueue(this.#servers, NAMESPACE, queue));
    const found = check({
      tasks: this.#tasks,
      queues: held,
      observer: this.#observer,
      acks,
      items,
      deadline: this.#deadline,
      jumps: this.#jumps,
      limits: LIMITS,
      holds: [...this.#freezer.freezes, ...this.#editing.holds],
    });
    found.indexes = [];
    for (const queue of QUEUES) {
      const mended = await storeOf(this.#client).tasks.audit(queue);
      if (mended > 0) found.indexes.push(`${queue}: ${mended} entries were wrong`);
    }
    for (const { node, task, queue, version } of acks.values()) {
      if (queue === NEXT && version !== this.#options.versions.next)
        problems.push(`${node} claimed ${task}, which is a newer version's`);
    }
    return {
      options: this.#options,
      found,
      problems,
      notRun: this.#notRun,
      results: this.#storm.results,
      looks: this.#observer.looks,
      edits: this.#editing.edits,
      freezes: this.#freezer.freezes.length,
      failovers: this.#failovers(),
      staleCommits: this.#crew.stale,
      occurrences: held.reduce((sum, { jobs }) => sum + jobs.length, 0),
      latenessMs: this.#lateness(held),
      recoveryMs: this.#recovery(),
    };
  }

  /** Replicas that took over, counted for the queue with the most. */
  #failovers() {
    const count = (queue, ordered) =>
      this.#observer.failovers.filter((one) => one.queue === queue && one.ordered === ordered).length;
    const most = (ordered) => Math.max(...QUEUES.map((queue) => count(queue, ordered)));
    return { ordered: most(true), others: most(false) };
  }

  /**
   * Lateness from due to enqueued, under all these faults. Leaves out times that the Redis clock jumped over, and
   * occurrences that waited for a limit.
   */
  #lateness(held) {
    const jumpedOver = (due) => this.#jumps.some(({ at, forward = 0 }) => due > at && due < at + forward);
    const unlimited = held.filter(({ queue }) => !LIMITS[queue]);
    const late = unlimited.flatMap(({ jobs }) =>
      jobs
        .filter(({ trigger, due }) => trigger && trigger !== "manual" && !jumpedOver(due))
        .map(({ due, enqueued }) => enqueued - due),
    );
    const most = late.reduce((max, ms) => Math.max(max, ms), 0);
    return { p50: percentile(late, 0.5), p99: percentile(late, 0.99), max: most };
  }

  /** Recovery times. For probes: until all due tasks are claimed. For Redis: from its return to the first commit. */
  #recovery() {
    const recovery = {};
    const keep = (kind, ms) => {
      recovery[kind] = Math.max(recovery[kind] ?? 0, Math.round(ms));
    };
    const acks = [...this.#crew.acks.values()].sort((a, b) => a.mono - b.mono);
    for (const { kind, healedAt, queues, recovered } of this.#storm.results) {
      if (recovered !== undefined) keep("kill -9", recovered);
      if (healedAt === undefined) continue;
      const first = acks.find(({ mono, queue }) => mono > healedAt && (!queues || queues.includes(queue)));
      if (first) keep(kind, first.mono - healedAt);
    }
    return recovery;
  }

  async close() {
    await this.#crew?.kill();
    await this.#client?.close();
    await this.#nextClient?.close();
    await this.#servers?.stop();
  }
}
