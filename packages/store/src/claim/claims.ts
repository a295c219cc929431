import {
  CarillonError,
  isCarillonError,
  type Json,
  type OverlapPolicy,
  type ParsedTask,
  type Run,
  type TaskName,
} from "@carillon/core";
import {
  assertOverlap,
  conflict,
  type Decision,
  type DueTask,
  decideItems,
  decideTrigger,
  localName,
  type ScheduleCache,
  shardOf,
} from "@carillon/core/internal";
import { bullKeys } from "../bull/bull-keys.js";
import { newToken } from "../ids.js";
import type { NamespaceKeys } from "../keys.js";
import type { OptimisticWrites } from "../optimistic.js";
import type { Link } from "../redis/link.js";
import type { Entered } from "../registry.js";
import type { Written } from "../script/arguments.js";
import { FACTS } from "../script/facts.js";
import type { Scripts } from "../script/scripts.js";
import { decodeTask, isForeign } from "../task/codec.js";
import { addFailed, ownerLimit, tooManyWait, unsupportedFormat } from "../task/errors.js";
import type { ClaimSpan, ClaimTracer } from "../telemetry.js";
import { type Asked, type ItemsAgain, type ItemsRetried, repetitionOf, type TriggerResult } from "./asked.js";
import { CANCEL_OPEN, READ_TASK } from "./claim-scripts.js";
import { DueReads, runIds, runInWay } from "./due.js";
import { assertFits, assertThawed, dueTask } from "./due-task.js";
import { enqueueNow } from "./enqueue-now.js";
import { readFrozen } from "./frozen.js";
import { JobTexts, type Template, templatesText } from "./job-texts.js";
import {
  type BackfillStep,
  type ClaimItem,
  COMMIT,
  type CommitOptions,
  commitItem,
  type Requester,
} from "./pack.js";
import { claimableAt, type DueEntry } from "./writes.js";

/** Answers of a commit that refused a claim; see `ClaimStatus`. */
export const CLAIM_REFUSALS = ["STALE", "EARLY", "OVERLAP", "LIMITED"] as const;
export type ClaimRefusal = (typeof CLAIM_REFUSALS)[number];

/**
 * Result of the commit for one task. `DONE`: this very claim was committed before (its answer was lost). `STALE`,
 * `OVERLAP`: the task or its runs changed since the read. `EARLY`: before the time of the decision, by Redis time. `LIMITED`: its owner has as
 * many runs in this queue as it may; a due occurrence waits for the end of one.
 */
export type ClaimStatus = "OK" | "DONE" | ClaimRefusal | `ERROR ${string}`;

/** A decision, ready to be committed. Kept small: thousands may be prepared ahead, with payloads. */
export interface PackedItem {
  readonly entry: Pick<DueEntry, "local" | "running"> & {
    readonly task: { readonly due: number | undefined; readonly generation: string };
  };
  readonly shard: number;
  readonly decision: Decision;
  /** Time of the decision. */
  readonly decided: number;
  /** Time from which nothing blocked the enqueued occurrence. Undefined: nothing is enqueued. */
  readonly claimable: number | undefined;
  /** The run that it enqueues, if any. */
  readonly run: string | undefined;
  readonly template: Template | undefined;
  readonly written: Written;
  /** The span of its claim. It is dropped with a decision that is not committed: only ended spans are exported. */
  readonly span: ClaimSpan | undefined;
}

export interface ClaimResult {
  readonly item: PackedItem;
  readonly status: ClaimStatus;
  /** The run that was enqueued, if any. */
  readonly run: string | undefined;
}

export interface CommitAnswer {
  readonly now: number;
  /** Time in ms for which the script blocked Redis. */
  readonly took: number;
  /** Due time of the first task of each of the shards; undefined: none is due at any time. */
  readonly heads: ReadonlyMap<string, number | undefined>;
  readonly results: readonly ClaimResult[];
}

interface TriggerHow {
  readonly force?: boolean;
  readonly payload?: Json | undefined;
  readonly trace?: string | undefined;
  /** Whether the requester chose the key, and may call again with it. */
  readonly keyed?: boolean;
}

/** Shards whose marks are kept at hand. */
const MARKS_AT_HAND = 8_000;

