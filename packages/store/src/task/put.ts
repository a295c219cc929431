import { type ParsedTask, TASK_STATES, type TaskState } from "@carillon/core";
import { conflict, localName, parseLocalName, quote, shardOf } from "@carillon/core/internal";
import type { CalendarRepository } from "../calendars.js";
import type { FreezeRepository } from "../freezes.js";
import { readHashes } from "../redis/hashes.js";
import { failsForAll } from "../redis/redis-error.js";
import type { Entered } from "../registry.js";
import { type Parts, Repository } from "../repository.js";
import { FACTS } from "../script/facts.js";
import { LEDGER, MARKS, REVISIONS, TASK, TRIED } from "../script/libraries.js";
import { answers, script } from "../script/script.js";
import {
  decodeTask,
  definitionFields,
  holds,
  isForeign,
  pairs,
  type StoredTask,
  storedFields,
} from "./codec.js";
import { clearDeletedRuns } from "./deleted-runs.js";
import {
  assertRevision,
  type Draft,
  Drafts,
  type PutOptions,
  type PutOutcome,
  type PutResult,
  revisionOf,
} from "./draft.js";
import { nameTaken, refused, unreadable, unsupportedFormat } from "./errors.js";
import { integer, oneOf } from "./stored-fields.js";

/** Effect that a put would have. */
export interface PlannedPut extends PutResult {
  /** The task as it is stored; undefined: there is none. */
  readonly stored: StoredTask | undefined;
  /** Its next nominal time and that time's due time after the put. */
  readonly slot: { readonly nominal: number; readonly due: number } | undefined;
  /** Owed times that the put would give up, both ends included. */
  readonly givenUp: { readonly from: number; readonly to: number } | undefined;
}

/** Tasks in one script; enough to amortise the round trip, few enough that Redis is not held for long. */
const PUT_BATCH = 100;
/** Characters of payload in one script, beyond the first task's: Redis reads, hashes and compares each several times. */
const PAYLOAD_BATCH = 512 * 1024;
/** Tags in one script, beyond the first task's: each has an index, of which other tasks may be members by the thousand. */
const TAGS_BATCH = 250;
/** Batches under way at once: Redis works on one while the next is planned. */
const IN_FLIGHT = 3;

const PUT = script("put", {
  once: "generation",
  keys: ["tasks", "next", "expected", "runs", "priorities", "marks", "frozen", "deleted"],
  args: ["revision", "freezes", "by", "trace", "change", "copyOf"],
  each: {
    keys: ["task", "due", "ledger", "revisions", "gone"],
    args: [
      "name",
      "shard",
      "believed",
      "seen",
      "state",
      "nominal",
      "dueAt",
      "fresh",
      "passedFrom",
      "passedTo",
      "set",
      "fields[]",
    ],
  },
  uses: [TASK, LEDGER, REVISIONS, TRIED, MARKS],
  answer: answers<[now: number, marks: string[], ...each: string[][]]>(),
});

const READ_PUT = script("read-put", {
  once: "reads",
  keys: ["any", "marks"],
  answer: answers<[now: number, marks: string[]]>(),
});

export interface PutView {
  /** Time of the queue's Redis. */
  readonly now: number;
  /** Marks of the newest changes, by subject (script/lib/once.lua). */
  marks: ReadonlyMap<string, string>;
  /** Revision of the freezes and quotas that hold in the queue; "" there are none. */
  freezes: string;
}

/** Plans each task of a put and sends the drafts; a task that is not as believed is replanned. */
export class PutWriter extends Repository {
  readonly #calendars: CalendarRepository;
  readonly #drafts: Drafts;
  readonly #freezes: FreezeRepository;

  constructor(parts: Parts, freezes: FreezeRepository, calendars: CalendarRepository) {
    super(parts);
    this.#freezes = freezes;
    this.#calendars = calendars;
    this.#drafts = new Drafts(calendars);
  }

  async view(queue: string, entered: Promise<Entered>): Promise<PutView> {
    const { tasks, marks: key } = this.keys.queue(queue);
    const read = this.scripts.run(READ_PUT, { any: tasks, marks: key });
    const [[now, marks], { freezes }] = await Promise.all([read, entered]);
    return { now, marks: pairs(marks), freezes };
  }

