import { createHash } from "node:crypto";
import { CarillonError, type Duration, type Json, type TaskDefinition, type TaskName } from "@carillon/core";
import {
  assertName,
  checkCalendar,
  defined,
  durationOption,
  localName,
  MAX_DURATION,
  ScheduleCache,
} from "@carillon/core/internal";
import { type CheckedTask, driftOf, shortText, TaskWriter, wholeNumber } from "@carillon/sdk/internal";
import { isRetired, moveOf, type PlannedPut, type Store, type TaskSet } from "@carillon/store";
import { keyOf, nameOf } from "../bulk/bulk.js";
import type { Call } from "../operation.js";
import { redactorOf } from "../redact.js";
import { type Owned, owned, type Place, placesOf, plannedPuts, stored, type Wanted } from "./places.js";
import { localOf, refusals } from "./refusals.js";
import type { Applied, GivenSet, PlanItem, SetInput, SetTask, Undoes } from "./set.js";

/** A change that an apply makes. */
export interface Step {
  readonly item: PlanItem;
  /** The definition to put; undefined: it is removed or deleted. */
  readonly task?: CheckedTask | undefined;
  /** Queue that the set names. */
  readonly filed?: string | undefined;
  /** An apply that was interrupted holds it for a rename or a move that this one does not continue. */
  readonly held?: boolean | undefined;
  /** It was in another set, or in none. */
  readonly adopted?: boolean | undefined;
  /** A task that is removed was paused. */
  readonly paused?: boolean | undefined;
  /** Its schedule and its next nominal time, as they are and as they will be. */
  readonly moves: {
    readonly schedule: { readonly before?: Json | undefined; readonly after?: Json | undefined };
    readonly next: { readonly before?: number | undefined; readonly after?: number | undefined };
  };
}

export interface Planning {
  readonly plan: Applied;
  readonly steps: readonly Step[];
  readonly calendars: ReadonlyMap<string, readonly string[]>;
  /** Names all that it does, whatever the generation of the set. */
  readonly does: string;
  /** Names the input: an interrupted apply goes on with the same one only. */
  readonly input: string;
  readonly protect: readonly string[];
  readonly undoes: Undoes | undefined;
  /** Tasks of the set after the apply. */
  readonly members: number;
}

/** The checked input, and the set as it is stored. */
export interface Prepared extends Owned {
  readonly input: GivenSet;
  readonly record: TaskSet | undefined;
  readonly wanted: ReadonlyMap<string, Wanted>;
  readonly calendars: ReadonlyMap<string, readonly string[]>;
  readonly outcomes: Applied["calendars"];
  /** Schedules with these calendars; undefined: none differs. */
  readonly schedules: ScheduleCache | undefined;
  readonly now: number;
  /** Time in ms after which removed tasks are deleted; undefined: none is. */
  readonly grace: number | undefined;
}

/** @throws as `putMany`; `INVALID_OPTION`, `INVALID_NAME` */
export async function prepare(call: Call, input: GivenSet): Promise<Prepared> {
  const { store } = call;
  const name = assertName(input.set, "set");
  for (const field of ["version", "commit"] as const) shortText(input[field], field);
  if (input.allowRemovals !== undefined) wholeNumber(input.allowRemovals, "allowRemovals", 0, 1_000_000);
  const grace = durationOption(input.prune as Duration | undefined, "prune", 0, MAX_DURATION);
  const { calendars, outcomes } = await changedCalendars(store, input);
  const schedules = withCalendars(store, calendars);
  // Read first: an apply that begins after this is found.
  const record = await store.sets.get(name);
  const checked = await checkTasks(call, input.tasks, input.undoes?.keeps, schedules);
  const wanted = new Map<string, Wanted>();
  const placeholders = redactorOf({});
  for (const [i, task] of checked.entries()) {
    placeholders.refuseShown(task.definition.payload, `[${i}].payload`);
    const key = keyOf(task.definition);
    wanted.set(key, { key, task, given: input.tasks[i] as SetTask });
  }
  const now = await store.freezes.time();
  return {
    ...(await owned(store, name)),
    ...{ input, record, wanted, calendars, outcomes, schedules, now, grace },
  };
}

/**
 * Checks tasks as an apply does, before it writes any.
 * @param keeps keys of those whose payload is stored already, and is not checked again
 * @throws as `putMany`
 */
