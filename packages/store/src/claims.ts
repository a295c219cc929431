import { setTimeout as delay } from "node:timers/promises";
import {
  CarillonError,
  type Decision,
  type DueTask,
  decideTrigger,
  localName,
  type Occurrence,
  type OverlapPolicy,
  occurrenceKey,
  type ParsedTask,
  parseDuration,
  readyAt,
  runId,
  type ScheduleCache,
  shardOf,
  type TaskName,
  timeLimitOf,
} from "@carillon/core";
import { bullKeys, JobPacker, jobOptions } from "./bullmq.js";
import { type DueEntry, writesOf } from "./commit.js";
import { redisError } from "./connection.js";
import type { NamespaceKeys, QueueKeys } from "./keys.js";
import type { Link } from "./link.js";
import { encodeDetails, type RunDetails } from "./run-codec.js";
import type { Scripts } from "./scripts.js";
import {
  DEFAULT_LINGER,
  decodeTask,
  definitionFields,
  isForeign,
  readable,
  type StoredTask,
} from "./task-codec.js";
import { nameTaken, unsupportedFormat } from "./task-errors.js";

export interface DueBatch {
  readonly now: number;
  /** Whether more is due than was read. */
  readonly more: boolean;
  readonly entries: readonly DueEntry[];
}

export interface ClaimItem {
  readonly entry: DueEntry & { readonly task: StoredTask };
  readonly decision: Decision;
}

/**
 * What the commit said of one task. `DONE`: this very claim was committed before (its answer was lost). `STALE`,
 * `OVERLAP`: the task or its runs changed since the read. `EARLY`: not due by Redis time.
 */
export type ClaimStatus = "OK" | "DONE" | "STALE" | "EARLY" | "OVERLAP" | `ERROR ${string}`;

export interface ClaimResult {
  readonly item: ClaimItem;
  readonly status: ClaimStatus;
  /** The run that was enqueued, where one was. */
  readonly run: string | undefined;
}

export type TriggerResult =
  | { readonly outcome: "enqueued"; readonly run: string; readonly enqueued: number }
  /** It waits for the run in its way to end. */
  | { readonly outcome: "queued" }
  | { readonly outcome: "skipped"; readonly reason: "overlap" };

/** The reconciler's first look at a run that nobody settled, after this many ms. */
const FIRST_LOOK = 10_000;

const TRIGGER_TRIES = 12;

/** A step of a backfill, made together with the occurrence that it decides. */
export interface BackfillStep {
  readonly id: string;
  readonly at: number;
  readonly set: readonly (readonly [field: string, value: string | number])[];
}

/** What a commit must know besides the decision. */
interface CommitOptions {
  readonly token: string;
  readonly node: string;
  /** Whether the task must be scheduled: what is asked for by hand works while it is paused. */
  readonly held: boolean;
  /** Instead of the task's policy. */
  readonly overlap?: OverlapPolicy | undefined;
  /** The backfill that it is of: where it must stand, and what becomes of it. */
  readonly backfill?: BackfillStep | undefined;
}

export class ClaimRepository {
  readonly #link: Link;
  readonly #keys: NamespaceKeys;
  readonly #scripts: Scripts;
  readonly #packers = new Map<string, JobPacker>();
  readonly #namespace: string;

  readonly #schedules: ScheduleCache;

  constructor(
    link: Link,
    keys: NamespaceKeys,
    scripts: Scripts,
    schedules: ScheduleCache,
    namespace: string,
  ) {
    this.#link = link;
    this.#keys = keys;
    this.#scripts = scripts;
    this.#schedules = schedules;
    this.#namespace = namespace;
  }

  /** For each part of the queue (a shard's number, `r` the reconciler) the earliest time it must be looked at. */
  async next(queue: string): Promise<Map<string, number>> {
    const flat = await this.#link.ask((client) =>
      client.zrange(this.#keys.queue(queue).next, 0, "-1", "WITHSCORES"),
    );
    const parts = new Map<string, number>();
    for (let i = 0; i < flat.length; i += 2) parts.set(flat[i] as string, Number(flat[i + 1]));
    return parts;
  }

