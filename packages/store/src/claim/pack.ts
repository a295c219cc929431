import type { OverlapPolicy, SkipReason, TaskState } from "@carillon/core";
import { type Decision, type Enqueue, nextFreeze, runId, shardOf } from "@carillon/core/internal";
import type { QueueKeys } from "../keys.js";
import {
  ALERT,
  CANCEL,
  CHECKS,
  ENQUEUE,
  LATE,
  LEDGER,
  OPEN,
  PLACES,
  RECKON,
  TASK,
  TRIED,
} from "../script/libraries.js";
import { answers, type Item, script } from "../script/script.js";
import type { StoredTask } from "../task/codec.js";
import type { ClaimSpan, ClaimTracer } from "../telemetry.js";
import { dataParts, type JobTexts, type Template } from "./job-texts.js";
import { claimableAt, type DueEntry, type Writes, writesOf } from "./writes.js";

export interface ClaimItem {
  readonly entry: DueEntry & { readonly task: StoredTask };
  readonly decision: Decision;
}

/** A step of a backfill, made together with the occurrence that it decides. */
export interface BackfillStep {
  readonly id: string;
  readonly at: number;
  readonly set: readonly (readonly [field: string, value: string | number])[];
}

/** Input of a commit besides the decision. */
export interface CommitOptions {
  /** The claim's identity. */
  readonly token: string;
  /** Whether the task must be scheduled: manual triggers also work while it is paused. */
  readonly held: boolean;
  /** Replaces the task's policy. */
  readonly overlap?: OverlapPolicy | undefined;
  /** Its backfill: the position required, and the new one. */
  readonly backfill?: BackfillStep | undefined;
  /** Default: claims have no spans. */
  readonly tracer?: ClaimTracer | undefined;
}

/** A call that enqueues: its repetition is recognised by `token`. */
export interface Requester {
  readonly key: string;
  readonly token: string;
  /** The node or client. */
  readonly node: string;
  /** The name of the person or service that asks; undefined or "": none. */
  readonly name?: string | undefined;
  /** The trace of the call, as a W3C `traceparent`. */
  readonly trace?: string | undefined;
}

/** Skips because of a run in the way, which the ledger names. */
const BLOCKED: ReadonlySet<SkipReason> = new Set(["overlap", "manual-overlap", "behind"]);

/** Rare properties of items. An absent name means no. */
interface CommitExtras {
  /** Time from which it must be decided again. */
  until?: number;
  /** The run whose end is waited for. */
  awaited?: string;
  /** All runs that are open are cancelled. */
  cancel?: true;
  /** The next occurrence depends on the end of this run. */
  waits?: true;
  /** The task's state from here on, if it is another one. */
  state?: TaskState;
  /** Fields of the task that are set and removed, besides those that each item may set. */
  set?: string[];
  remove?: readonly string[];
  /** Reason, from, to, run in the way of each, one after the other. */
  skips?: string[];
  /** Text of the ledger for the last of these. */
  note?: string;
  /** Skips in a row that raise an alert. */
  skipsInARow?: number;
  /** A freeze holds an occurrence. */
  frozen?: true;
  trace?: string;
  /** The backfill that it is a step of, and the step. */
  backfill?: string;
  backfillAt?: string;
  backfillSet?: string[];
}

export const COMMIT = script("commit", {
  resident: true,
  once: "generation",
  keys: [
    "next",
    "runs",
    "expected",
    "frozen",
    "held",
    "late",
    "alerts",
    "asked?",
    "items?",
    "due[]",
    "bull[]",
  ],
  args: ["token", "node", "shards", "templates", "remember", "created", "noted"],
  each: {
    args: [
      "shard",
      "owner",
      "id",
      "frozen",
      "before",
      "generation",
      "from",
      "following",
      "asOf",
      "held",
      "guarded",
      "checkAt",
      "cursor",
      "nextNominal",
      "fired",
      "over",
      "extras",
      "run",
      "template",
      "details",
      "rules",
      "key",
      "nominal",
      "jobDue",
      "trigger",
      "more",
      "payload",
    ],
    packed: true,
  },
  uses: [CHECKS, TASK, OPEN, PLACES, RECKON, LATE, LEDGER, ALERT, ENQUEUE, CANCEL, TRIED],
  answer: answers<[now: number, took: number, heads: string, ...statuses: string[]]>(),
});

type CommitItem = Item<(typeof COMMIT)["signature"]>;

/**
 * A decision as an item of `commit.lua`, whose header describes it.
 *
 * @param now the time as of which it was decided: it is not committed before
 * @returns also the run that is enqueued, if one is, the template of its job, and the span of its claim
 */
