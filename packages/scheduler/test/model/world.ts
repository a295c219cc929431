import { randomBytes } from "node:crypto";
import {
  isCarillonError,
  type OverlapPolicy,
  parseTask,
  type Schedule,
  type TaskInput,
} from "@carillon/core";
import { Scheduler } from "@carillon/scheduler";
import { bullPrefix, type RedisClient, type Sabotage, type Store, type StoredTask } from "@carillon/store";
import { internalsOf, withSeams } from "@carillon/store/internal";
import { type VirtualClock, virtualStore } from "@carillon/testing";
import { type Job, Queue, Worker } from "bullmq";
import { SILENT } from "../../../../test/helpers.js";
import { Places } from "./places.js";
import { checkTask, fail, liveJobs, Progress } from "./promises.js";

const QUEUE = "bells";
/** Records are never pruned in a short history, because the checks read all of them. */
const RETENTION = {
  successes: 1_000,
  failures: 1_000,
  completedJobs: { for: 3_600_000 },
  failedJobs: { for: 3_600_000 },
};
let serial = 0;

/** Ignores refusals because of the owner's limit or its other runs. */
function unlessRefused(error: unknown): void {
  if (!isCarillonError(error) || !["OWNER_LIMIT", "SKIPPED_OVERLAP"].includes(error.code)) throw error;
}

/** The `Known` of the checks, extended by each operation on the task. */
interface Put {
  schedule: Schedule | undefined;
  mayOverlap: boolean;
  shadow: boolean;
  readonly born: number;
}

interface Active {
  readonly job: Job;
  readonly token: string;
  readonly task: string;
  readonly fence: number | undefined;
}

/** Two nodes, a queue and its worker on a virtual clock. Every promise is checked from the data in Redis. */
export class World {
  readonly store: Store;
  readonly clock: VirtualClock;
  readonly #nodes: Scheduler[];
  readonly #stores: Store[];
  readonly #queue: Queue;
  readonly #worker: Worker;
  readonly #connection: RedisClient;
  readonly #known = new Map<string, Put>();
  readonly #progress = new Progress();
  readonly #places: Places;
  #active: Active[] = [];

  private constructor(stores: Store[], clock: VirtualClock) {
    this.#stores = stores;
    this.store = stores[0] as Store;
    this.clock = clock;
    this.#nodes = stores.map((store, i) => new Scheduler({ store, nodeId: `node-${i}`, logger: SILENT }));
    this.#connection = this.store.connect("patient");
    this.#places = new Places(this.store, this.#connection, QUEUE, ["system"]);
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
    const on = { connection, namespace: `model${serial}`, queues: [QUEUE], retention: RETENTION };
    const options = withSeams(on, { sabotage });
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
    const { schedule, overlap, mode } = parsed.definition;
    const known = this.#known.get(id);
    if (!before || !known) {
      const mayOverlap = overlap === "allow";
      this.#known.set(id, { schedule, mayOverlap, shadow: mode === "shadow", born: this.clock.now });
      return;
    }
    if (JSON.stringify(before.definition.schedule) !== JSON.stringify(schedule)) known.schedule = undefined;
    known.mayOverlap ||= overlap === "allow";
  }