  /** Says what `put` would do now. @throws as `put` */
  async plan(
    queue: string,
    tasks: readonly ParsedTask[],
    now: number,
    options: PutOptions,
  ): Promise<PlannedPut[]> {
    const keys = this.keys.queue(queue);
    const planned: PlannedPut[] = [];
    for (let at = 0; at < tasks.length; at += PUT_BATCH) {
      const some = tasks.slice(at, at + PUT_BATCH);
      const locals = some.map(({ definition }) => localName(definition));
      const hashes = await readHashes(this.link, locals.map(keys.task));
      for (const [i, parsed] of some.entries()) {
        const local = locals[i] as string;
        const hash = hashes[i];
        if (!hash) throw unreadable(local, new Error("not a hash"));
        const fields = definitionFields(parsed, options.once);
        const same = holds(hash, storedFields(fields));
        const stored = decodeTask(queue, local, hash, same ? parsed.definition : undefined);
        if (stored && isForeign(stored)) throw unsupportedFormat(local, stored.version);
        planned.push(
          stored && same && isConfirmed(stored, options, queue)
            ? unchanged(stored)
            : await this.#planned(
                queue,
                this.#drafts.new(parsed, now, options, fields),
                stored,
                now,
                options,
              ),
        );
      }
      options.onStored?.(some.length);
    }
    return planned;
  }

  async #planned(
    queue: string,
    first: Draft,
    stored: StoredTask | undefined,
    now: number,
    options: PutOptions,
  ): Promise<PlannedPut> {
    const name = { queue, ...parseLocalName(first.local) };
    await this.#drafts.learnCalendars(stored);
    if (!stored) assertRevision(first.local, stored, revisionOf(first.local, options));
    const draft = stored ? this.#drafts.against(first, stored, now, options) : first;
    const { state, nominal, due, superseded } = draft;
    return {
      ...{ name, outcome: stored ? "updated" : "created", state, due: dueIn(state, due), stored },
      slot: slotOf(nominal, due),
      givenUp: superseded,
    };
  }

  /**
   * A failure of one task does not stop the others.
   *
   * @param view is renewed if it is outdated @throws the first failure
   */
  async put(
    queue: string,
    tasks: readonly ParsedTask[],
    view: PutView,
    options: PutOptions,
  ): Promise<PutResult[]> {
    const names = new Set(tasks.map(({ definition }) => localName(definition)));
    const left = batches(tasks);
    const results: PutResult[] = [];
    const failures: unknown[] = [];
    let taken = 0;
    const worker = async () => {
      for (let next = left.next(); !next.done; next = left.next()) {
        const from = taken;
        taken += next.value.length;
        try {
          const stored = await this.#putBatch(queue, next.value, view, options);
          for (const [i, result] of stored.entries()) results[from + i] = result;
          options.onStored?.(stored.length);
        } catch (error) {
          failures.push(error);
          if (failsForAll(error)) return;
        }
      }
    };
    // Definitions with the same name must be stored in order.
    const workers = names.size === tasks.length ? IN_FLIGHT : 1;
    await Promise.all(Array.from({ length: workers }, worker));
    if (failures.length > 0) throw failures[0];
    return results;
  }

  async #putBatch(
    queue: string,
    tasks: readonly ParsedTask[],
    view: PutView,
    options: PutOptions,
  ): Promise<PutResult[]> {
    const results = new Array<PutResult>(tasks.length);
    const failures: unknown[] = [];
    let open = tasks.map((parsed, index) => ({
      index,
      draft: this.#drafts.first(parsed, view.now, options),
    }));
    const step = async (): Promise<true | undefined> => {
      const sent = open.map(({ draft }) => draft);
      const { now, each } = await this.#sendPut(queue, sent, view, options);
      const left: typeof open = [];
      for (const [i, { index, draft }] of open.entries()) {
        try {
          const next = await this.#answered(queue, draft, each[i] as string[], now, options);
          if (!("outcome" in next)) {
            left.push({ index, draft: next });
            continue;
          }
          results[index] = next;
          options.onPut?.(next, tasks[index] as ParsedTask);
        } catch (error) {
          // Fails this task only; the others are put.
          failures.push(error);
        }
      }
      if (each.some(([word]) => word === "THAWED")) view.freezes = await this.#freezes.hold(queue);
      open = left;
      return open.length === 0 || undefined;
    };
    const names = open.map(({ draft }) => `${queue}/${draft.local}`);
    // The first step reads the stored tasks and the second writes, with no wait in between.
    const done = await this.optimistic.write(names, async () => (await step()) ?? step(), 0);
    if (failures.length > 0) throw failures[0];
    if (!done) throw conflict(`${quote(open[0]?.draft.local)} kept changing while it was put.`, "Try again.");
    return results;
  }

  /** The result of one task, or the draft to send next. */
  async #answered(
    queue: string,
    draft: Draft,
    [word, ...stored]: string[],
    now: number,
    options: PutOptions,
  ): Promise<PutResult | Draft> {
    const { local, parsed } = draft;
    switch (word) {
      case "CONFLICT": {
        const task = decodeTask(queue, local, stored);
        if (task && isForeign(task)) throw unsupportedFormat(local, task.version);
        await this.#drafts.learnCalendars(task);
        return this.#drafts.against(draft, task, now, options);
      }
      // The first time of a new task has passed meanwhile: the next one is strictly after the put. Or a task was deleted.
      case "LATE":
        return this.#drafts.new(parsed, now, options);
      case "LEFT":
        await clearDeletedRuns(this.scripts, this.keys.queue(queue), `${FACTS.goneOpen}${local}`);
        return draft;
      case "THAWED":
        return draft;
      case "TAKEN":
        throw nameTaken(local);
      case "ERROR":
        throw refused(local, stored[0] as string);
      default:
        return this.#result(queue, draft, (word as string).toLowerCase() as PutOutcome, stored);
    }
  }

  #result(queue: string, draft: Draft, outcome: PutOutcome, stored: string[]): PutResult {
    // An unchanged task keeps its state and times, which may differ from those of a new one.
    const [state, due] = outcome === "unchanged" ? found(draft.local, stored) : [draft.state, draft.due];
    return {
      name: { queue, ...parseLocalName(draft.local) },
      outcome,
      state,
      due: dueIn(state, due),
      ...(outcome === "updated" ? { before: draft.before } : {}),
      ...(outcome === "unchanged" ? { revision: stored[2] } : {}),
    };
  }

  async #sendPut(
    queue: string,
    drafts: readonly Draft[],
    view: PutView,
    { by, set, trace, change, copyOf }: PutOptions,
  ): Promise<{ now: number; each: string[][] }> {
    const keys = this.keys.queue(queue);
    const [now, marks, ...each] = await this.scripts.run(
      PUT,
      keys,
      { revision: this.#calendars.revision, freezes: view.freezes, by, trace, change, copyOf },
      drafts.map((draft) => {
        const shard = shardOf(draft.local);
        return {
          task: keys.task(draft.local),
          due: keys.due(shard),
          ledger: keys.ledger(draft.local),
          revisions: keys.revisions(draft.local),
          gone: keys.gone(`${FACTS.goneOpen}${draft.local}`),
          name: draft.local,
          shard,
          believed: draft.believed,
          seen: view.marks.get(`${FACTS.deletedIn}${shard}`),
          state: draft.state,
          nominal: draft.nominal,
          dueAt: draft.due,
          fresh: draft.fresh,
          passedFrom: draft.superseded?.from,
          passedTo: draft.superseded?.to,
          set: set && `${set.name} ${set.filed?.get(draft.local) ?? queue}`,
          fields: [...storedFields(draft.fields), ...modeOf(draft)].flat(),
        };
      }),
    );
    if (marks.length > 0) view.marks = pairs(marks);
    return { now, each };
  }
}