export function commitItem(
  keys: QueueKeys,
  jobs: JobTexts,
  { entry, decision }: ClaimItem,
  { token, held, overlap, backfill, tracer }: CommitOptions,
  now: number,
): {
  fields: CommitItem;
  run: string | undefined;
  template: Template | undefined;
  span: ClaimSpan | undefined;
} {
  const { task, local, frozen } = entry;
  const asked = decision.enqueue && withRequester(decision.enqueue, task);
  const span = asked && tracer?.claim(task.definition, asked, claimableAt(entry, decision) ?? asked.due);
  const enqueue = asked && span?.trace !== undefined ? { ...asked, trace: span.trace } : asked;
  const run = enqueue && runId(task.definition.id, enqueue.nominal, token, 0);
  const writes = writesOf(entry, decision, now, run);
  const { cursor, nominal, fired } = writes.set;
  const extras = extrasOf(entry, decision, writes, enqueue?.trace, backfill, now);
  const guarded = (overlap ?? overlapOf(entry, decision)) !== "allow";
  const { definition, generation, cursor: decided } = task;
  const { owner, id } = definition;
  const parts = enqueue && dataParts(definition, enqueue, task.payloadJson);
  const template = enqueue && jobs.template(keys.bull, definition);
  const texts = enqueue && jobs.texts(definition, enqueue);
  const fields = {
    shard: shardOf(local),
    owner,
    id,
    frozen: frozen?.revision,
    before: frozen && nextFreeze(frozen.list, now),
    generation,
    from: decided,
    following: String(Number(generation) + 1),
    asOf: now,
    held,
    guarded,
    checkAt: writes.checkAt,
    cursor,
    nextNominal: nominal,
    fired,
    over: entry.over.join(" "),
    extras: extras && JSON.stringify(extras),
    run,
    template: template?.number,
    details: texts?.details,
    rules: texts?.rules,
    key: parts?.key,
    nominal: parts?.nominal,
    jobDue: parts?.jobDue,
    trigger: parts?.trigger,
    more: parts?.more,
    payload: parts?.payload,
  };
  return { fields, run, template, span };
}

/** The requester of a one-off task of `enqueue` is the author of its put, and the trace is that of the put. */
function withRequester(enqueue: Enqueue, task: StoredTask): Enqueue {
  const { updatedBy: by, trace } = task;
  // `fields` last: they are computed, and few tasks name an author.
  const asked = (by !== undefined || trace !== undefined) && task.fields.has("once");
  return asked ? { ...(by && { by }), ...(trace && { trace }), ...enqueue } : enqueue;
}

/** @returns `undefined`: no such properties, as for nearly all */
function extrasOf(
  { task, running }: ClaimItem["entry"],
  { cancel, enqueue, next, skipped, frozen }: Decision,
  { awaited, waits, remove, set }: Writes,
  trace: string | undefined,
  backfill: BackfillStep | undefined,
  now: number,
): CommitExtras | undefined {
  const { due, wait, pending, state } = set;
  const sets = due !== undefined || wait !== undefined || pending !== undefined;
  const few =
    awaited !== undefined || cancel || waits || state || remove.length > 0 || skipped.length > 0 || frozen;
  if (!sets && !few && !backfill && trace === undefined) return undefined;
  const extras: CommitExtras = {};
  if (trace !== undefined) extras.trace = trace;
  // A retry gives way to a time of the schedule that is due. (Its task has something pending: it always has extras.)
  const gives = enqueue?.trigger === "retry" && next === "kept" && task.due !== undefined && task.due > now;
  if (gives) extras.until = task.due;
  if (awaited !== undefined) extras.awaited = awaited;
  if (cancel) extras.cancel = true;
  if (frozen) extras.frozen = true;
  if (waits) extras.waits = true;
  if (state) extras.state = state;
  if (sets) extras.set = flat({ due, wait, pending });
  if (remove.length > 0) extras.remove = remove;
  if (skipped.length > 0) {
    const note = skipped.at(-1)?.note;
    if (note !== undefined) extras.note = note;
    const { skipsInARow } = task.definition.alertIf ?? {};
    if (skipsInARow !== undefined) extras.skipsInARow = skipsInARow;
    extras.skips = skipped.flatMap(({ reason, from, to }) => {
      const seen = BLOCKED.has(reason) ? (running?.run ?? "-") : "-";
      return [reason, String(from), String(to), seen];
    });
  }
  if (backfill) {
    extras.backfill = backfill.id;
    extras.backfillAt = String(backfill.at);
    // HSET takes no empty list.
    if (backfill.set.length > 0) {
      extras.backfillSet = backfill.set.flatMap(([field, value]) => [field, String(value)]);
    }
  }
  return extras;
}

function flat(fields: Record<string, string | number | undefined>): string[] {
  return Object.entries(fields).flatMap(([name, value]) =>
    value === undefined ? [] : [name, String(value)],
  );
}

/** Policy of the enqueued occurrence. Except with `allow`, no live run may exist at the commit. */
function overlapOf({ task }: ClaimItem["entry"], { enqueue }: Decision): OverlapPolicy {
  const own = task.pending.find(({ key }) => key === enqueue?.key)?.overlap;
  return own ?? task.definition.overlap;
}
