import {
  assertOverlap,
  CarillonError,
  type Decision,
  type DueTask,
  decideTrigger,
  localName,
  type OverlapPolicy,
  occurrenceKey,
  type ParsedTask,
  runId,
  type ScheduleCache,
  shardOf,
  type TaskName,
} from "@carillon/core";
import { bullKeys, JobPacker } from "./bullmq.js";
import type { DueEntry } from "./commit.js";
import {
  type BackfillStep,
  type ClaimItem,
  CommitItems,
  type CommitOptions,
  dataParts,
  JobTexts,
  templatesText,
} from "./commit-items.js";
import { redisError } from "./connection.js";
import type { Contention } from "./contention.js";
import { clearGone, GONE_OPEN } from "./gone.js";
import type { NamespaceKeys } from "./keys.js";
import type { Link } from "./link.js";
import type { Scripts } from "./scripts.js";
import { decodeTask, definitionFields, isForeign, readable, storedFields } from "./task-codec.js";
import { nameTaken, unsupportedFormat } from "./task-errors.js";

export interface DueBatch {
  readonly now: number;
  /** Whether more is due than was read and is named in `rest`. */
  readonly more: boolean;
  readonly entries: readonly DueEntry[];
  /** Names that were chosen and did not fit. */
  readonly rest: readonly string[];
}

/** Which due tasks are read. */
export interface WhichDue {
  /** Passes over so many, in the order of their times: those that this version cannot decide. */
  readonly pass?: number | undefined;
  /** These, as far as they are still due. */
  readonly names?: readonly string[] | undefined;
  /** What comes due until then too: a look ahead, in UTC ms of Redis time. */
  readonly by?: number | undefined;
  /** They are chosen fairly among so many of the oldest and as many of the newest; default four batches, and 120 at most. */
  readonly window?: number | undefined;
}

/**
 * What the commit said of one task. `DONE`: this very claim was committed before (its answer was lost). `STALE`,
 * `OVERLAP`: the task or its runs changed since the read. `EARLY`: not due by Redis time.
 */
export type ClaimStatus = "OK" | "DONE" | "STALE" | "EARLY" | "OVERLAP" | `ERROR ${string}`;

/** What is remembered of an item until its commit is answered: what was prepared ahead may be thousands, with payloads. */
export interface Sent {
  readonly entry: { readonly local: string; readonly task: { readonly due: number | undefined } };
  readonly decision: Decision;
}

export interface ClaimResult {
  readonly item: Sent;
  readonly status: ClaimStatus;
  /** The run that was enqueued, where one was. */
  readonly run: string | undefined;
}

/** A commit, ready to be sent. */
export interface PackedCommit {
  readonly queue: string;
  readonly node: string;
  /** When it was decided. */
  readonly decided: number;
  readonly items: readonly Sent[];
  /** Of each item the run that it enqueues, if it does. */
  readonly runs: readonly (string | undefined)[];
  readonly keys: readonly string[];
  readonly args: readonly (string | number)[];
}

export type TriggerResult =
  | { readonly outcome: "enqueued"; readonly run: string; readonly enqueued: number }
  /** It waits for the run in its way to end. */
  | { readonly outcome: "queued" }
  | { readonly outcome: "skipped"; readonly reason: "overlap" };

/** Between the parts of a text that `read-due.lua` answers with. */
const SEPARATOR = "\x1f";

/** What comes due while a window is worked off waits for its end: no larger than that. */
const WINDOW = 120;

/** The reconciler's first look at a run that nobody settled, after this many ms. */
const FIRST_LOOK = 10_000;

type DueReply = [now: number, more: string, rest: string, ...tasks: string[]];

export class ClaimRepository {
  readonly #link: Link;
  readonly #keys: NamespaceKeys;
  readonly #scripts: Scripts;
  readonly #schedules: ScheduleCache;
  readonly #contention: Contention;

