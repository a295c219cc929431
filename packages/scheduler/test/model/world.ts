import { randomBytes } from "node:crypto";
import {
  compileSchedule,
  OUTCOMES,
  type Outcome,
  type OverlapPolicy,
  type Pending,
  parseTask,
  type Run,
  type Schedule,
  type TaskInput,
} from "@carillon/core";
import { Scheduler } from "@carillon/scheduler";
import { bullPrefix, type LedgerEntry, type RedisClient, type Sabotage, type Store } from "@carillon/store";
import { type VirtualClock, virtualStore } from "@carillon/testing";
import { type Job, Queue, Worker } from "bullmq";

const QUEUE = "bells";
const SILENT = { debug() {}, info() {}, warn() {}, error() {} };
/** Nothing of a short history is pruned: the checks read all of it. */
const RETENTION = { successes: 1_000, failures: 1_000, completedJobs: 3_600_000, failedJobs: 3_600_000 };
let serial = 0;

/** What the checks must know of a task beside what Redis holds. */
interface Known {
  /** The schedule, while it is the one that the task was created with. */
  schedule: Schedule | undefined;
  /** Whether two of its runs may be live: its policy was `allow` once, or a trigger said so. */
  mayOverlap: boolean;
  cursor: number;
  /** Runs that were deleted with an earlier task of this name may still be worked. */
  born: number;
}

interface Active {
  readonly job: Job;
  readonly token: string;
  readonly task: string;
  readonly fence: number | undefined;
}

/** What is decided about nominal times: for good, or not yet. */
const FINAL_SKIPS = new Set(["overlap", "missed", "paused", "excluded", "superseded"]);

/** Two nodes, a queue and its worker on a virtual clock, and every promise checked from what Redis holds. */
export class World {
  readonly store: Store;
  readonly clock: VirtualClock;
  readonly #nodes: Scheduler[];
  readonly #stores: Store[];
  readonly #queue: Queue;
  readonly #worker: Worker;
  readonly #connection: RedisClient;
  readonly #known = new Map<string, Known>();
  readonly #generations = new Map<string, bigint>();
  #active: Active[] = [];

