import {
  CarillonError,
  type Json,
  type OverlapPolicy,
  type ParsedTask,
  type Run,
  type TaskName,
} from "@carillon/core";
import {
  assertOverlap,
  type Decision,
  type DueTask,
  decideItems,
  decideTrigger,
  localName,
  nextFreeze,
  type ScheduleCache,
  shardOf,
} from "@carillon/core/internal";
import { bullKeys } from "../bull/bull-keys.js";
import { JobPacker } from "../bull/bullmq.js";
import type { NamespaceKeys } from "../keys.js";
import type { OptimisticWrites } from "../optimistic.js";
import type { Link } from "../redis/link.js";
import type { Packed, Scripts } from "../script/scripts.js";
import { decodeTask, isForeign } from "../task/codec.js";
import { addFailed, ownerLimit, tooManyWait, unsupportedFormat } from "../task/errors.js";
import { CANCEL_OPEN, READ_TASK } from "./claim-scripts.js";
import { DueReads, runIds, runInWay } from "./due.js";
import { assertFits, assertThawed, dueTask } from "./due-task.js";
import { enqueueNow } from "./enqueue-now.js";
import { readFrozen } from "./frozen.js";
import { JobTexts, templatesText } from "./job-texts.js";
import {
  type BackfillStep,
  type ClaimItem,
  COMMIT,
  CommitItems,
  type CommitOptions,
  type Requester,
} from "./pack.js";
import { claimableAt, type DueEntry } from "./writes.js";

/** Answers of a commit that refused a claim; see `ClaimStatus`. */
export const CLAIM_REFUSALS = ["STALE", "EARLY", "OVERLAP", "LIMITED"] as const;
export type ClaimRefusal = (typeof CLAIM_REFUSALS)[number];

/**
 * Result of the commit for one task. `DONE`: this very claim was committed before (its answer was lost). `STALE`,
 * `OVERLAP`: the task or its runs changed since the read. `EARLY`: not due by Redis time. `LIMITED`: its owner has as
 * many runs in this queue as it may; a due occurrence waits for the end of one.
 */
export type ClaimStatus = "OK" | "DONE" | ClaimRefusal | `ERROR ${string}`;

/** Data kept for an item until its commit is answered. Kept small: thousands may be prepared ahead, with payloads. */
export interface Sent {
  readonly entry: { readonly local: string; readonly task: { readonly due: number | undefined } };
  readonly decision: Decision;
  /** Time from which nothing blocked the enqueued occurrence. Undefined: nothing is enqueued. */
  readonly claimable?: number | undefined;
}

export interface ClaimResult {
  readonly item: Sent;
  readonly status: ClaimStatus;
  /** The run that was enqueued, if any. */
  readonly run: string | undefined;
}

export interface CommitAnswer {
  readonly now: number;
  /** Time in ms for which the script blocked Redis. */
  readonly took: number;
  readonly results: readonly ClaimResult[];
}

/** A commit, ready to be sent. */
export interface PackedCommit extends Packed<[now: number, took: number, ...statuses: string[]]> {
  readonly queue: string;
  readonly node: string;
  /** Time of the decision. */
  readonly decided: number;
  readonly items: readonly Sent[];
  /** For each item the run that it enqueues, if any. */
  readonly runs: readonly (string | undefined)[];
}

/** `type`: of the task. */
export type TriggerResult = { readonly type: string } & (
  | { readonly outcome: "enqueued"; readonly run: string; readonly enqueued: number }
  /** It waits for the run in its way to end. */
  | { readonly outcome: "queued" }
  | { readonly outcome: "skipped"; readonly reason: "overlap" }
);

interface TriggerHow {
  readonly force?: boolean;
  readonly payload?: Json | undefined;
}

export class ClaimRepository extends DueReads {
  readonly #keys: NamespaceKeys;
  readonly #scripts: Scripts;
  readonly #schedules: ScheduleCache;
  readonly #optimistic: OptimisticWrites;

  constructor(
    link: Link,
    keys: NamespaceKeys,
    scripts: Scripts,
    schedules: ScheduleCache,
    optimistic: OptimisticWrites,
  ) {
    super(link, keys, scripts);
    this.#keys = keys;
    this.#scripts = scripts;
    this.#schedules = schedules;
    this.#optimistic = optimistic;
  }