  async pause(id: string): Promise<void> {
    await this.store.tasks.pause(this.#name(id));
  }

  async resume(id: string, missed: "skip" | "catch-up", mode: "live" | "shadow" | undefined): Promise<void> {
    const answer = await this.store.tasks.resume(this.#name(id), missed, "", { mode });
    const known = this.#known.get(id);
    if (known && answer === "OK" && mode === "live") known.shadow = false;
  }

  async delete(id: string): Promise<void> {
    await this.store.tasks.delete(this.#name(id));
    this.#known.delete(id);
    this.#progress.deleted(id);
    await this.#places.step(false);
    // Generations begin at the clock in µs, and a real clock never stands still for thousands of commits.
    await this.clock.advance(1);
  }

  async trigger(id: string, overlap: OverlapPolicy | undefined): Promise<void> {
    const known = this.#known.get(id);
    if (!known) return;
    known.mayOverlap ||= overlap === "allow";
    const by = { key: randomBytes(8).toString("hex"), token: randomBytes(8).toString("hex"), node: "client" };
    await this.store.claims.trigger(this.#name(id), by, overlap).catch(unlessRefused);
  }

  /** Retries the failed items of its last final run. */
  async retryItems(id: string): Promise<void> {
    const runs = await this.store.runs.list(this.#name(id), 1_000);
    const run = runs.find(({ state }) => state === "final");
    if (!run) return;
    const { link, keys } = internalsOf(this.store);
    await link.ask((client) => client.hset(keys.queue(QUEUE).items(run.id), "n", 1));
    await this.store.claims.retryItems(run, { node: "client" }).catch(unlessRefused);
  }

  /**
   * Backfills the last minute of a task. It waits for other runs and skips nothing, so that each time stays decided
   * once.
   */
  async backfill(id: string): Promise<void> {
    const task = await this.store.tasks.get(this.#name(id));
    if (!task || "anchor" in task.definition.schedule) return;
    const [from, to] = [this.clock.now - 60_000, this.clock.now];
    const range = { from, to, at: from - 1, total: 6, enqueued: 0, skipped: 0, every: 0 };
    const by = { overlap: "queue-all" as const, by: "client", id: randomBytes(8).toString("hex") };
    await this.store.backfills.put({ task: this.#name(id), ...range, ...by });
  }

  async limit(owner: string, runs: number | undefined): Promise<void> {
    await this.store.queues.setLimit(QUEUE, owner, runs);
    await this.#places.limited();
  }

  async tick(node: number): Promise<void> {
    await (this.#nodes[node % 2] as Scheduler).tick();
  }

  async tickAll(): Promise<void> {
    await Promise.all(this.#nodes.map((node) => node.tick()));
  }

  /**
   * A worker takes the next job and records its start. A plain worker records nothing. Returns whether anything
   * changed.
   */
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
    return started.word !== "WAIT";
  }

  /** Ends one of the runs in progress. */
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

  /** Retries a failed job in Bull Board between a node's read and its commit. */
  async retryBetween(): Promise<void> {
    const { claims } = this.store;
    const commit = claims.commit.bind(claims);
    claims.commit = async (...args) => {
      const [job] = await this.#queue.getFailed(0, 0);
      // A retry while another run is live cannot be prevented.
      if (job && !(await this.#hasLiveRun(job))) await job.retry("failed").catch(() => {});
      return commit(...args);
    };
    try {
      await this.tick(0);
    } finally {
      claims.commit = commit;
    }
  }

  async #hasLiveRun(job: Job): Promise<boolean> {
    const runs = await this.store.runs.list(this.#name(job.data.occurrence.task), 1_000);
    return (
      (await liveJobs(this.#connection, internalsOf(this.store).keys.queue(QUEUE).bull, runs)).length > 0
    );
  }

  /** Kills the worker of a run: BullMQ hands the job over. */
  async crash(which: number): Promise<void> {
    const one = this.#active[which % Math.max(1, this.#active.length)];
    if (!one) return;
    this.#active = this.#active.filter((other) => other !== one);
    // The job's lock has run out since BullMQ's last check.
    const { bull } = internalsOf(this.store).keys.queue(QUEUE);
    await this.#connection.del(`${bull}${one.job.id}:lock`, `${bull}stalled-check`);
    await this.#connection.sadd(`${bull}stalled`, one.job.id as string);
    await (this.#worker as unknown as { moveStalledJobsToWait(): Promise<void> }).moveStalledJobsToWait();
  }

  async #tasks() {
    const { tasks } = await this.store.tasks.list({ queue: QUEUE }, 100);
    return tasks;
  }

  /**
   * Checks each promise against run records, ledger, jobs and tasks.
   * @param after the operation before it
   */
  async check(after?: string): Promise<void> {
    for (const task of await this.#tasks()) {
      this.#progress.check(task);
      await checkTask(this.store, this.#connection, task, this.#known.get(task.definition.id) as Put);
    }
    // Nodes claim while runs end, so that other tasks may use up the wakes.
    await this.#places.step(after === "finish");
    await this.#places.agree();
    await this.#places.rechecked(this.clock.now);
  }

  /** Open runs of a task. `held`: runs that crashed, and wait until their paused task is resumed. */
  async #open({ definition: { id }, state }: StoredTask): Promise<{ run: string; held: boolean }[]> {
    const runs = await this.store.runs.many(QUEUE, await this.store.runs.open(this.#name(id)));
    return runs.map((run) => ({ run: run.id, held: state === "paused" && run.notBefore !== undefined }));
  }

  /** Runs everything to rest: no occurrence waits for ever, and no run stays open. */
  async settleDown(): Promise<void> {
    // A limit lets one occurrence of a long backlog run at a time.
    for (let round = 0; round < 2_000; round++) {
      await this.tickAll();
      await this.#places.step(false);
      let worked = false;
      while ((await this.start(false)) || (await this.finish(0, "succeeded"))) worked = true;
      await this.#places.step(true);
      const open = (await Promise.all((await this.#tasks()).map((task) => this.#open(task)))).flat();
      const held = open.filter((one) => one.held).map(({ run }) => run);
      const full = await this.#places.areFilledBy("system", held);
      const waiting = (await this.#tasks()).filter(
        ({ pending, state, due = Number.POSITIVE_INFINITY }) =>
          !full && state !== "paused" && (pending.length > 0 || due <= this.clock.now),
      );
      if (!worked && open.length === held.length && waiting.length === 0) return;
      await this.clock.advance(1_000);
    }
    const stuck = (await this.#tasks()).map(({ definition, state, pending, due, waiting }) =>
      JSON.stringify({ id: definition.id, state, pending, due, waiting }),
    );
    fail(`nothing comes to rest: ${stuck.join(" ")}`);
  }
}
