import { BullMQAdapter } from "@bull-board/api/bullMQAdapter";
import type {
  AppJobScheduler,
  JobCleanStatus,
  JobSchedulerRepeatOptions,
  JobSchedulerUpdateResult,
  JobStatus,
  QueueJob,
  QueueJobOptions,
} from "@bull-board/api/typings/app";
import { CarillonError, type Client, definitionOf, type Task } from "@carillon/sdk";
import type { Job, Queue } from "bullmq";
import { assertJobOptions } from "./job-options.js";
import type { Redactor } from "./redact.js";
import { editSchedule, type ScheduleForm, showSchedule } from "./schedule-form.js";

type Scheduler = Omit<AppJobScheduler, "queueName">;

/** The page is one plain table that asks again every few seconds: more than this would help nobody. */
const SHOWN_TASKS = 500;

/** As many as the page's own settings allow. An address could ask for all, and more than fits into memory. */
const SHOWN_JOBS = 300;

/** Those whose jobs BullMQ removes all at once; `wait` is its own word for `waiting`. */
const CLEANED: readonly string[] = [
  ...["active", "completed", "delayed", "failed", "paused"],
  ...["prioritized", "wait", "waiting", "waiting-children"],
];

/**
 * A queue in Bull Board whose Schedulers are our tasks. Everything about jobs is BullMQ's; everything about schedules
 * goes through the client to our store. A scheduler's id is `owner/id`, which Bull Board's page encodes in its URLs.
 */
export class TaskAdapter extends BullMQAdapter {
  readonly #queue: Queue;
  readonly #client: Client;
  readonly #redactor: Redactor;
  #tasks = 0;

  constructor(queue: Queue, client: Client, redactor: Redactor, options: { readOnly: boolean }) {
    super(queue, { readOnlyMode: options.readOnly });
    this.#queue = queue;
    this.#client = client;
    this.#redactor = redactor;
  }