  constructor(
    link: Link,
    keys: NamespaceKeys,
    scripts: Scripts,
    schedules: ScheduleCache,
    contention: Contention,
  ) {
    this.#link = link;
    this.#keys = keys;
    this.#scripts = scripts;
    this.#schedules = schedules;
    this.#contention = contention;
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

  /** Reads due tasks of a shard: a fair choice, unless it is said which. */
  async readDue(queue: string, shard: number, limit: number, which: WhichDue = {}): Promise<DueBatch> {
    const keys = this.#keys.queue(queue);
    const [now, more, rest, ...tasks] = (await this.#link.run(
      this.#scripts["read-due"],
      [keys.due(shard), keys.priorities],
      [
        ...[keys.task(""), keys.open(""), keys.history(""), keys.failures(""), keys.bull],
        ...[
          which.pass ?? "",
          limit,
          which.names?.join(" ") ?? "",
          which.by ?? "",
          which.window ?? Math.min(4 * limit, WINDOW),
        ],
      ],
    )) as DueReply;
    return {
      now,
      more: more === "1",
      rest: rest === "" ? [] : rest.split(" "),
      entries: tasks.map((text) => dueEntry(queue, text)),
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
    return this.send(this.pack(queue, shard, items, by, now));
  }

  /** All of a commit but the sending: for what is decided ahead of its time. */
  pack(
    queue: string,
    shard: number,
    items: readonly ClaimItem[],
    by: { token: string; node: string },
    now: number,
  ): PackedCommit {
    return this.#pack(queue, shard, items, { ...by, held: true }, now);
  }

  #pack(
    queue: string,
    shard: number,
    items: readonly ClaimItem[],
    options: CommitOptions & { node: string },
    now: number,
  ): PackedCommit {
    const keys = this.#keys.queue(queue);
    const packed = new CommitItems(keys, this.#jobs(queue, now));
    // Two owners may have a task of one id, due at the same time: a run's id must be one of a kind.
    const runs = items.map((item, i) => {
      const token = i === 0 ? options.token : `${options.token}.${i.toString(36)}`;
      return packed.add(item, { ...options, token }, now);
    });
    return {
      queue,
      node: options.node,
      decided: now,
      items: items.map(({ entry: { local, task }, decision }) => ({
        entry: { local, task: { due: task.due } },
        decision,
      })),
      runs,
      keys: [keys.due(shard), keys.next, keys.runs, ...bullKeys(keys.bull), ...packed.keys],
      args: [
        ...[options.token, options.node, shard, FIRST_LOOK, queue, keys.run(""), this.#keys.cancel],
        ...packed.args,
      ],
    };
  }

  async send(packed: PackedCommit): Promise<{ now: number; results: ClaimResult[] }> {
    const { items, runs, keys, args } = packed;
    const [at, ...statuses] = (await this.#link.run(this.#scripts.commit, keys, args)) as [
      number,
      ...ClaimStatus[],
    ];
    const results = items.map((item, i) => {
      const status = statuses[i] as ClaimStatus;
      return { item, status, run: status === "OK" || status === "DONE" ? runs[i] : undefined };
    });
    const more = new Set<string>(statuses.slice(items.length));
    for (const { item, status } of results) {
      const { local } = item.entry;
      if (more.has(local)) await this.#cancelOn(packed, local, at);
      // Where the first answer was lost, nobody has said whether there are more, and others may have begun since.
      else if (item.decision.cancel && status === "DONE") await this.#cancelOn(packed, local, packed.decided);
    }
    return { now: at, results };
  }

  /** Cancels the runs of a task that were open by then, some at a time. */
  async #cancelOn({ queue, node }: PackedCommit, local: string, by: number): Promise<void> {
    const keys = this.#keys.queue(queue);
    let [passed, changed, before] = [0, 0, 0];
    for (;;) {
      const [looked, cancelled, open] = (await this.#link.run(
        this.#scripts["cancel-open"],
        [keys.open(local), keys.runs, keys.next],
        [keys.run(""), node, this.#keys.cancel, queue, by, passed],
      )) as [number, number, number];
      if (passed === 0) before = open;
      passed += looked;
      changed += cancelled;
      if (looked > 0) continue;
      // Those that ended meanwhile have moved others to where this had passed.
      if (changed === 0 && open === before) return;
      [passed, changed] = [0, 0];
    }
  }

  #jobs(queue: string, now: number): JobTexts {
    return new JobTexts(new JobPacker(this.#keys.queue(queue).bull), this.#schedules, now);
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
    return { now, entry: { local, task, running, over: runIds(over) } };
  }

  /** A manual occurrence of a stored task, now. @throws `INVALID_OPTION`, `TASK_NOT_FOUND`, `CONFLICT` */
  async trigger(
    name: TaskName,
    by: { key: string; token: string; node: string },
    overlap?: OverlapPolicy,
  ): Promise<TriggerResult> {
    assertOverlap(overlap);
    const local = localName(name);
    const result = await this.#contention.over([`${name.queue}/${local}`], () =>
      this.#trigger(name, by, overlap),
    );
    if (result) return result;
    throw new CarillonError("CONFLICT", `${local} kept changing while it was triggered.`, {
      remedy: "Try again.",
    });
  }

  /** @returns undefined where the task has changed since it was read */
  async #trigger(
    name: TaskName,
    by: { key: string; token: string; node: string },
    overlap?: OverlapPolicy,
  ): Promise<TriggerResult | undefined> {
    const local = localName(name);
    const { now, entry } = await this.#read(name);
    const { task } = entry;
    if (!task) throw new CarillonError("TASK_NOT_FOUND", `there is no task ${local} in queue ${name.queue}.`);
    if (isForeign(task)) throw unsupportedFormat(local, task.version);
    const item = { ...entry, task };
    const decision = decideTrigger(dueTask(item, this.#schedules), now, { key: by.key, overlap });
    const options = { token: by.token, node: by.node, held: false, overlap };
    const items = [{ entry: item, decision }];
    const answer = await this.send(this.#pack(name.queue, shardOf(local), items, options, now));
    const { status, run } = answer.results[0] as ClaimResult;
    if (status.startsWith("ERROR")) throw addFailed(status);
    if (status !== "OK" && status !== "DONE") return undefined;
    if (run !== undefined) return { outcome: "enqueued", run, enqueued: answer.now };
    const waits = decision.pending.some(({ key }) => key === by.key);
    return waits ? { outcome: "queued" } : { outcome: "skipped", reason: "overlap" };
  }

  /** A task as it is now, with the runs in its way. `gone`: there is none; `foreign`: a newer version wrote it. */
  async look(name: TaskName): Promise<{ now: number; entry: ClaimItem["entry"] } | "gone" | "foreign"> {
    const { now, entry } = await this.#read(name);
    const { task } = entry;
    if (!task) return "gone";
    return isForeign(task) ? "foreign" : { now, entry: { ...entry, task } };
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
    const { results } = await this.send(
      this.#pack(name.queue, shardOf(localName(name)), [item], options, now),
    );
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
    const enqueue = { key: by.key, nominal: now, due: now, trigger: "manual" } as const;
    const jobs = this.#jobs(definition.queue, now);
    jobs.template(definition);
    const mark = `${GONE_OPEN}${local}`;
    const all = [
      ...[keys.task(local), keys.open(local), keys.run(run), keys.job(run), keys.next, keys.runs],
      ...[keys.tasks, keys.priorities, ...bullKeys(keys.bull), keys.gone(mark)],
    ];
    const args = [
      ...[local, run, by.node, FIRST_LOOK, templatesText(jobs.templates)],
      ...[jobs.details(definition, enqueue), definition.queue, definition.owner, definition.id],
      ...dataParts(definition, enqueue, payloadJson),
      ...[...storedFields(definitionFields(parsed, true))].flat(),
    ];
    const send = () => this.#link.run(this.#scripts["enqueue-new"], all, args) as Promise<[string, number]>;
    let [word, at] = await send();
    if (word === "LEFT") {
      await clearGone(this.#link, this.#scripts["clear-runs"], keys, mark);
      [word, at] = await send();
    }
    if (word === "TAKEN") throw nameTaken(local);
    if (word === "LEFT")
      throw new CarillonError("CONFLICT", `${local} was deleted meanwhile.`, { remedy: "Try again." });
    if (word.startsWith("ERROR")) throw addFailed(word);
    return { run, enqueued: at };
  }
}

/** @param text of one task, as `read-due.lua` says */
function dueEntry(queue: string, text: string): DueEntry {
  const [local = "", run = "", open, over = "", ...flat] = text.split(SEPARATOR);
  return {
    local,
    task: readable(queue, local, flat[0] === "" ? [] : flat),
    running: run === "" ? undefined : { run, open: open === "1" },
    over: over === "" ? [] : runIds(over.split(" ")),
  };
}

/** What else someone has written among the ids is none. */
function runIds(ids: readonly string[]): string[] {
  return ids.filter((id) => /^[\w.-]+@[\w.-]+$/.test(id));
}

/** What `decide` asks about a due task. */
export function dueTask(
  { task, running }: Pick<ClaimItem["entry"], "task" | "running">,
  schedules: ScheduleCache,
): DueTask {
  const { definition, nominal, due } = task;
  return {
    slot: nominal === undefined ? undefined : { nominal, due: due ?? nominal },
    overlap: definition.overlap,
    catchUp: definition.catchUp,
    policies: definition,
    schedule: schedules.get(definition.schedule, definition.id, task.scheduleJson),
    fired: task.fired,
    running: running !== undefined,
    pending: task.pending,
    keyOf: (nominal) => occurrenceKey(definition, nominal),
  };
}

function addFailed(word: string): CarillonError {
  const text = word.slice("ERROR ".length);
  const coded = redisError(new Error(text));
  if (coded.code === "REDIS_OUT_OF_MEMORY" || coded.code === "REDIS_READ_ONLY") return coded;
  return new CarillonError("REDIS_ERROR", `BullMQ's add failed: ${text}.`);
}