export class ClaimRepository extends DueReads {
  readonly #link: Link;
  readonly #keys: NamespaceKeys;
  readonly #scripts: Scripts;
  readonly #schedules: ScheduleCache;
  readonly #jobs: JobTexts;
  readonly #optimistic: OptimisticWrites;
  /** Newest known marks of deleted tasks, by due index. */
  readonly #seen = new Map<string, string>();

  constructor(
    link: Link,
    keys: NamespaceKeys,
    scripts: Scripts,
    schedules: ScheduleCache,
    optimistic: OptimisticWrites,
  ) {
    super(link, keys, scripts);
    this.#link = link;
    this.#keys = keys;
    this.#scripts = scripts;
    this.#schedules = schedules;
    this.#jobs = new JobTexts(schedules);
    this.#optimistic = optimistic;
  }

  /**
   * Prepares a decision for a commit. Its run's id contains the token, which must be used once.
   * @param now the time of the decision
   */
  pack(
    queue: string,
    item: ClaimItem,
    token: string,
    now: number,
    options: Partial<CommitOptions> = {},
  ): PackedItem {
    const { entry, decision } = item;
    const keys = this.#keys.queue(queue);
    const packed = commitItem(keys, this.#jobs, item, { held: true, ...options, token }, now);
    const { run, template, span, fields } = packed;
    const { local, running, task } = entry;
    return {
      entry: { local, running, task: { due: task.due, generation: task.generation } },
      shard: shardOf(local),
      decision,
      decided: now,
      claimable: claimableAt(entry, decision),
      run,
      template,
      span,
      written: this.#scripts.write(COMMIT, fields),
    };
  }

  /** Commits decisions about tasks of one queue in one script. A repetition with the same token has no second effect. */
  async commit(
    queue: string,
    items: readonly PackedItem[],
    { token, node }: { token: string; node: string },
    asked?: Asked | ItemsAgain,
  ): Promise<CommitAnswer> {
    const keys = this.#keys.queue(queue);
    const trigger = asked && "key" in asked ? asked : undefined;
    const again = asked && "items" in asked ? asked : undefined;
    const shards = [...new Set(items.map(({ shard }) => shard))];
    const [now, took, heads, ...statuses] = await this.#scripts.runWritten(
      COMMIT,
      {
        ...keys,
        asked: trigger && keys.asked(trigger.key),
        items: again?.items,
        due: shards.map((shard) => keys.due(shard)),
        bull: bullKeys(keys.bull),
      },
      {
        token,
        node,
        remember: trigger?.remember,
        created: trigger?.created,
        noted: again?.noted,
        shards: shards.join(" "),
        templates: await templatesText(items.map(({ template }) => template)),
      },
      items.map(({ written }) => written),
    );
    const results = items.map((item, i) => {
      const status = statuses[i] as ClaimStatus;
      return { item, status, run: status === "OK" || status === "DONE" ? item.run : undefined };
    });
    const more = new Set(statuses.slice(items.length));
    for (const { item, status, run } of results) {
      const { local } = item.entry;
      if (run !== undefined) item.span?.end(run, now);
      if (more.has(local)) await this.#cancelOn(queue, node, local, now);
      // If the first answer was lost, it is unknown whether there are more, and others may have begun since.
      else if (item.decision.cancel && status === "DONE")
        await this.#cancelOn(queue, node, local, item.decided);
    }
    const times = heads.split(" ").map((head) => (head === "-" ? undefined : Number(head)));
    return {
      now,
      took: took / 1_000,
      heads: new Map(shards.map((shard, i) => [String(shard), times[i]])),
      results,
    };
  }