export function checkTasks(
  { scope }: Call,
  tasks: readonly SetTask[],
  keeps?: ReadonlySet<string>,
  schedules?: ScheduleCache,
): Promise<CheckedTask[]> {
  const writer = new TaskWriter(scope, undefined, Number.MAX_SAFE_INTEGER);
  return writer.checkAll(plain(tasks), schedules, (name) => keeps?.has(keyOf(name)) ?? false);
}

/** Adds to an item what people want to see of its change. */
export type Detail = (item: PlanItem, planned: PlannedPut, task: CheckedTask) => Promise<PlanItem>;

export async function compare(call: Call, prepared: Prepared, detail?: Detail): Promise<Planning> {
  const { input, record, wanted, members, calendars, outcomes, now } = prepared;
  const { set, version, commit, keep, protect = [], undoes } = input;
  const places = await placesOf(call.store, wanted, members);
  const changes = await changesOf(call, prepared, places, detail);
  const kept = new Set(places.flatMap(({ key, from, to }) => (from === to ? key : [keyOf(from), keyOf(to)])));
  const steps = [...changes.steps, ...(await removals(call.store, prepared, kept))];
  const items = steps.map(({ item }) => item);
  const [base, digest] = [record?.generation ?? 0, digestOf(inputsOf(prepared))];
  const does = digestOf([digest, outcomes, ...items.map(effectOf)]);
  for (const key of undoes?.removes ?? []) kept.add(key);
  const left = keep ? [...members.keys()].filter((key) => !kept.has(key)).length : 0;
  return {
    plan: {
      format: 1,
      id: digestOf([does, base]),
      ...{ set, base, at: now },
      ...defined({ version, commit }),
      counts: {
        ...countsOf(items),
        ...{ unchanged: places.length - changes.steps.length, drift: changes.drifted },
      },
      ...{ calendars: outcomes, items },
      refused: refusals(input, record, items, members.size),
    },
    ...{ steps, calendars, does, input: digest, protect, undoes },
    members: wanted.size + left,
  };
}

/** Tasks that an apply puts, and the number of those that others have changed. */
async function changesOf(
  call: Call,
  { input: { set, adopt = [] }, schedules, record }: Prepared,
  places: readonly Place[],
  detail: Detail | undefined,
): Promise<{ steps: Step[]; drifted: number }> {
  const adopts = new Set(adopt.map((ref) => (ref === "*" ? ref : localOf(ref))));
  const steps: Step[] = [];
  let drifted = 0;
  for await (const { place, planned } of plannedPuts(call.store, set, places, schedules)) {
    // An apply counts the tasks that it stores.
    call.scope.progress(detail ? 1 : 0);
    const drift = planned.stored?.set?.name === set ? driftOf(planned.stored) : undefined;
    if (drift) drifted += 1;
    const step = stepOf(set, place, planned, adopts, record?.applying !== undefined);
    if (!step) continue;
    const item = { ...step.item, ...(drift && { drift }) };
    steps.push({ ...step, item: detail ? await detail(item, planned, place.task) : item });
  }
  return { steps, drifted };
}

function countsOf(items: readonly PlanItem[]) {
  const counts = { create: 0, update: 0, rename: 0, remove: 0, conflict: 0, prune: 0 };
  for (const { action } of items) counts[action] += 1;
  return counts;
}

/** Facts of an item that name the plan; the rest is for people. */
function effectOf({ action, task, from, revision, state }: PlanItem): unknown {
  return [action, task, from, revision, state];
}

/** All that a plan is made of, a part at a time; not what it hides. */
function* inputsOf({ input: { tasks: _, redact: __, ...rest }, wanted }: Prepared): Generator<unknown> {
  yield rest;
  for (const { task, given } of wanted.values()) yield [task.definition, given.state, given.renamedFrom];
}

/** The tasks as a put takes them. */
function* plain(tasks: readonly SetTask[]): Generator<SetTask> {
  for (const task of tasks) {
    const { state, renamedFrom, ...rest } = task ?? {};
    if (state !== undefined && state !== "paused" && state !== "running")
      throw new CarillonError("INVALID_TASK", "not a state.", {
        field: "state",
        remedy: "Use paused or running.",
      });
    if (renamedFrom !== undefined) assertName(renamedFrom, "renamedFrom");
    if (state === undefined && renamedFrom === undefined) yield task;
    else yield state === undefined ? rest : { ...rest, enabled: state === "running" };
  }
}