  /**
   * Commits decisions in one script. A repetition with the same token has no second effect.
   * @param now the time of the read, for the jobs' own timestamps
   */
  async commit(
    queue: string,
    shard: number,
    items: readonly ClaimItem[],
    by: { token: string; node: string },
    now: number,
  ): Promise<CommitAnswer> {
    return this.send(this.pack(queue, shard, items, by, now));
  }

  /** Prepares a commit without sending it, for decisions made ahead of time. */
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
    const jobs = this.#jobs(queue, now);
    const packed = new CommitItems(keys, jobs);
    const frozen = items[0]?.entry.frozen;
    const runs = items.map((item, n) => packed.add(item, options, now, n));
    return {
      queue,
      node: options.node,
      decided: now,
      items: items.map(({ entry, decision }) => ({
        entry: { local: entry.local, task: { due: entry.task.due } },
        decision,
        claimable: claimableAt(entry, decision),
      })),
      runs,
      ...this.#scripts.pack(
        COMMIT,
        { ...keys, due: keys.due(shard), bull: bullKeys(keys.bull) },
        {
          token: options.token,
          node: options.node,
          shard,
          templates: templatesText(jobs.templates),
          frozen: frozen?.revision,
          before: frozen && nextFreeze(frozen.list, now),
        },
        packed.items,
      ),
    };
  }

  async send(packed: PackedCommit): Promise<CommitAnswer> {
    const { items, runs } = packed;
    const [at, took, ...statuses] = await this.#scripts.send(packed);
    const results = items.map((item, i) => {
      const status = statuses[i] as ClaimStatus;
      return { item, status, run: status === "OK" || status === "DONE" ? runs[i] : undefined };
    });
    const more = new Set(statuses.slice(items.length));
    for (const { item, status } of results) {
      const { local } = item.entry;
      if (more.has(local)) await this.#cancelOn(packed, local, at);
      // If the first answer was lost, it is unknown whether there are more, and others may have begun since.
      else if (item.decision.cancel && status === "DONE") await this.#cancelOn(packed, local, packed.decided);
    }
    return { now: at, took: took / 1_000, results };
  }

  /** Cancels the runs of a task that were open by then, some at a time. */
  async #cancelOn({ queue, node }: PackedCommit, local: string, by: number): Promise<void> {
    const keys = this.#keys.queue(queue);
    let [passed, changed, before] = [0, 0, 0];
    for (;;) {
      const [looked, cancelled, open] = await this.#scripts.run(
        CANCEL_OPEN,
        { ...keys, open: keys.open(local) },
        { by: node, opened: by, passed },
      );
      if (passed === 0) before = open;
      passed += looked;
      changed += cancelled;
      if (looked > 0) continue;
      // Runs that ended meanwhile have moved others into the part already passed.
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
    const [now, flat, run, open, begun, over, frozen] = await this.#scripts.run(
      READ_TASK,
      {
        task: keys.task(local),
        open: keys.open(local),
        history: keys.history(local),
        failures: keys.failures(local),
        frozen: keys.frozen,
      },
      { owner: name.owner },
    );
    const task = decodeTask(name.queue, local, flat);
    const running = runInWay(run, open, begun);
    return { now, entry: { local, task, running, over: runIds(over), frozen: readFrozen(frozen) } };
  }

  /**
   * A manual occurrence of a stored task, now.
   *
   * @param how `force`: even if a freeze holds it; `payload`: instead of the task's, checked
   * @throws `INVALID_OPTION`, `TASK_NOT_FOUND`, `CONFLICT`, `PAYLOAD_TOO_LARGE`
   */
  async trigger(
    name: TaskName,
    by: Requester,
    overlap?: OverlapPolicy,
    how: TriggerHow = {},
  ): Promise<TriggerResult> {
    assertOverlap(overlap);
    const local = localName(name);
    const result = await this.#optimistic.write([`${name.queue}/${local}`], () =>
      this.#trigger(name, by, overlap, how),
    );
    if (result) return result;
    throw new CarillonError("CONFLICT", `${local} kept changing while it was triggered.`, {
      remedy: "Try again.",
    });
  }

  /**
   * Runs the failed items of a run again, now, as a new run. Repeated with the same token it is enqueued once.
   *
   * @throws `TASK_NOT_FOUND`, `SKIPPED_OVERLAP`, `CONFLICT`
   */
  async retryItems(run: Run, by: Omit<Requester, "key">): Promise<{ run: string; enqueued: number }> {
    const { task: name } = run;
    const local = localName(name);
    const result = await this.#optimistic.write([`${name.queue}/${local}`], () =>
      this.#enqueue(name, { ...by, key: run.key }, undefined, (task, now) => {
        assertThawed(task, local, now);
        const decision = decideItems(task, run, by.name);
        if (decision) return decision;
        const what = `another run of ${local} is open, or its own retry is pending.`;
        throw new CarillonError("SKIPPED_OVERLAP", what, { remedy: "Try again when it has ended." });
      }),
    );
    if (result?.outcome === "enqueued") return { run: result.run, enqueued: result.enqueued };
    throw new CarillonError("CONFLICT", `${local} kept changing while its items were retried.`, {
      remedy: "Try again.",
    });
  }

  async #trigger(
    name: TaskName,
    by: Requester,
    overlap: OverlapPolicy | undefined,
    { force = false, payload }: TriggerHow,
  ): Promise<TriggerResult | undefined> {
    return this.#enqueue(name, by, overlap, (task, now) => {
      if (!force) assertThawed(task, localName(name), now);
      if (!force && task.quota?.full) throw tooManyWait(name);
      const decision = decideTrigger(task, now, { key: by.key, overlap, by: by.name, payload });
      if (payload !== undefined) assertFits(decision.pending, by.key, localName(name));
      return decision;
    });
  }

  /** @returns undefined if the task has changed since it was read */
  async #enqueue(
    name: TaskName,
    by: Requester,
    overlap: OverlapPolicy | undefined,
    decide: (task: DueTask, now: number) => Decision,
  ): Promise<TriggerResult | undefined> {
    const local = localName(name);
    const { now, entry } = await this.#read(name);
    const { task } = entry;
    if (!task) throw new CarillonError("TASK_NOT_FOUND", `there is no task ${local} in queue ${name.queue}.`);
    if (isForeign(task)) throw unsupportedFormat(local, task.version);
    const item = { ...entry, task };
    const decision = decide(dueTask(item, this.#schedules), now);
    const options = { token: by.token, node: by.node, held: false, overlap };
    const items = [{ entry: item, decision }];
    const answer = await this.send(this.#pack(name.queue, shardOf(local), items, options, now));
    const { status, run } = answer.results[0] as ClaimResult;
    if (status.startsWith("ERROR")) throw addFailed(status);
    if (status === "LIMITED") throw ownerLimit(name);
    if (status !== "OK" && status !== "DONE") return undefined;
    const { type } = task.definition;
    if (run !== undefined) return { type, outcome: "enqueued", run, enqueued: answer.now };
    const waits = decision.pending.some(({ key }) => key === by.key);
    return waits ? { type, outcome: "queued" } : { type, outcome: "skipped", reason: "overlap" };
  }

  /** A task as it is now, with the runs in its way. `gone`: it does not exist; `foreign`: a newer version wrote it. */
  async look(name: TaskName): Promise<{ now: number; entry: ClaimItem["entry"] } | "gone" | "foreign"> {
    const { now, entry } = await this.#read(name);
    const { task } = entry;
    if (!task) return "gone";
    return isForeign(task) ? "foreign" : { now, entry: { ...entry, task } };
  }

  /** Commits one step of a backfill. */
  async commitStep(
    name: TaskName,
    item: ClaimItem,
    step: BackfillStep,
    by: { token: string; node: string; overlap: OverlapPolicy },
    now: number,
  ): Promise<ClaimStatus> {
    // Waits, like a step without a free place of its owner.
    if (item.entry.frozen?.full.has(name.owner)) return "LIMITED";
    const options = { ...by, held: false, backfill: step };
    const { results } = await this.send(
      this.#pack(name.queue, shardOf(localName(name)), [item], options, now),
    );
    return (results[0] as ClaimResult).status;
  }

  /**
   * Stores and enqueues a task that runs once, now, in one step.
   * @returns undefined: its owner has as many runs in this queue as it may; nothing was stored
   * @throws `CONFLICT` if the name is taken
   */
  async enqueueNow(
    parsed: ParsedTask,
    by: Requester,
  ): Promise<{ run: string; enqueued: number } | undefined> {
    const keys = this.#keys.queue(parsed.definition.queue);
    return enqueueNow({ scripts: this.#scripts, keys, schedules: this.#schedules }, parsed, by);
  }
}