  /** Cancels the runs of a task that were open by then, some at a time. */
  async #cancelOn(queue: string, node: string, local: string, by: number): Promise<void> {
    const keys = this.#keys.queue(queue);
    let [passed, changed, before] = [0, 0, 0];
    for (;;) {
      const [checked, cancelled, open] = await this.#scripts.run(
        CANCEL_OPEN,
        { ...keys, open: keys.open(local) },
        { by: node, opened: by, passed },
      );
      if (passed === 0) before = open;
      passed += checked;
      changed += cancelled;
      if (checked > 0) continue;
      // Runs that ended meanwhile have moved others into the part already passed.
      if (changed === 0 && open === before) return;
      [passed, changed] = [0, 0];
    }
  }

  /** A task with the time and the runs in its way, and the earlier trigger with this key. */
  async #read(name: TaskName, key?: string): Promise<{ now: number; entry: DueEntry; asked: string }> {
    const keys = this.#keys.queue(name.queue);
    const local = localName(name);
    const [now, flat, run, open, begun, over, frozen, asked] = await this.#scripts.run(
      READ_TASK,
      {
        task: keys.task(local),
        open: keys.open(local),
        frozen: keys.frozen,
        asked: key === undefined ? undefined : keys.asked(key),
      },
      { name: local, owner: name.owner },
    );
    const task = decodeTask(name.queue, local, flat);
    const running = runInWay(run, open, begun);
    const entry = { local, task, running, over: runIds(over), frozen: readFrozen(frozen) };
    return { now, entry, asked };
  }

  /**
   * A manual occurrence of a stored task, now. If the task was triggered with this key before, and was not skipped, the answer is that
   * trigger's.
   *
   * @param how `force`: even if a freeze holds it; `payload`: instead of the task's, checked; `keyed`: the key is remembered for a day
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
    throw conflict(`${local} kept changing while it was triggered.`, "Try again.");
  }

  /**
   * Runs the failed items of a run again, now, as a new run. A note with the items names the new run. So a repetition gets the same run as
   * long as the items are kept, even if its record is deleted by then; unless it ended before it had items.
   *
   * @param hasWork called if no run does them yet; throws if there is nothing to do
   * @throws `RUN_NOT_FOUND`, `TASK_NOT_FOUND`, `SKIPPED_OVERLAP`, `CONFLICT`
   */
  async retryItems(
    run: Run,
    by: Omit<Requester, "key" | "token">,
    hasWork = async () => {},
  ): Promise<ItemsRetried> {
    const { task: name } = run;
    const local = localName(name);
    const token = newToken();
    const result = await this.#optimistic.write([`${name.queue}/${local}`], async () => {
      const noted = await this.#retryOf(run);
      if (typeof noted === "object") return noted;
      await hasWork();
      const decide = (task: DueTask, now: number) => {
        assertThawed(task, local, now);
        const decision = decideItems(task, run, by.name);
        if (decision) return decision;
        const what = `another run of ${local} is open, or its own retry is pending.`;
        throw new CarillonError("SKIPPED_OVERLAP", what, { remedy: "Try again when it has ended." });
      };
      const kept = { items: this.#keys.queue(name.queue).items(run.id), noted };
      const made = await this.#enqueue(name, { ...by, token, key: run.key }, undefined, decide, kept).catch(
        async (error: unknown) => {
          // The run in the way may be that of another such call, which came after the note was read.
          if (!isCarillonError(error, "SKIPPED_OVERLAP") || (await this.#retryOf(run)) === noted) throw error;
        },
      );
      if (made?.outcome !== "enqueued") return undefined;
      return { run: made.run, enqueued: made.enqueued, repeated: false };
    });
    if (result) return result;
    throw conflict(`${local} kept changing while its items were retried.`, "Try again.");
  }

  /** The run that does the failed items of a run again. A text: the note of one that ended before it had items, "" none. */
  async #retryOf({ id, task: { queue } }: Run): Promise<ItemsRetried | string> {
    const keys = this.#keys.queue(queue);
    const [count, note] = await this.#link.ask((client) => client.hmget(keys.items(id), "n", "again"));
    if (!count)
      throw new CarillonError("RUN_NOT_FOUND", `the items of run ${id} are no longer kept.`, {
        remedy: "Trigger its task instead.",
      });
    if (!note) return "";
    const [at, run = ""] = note.split(" ");
    const [state, some] = await this.#link.ask((client) =>
      Promise.all([client.hget(keys.run(run), "state"), client.hget(keys.items(run), "n")]),
    );
    return state === "final" && !some ? note : { run, enqueued: Number(at), repeated: true };
  }

  async #trigger(
    name: TaskName,
    by: Requester,
    overlap: OverlapPolicy | undefined,
    { force = false, payload, trace, keyed = false }: TriggerHow,
  ): Promise<TriggerResult | undefined> {
    const decide = (task: DueTask, now: number) => {
      if (!force) assertThawed(task, localName(name), now);
      if (!force && task.quota?.full) throw tooManyWait(name);
      const decision = decideTrigger(task, now, { key: by.key, overlap, by: by.name, payload, trace });
      if (payload !== undefined) assertFits(decision.pending, by.key, localName(name));
      return decision;
    };
    return this.#enqueue(name, by, overlap, decide, keyed ? FACTS.late : FACTS.resent);
  }

  /**
   * @param remember ms for which a repetition with the same key is answered as the first call; or the items whose note names the run
   * @returns undefined if the task, or that note, has changed since it was read
   */
  async #enqueue(
    name: TaskName,
    by: Requester,
    overlap: OverlapPolicy | undefined,
    decide: (task: DueTask, now: number) => Decision,
    remember: number | ItemsAgain,
  ): Promise<TriggerResult | undefined> {
    const local = localName(name);
    const { now, entry, asked } = await this.#read(name, typeof remember === "object" ? undefined : by.key);
    const { task } = entry;
    if (!task) throw new CarillonError("TASK_NOT_FOUND", `there is no task ${local} in queue ${name.queue}.`);
    if (isForeign(task)) throw unsupportedFormat(local, task.version);
    const before = repetitionOf(asked, task, by.token);
    if (before) return before;
    const item = { ...entry, task };
    const decision = decide(dueTask(item, this.#schedules), now);
    const packed = this.pack(name.queue, { entry: item, decision }, by.token, now, { held: false, overlap });
    const waits = decision.pending.some(({ key }) => key === by.key);
    const makesRun = waits || decision.enqueue !== undefined;
    const kept =
      typeof remember === "object"
        ? remember
        : makesRun
          ? { key: by.key, created: task.created, remember }
          : undefined;
    const answer = await this.commit(name.queue, [packed], by, kept);
    const { status, run } = answer.results[0] as ClaimResult;
    if (status.startsWith("ERROR")) throw addFailed(status);
    if (status === "LIMITED") throw ownerLimit(name);
    if (status !== "OK" && status !== "DONE") return undefined;
    const result = { type: task.definition.type, repeated: false };
    if (run !== undefined) return { ...result, outcome: "enqueued", run, enqueued: answer.now };
    return waits ? { ...result, outcome: "queued" } : { ...result, outcome: "skipped", reason: "overlap" };
  }

  /** A task as it is now, with the runs in its way. `gone`: it does not exist; `foreign`: a newer version wrote it. */
  async read(name: TaskName): Promise<{ now: number; entry: ClaimItem["entry"] } | "gone" | "foreign"> {
    const { now, entry } = await this.#read(name);
    const { task } = entry;
    if (!task) return "gone";
    return isForeign(task) ? "foreign" : { now, entry: { ...entry, task } };
  }

  async commitStep(
    name: TaskName,
    item: ClaimItem,
    step: BackfillStep,
    by: { token: string; node: string; overlap: OverlapPolicy; tracer?: ClaimTracer | undefined },
    now: number,
  ): Promise<ClaimStatus> {
    // Waits, like a step without a free place of its owner.
    if (item.entry.frozen?.full.has(name.owner)) return "LIMITED";
    const { overlap, tracer } = by;
    const options = { held: false, overlap, tracer, backfill: step };
    const packed = this.pack(name.queue, item, by.token, now, options);
    const { results } = await this.commit(name.queue, [packed], by);
    return (results[0] as ClaimResult).status;
  }

  /**
   * Stores and enqueues a task that runs once, now, in one step.
   * @param entered the put's entry in the registry
   * @returns undefined: its owner has as many runs in this queue as it may, or there are freezes; nothing was stored
   * @throws `CONFLICT` if the name is taken
   */
  async enqueueNow(
    parsed: ParsedTask,
    by: Requester,
    { freezes }: Entered,
  ): Promise<{ run: string; enqueued: number } | undefined> {
    if (freezes !== "") return undefined;
    const keys = this.#keys.queue(parsed.definition.queue);
    if (this.#seen.size >= MARKS_AT_HAND) this.#seen.clear();
    const parts = { scripts: this.#scripts, keys, jobs: this.#jobs, seen: this.#seen };
    return enqueueNow(parts, parsed, by);
  }
}