async function changedCalendars(store: Store, { calendars = {} }: SetInput) {
  const stored = new Map((await store.calendars.list()).map(({ name, entries }) => [name, entries]));
  const changed = Object.entries(calendars)
    .map(([name, entries]) => [assertName(name, "calendars"), checkCalendar(entries)] as const)
    .filter(([name, entries]) => JSON.stringify(stored.get(name)) !== JSON.stringify(entries));
  const outcomes: Applied["calendars"] = changed.map(([name]) => ({
    name,
    outcome: stored.has(name) ? "updated" : "created",
  }));
  return { calendars: new Map<string, readonly string[]>(changed), outcomes };
}

function withCalendars(
  store: Store,
  changed: ReadonlyMap<string, readonly string[]>,
): ScheduleCache | undefined {
  if (changed.size === 0) return undefined;
  const schedules = new ScheduleCache();
  schedules.setContext({
    calendars: new Map([...(store.calendars.schedules.context.calendars ?? []), ...changed]),
  });
  return schedules;
}

/** Undefined: nothing is to be done. @param interrupted whether an apply was, whose move may hold the task */
function stepOf(
  set: string,
  place: Place,
  planned: PlannedPut,
  adopts: ReadonlySet<string>,
  interrupted: boolean,
): Step | undefined {
  const { stored, outcome } = planned;
  const { from, to, task, given } = place;
  const renamed = from !== to;
  const state = given.state && stateChange(given.state, planned);
  const held = stored && !renamed && (moveOf(stored)?.isCopy || (interrupted && stored.moving !== undefined));
  if (outcome === "unchanged" && !state && !renamed && !held) return undefined;
  const other =
    stored && (stored.set?.name !== set || undefined) && (isRetired(stored) ? "" : (stored.set?.name ?? ""));
  const adopted = adopts.has("*") || adopts.has(localName(to));
  const conflicts = other !== undefined && !adopted;
  const action = conflicts ? "conflict" : renamed ? "rename" : stored ? "update" : "create";
  return {
    ...{ task, filed: given.queue, held, adopted: other !== undefined },
    moves: {
      schedule: { before: stored && scheduleOf(stored.definition), after: scheduleOf(task.definition) },
      next: { before: stored?.nominal, after: planned.slot?.nominal },
    },
    item: {
      ...{ action, task: to, revision: stored?.revision ?? "absent" },
      ...(renamed && { from }),
      ...(state && { state }),
      ...(other && { set: other }),
      ...(stored && stored.set?.name === set && isRetired(stored) && { returns: true }),
    },
  };
}

function stateChange(state: "paused" | "running", { stored }: PlannedPut): "paused" | "running" | undefined {
  if (!stored || isRetired(stored)) return undefined;
  const differs = state === "paused" ? stored.state === "scheduled" : stored.state === "paused";
  return differs ? state : undefined;
}

/** Removes members that the set does not have any more, and deletes those that were removed long ago. @param kept keys of all others */
async function removals(
  store: Store,
  { input, record, members, retired, grace, now }: Prepared,
  kept: ReadonlySet<string>,
): Promise<Step[]> {
  const removes = input.undoes && new Set(input.undoes.removes);
  const isLost = (key: string) => (removes ? removes.has(key) : !input.keep && !kept.has(key));
  const lost = [...members].filter(([key]) => isLost(key)).map(([, task]) => task);
  const past = grace === undefined ? Number.NEGATIVE_INFINITY : now - grace;
  const old = [...retired].filter(([key, { at }]) => at <= past && !kept.has(key));
  const steps: Step[] = [];
  const add = async (action: "remove" | "prune", tasks: readonly TaskName[]) => {
    for await (const { definition, revision, state, nominal, moving } of stored(store, tasks))
      steps.push({
        item: { action, task: nameOf({ definition }), revision },
        held: moving !== undefined && record?.applying !== undefined,
        paused: state === "paused",
        moves: { schedule: { before: scheduleOf(definition) }, next: { before: nominal } },
      });
  };
  await add("remove", lost);
  await add(
    "prune",
    old.map(([, { task }]) => task),
  );
  return steps;
}

function scheduleOf({ schedule }: TaskDefinition): Json {
  return schedule as unknown as Json;
}

/** A part at a time, so that no text of all tasks is held. */
function digestOf(parts: Iterable<unknown>): string {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(`${JSON.stringify(part)}\n`);
  return hash.digest("hex").slice(0, 16);
}