  /** @param pass due tasks to pass over, in order: those that this version cannot decide. Undefined: a fair choice */
  async readDue(queue: string, shard: number, limit: number, pass?: number): Promise<DueBatch> {
    const keys = this.#keys.queue(queue);
    const [now, more, ...entries] = (await this.#link.run(
      this.#scripts["read-due"],
      [keys.due(shard)],
      [keys.task(""), keys.open(""), keys.history(""), keys.failures(""), keys.bull, pass ?? "", limit],
    )) as [number, string, ...[string, string, string[], string, string, string[]][]];
    return {
      now,
      more: more === "1",
      entries: entries.map(([local, _due, flat, run, open, over]) => ({
        local,
        task: readable(queue, local, flat),
        running: run === "" ? undefined : { run, open: open === "1" },
        over,
      })),
    };
  }

  /**
   * Makes decisions true, in one script. Repeated with the same token it does nothing twice.
   *
   * @param now the time of the read, for the jobs' own timestamps
   */
  async commit(
    queue: string,
    shard: number,
    items: readonly ClaimItem[],
    by: { token: string; node: string },
    now: number,
  ): Promise<{ now: number; results: ClaimResult[] }> {
    return this.#commit(queue, shard, items, { ...by, held: true }, now);
  }

  async #commit(
    queue: string,
    shard: number,
    items: readonly ClaimItem[],
    options: CommitOptions,
    now: number,
  ): Promise<{ now: number; results: ClaimResult[] }> {
    const keys = this.#keys.queue(queue);
    const all: string[] = [keys.due(shard), keys.next, keys.runs, ...bullKeys(keys.bull)];
    const args: (string | number | Buffer)[] = [
      ...[options.token, options.node, shard, items.length, FIRST_LOOK],
      ...[queue, keys.run(""), this.#keys.cancel],
    ];
    // Two owners may have a task of one id, due at the same time: a run's id must be one of a kind.
    const runs = items.map((item, i) => {
      const token = i === 0 ? options.token : `${options.token}.${i.toString(36)}`;
      return this.#pushItem(keys, all, args, item, { ...options, token }, now);
    });
    const [at, ...statuses] = (await this.#link.run(this.#scripts.commit, all, args)) as [
      number,
      ...ClaimStatus[],
    ];
    const results = items.map((item, i) => {
      const status = statuses[i] as ClaimStatus;
      return { item, status, run: status === "OK" || status === "DONE" ? runs[i] : undefined };
    });
    return { now: at, results };
  }

  #pushItem(
    keys: QueueKeys,
    all: string[],
    args: (string | number | Buffer)[],
    { entry, decision }: ClaimItem,
    options: CommitOptions,
    now: number,
  ): string | undefined {
    const { task, local } = entry;
    const { enqueue } = decision;
    const { definition } = task;
    const run = enqueue && runId(definition.id, enqueue.nominal, options.token);
    // A skipped occurrence has no run; its keys are still counted, by names that hold nothing.
    all.push(
      keys.task(local),
      keys.open(local),
      keys.ledger(local),
      keys.run(run ?? "-"),
      keys.job(run ?? "-"),
      keys.backfill(options.backfill?.id ?? "-"),
    );
    for (const id of entry.over) all.push(keys.job(id));
    const writes = writesOf(entry, decision, now, run);
    const guarded = (options.overlap ?? overlapOf(entry, decision)) !== "allow";
    args.push(local, task.generation, notBefore(task, decision), options.held ? 1 : 0, guarded ? 1 : 0);
    args.push(writes.awaited ?? "", decision.cancel ? 1 : 0, writes.lookAt ?? "", writes.waits ? 1 : 0);
    args.push(writes.finished ? lingerOf(task) : "");
    const set = writes.set.flat();
    args.push(set.length, ...set, writes.remove.length, ...writes.remove);
    args.push(decision.skipped.length * 4);
    for (const { reason, from, to } of decision.skipped) {
      args.push(reason, from, to, reason.endsWith("overlap") ? (entry.running?.run ?? "-") : "-");
    }
    const side = options.backfill?.set.flat() ?? [];
    args.push(options.backfill?.at ?? "", side.length, ...side);
    args.push(entry.over.length, ...entry.over, run ?? "");
    if (!enqueue || run === undefined) return undefined;

    const { nominal, due, trigger, missed, key } = enqueue;
    const occurrence: Omit<Occurrence, "enqueued"> = {
      key,
      ...identity(definition),
      nominal,
      due,
      generation: Number(task.generation) + 1,
      trigger,
      ...(missed ? { missed } : {}),
      run,
      ...references(definition),
    };
    args.push(...this.#job(definition, task.payloadJson, occurrence, now));
    return run;
  }

  /** Prioritized, packed arguments, data up to the enqueue time, packed options, the run's details. */
  #job(
    definition: StoredTask["definition"],
    payloadJson: string,
    occurrence: Omit<Occurrence, "enqueued">,
    now: number,
  ): (string | number | Buffer)[] {
    const packed = this.#packer(definition.queue).pack(
      occurrence.run,
      definition.type,
      jobOptions(definition, now),
    );
    // The script appends the time of its commit and closes both objects.
    const data = `{"payload":${payloadJson},"occurrence":${JSON.stringify(occurrence).slice(0, -1)},"enqueued":`;
    const { key, nominal, due, trigger, missed } = occurrence;
    const details = encodeDetails({
      type: definition.type,
      key,
      nominal,
      due,
      trigger,
      ...(missed ? { missed } : {}),
      ...this.#limits(definition, trigger === "manual" ? undefined : nominal, nominal),
    });
    return [packed.prioritized ? 1 : 0, packed.args, data, packed.opts, details];
  }

  /** What the worker keeps to, in ms. */
  #limits(
    definition: StoredTask["definition"],
    slot: number | undefined,
    around: number,
  ): Pick<RunDetails, "limit" | "grace" | "minGap"> {
    const { timeLimit, timeLimitGrace, minGap } = definition;
    let limit: number | undefined;
    if (timeLimit !== undefined) {
      const schedule = this.#schedules.get(definition.schedule, definition.id);
      // By hand, the interval is that of the schedule's next two times.
      const from = slot ?? schedule.next(around) ?? Number.NaN;
      const following = schedule.delay ?? (schedule.next(from) ?? Number.NaN) - from;
      limit = timeLimitOf(timeLimit, Number.isNaN(following) ? undefined : following);
    }
    return {
      ...(limit === undefined ? {} : { limit }),
      ...(timeLimitGrace === undefined ? {} : { grace: parseDuration(timeLimitGrace) }),
      ...(minGap === undefined ? {} : { minGap: parseDuration(minGap) }),
    };
  }

  #packer(queue: string): JobPacker {
    let packer = this.#packers.get(queue);
    if (!packer) {
      packer = new JobPacker(this.#namespace, queue);
      this.#packers.set(queue, packer);
    }
    return packer;
  }

  /** A task with the time and the runs in its way. */
  async #read(name: TaskName): Promise<{ now: number; entry: DueEntry }> {
    const keys = this.#keys.queue(name.queue);
    const local = localName(name);
    const [now, flat, run, open, over] = (await this.#link.run(
      this.#scripts["read-task"],
      [keys.task(local), keys.open(local), keys.history(local), keys.failures(local)],
      [keys.bull],
    )) as [number, string[], string, string, string[]];
    const task = decodeTask(name.queue, local, flat);
    const running = run === "" ? undefined : { run, open: open === "1" };
    return { now, entry: { local, task, running, over } };
  }

  /** A manual occurrence of a stored task, now. @throws `TASK_NOT_FOUND`, `CONFLICT` */
  async trigger(
    name: TaskName,
    by: { key: string; token: string; node: string },
    overlap?: OverlapPolicy,
  ): Promise<TriggerResult> {
    const local = localName(name);
    for (let attempt = 0; attempt < TRIGGER_TRIES; attempt++) {
      // Each trigger outdates all others that have read the task: many at once must not stay in step.
      if (attempt > 0) await delay(Math.random() * Math.min(5 * 2 ** attempt, 500));
      const { now, entry } = await this.#read(name);
      const { task } = entry;
      if (!task)
        throw new CarillonError("TASK_NOT_FOUND", `there is no task ${local} in queue ${name.queue}.`);
      if (isForeign(task)) throw unsupportedFormat(local, task.version);
      const item = { ...entry, task };
      const decision = decideTrigger(dueTask(item, this.#schedules), now, { key: by.key, overlap });
      const options = { token: by.token, node: by.node, held: false, overlap };
      const answer = await this.#commit(
        name.queue,
        shardOf(local),
        [{ entry: item, decision }],
        options,
        now,
      );
      const { status, run } = answer.results[0] as ClaimResult;
      if (status.startsWith("ERROR")) throw addFailed(status);
      if (status !== "OK" && status !== "DONE") continue;
      if (run !== undefined) return { outcome: "enqueued", run, enqueued: answer.now };
      const waits = decision.pending.some(({ key }) => key === by.key);
      return waits ? { outcome: "queued" } : { outcome: "skipped", reason: "overlap" };
    }
    throw new CarillonError("CONFLICT", `${local} kept changing while it was triggered.`, {
      remedy: "Try again.",
    });
  }

  /** A task as it is now, with the runs in its way. Undefined: there is none, or a newer version wrote it. */
  async look(name: TaskName): Promise<{ now: number; entry: ClaimItem["entry"] } | undefined> {
    const { now, entry } = await this.#read(name);
    return entry.task && !isForeign(entry.task) ? { now, entry: { ...entry, task: entry.task } } : undefined;
  }

  /** Makes one step of a backfill true. */
  async commitStep(
    name: TaskName,
    item: ClaimItem,
    step: BackfillStep,
    by: { token: string; node: string; overlap: OverlapPolicy },
    now: number,
  ): Promise<ClaimStatus> {
    const options = { ...by, held: false, backfill: step };
    const { results } = await this.#commit(name.queue, shardOf(localName(name)), [item], options, now);
    return (results[0] as ClaimResult).status;
  }

  /** A task that runs once, now, stored and enqueued in one step. @throws `CONFLICT` where the name is taken */
  async enqueueNow(
    parsed: ParsedTask,
    by: { key: string; token: string; node: string },
  ): Promise<{ run: string; enqueued: number }> {
    const { definition, payloadJson } = parsed;
    const keys = this.#keys.queue(definition.queue);
    const local = localName(definition);
    const now = "at" in definition.schedule ? new Date(definition.schedule.at).getTime() : 0;
    const run = runId(definition.id, now, by.token);
    const occurrence: Omit<Occurrence, "enqueued"> = {
      key: by.key,
      ...identity(definition),
      nominal: now,
      due: now,
      // The created task's generation is made by the script; its first run belongs to it.
      generation: 0,
      trigger: "manual",
      run,
      ...references(definition),
    };
    const [word, at] = (await this.#link.run(
      this.#scripts["enqueue-new"],
      [
        ...[
          keys.task(local),
          keys.open(local),
          keys.run(run),
          keys.job(run),
          keys.next,
          keys.runs,
          keys.tasks,
        ],
        ...bullKeys(keys.bull),
      ],
      [
        ...[local, run, by.node, FIRST_LOOK],
        ...this.#job(definition, payloadJson, occurrence, now),
        ...[...definitionFields(parsed, true)].flat(),
      ],
    )) as [string, number];
    if (word === "TAKEN") throw nameTaken(local);
    if (word.startsWith("ERROR")) throw addFailed(word);
    return { run, enqueued: at };
  }
}

