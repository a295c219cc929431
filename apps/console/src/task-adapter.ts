import { AsyncLocalStorage } from "node:async_hooks";
import { BullMQAdapter } from "@bull-board/api/bullMQAdapter";
import type {
  AppJobScheduler,
  ExternalJobUrl,
  JobCleanStatus,
  JobSchedulerUpdateResult,
  JobStatus,
  QueueJob,
  QueueJobJson,
  QueueJobOptions,
} from "@bull-board/api/typings/app";
import { operatorOf } from "@carillon/ops";
import type { Redactor } from "@carillon/ops/internal";
import {
  CarillonError,
  type Client,
  definitionOf,
  isCarillonError,
  type Run,
  type Task,
} from "@carillon/sdk";
import { ALERTS_QUEUE, readDelivery, type Store, type TokenRole } from "@carillon/sdk/internal";
import type { Job, Queue } from "bullmq";
import type { Site } from "./context.js";
import { assertJobOptions } from "./job-options.js";

type Scheduler = Omit<AppJobScheduler, "queueName">;

/** Token name of the present request, because Bull Board passes no request to its adapters. */
export const author = new AsyncLocalStorage<string>();

/** Most tasks on the page, which is one plain table that reloads every few seconds. */
const SHOWN_TASKS = 500;

/** Most jobs that the page's own settings allow. A URL could request all, which might not fit into memory. */
const SHOWN_JOBS = 300;

/** Statuses whose jobs BullMQ can remove all at once; `wait` is its own word for `waiting`. */
const CLEANED: readonly string[] = [
  "active",
  "completed",
  "delayed",
  "failed",
  "paused",
  "prioritized",
  "wait",
  "waiting",
  "waiting-children",
];

export interface AdapterParts {
  readonly client: Client;
  readonly store: Store;
  readonly redactor: Redactor;
  readonly site: Pick<Site, "basePath">;
}

/**
 * A queue in Bull Board whose Schedulers are our tasks. BullMQ handles everything about jobs; everything about schedules
 * goes through the client to our store. A scheduler's id is `owner/id`, which Bull Board's page encodes in its URLs.
 */
export class TaskAdapter extends BullMQAdapter {
  readonly #queue: Queue;
  readonly #parts: AdapterParts;
  #tasks = 0;

  constructor(queue: Queue, parts: AdapterParts, role: TokenRole) {
    super(queue, {
      readOnlyMode: role === "viewer",
      externalJobUrl: (job) => linkOf(job, parts.site.basePath) as ExternalJobUrl,
    });
    this.#queue = queue;
    this.#parts = parts;
  }

