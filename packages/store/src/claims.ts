import { setTimeout as delay } from "node:timers/promises";
import {
  CarillonError,
  type Decision,
  type DueTask,
  forbidden,
  localName,
  type Next,
  type Occurrence,
  type OverlapPolicy,
  occurrenceKey,
  type ParsedTask,
  runId,
  type ScheduleCache,
  type TaskName,
} from "@carillon/core";
import { bullKeys, JobPacker, jobOptions } from "./bullmq.js";
import { redisError } from "./connection.js";
import type { NamespaceKeys, QueueKeys } from "./keys.js";
import type { Link } from "./link.js";
import { encodeDetails } from "./run-codec.js";
import type { Scripts } from "./scripts.js";
import { decodeTask, definitionFields, type ForeignTask, isForeign, type StoredTask } from "./task-codec.js";
import { nameTaken, unsupportedFormat } from "./task-errors.js";

/** A due task as the claim reads it. */
export interface DueEntry {
  readonly local: string;
  readonly due: number;
  readonly task: StoredTask | ForeignTask | undefined;
  readonly running: boolean;
  /** Runs whose jobs are over although nobody settled them yet. */
  readonly over: readonly string[];
}

export interface DueBatch {
  readonly now: number;
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
  | { readonly outcome: "skipped"; readonly reason: "overlap" };

/** The reconciler's first look at a run that nobody settled, after this many ms. */
const FIRST_LOOK = 10_000;

const TRIGGER_TRIES = 12;

export class ClaimRepository {
  readonly #link: Link;
  readonly #keys: NamespaceKeys;
  readonly #scripts: Scripts;
  readonly #packers = new Map<string, JobPacker>();
  readonly #namespace: string;

