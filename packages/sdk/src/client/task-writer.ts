import { isDeepStrictEqual } from "node:util";
import {
  CarillonError,
  DEFAULT_OWNER,
  isCarillonError,
  type Json,
  type ParsedTask,
  type PayloadLimits,
  parseTask,
  type Schedule,
  type TaskDefinition,
  type TaskInput,
  type TaskName,
  type TaskRef,
} from "@carillon/core";
import {
  assertName,
  assertOptions,
  calendarsOf,
  conflict,
  DEFAULT_PAYLOAD_LIMITS,
  encodePayload,
  grouped,
  hasPlaceholder,
  type Policies,
  restored,
  reviewSchedule,
  roundedInstant,
  type ScheduleReview,
  storedInstant,
  withDefaults,
} from "@carillon/core/internal";
import { assertKnown, newToken, type PlannedPut, type PutResult as StoredPut } from "@carillon/store";
import {
  assertTaskType,
  type TaskContract,
  type TypedTask,
  task as typedTask,
  validatePayload,
} from "../task-type.js";

import { differenceOf, manyOf } from "./change.js";
import {
  assertFirst,
  assertPutOptions,
  at,
  type CheckedTask,
  moment,
  notFound,
  putView,
  wholeNumber,
} from "./input.js";
import { paceWarnings } from "./pace-warnings.js";
import { assertFits } from "./payload-schemas.js";
import { previewOf, type Schedules } from "./preview.js";
import { assertQuotas } from "./quotas.js";
import { sameIdElsewhere } from "./same-id.js";
import type { Scope } from "./scope.js";
import type {
  AuthorOptions,
  EnqueueOptions,
  EnqueueResult,
  PutManyOptions,
  PutOptions,
  PutResult,
  Warning,
} from "./types.js";
import { unitWarnings } from "./unit-warnings.js";
import { type Attempt, assertChange, update } from "./update.js";
import { urlWarnings } from "./url-warnings.js";
import { type ValidateOptions, type Validation, validationOf } from "./validation.js";
import { type Definition, taskView } from "./view.js";
import { ofEnqueued } from "./worker-warnings.js";

/** Delay of a run that its owner's limit holds back, in ms: a task can only be put with a time in the future. */
const PLACE_DELAY = 1_000;
/** The longest such delay, for puts that are slow: about 17 min. */
const MAX_PLACE_DELAY = 4 ** 5 * PLACE_DELAY;

/** A time for `enqueue` that is this long past, in ms, may be a mistake, such as seconds for milliseconds. */
const PAST = 60_000;

const ENQUEUE_OPTIONS = ["at", "delay", "id", "queue", "owner", "priority", "by"] as const;
const RUN_POLICIES = ["retry", "timeLimit", "timeLimitGrace", "crash", "alerts", "alertIf"] as const;

interface PutHow extends PutOptions {
  readonly by: string;
  readonly once?: boolean | undefined;
  /** One of many, which the caller logs together. */
  readonly many?: boolean | undefined;
  /** Mark of the change of many, if that can be undone. */
  readonly change?: string | undefined;
}

/** Checks tasks and stores them. */
export class TaskWriter {
  readonly #limits: PayloadLimits;

  /** @param types the only types that may be put; undefined: any */
  constructor(
    private readonly scope: Scope,
    private readonly types: ReadonlyMap<string, TaskContract> | undefined,
    maxPayloadBytes: number,
  ) {
    this.#limits = { ...DEFAULT_PAYLOAD_LIMITS, maxBytes: maxPayloadBytes };
  }

  /** @param type of the task; default: the one of the client's types that it names */
  async put(task: TaskInput, type?: TaskContract, options: PutOptions = {}): Promise<PutResult> {
    assertPutOptions(options);
    const { dryRun, ...how } = options;
    const by = this.scope.author(how.by);
    const admitted = await this.#admit(await this.#check(task, type));
    return dryRun ? this.#plan(admitted, how) : (await this.#put(admitted, { ...how, by })).done;
  }