  /** Undefined for ids that are not jobs: BullMQ's own keys of a queue, and of its jobs (`<id>:logs`), are named like jobs. */
  override async getJob(id: string): Promise<Job | undefined> {
    if (this.#isKey(id)) return undefined;
    const job = await super.getJob(id).catch(undefinedIfNoHash);
    // Every job has a timestamp. BullMQ's other hashes, which have a colon in their names, do not.
    if (!job || (id.includes(":") && Number.isNaN(job.timestamp))) return undefined;
    this.#guardData(job);
    return this.#sealed(job);
  }

  /** Hides the secrets of a job that delivers alerts. */
  #sealed(job: Job): Job {
    if (this.#queue.name === ALERTS_QUEUE)
      job.data = { ...job.data, payload: readDelivery(job.data?.payload) };
    return job;
  }

  /**
   * @throws `INVALID_OPTION` for an id that BullMQ refuses or that is one of its key names (a job `active` would
   * replace the list of active jobs, and break the queue), and for other options that make its script fail;
   * `INVALID_PAYLOAD` for `[redacted]` in a hidden field
   */
  override async addJob(name: string, data: unknown, options: QueueJobOptions): Promise<Job> {
    const { jobId = "" } = (options ?? {}) as { jobId?: unknown };
    // Without an id, or with an empty one, BullMQ uses a counter.
    if (jobId !== "" && (typeof jobId !== "string" || /^\d+$|:/.test(jobId) || this.#isKey(jobId))) {
      throw new CarillonError("INVALID_OPTION", "reserved.", {
        field: "options.jobId",
        remedy: 'Omit it, or use a string that is not a number, has no ":" and is not a BullMQ key name.',
      });
    }
    assertJobOptions(options);
    this.#parts.redactor.refuseShown(data, "data");
    return super.addJob(name, data, options);
  }

  /** @throws `INVALID_OPTION` for an unknown status, because BullMQ would look for jobs under any of its keys */
  override async clean(status: JobCleanStatus, grace: number): Promise<void> {
    if (!CLEANED.includes(status)) {
      throw new CarillonError("INVALID_OPTION", "jobs of this status cannot be removed.", {
        field: "status",
        remedy: `Known are ${CLEANED.join(", ")}.`,
      });
    }
    await super.clean(status, grace);
  }

  /** Records the time and the author. @throws `FORBIDDEN` for the queue of alerts */
  override async pause(): Promise<void> {
    await unlessGone(
      operatorOf(this.#parts.client).queues.pause({ queue: this.#queue.name }, { by: this.#by }),
    );
  }

  get #by(): string {
    return author.getStore() ?? "";
  }

  override async resume(): Promise<void> {
    await unlessGone(
      operatorOf(this.#parts.client).queues.resume({ queue: this.#queue.name }, { by: this.#by }),
    );
  }

  override async getJobs(statuses: JobStatus[], start = 0, end = Number.POSITIVE_INFINITY): Promise<Job[]> {
    const jobs = await super.getJobs(statuses, start, Math.min(end, start + SHOWN_JOBS - 1));
    return jobs.map((job) => job && this.#sealed(job));
  }

  /** Checks edits of a job's data, which start from the data as shown, with hidden values replaced. */
  #guardData(job: Job): void {
    const update = job.updateData.bind(job);
    job.updateData = async (data: unknown) => {
      this.#parts.redactor.refuseShown(data, "data");
      await update(data);
    };
  }

  #isKey(id: string): boolean {
    return Object.hasOwn(this.#queue.keys, id);
  }

  override getDescription(): string {
    return this.#tasks > SHOWN_TASKS
      ? `Schedulers shows the first ${SHOWN_TASKS} of ${this.#tasks} tasks.`
      : "";
  }

  override async getJobSchedulersCount(): Promise<number> {
    this.#tasks = await this.#parts.client.count({ queue: this.#queue.name });
    return this.#tasks;
  }

  override async getJobSchedulers(): Promise<Scheduler[]> {
    const { tasks } = await this.#parts.client.list({ queue: this.#queue.name, limit: SHOWN_TASKS });
    return Promise.all(
      tasks.map(async (task) => {
        // Not the client's `runs`, which throws if the task was deleted since it was listed.
        const [[run], { consecutiveFailures }] = await Promise.all([
          this.#parts.store.runs.list(task, 1),
          this.#parts.store.runs.stats(task),
        ]);
        return { ...schedulerView(task, Number(consecutiveFailures ?? 0)), ...(await this.#lastRun(run)) };
      }),
    );
  }

  async #lastRun(run: Run | undefined): Promise<{ lastRun?: number; lastRunJobId?: string }> {
    if (!run) return {};
    // A run's record outlives its job; without the job there is nothing to link to.
    const redis = await this.#queue.getBackend().client;
    const exists = await redis.hexists(this.#queue.toKey(run.id), "name");
    return { lastRun: run.started ?? run.enqueued, ...(exists === 1 ? { lastRunJobId: run.id } : {}) };
  }

  /** @throws `SKIPPED_OVERLAP`, `TASK_NOT_FOUND`; `CONFLICT` if it waits, because the page needs a job to show */
  override async runJobSchedulerNow(id: string): Promise<QueueJob> {
    const triggered = await this.#parts.client.trigger(this.#ref(id), { by: this.#by });
    if (triggered.outcome === "skipped") {
      throw new CarillonError(triggered.code, `an earlier run of ${id} has not ended.`, {
        remedy: "Wait for it, or let the task overlap.",
      });
    }
    if (triggered.outcome === "queued")
      throw new CarillonError("CONFLICT", `an earlier run of ${id} has not ended; this one starts after it.`);
    const job = await this.getJob(triggered.run);
    if (job) return job as QueueJob;
    throw new CarillonError(
      "RUN_NOT_FOUND",
      `${triggered.run} was enqueued, but its job has been deleted already.`,
    );
  }

  /** @throws `TASK_NOT_FOUND` */
  override async removeJobScheduler(id: string): Promise<boolean> {
    await this.#parts.client.delete(this.#ref(id), { by: this.#by });
    return true;
  }

  /** @throws `FORBIDDEN`: the task's own page edits it, with all kinds of schedules */
  override updateJobScheduler(id: string): Promise<JobSchedulerUpdateResult> {
    const { queue, owner = "system", id: task } = this.#ref(id);
    throw new CarillonError("FORBIDDEN", "Bull Board shows schedules and does not edit them.", {
      remedy: `Open the console's page /tasks/${queue}/${owner}/${task}/edit.`,
    });
  }

  #ref(id: string): { queue: string; owner?: string; id: string } {
    const queue = this.#queue.name;
    const slash = id.indexOf("/");
    return slash < 0 ? { queue, id } : { queue, owner: id.slice(0, slash), id: id.slice(slash + 1) };
  }
}

/** From a job that is a run, or an item of one, to the run's page. Undefined for other jobs. */
function linkOf({ data }: QueueJobJson, basePath: string): ExternalJobUrl | undefined {
  const { run } = Object(Object(data).occurrence) as { run?: unknown };
  if (typeof run !== "string") return undefined;
  // The page's router decodes no `%40`.
  return { displayText: "Run", href: `${basePath}/runs/${encodeURIComponent(run).replace("%40", "@")}` };
}

/** Ignores a queue that was just deleted but is still shown, so that the others are paused with it. */
async function unlessGone(act: Promise<unknown>): Promise<void> {
  await act.catch((error: unknown) => {
    if (!isCarillonError(error, "QUEUE_NOT_FOUND")) throw error;
  });
}

function undefinedIfNoHash(error: unknown): undefined {
  if (error instanceof Error && error.message.startsWith("WRONGTYPE")) return undefined;
  throw error;
}

/** Longest error in the list, in characters. */
const SHOWN_ERROR = 120;

/** A summary: the type, whether it is paused, the outcome of the last run, and the number of failures in a row. */
function nameOf({ type, state, paused, lastStatus, lastChecked }: Task, failures: number): string {
  const by = paused?.by === undefined ? "" : ` by ${paused.by}`;
  const note = paused?.note === undefined ? "" : `: ${paused.note}`;
  const error = lastStatus?.error?.split("\n")[0]?.slice(0, SHOWN_ERROR);
  const parts = [
    type,
    state !== "scheduled" && `${state}${by}${note}`,
    lastStatus && `last run ${lastStatus.outcome}${error === undefined ? "" : `: ${error}`}`,
    lastChecked && `nothing to do at ${new Date(lastChecked).toISOString()}`,
    failures > 1 && `${failures} failures in a row`,
  ];
  return parts.filter(Boolean).join(" · ");
}

function schedulerView(task: Task, failures: number): Scheduler {
  return {
    id: `${task.owner}/${task.id}`,
    name: nameOf(task, failures),
    ...shownSchedule(task),
    ...(task.nextExecution === undefined ? {} : { next: task.nextExecution }),
    iterationCount: task.fired,
    template: { data: task.payload, opts: detailsOf(task) },
  };
}

/** Schedule of a task for the page: a cron expression as it is, other kinds in words. */
function shownSchedule({ schedule, humanized }: Task): Pick<Scheduler, "pattern" | "tz" | "limit"> {
  const {
    cron,
    timezone = "UTC",
    maxRuns,
  } = schedule as { cron?: string; timezone?: string; maxRuns?: number };
  return {
    ...(cron === undefined ? { pattern: humanized } : { pattern: cron, tz: timezone }),
    ...(maxRuns !== undefined && { limit: maxRuns }),
  };
}

/** Details for which the page has no column: policies and computed fields. */
function detailsOf(task: Task): Record<string, unknown> {
  const time = (ms: number | undefined) => (ms === undefined ? undefined : new Date(ms).toISOString());
  const { state, humanized } = task;
  const { id: _id, owner: _o, queue: _q, type: _t, payload: _p, enabled: _e, ...rest } = definitionOf(task);
  const details = {
    state,
    paused: task.paused && { ...task.paused, at: time(task.paused.at) },
    humanized,
    ...rest,
    cursor: time(task.cursor),
    generation: task.generation,
    created: time(task.created),
    updated: time(task.updated),
  };
  return Object.fromEntries(Object.entries(details).filter(([, value]) => value !== undefined));
}