/** The state and the due time of a task that stays as it is. @throws `UNSUPPORTED_FORMAT` */
function found(local: string, [state, due]: string[]): [TaskState, number | undefined] {
  try {
    return [oneOf(TASK_STATES, state, "scheduled"), due === "" ? undefined : integer(due)];
  } catch (error) {
    throw unreadable(local, error);
  }
}

/** Only a new task gets a mode. */
function modeOf({ believed, parsed }: Draft): string[][] {
  const { mode } = parsed.definition;
  return believed === "" && mode !== undefined ? [["mode", mode]] : [];
}

/** Only a scheduled task is acted on. */
function dueIn(state: TaskState, due: number | undefined): number | undefined {
  return state === "scheduled" ? due : undefined;
}

/** Most tasks of a plan are: no time is computed. */
function unchanged(stored: StoredTask): PlannedPut {
  const { definition, state, nominal, due } = stored;
  const { queue, owner, id } = definition;
  return {
    ...{ name: { queue, owner, id }, outcome: "unchanged", state, due: dueIn(state, due), stored },
    slot: slotOf(nominal, due),
    givenUp: undefined,
  };
}

function slotOf(nominal: number | undefined, due: number | undefined): PlannedPut["slot"] {
  return nominal === undefined || due === undefined ? undefined : { nominal, due };
}

/** Whether a put for a set leaves a task alone that has the same definition. */
function isConfirmed({ set, definition, revision }: StoredTask, options: PutOptions, queue: string): boolean {
  if (!options.set) return true;
  const { name, filed } = options.set;
  const place = filed?.get(localName(definition)) ?? queue;
  return set?.name === name && set.filed === place && set.revision === revision;
}

/**
 * Two definitions of one name are put into two batches, because the later put must see the result of the earlier one.
 */
function* batches(tasks: readonly ParsedTask[]): Generator<ParsedTask[], undefined> {
  let batch: ParsedTask[] = [];
  let names = new Set<string>();
  let [payloads, tags] = [0, 0];
  for (const task of tasks) {
    const local = localName(task.definition);
    const more = { payload: task.payloadJson.length, tags: task.definition.tags.length };
    const large = payloads + more.payload > PAYLOAD_BATCH || tags + more.tags > TAGS_BATCH;
    const full = batch.length === PUT_BATCH || large;
    if (batch.length > 0 && (full || names.has(local))) {
      yield batch;
      batch = [];
      names = new Set();
      [payloads, tags] = [0, 0];
    }
    batch.push(task);
    names.add(local);
    payloads += more.payload;
    tags += more.tags;
  }
  if (batch.length > 0) yield batch;
}