  private constructor(stores: Store[], clock: VirtualClock) {
    this.#stores = stores;
    this.store = stores[0] as Store;
    this.clock = clock;
    this.#nodes = stores.map((store, i) => new Scheduler({ store, nodeId: `node-${i}`, logger: SILENT }));
    this.#connection = this.store.connect("patient");
    const options = { connection: this.#connection, prefix: bullPrefix(this.store.namespace, QUEUE) };
    this.#queue = new Queue(QUEUE, options);
    this.#worker = new Worker(QUEUE, null, {
      ...options,
      autorun: false,
      lockDuration: 3_600_000,
      maxStalledCount: 100,
    });
    this.#queue.on("error", () => {});
    this.#worker.on("error", () => {});
  }

  static async open(connection: string, sabotage: readonly (Sabotage | "mutex")[] = []): Promise<World> {
    serial += 1;
    const options = {
      connection,
      namespace: `model${serial}`,
      queues: [QUEUE],
      retention: RETENTION,
      sabotage,
    };
    const one = await virtualStore(options);
    const two = await virtualStore(options);
    return new World([one.store, two.store], one.clock);
  }

  async close(): Promise<void> {
    await this.#worker.close(true);
    await this.#queue.close();
    this.#connection.disconnect();
    for (const store of this.#stores) await store.close();
  }

  #name(id: string) {
    return { queue: QUEUE, owner: "system", id };
  }

  async put(id: string, input: Partial<TaskInput>): Promise<void> {
    const parsed = parseTask({ id, type: "noop", queue: QUEUE, schedule: { every: "10s" }, ...input });
    const before = await this.store.tasks.get(this.#name(id));
    await this.store.tasks.put(QUEUE, [parsed]);
    const { schedule, overlap } = parsed.definition;
    const known = this.#known.get(id);
    if (!before || !known) {
      const mayOverlap = overlap === "allow";
      this.#known.set(id, { schedule, mayOverlap, cursor: 0, born: this.clock.now });
      return;
    }
    if (JSON.stringify(before.definition.schedule) !== JSON.stringify(schedule)) known.schedule = undefined;
    known.mayOverlap ||= overlap === "allow";
  }

  async pause(id: string): Promise<void> {
    await this.store.tasks.pause(this.#name(id));
  }

  async resume(id: string, from: "now" | "catch-up"): Promise<void> {
    await this.store.tasks.resume(this.#name(id), from);
  }

  async delete(id: string): Promise<void> {
    await this.store.tasks.delete(this.#name(id));
    this.#known.delete(id);
    // Generations begin at the clock in µs: no real clock stands still for thousands of commits.
    await this.clock.advance(1);
  }

  async trigger(id: string, overlap: OverlapPolicy | undefined): Promise<void> {
    const known = this.#known.get(id);
    if (!known) return;
    known.mayOverlap ||= overlap === "allow";
    const by = { key: randomBytes(8).toString("hex"), token: randomBytes(8).toString("hex"), node: "client" };
    await this.store.claims.trigger(this.#name(id), by, overlap);
  }

  async tick(node: number): Promise<void> {
    await (this.#nodes[node % 2] as Scheduler).tick();
  }

  async tickAll(): Promise<void> {
    await Promise.all(this.#nodes.map((node) => node.tick()));
  }

  /** A worker takes the next job and records its start. A plain one records nothing. */
  async start(plain: boolean): Promise<boolean> {
    const token = randomBytes(4).toString("hex");
    const job = (await this.#worker.getNextJob(token, { block: false })) as Job | undefined;
    if (!job) return false;
    const { occurrence } = job.data;
    const task = occurrence.task as string;
    if (plain) {
      this.#active.push({ job, token, task, fence: undefined });
      return true;
    }
    const by = {
      worker: `w-${token}`,
      pid: 1,
      host: "h",
      attempt: job.attemptsStarted,
      made: job.attemptsMade,
    };
    const started = await this.store.runs.start(this.#name(task), occurrence.run, by);
    if (started.word === "OK") this.#active.push({ job, token, task, fence: started.fence });
    else if (started.word === "WAIT") await job.moveToDelayed(Date.now() + 1, token);
    else await job.moveToCompleted(null, token, false);
    return true;
  }

  /** One of the runs under way ends. */
  async finish(which: number, outcome: "succeeded" | "failed"): Promise<boolean> {
    const one = this.#active[which % Math.max(1, this.#active.length)];
    if (!one) return false;
    this.#active = this.#active.filter((other) => other !== one);
    const { job, token, task, fence } = one;
    if (fence !== undefined) {
      const error = outcome === "failed" ? "it failed" : undefined;
      const run = job.data.occurrence.run as string;
      await this.store.runs.settle(this.#name(task), run, { fence, made: job.attemptsMade, outcome, error });
    }
    if (outcome === "succeeded") await job.moveToCompleted(null, token, false);
    else await job.moveToFailed(new Error("it failed"), token, false);
    return true;
  }

  /** Someone retries a failed job in Bull Board after a node has read what is due, and before it commits. */
  async retryBetween(): Promise<void> {
    const { claims } = this.store;
    const commit = claims.commit.bind(claims);
    claims.commit = async (...args) => {
      const [job] = await this.#queue.getFailed(0, 0);
      await job?.retry("failed").catch(() => {});
      return commit(...args);
    };
    try {
      await this.tick(0);
    } finally {
      claims.commit = commit;
    }
  }

  /** The worker of a run dies: BullMQ hands the job over. */
  async crash(which: number): Promise<void> {
    const one = this.#active[which % Math.max(1, this.#active.length)];
    if (!one) return;
    this.#active = this.#active.filter((other) => other !== one);
    // As if its lock had run out since BullMQ's last look.
    const { bull } = this.store.keys.queue(QUEUE);
    await this.#connection.del(`${bull}${one.job.id}:lock`, `${bull}stalled-check`);
    await this.#connection.sadd(`${bull}stalled`, one.job.id as string);
    await (this.#worker as unknown as { moveStalledJobsToWait(): Promise<void> }).moveStalledJobsToWait();
  }

  async #tasks() {
    const { tasks } = await this.store.tasks.list({ queue: QUEUE }, 100);
    return tasks;
  }

  /** Each promise, from run records, ledger, jobs and the tasks themselves. */
  async check(): Promise<void> {
    for (const task of await this.#tasks()) {
      const { id } = task.definition;
      const known = this.#known.get(id) as Known;
      const name = this.#name(id);
      const [runs, ledger, stats, open] = await Promise.all([
        this.store.runs.list(name, 1_000),
        this.store.runs.ledger(name),
        this.store.runs.stats(name),
        this.store.runs.open(name),
      ]);
      this.#checkGeneration(id, task.generation, task.cursor ?? 0, known);
      decidedOnce(id, runs, ledger, task.pending);
      neverEarly(id, runs);
      if (known.schedule && ledger.length < 50) {
        nothingMissing(id, known, task.cursor ?? 0, runs, ledger, task.pending);
      }
      countsAgree(id, runs, stats, open.length);
      if (!known.mayOverlap) await this.#oneAtATime(id, runs);
    }
  }

  #checkGeneration(id: string, generation: string, cursor: number, known: Known): void {
    const before = this.#generations.get(id) ?? 0n;
    if (BigInt(generation) < before) fail(`${id}: the generation went back from ${before} to ${generation}`);
    this.#generations.set(id, BigInt(generation));
    if (cursor < known.cursor) fail(`${id}: the cursor went back from ${known.cursor} to ${cursor}`);
    known.cursor = cursor;
  }

  async #oneAtATime(id: string, runs: readonly Run[]): Promise<void> {
    const { bull } = this.store.keys.queue(QUEUE);
    const live: string[] = [];
    for (const run of runs) {
      const [timestamp, finished] = await this.#connection.hmget(
        `${bull}${run.id}`,
        "timestamp",
        "finishedOn",
      );
      if (timestamp && !finished) live.push(run.id);
    }
    if (live.length > 1) fail(`${id}: runs beside each other: ${live.join(" ")}`);
  }

  /** Everything comes to rest: no occurrence waits for ever, and no run stays open. */
  async settleDown(): Promise<void> {
    for (let round = 0; round < 400; round++) {
      await this.tickAll();
      let worked = false;
      while ((await this.start(false)) || (await this.finish(0, "succeeded"))) worked = true;
      const open = (
        await Promise.all(
          (await this.#tasks()).map(({ definition: { id } }) => this.store.runs.open(this.#name(id))),
        )
      ).flat();
      const waiting = (await this.#tasks()).filter(
        ({ pending, state }) => state !== "paused" && pending.length > 0,
      );
      if (!worked && open.length === 0 && waiting.length === 0) return;
      await this.clock.advance(1_000);
    }
    const stuck = (await this.#tasks()).map(({ definition, state, pending, due, waiting }) =>
      JSON.stringify({ id: definition.id, state, pending, due, waiting }),
    );
    fail(`nothing comes to rest: ${stuck.join(" ")}`);
  }
}

/** Invariant 1: an occurrence is enqueued once, or skipped, or waits. */
function decidedOnce(
  id: string,
  runs: readonly Run[],
  ledger: readonly LedgerEntry[],
  pending: readonly Pending[],
): void {
  const first = runs.filter(({ trigger }) => trigger !== "retry" && trigger !== "manual");
  const seen = new Set<string>();
  for (const run of first) {
    if (seen.has(run.key)) fail(`${id}: enqueued twice: ${run.key}`);
    seen.add(run.key);
  }
  for (const one of pending) {
    if (one.trigger !== "retry" && seen.has(one.key)) fail(`${id}: enqueued and waiting: ${one.key}`);
  }
  const skips = ledger.filter(({ reason }) => FINAL_SKIPS.has(reason));
  for (const [i, a] of skips.entries()) {
    for (const run of first) {
      if (a.from <= run.nominal && run.nominal <= a.to)
        fail(`${id}: enqueued and skipped (${a.reason}): ${run.key}`);
    }
    for (const b of skips.slice(i + 1)) {
      if (a.from <= b.to && b.from <= a.to)
        fail(`${id}: skipped twice (${a.reason}, ${b.reason}): ${a.from}`);
    }
  }
}

/** Invariant 4. */
function neverEarly(id: string, runs: readonly Run[]): void {
  for (const run of runs) if (run.enqueued < run.due) fail(`${id}: enqueued before it was due: ${run.key}`);
}

/** Invariant 2, for a task whose schedule was never edited. */
function nothingMissing(
  id: string,
  known: Known,
  cursor: number,
  runs: readonly Run[],
  ledger: readonly LedgerEntry[],
  pending: readonly Pending[],
): void {
  const schedule = compileSchedule(known.schedule as Schedule, id);
  if ("anchor" in (known.schedule as object)) return;
  const decided = new Set([...runs, ...pending].map(({ nominal }) => nominal));
  for (let at = schedule.next(known.born); at !== undefined && at <= cursor; at = schedule.next(at)) {
    const time = at;
    const skipped = ledger.some(
      ({ reason, from, to }) => FINAL_SKIPS.has(reason) && from <= time && time <= to,
    );
    if (!decided.has(time) && !skipped) fail(`${id}: nothing is known of ${new Date(time).toISOString()}`);
  }
}

/** Invariant 6. */
function countsAgree(id: string, runs: readonly Run[], stats: Record<string, string>, open: number): void {
  const final = runs.filter(({ state }) => state === "final");
  for (const outcome of OUTCOMES) {
    const records = final.filter((run) => run.outcome === (outcome as Outcome)).length;
    if (records !== Number(stats[outcome] ?? 0))
      fail(`${id}: ${records} runs ${outcome}, counted ${stats[outcome]}`);
  }
  if (runs.length !== final.length + open)
    fail(`${id}: ${runs.length} runs, ${final.length} final, ${open} open`);
  for (const field of ["crashes", "consecutiveCrashes"]) {
    if (Number(stats[field] ?? 0) < 0) fail(`${id}: ${field} is ${stats[field]}`);
  }
}

function fail(message: string): never {
  throw new Error(message);
}