  constructor(link: Link, keys: NamespaceKeys, scripts: Scripts, namespace: string) {
    this.#link = link;
    this.#keys = keys;
    this.#scripts = scripts;
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

  /** @param pass due tasks at the head to pass over: those that this version cannot decide */
  async readDue(queue: string, shard: number, limit: number, pass = 0): Promise<DueBatch> {
    const keys = this.#keys.queue(queue);
    const [now, ...entries] = (await this.#link.run(
      this.#scripts["read-due"],
      [keys.due(shard)],
      [keys.task(""), keys.open(""), keys.history(""), keys.bull, pass, limit],
    )) as [number, ...[string, string, string[], string, string[]][]];
    return {
      now,
      entries: entries.map(([local, due, flat, running, over]) => ({
        local,
        due: Number(due),
        task: readable(queue, local, flat),
        running: running === "1",
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
    const keys = this.#keys.queue(queue);
    const all: string[] = [keys.due(shard), keys.next, keys.runs, ...bullKeys(keys.bull)];
    const args: (string | number | Buffer)[] = [by.token, by.node, shard, items.length, FIRST_LOOK];
    const runs = items.map((item) => this.#pushItem(keys, all, args, item, by.token, now));
    const [at, ...statuses] = (await this.#link.run(this.#scripts.claim, all, args)) as [
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
    token: string,
    now: number,
  ): string | undefined {
    const { task, local } = entry;
    const { enqueue } = decision;
    const run = enqueue && runId(task.definition.id, enqueue.nominal, token);
    // A skipped occurrence has no run; its keys are still counted, by names that hold nothing.
    all.push(
      keys.task(local),
      keys.open(local),
      keys.ledger(local),
      keys.run(run ?? "-"),
      keys.job(run ?? "-"),
    );
    for (const id of entry.over) all.push(keys.job(id));
    args.push(local, task.generation, entry.due, enqueue ? "enqueue" : "skip");
    args.push(task.definition.overlap === "allow" ? 0 : 1);
    args.push(decision.cursor, ...nextArgs(decision.next), enqueue ? task.fired + 1 : "");
    args.push(decision.skipped.length);
    for (const { reason, from, to } of decision.skipped) args.push(reason, from, to);
    args.push(entry.over.length, ...entry.over);
    if (!enqueue || run === undefined) return undefined;

    const { definition } = task;
    const occurrence: Omit<Occurrence, "enqueued"> = {
      key: occurrenceKey(definition, enqueue.nominal),
      ...identity(definition),
      nominal: enqueue.nominal,
      due: enqueue.due,
      generation: Number(task.generation) + 1,
      trigger: enqueue.trigger,
      ...(enqueue.missed ? { missed: enqueue.missed } : {}),
      run,
      ...references(definition),
    };
    args.push(run, ...this.#job(definition, task.payloadJson, occurrence, now));
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
      jobOptions(definition.priority, now),
    );
    // The script appends the time of its commit and closes both objects.
    const data = `{"payload":${payloadJson},"occurrence":${JSON.stringify(occurrence).slice(0, -1)},"enqueued":`;
    const details = encodeDetails({
      type: definition.type,
      key: occurrence.key,
      nominal: occurrence.nominal,
      due: occurrence.due,
      trigger: occurrence.trigger,
      ...(occurrence.missed ? { missed: occurrence.missed } : {}),
    });
    return [packed.prioritized ? 1 : 0, packed.args, data, packed.opts, details];
  }

  #packer(queue: string): JobPacker {
    let packer = this.#packers.get(queue);
    if (!packer) {
      packer = new JobPacker(this.#namespace, queue);
      this.#packers.set(queue, packer);
    }
    return packer;
  }

  /** A manual occurrence of a stored task, now. @throws `TASK_NOT_FOUND`, `CONFLICT` */
  async trigger(
    name: TaskName,
    by: { key: string; token: string; node: string },
    overlap?: OverlapPolicy,
  ): Promise<TriggerResult> {
    const keys = this.#keys.queue(name.queue);
    const local = localName(name);
    for (let attempt = 0; attempt < TRIGGER_TRIES; attempt++) {
      // Each trigger outdates all others that have read the task: many at once must not stay in step.
      if (attempt > 0) await delay(Math.random() * Math.min(5 * 2 ** attempt, 500));
      const [now, flat, running, over] = (await this.#link.run(
        this.#scripts["read-task"],
        [keys.task(local), keys.open(local), keys.history(local)],
        [keys.bull],
      )) as [number, string[], string, string[]];
      const task = decodeTask(name.queue, local, flat);
      if (!task)
        throw new CarillonError("TASK_NOT_FOUND", `there is no task ${local} in queue ${name.queue}.`);
      if (isForeign(task)) throw unsupportedFormat(local, task.version);
      const policy = overlap ?? task.definition.overlap;
      if (forbidden(policy, running === "1")) return { outcome: "skipped", reason: "overlap" };
      const answer = await this.#sendTrigger({ ...task, guarded: policy !== "allow", over, local, now, by });
      if (answer) return answer;
    }
    throw new CarillonError("CONFLICT", `${local} kept changing while it was triggered.`, {
      remedy: "Try again.",
    });
  }

  /** A task that runs once, now, stored and enqueued in one step. @throws `CONFLICT` where the name is taken */
  async enqueueNow(
    parsed: ParsedTask,
    by: { key: string; token: string; node: string },
  ): Promise<TriggerResult> {
    const { definition, payloadJson } = parsed;
    const local = localName(definition);
    const answer = await this.#sendTrigger({
      definition,
      payloadJson,
      generation: "",
      guarded: false,
      over: [],
      local,
      now: "at" in definition.schedule ? new Date(definition.schedule.at).getTime() : 0,
      by,
      create: definitionFields(parsed, true),
    });
    if (answer) return answer;
    throw nameTaken(local);
  }

  async #sendTrigger(request: {
    definition: StoredTask["definition"];
    payloadJson: string;
    generation: string;
    guarded: boolean;
    over: readonly string[];
    local: string;
    now: number;
    by: { key: string; token: string; node: string };
    create?: ReadonlyMap<string, string>;
  }): Promise<TriggerResult | undefined> {
    const { definition, local, now, by, over, create } = request;
    const keys = this.#keys.queue(definition.queue);
    const run = runId(definition.id, now, by.token);
    const occurrence: Omit<Occurrence, "enqueued"> = {
      key: by.key,
      ...identity(definition),
      nominal: now,
      due: now,
      // A created task's generation is made by the script; its first run belongs to it.
      generation: create ? 0 : Number(request.generation) + 1,
      trigger: "manual",
      run,
      ...references(definition),
    };
    const [word, at] = (await this.#link.run(
      this.#scripts.trigger,
      [
        ...[keys.task(local), keys.open(local), keys.ledger(local), keys.run(run), keys.job(run)],
        ...[keys.next, keys.runs, ...bullKeys(keys.bull), keys.tasks],
        ...over.map((id) => keys.job(id)),
      ],
      [
        ...[run, request.generation, request.guarded ? 1 : 0, by.node, FIRST_LOOK],
        ...this.#job(definition, request.payloadJson, occurrence, now),
        ...[local, over.length, ...over],
        ...(create ? [...create].flat() : []),
      ],
    )) as [string, number];
    if (word === "OK" || word === "DONE") return { outcome: "enqueued", run, enqueued: at };
    if (word === "MISSING") throw new CarillonError("TASK_NOT_FOUND", `there is no task ${local}.`);
    if (word.startsWith("ERROR")) throw addFailed(word);
    return undefined;
  }
}

/** New nominal, new due, delay after finish; all empty: the task is finished. */
function nextArgs(next: Next | undefined): (string | number)[] {
  if (next === undefined) return ["", "", ""];
  return "afterFinish" in next ? ["", "", next.afterFinish] : [next.nominal, next.due, ""];
}

/** What `decide` asks about a due task. */
export function dueTask({ task, due, running }: ClaimItem["entry"], schedules: ScheduleCache): DueTask {
  const { definition } = task;
  return {
    nominal: task.nominal ?? due,
    due: task.due ?? due,
    overlap: definition.overlap,
    catchUp: definition.catchUp,
    schedule: schedules.get(definition.schedule, definition.id),
    fired: task.fired,
    running,
  };
}

/** One task that cannot be read must not keep the others of its batch from their turn. */
function readable(queue: string, local: string, flat: string[]): StoredTask | ForeignTask | undefined {
  try {
    return decodeTask(queue, local, flat);
  } catch {
    return undefined;
  }
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