/** What `decide` asks about a due task. */
export function dueTask({ task, running }: ClaimItem["entry"], schedules: ScheduleCache): DueTask {
  const { definition, nominal, due } = task;
  return {
    slot: nominal === undefined ? undefined : { nominal, due: due ?? nominal },
    overlap: definition.overlap,
    catchUp: definition.catchUp,
    policies: definition,
    schedule: schedules.get(definition.schedule, definition.id),
    fired: task.fired,
    running: running !== undefined,
    pending: task.pending,
    keyOf: (nominal) => occurrenceKey(definition, nominal),
  };
}

/** The policy that holds for what is enqueued: for all but `allow` there must be no live run at the commit either. */
function overlapOf({ task }: ClaimItem["entry"], { enqueue }: Decision): OverlapPolicy {
  const own = task.pending.find(({ key }) => key === enqueue?.key)?.overlap;
  return own ?? task.definition.overlap;
}

/**
 * The time before which the decision must not be committed. It may reach beyond the due time that was read: to the newest of the
 * times that were missed.
 */
function notBefore(task: StoredTask, { enqueue, cursor }: Decision): number | string {
  if (cursor !== undefined) return Math.max(task.due ?? 0, cursor, enqueue?.due ?? 0);
  const waited = task.pending.find(({ key }) => key === enqueue?.key);
  return waited === undefined ? "" : readyAt(waited);
}

function lingerOf({ definition }: StoredTask): number {
  return definition.linger === undefined ? DEFAULT_LINGER : parseDuration(definition.linger);
}

function identity(definition: StoredTask["definition"]): { task: string; owner: string; queue: string } {
  return { task: definition.id, owner: definition.owner, queue: definition.queue };
}

function references(
  definition: StoredTask["definition"],
): Pick<Occurrence, "subject" | "submitter" | "group"> {
  return {
    ...(definition.subject === undefined ? {} : { subject: definition.subject }),
    ...(definition.submitter === undefined ? {} : { submitter: definition.submitter }),
    ...(definition.group === undefined ? {} : { group: definition.group }),
  };
}

function addFailed(word: string): CarillonError {
  const text = word.slice("ERROR ".length);
  const coded = redisError(new Error(text));
  if (coded.code === "REDIS_OUT_OF_MEMORY" || coded.code === "REDIS_READ_ONLY") return coded;
  return new CarillonError("REDIS_ERROR", `BullMQ's add failed: ${text}.`);
}