  /** Undefined for what is no job's id: BullMQ's own keys of a queue, and of its jobs (`<id>:logs`), are named like jobs. */
  override async getJob(id: string): Promise<Job | undefined> {
    if (this.#isKey(id)) return undefined;
    const job = await super.getJob(id).catch(undefinedIfNoHash);
    // Every job has the time when it was added, and no other hash of BullMQ's, which have a colon in their names, has.
    if (!job || (id.includes(":") && Number.isNaN(job.timestamp))) return undefined;
    this.#guardData(job);
    return job;
  }

  /**
   * @throws `INVALID_OPTION` for an id that BullMQ refuses, or that is a word of its own: a job `active` would be written where
   * the list of active jobs belongs, and nobody could work or look at the queue any more, and for other options that it chokes on; `INVALID_PAYLOAD` for what is shown in place of a value
   */
  override async addJob(name: string, data: unknown, options: QueueJobOptions): Promise<Job> {
    const { jobId = "" } = (options ?? {}) as { jobId?: unknown };
    // Without one, or with an empty one, BullMQ counts.
    if (jobId !== "" && (typeof jobId !== "string" || /^\d+$|:/.test(jobId) || this.#isKey(jobId))) {
      throw new CarillonError("INVALID_OPTION", "not for a job to have.", {
        field: "options.jobId",
        remedy: "Leave it out, or give a text that is no number, holds no colon and is no word of BullMQ's.",
      });
    }
    assertJobOptions(options);
    this.#redactor.refuseShown(data, "data");
    return super.addJob(name, data, options);
  }

  /** @throws `INVALID_OPTION` for what is no status: BullMQ would look for jobs under any of its keys */
  override async clean(status: JobCleanStatus, grace: number): Promise<void> {
    if (!CLEANED.includes(status)) {
      throw new CarillonError("INVALID_OPTION", "not one whose jobs can be removed.", {
        field: "status",
        remedy: `Known are ${CLEANED.join(", ")}.`,
      });
    }
    await super.clean(status, grace);
  }

  override getJobs(statuses: JobStatus[], start = 0, end = Number.POSITIVE_INFINITY): Promise<Job[]> {
    return super.getJobs(statuses, start, Math.min(end, start + SHOWN_JOBS - 1));
  }

  /** Who edits a job's data begins with what is shown of it. */
  #guardData(job: Job): void {
    const update = job.updateData.bind(job);
    job.updateData = async (data: unknown) => {
      this.#redactor.refuseShown(data, "data");
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
    this.#tasks = await this.#client.count({ queue: this.#queue.name });
    return this.#tasks;
  }

  override async getJobSchedulers(): Promise<Scheduler[]> {
    const { tasks } = await this.#client.list({ queue: this.#queue.name, limit: SHOWN_TASKS });
    return Promise.all(
      tasks.map(async (task) => ({ ...schedulerView(task), ...(await this.#lastRun(task)) })),
    );
  }

  async #lastRun(task: Task): Promise<{ lastRun?: number; lastRunJobId?: string }> {
    // Not the client's `runs`: a task that was deleted since it was listed is no reason to show none.
    const [run] = await this.#client.store.runs.list(task, 1);
    if (!run) return {};
    // A run's record outlives its job; without the job there is nothing to link to.
    const redis = await this.#queue.getBackend().client;
    const exists = await redis.hexists(this.#queue.toKey(run.id), "name");
    return { lastRun: run.started ?? run.enqueued, ...(exists === 1 ? { lastRunJobId: run.id } : {}) };
  }

  /** @throws `SKIPPED_OVERLAP`, `TASK_NOT_FOUND`; `CONFLICT` where it waits, for the page wants a job to show */
  override async runJobSchedulerNow(id: string): Promise<QueueJob> {
    const triggered = await this.#client.trigger(this.#ref(id));
    if (triggered.outcome === "skipped") {
      throw new CarillonError(triggered.code, `an earlier run of ${id} is not over.`, {
        remedy: "Wait for it, or let the task overlap.",
      });
    }
    if (triggered.outcome === "queued") {
      throw new CarillonError("CONFLICT", `an earlier run of ${id} is not over; this one begins after it.`);
    }
    const job = await this.getJob(triggered.run);
    if (job) return job as QueueJob;
    throw new CarillonError("RUN_NOT_FOUND", `${triggered.run} was enqueued, and its job is gone already.`);
  }

  /** @throws `TASK_NOT_FOUND` */
  override async removeJobScheduler(id: string): Promise<boolean> {
    await this.#client.delete(this.#ref(id));
    return true;
  }

  /** @throws `TASK_NOT_FOUND`, and what `put` throws about the schedule */
  override async updateJobScheduler(
    id: string,
    repeat: JobSchedulerRepeatOptions,
  ): Promise<JobSchedulerUpdateResult> {
    await this.#client.update(this.#ref(id), (task) => ({
      ...task,
      schedule: editSchedule(task.schedule, repeat, task.id),
    }));
    return "updated";
  }

  #ref(id: string): { queue: string; owner?: string; id: string } {
    const queue = this.#queue.name;
    const slash = id.indexOf("/");
    return slash < 0 ? { queue, id } : { queue, owner: id.slice(0, slash), id: id.slice(slash + 1) };
  }
}

function undefinedIfNoHash(error: unknown): undefined {
  if (error instanceof Error && error.message.startsWith("WRONGTYPE")) return undefined;
  throw error;
}

function schedulerView(task: Task): Scheduler {
  return {
    id: `${task.owner}/${task.id}`,
    name: task.state === "scheduled" ? task.type : `${task.type} (${task.state})`,
    ...shownSchedule(task),
    ...(task.nextExecution === undefined ? {} : { next: task.nextExecution }),
    iterationCount: task.fired,
    template: { data: task.payload, opts: detailsOf(task) },
  };
}

/** Stored by someone else than Carillon, it may mean nothing; the page must go on. */
function shownSchedule({ schedule, id, humanized }: Task): ScheduleForm {
  try {
    return showSchedule(schedule, id);
  } catch {
    return { pattern: humanized };
  }
}

/** What the page has no column for: policies, and what was computed. */
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