  async #plan(task: CheckedTask, how: Pick<PutOptions, "ifRevision">): Promise<PutResult> {
    const { store, coverage } = this.scope;
    const [[planned], warnings] = await Promise.all([
      store.tasks.plan(task.definition.queue, [task], how),
      coverage.warningsOf(task.definition),
    ]);
    return this.#previewed(planned as PlannedPut, task, warnings);
  }

  /** The answer of a dry run. Computes the differences when they are asked for. */
  #previewed(planned: PlannedPut, task: CheckedTask, warnings: readonly Warning[]): PutResult {
    const { store } = this.scope;
    const result = putView(planned, task, warnings);
    return Object.defineProperty(result, "preview", {
      get: () => previewOf(store.calendars.schedules, planned, task),
      enumerable: true,
    });
  }

  /**
   * Asserts that the namespace allows its type and has room for it, and gives it the default policies that it does not have.
   *
   * @throws `UNKNOWN_TASK_TYPE`, `QUOTA_TASKS`, `QUOTA_INTERVAL`
   */
  async #admit(task: CheckedTask): Promise<CheckedTask> {
    const { types, defaults, quotas } = await this.scope.store.registry.rules();
    assertKnown(task.definition.type, types);
    await assertQuotas(this.scope.store, [task.definition], quotas);
    return complete(task, defaults);
  }

  /** Returns the revision too, if the task is `unchanged`. */
  async #put(task: CheckedTask, { many, ...options }: PutHow): Promise<Attempt> {
    const { store, coverage } = this.scope;
    const { definition } = task;
    const [[result], [warnings = []]] = await Promise.all([
      this.scope.produce("put", definition, () => store.tasks.put(definition.queue, [task], options)),
      many ? [] : coverage.warnings([definition]),
    ]);
    if (!many) this.#log([[result as StoredPut, task]], options.by);
    const same = await this.#sameIds([result as StoredPut]);
    return {
      done: putView(result as StoredPut, task, [...warnings, ...same(0)]),
      revision: result?.revision,
    };
  }

  /**
   * Warnings of tasks that were created although another queue has one of the same name, by position: a type's queue may
   * have been renamed. A put that creates nothing reads nothing. Never rejects.
   */
  async #sameIds(puts: readonly StoredPut[]): Promise<(index: number) => Warning[]> {
    const created = puts.flatMap(({ outcome, name }) => (outcome === "created" ? [name] : []));
    if (created.length === 0) return () => [];
    const found = await this.scope.store.tasks
      .elsewhere(created)
      .catch(() => new Map<TaskName, readonly string[]>());
    return (index) => sameIdElsewhere(puts[index]?.name, found);
  }

  /** Logs the puts that changed something: one entry. */
  #log(puts: readonly (readonly [StoredPut, CheckedTask])[], by: string): void {
    const changed = puts.filter(([{ outcome }]) => outcome !== "unchanged");
    const [first] = changed;
    if (!first) return;
    const [{ name, before }, { definition }] = first;
    if (changed.length === 1) return this.scope.log("put", name, by, differenceOf(before, definition));
    const { scope, facts } = manyOf(changed.map(([one]) => one.name));
    const created = changed.filter(([one]) => one.outcome === "created").length;
    this.scope.log("put", scope, by, { ...facts, details: { created, updated: changed.length - created } });
  }

  async update(
    ref: TaskRef,
    change: (task: Definition) => TaskInput | Promise<TaskInput>,
    options: AuthorOptions,
  ): Promise<PutResult> {
    assertChange(change);
    const by = this.#author(options);
    return this.edit(await this.scope.locate(ref), change, { by });
  }

  /** Changes a stored task; with `many` as one of many, without an entry in the change log. */
  async edit(
    name: TaskName,
    change: (task: Definition) => TaskInput | Promise<TaskInput>,
    { dryRun, ...how }: Pick<PutHow, "by" | "many" | "change" | "dryRun">,
  ): Promise<PutResult> {
    let oneOff = false;
    let kept: Json;
    const read = async () => {
      const stored = await this.scope.store.tasks.get(name);
      if (!stored) throw notFound(name);
      oneOff = stored.fields.has("once");
      kept = stored.definition.payload;
      return taskView(stored);
    };
    return update(read, change, async (task, ifRevision) => {
      const checked = await this.#admit(await this.#check(task, undefined, kept));
      if (dryRun) return { done: await this.#plan(checked, { ifRevision }), revision: ifRevision };
      const once = oneOff && "at" in checked.definition.schedule;
      return this.#put(checked, { ...how, ifRevision, once });
    });
  }

  async putMany(tasks: Iterable<TaskInput>, options: PutManyOptions): Promise<PutResult[]> {
    assertOptions(options, ["by", "dryRun"]);
    const by = this.scope.author(options.by);
    const checked = await this.checkAll(tasks);
    const byQueue = grouped(
      checked.map((task, index) => ({ index, task })),
      ({ task }) => task.definition.queue,
    );
    const results = new Array<PutResult>(checked.length);
    const done: [StoredPut, CheckedTask][] = [];
    const { store, coverage, progress } = this.scope;
    const warnings = await coverage.warnings(checked.map(({ definition }) => definition));
    const onPut = (put: StoredPut, task: ParsedTask) => done.push([put, task as CheckedTask]);
    try {
      for (const [queue, list] of byQueue) {
        const parsed = list.map(({ task }) => task);
        if (options.dryRun) {
          const planned = await store.tasks.plan(queue, parsed, { onStored: progress });
          for (const [i, { index, task }] of list.entries())
            results[index] = this.#previewed(planned[i] as PlannedPut, task, warnings[index] ?? []);
          continue;
        }
        const stored = await this.scope.produce("put", { queue, count: parsed.length }, () =>
          store.tasks.put(queue, parsed, { by, onStored: progress, onPut }),
        );
        const same = await this.#sameIds(stored);
        for (const [i, { index, task }] of list.entries())
          results[index] = putView(stored[i] as StoredPut, task, [...(warnings[index] ?? []), ...same(i)]);
      }
    } finally {
      // The others are stored if one of them could not be.
      this.#log(done, by);
    }
    return results;
  }

  /**
   * Checks each task; an error's field begins with the task's position.
   * @param given schedules with calendars that are not stored yet
   * @param keeps whether a task has the payload that is stored: it is not checked again
   */
  async checkAll(
    tasks: Iterable<TaskInput>,
    given?: Schedules,
    keeps?: (name: TaskName) => boolean,
  ): Promise<CheckedTask[]> {
    if (typeof tasks?.[Symbol.iterator] !== "function") {
      throw new CarillonError("INVALID_TASK", "not a list.", {
        field: "tasks",
        remedy: "Give a list of tasks as for put.",
      });
    }
    const checked: CheckedTask[] = [];
    const names = new Map<string, number>();
    for (const task of tasks) {
      try {
        const one = await this.#read(task);
        assertFirst(one.definition, names);
        checked.push(one);
      } catch (error) {
        throw at(error, checked.length);
      }
    }
    // Asks Redis, if only workers know the type: faults that need no Redis come first.
    for (const [index, { definition }] of checked.entries()) {
      if (keeps?.(definition)) continue;
      await this.#assertFits(definition).catch((error: unknown) => {
        throw isCarillonError(error, "REDIS_UNAVAILABLE") ? error : at(error, index);
      });
    }
    const { registry, calendars } = this.scope.store;
    const { types, defaults, quotas } = await registry.rules();
    const shared = checked.some(namesCalendars);
    if (shared) await calendars.refresh();
    const schedules: Schedules = given ?? calendars.schedules;
    const assertAt = (assert: (task: CheckedTask) => unknown) => {
      for (const [index, task] of checked.entries()) {
        try {
          assert(task);
        } catch (error) {
          throw at(error, index);
        }
      }
    };
    assertAt((task) => assertKnown(task.definition.type, types));
    if (shared) assertAt(({ definition }) => schedules.get(definition));
    const definitions = checked.map(({ definition }) => definition);
    await assertQuotas(this.scope.store, definitions, quotas);
    return checked.map((task) => complete(task, defaults));
  }

  async validate(task: TaskInput, options: ValidateOptions): Promise<Validation> {
    assertOptions(options, ["from", "count"]);
    const count = wholeNumber(options.count ?? 5, "count", 0, 1_000);
    const asked = options.from === undefined ? undefined : roundedInstant(options.from, "from");
    const checked = await this.#admit(await this.#check(task));
    const { definition, warnings } = checked;
    const { store, coverage } = this.scope;
    const { calendars, tasks } = store;
    const [[planned], lacks] = await Promise.all([
      tasks.plan(definition.queue, [checked]),
      coverage.warningsOf(definition),
    ]);
    const from = asked ?? (await tasks.time(definition.queue));
    const schedule = calendars.schedules.get(definition);
    return {
      ...validationOf(schedule, definition, { from, count, warnings, lacks }),
      outcome: (planned as PlannedPut).outcome,
      preview: previewOf(calendars.schedules, planned as PlannedPut, checked),
    };
  }

  async enqueue<Type extends TaskContract>(
    type: Type,
    payload: TypedTask<Type>["payload"],
    options: EnqueueOptions,
  ): Promise<EnqueueResult> {
    assertOptions(options, [...ENQUEUE_OPTIONS, ...RUN_POLICIES]);
    assertTaskType(type, "type");
    const id = options.id ?? `${type.type.slice(0, 100)}-${newToken()}`;
    const queue = assertName(options.queue ?? type.queue, "queue");
    const due = moment(options);
    const by = this.scope.author(options.by);
    const policies = Object.fromEntries(RUN_POLICIES.map((name) => [name, options[name]]));
    const checked = await this.#check(
      {
        // The time is set below, because it may depend on the time of Redis, and arguments are checked before Redis is
        // asked.
        ...typedTask(type, { id, payload, schedule: { at: new Date(0) } }),
        queue,
        owner: options.owner,
        priority: options.priority ?? 0,
        ...policies,
      },
      type,
    );
    const doubts = unitWarnings({ at: options.at, delay: options.delay });
    const given = { ...checked, warnings: [...doubts, ...checked.warnings] };
    return this.scope.produce("enqueue", given.definition, (trace) => this.#enqueue(given, due, by, trace));
  }

  /** @param due the time to run at, from the time of Redis */
  async #enqueue(
    given: CheckedTask,
    due: (now: number) => number,
    by: string,
    trace: string | undefined,
  ): Promise<EnqueueResult> {
    const { coverage, store } = this.scope;
    const { tasks } = store;
    const { queue, owner, id, type } = given.definition;
    const [now, draft, lacks] = await Promise.all([
      tasks.time(queue),
      this.#admit(given),
      coverage.warningsOf({ queue, type }),
    ]);
    const warnings = [...draft.warnings, ...lacks];
    let at = due(now);
    const dueAt = (time: number) => ({
      ...draft,
      definition: { ...draft.definition, schedule: { at: storedInstant(time, "at") } },
    });
    const task = { queue, owner, id };
    if (at <= now) {
      if (now - at > PAST) warnings.push(isPast(at));
      const enqueued = await store.registry.during(queue, (entered) =>
        store.claims.enqueueNow(dueAt(at), { ...this.scope.identity(by), trace }, entered),
      );
      if (enqueued) return { task, run: enqueued.run, at: enqueued.enqueued, warnings: ofEnqueued(warnings) };
      // Its owner is at its limit of runs, or a freeze may hold it: a node enqueues it as soon as it may start.
      at = now + PLACE_DELAY;
    }
    for (let patience = PLACE_DELAY; patience <= MAX_PLACE_DELAY; patience *= 4) {
      const [result] = await tasks.put(queue, [dueAt(at)], { once: true, by, trace });
      if (result?.state === "scheduled" || result?.outcome === "unchanged")
        return { task, run: undefined, at, warnings };
      // The time passed during the put: the task is stored, but finished. It gets a later one, so that a node obeys freezes and limits.
      at = (await tasks.time(queue)) + patience;
    }
    throw conflict(
      `the time of ${id} passed each time before it was stored.`,
      "See why Redis answers so late, and try again.",
    );
  }

  /** The payload of one trigger, as the job will carry it. @throws `INVALID_PAYLOAD`, `PAYLOAD_TOO_LARGE` */
  payload(value: unknown): Json {
    return JSON.parse(encodePayload(value, this.#limits)) as Json;
  }

  /** Checks the payload of a trigger as that of a put. @throws `INVALID_PAYLOAD` */
  async assertPayload(name: TaskName, payload: Json): Promise<void> {
    const stored = await this.scope.store.tasks.get(name);
    if (stored) await this.#assertFits({ ...stored.definition, payload });
  }

  /**
   * Checks a payload against the schema of its type: the caller's own, or those that workers publish.
   * @throws `INVALID_PAYLOAD`
   */
  async #assertFits({ queue, type: name, payload }: TaskDefinition, given?: TaskContract): Promise<void> {
    const type = given ?? this.types?.get(name);
    if (type) return void (await validatePayload(type, payload));
    const { store, coverage } = this.scope;
    await assertFits(store, coverage, { queue, type: name }, payload);
  }

  #author(options: AuthorOptions): string {
    assertOptions(options, ["by"]);
    return this.scope.author(options.by);
  }

  /** Puts the stored secrets back where the task has their placeholders, also those of a task that was moved to another queue. */
  async #whole(input: TaskInput): Promise<TaskInput> {
    if (!hasPlaceholder(input?.alerts)) return input;
    const { queue, owner = DEFAULT_OWNER, id } = input;
    const { tasks } = this.scope.store;
    const moved = () =>
      tasks.locate({ queue: undefined, owner, id }).then(
        (name) => tasks.get(name),
        () => undefined,
      );
    const stored = (await tasks.get({ queue, owner, id })) ?? (await moved());
    return { ...input, alerts: restored(input.alerts, stored?.definition.alerts) as never };
  }

  /** @param kept the payload that is stored: it is not checked again */
  async #check(input: TaskInput, given?: TaskContract, kept?: Json): Promise<CheckedTask> {
    const checked = await this.#read(input);
    if (kept === undefined || !isDeepStrictEqual(kept, checked.definition.payload))
      await this.#assertFits(checked.definition, given);
    return { ...checked, asksToRun: kept === undefined && checked.asksToRun };
  }

  /** Checks all but the payload's schema. */
  async #read(input: TaskInput): Promise<CheckedTask> {
    const whole = await this.#whole(this.scope.bind(input));
    const parsed = parseTask(whole, this.#limits);
    const { type: name, schedule } = parsed.definition;
    if (this.types && !this.types.has(name)) {
      throw new CarillonError("UNKNOWN_TASK_TYPE", `${name} is not one of this client's types.`, {
        field: "type",
        remedy: `Known: ${[...this.types.keys()].join(", ") || "none"}.`,
      });
    }
    const { never, warnings } = reviewOf(schedule);
    if (never !== undefined) {
      throw new CarillonError("NEVER_FIRES", never, {
        field: "schedule",
        remedy:
          "Check its dates and exclusions; `carillon next` shows what an expression means. For a task that is only triggered, give { manual: true }.",
      });
    }
    return {
      ...parsed,
      asksToRun: whole.enabled === true,
      warnings: [...warnings, ...unitWarnings(whole), ...urlWarnings(parsed.definition)],
    };
  }
}

/** Reviews of schedules; parsed ones that are equal are one object. */
const reviews = new WeakMap<Schedule, ScheduleReview>();

function reviewOf(schedule: Schedule): ScheduleReview {
  const review = reviews.get(schedule) ?? reviewSchedule(schedule);
  reviews.set(schedule, review);
  return review;
}

/** Gives a task the default policies that it does not have, and the warnings that depend on them. */
function complete(task: CheckedTask, defaults: ReadonlyMap<string, Policies>): CheckedTask {
  const definition = withDefaults(task.definition, defaults);
  return { ...task, definition, warnings: [...task.warnings, ...paceWarnings(definition)] };
}

function isPast(at: number): Warning {
  return {
    code: "PAST_TIME",
    message: `at: ${new Date(at).toISOString()} is past. It runs now.`,
    remedy: "To run it later, give a time to come: ISO 8601 with an offset, or epoch milliseconds.",
  };
}

function namesCalendars({ definition }: CheckedTask): boolean {
  return calendarsOf(definition.schedule).length > 0;
}
