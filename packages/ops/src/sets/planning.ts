import { createHash } from "node:crypto";
import {
  CarillonError,
  type Duration,
  describeSchedule,
  previewSchedule,
  seedOf,
  type TaskName,
} from "@carillon/core";
import {
  assertName,
  checkCalendar,
  DEFAULT_OWNER,
  durationOption,
  grouped,
  localName,
  MAX_DURATION,
  parseLocalName,
  ScheduleCache,
} from "@carillon/core/internal";
import {
  type CheckedTask,
  driftOf,
  previewOf,
  shortText,
  statsView,
  TaskWriter,
} from "@carillon/sdk/internal";
import { isRetired, type PlannedPut, type Store, type StoredTask, type Timing } from "@carillon/store";
import { TimeSlice } from "../occurrences/time-slice.js";
import { countTimes } from "../occurrences/walk.js";
import type { Call } from "../operation.js";
import { loads, timingOf } from "./load.js";
import type { Plan, PlanItem, SetInput, SetTask } from "./set.js";

/** Changes that are shown with their times. */
const DETAILED = 500;
/** Tasks read at once. */
const PAGE = 500;
/** Removals that need no flag: so many, or this part of the set. */
const REMOVALS = { least: 5, part: 0.1 };
/** Tasks in one minute that are worth a warning. */
const CROWD = 500;
const [MINUTE, DAY] = [60_000, 86_400_000];
/** Times of one schedule that are counted for a day: one a second. */
const MOST_TIMES = 86_400;
const NAMED = 10;

/** A change that an apply makes. */
export interface Step {
  readonly item: PlanItem;
  /** The definition to put; undefined: it is removed or deleted. */
  readonly task?: CheckedTask | undefined;
  /** Queue that the set names. */
  readonly filed?: string | undefined;
  /** It is held by a rename that was interrupted at its end. */
  readonly held?: boolean | undefined;
}

export interface Planning {
  readonly plan: Plan;
  readonly steps: readonly Step[];
  /** Calendars that differ. */
  readonly calendars: ReadonlyMap<string, readonly string[]>;
  /** Names the input: an interrupted apply goes on with the same one only. */
  readonly input: string;
  readonly protect: readonly string[];
  /** Tasks of the set after the apply. */
  readonly members: number;
}

interface Wanted {
  readonly task: CheckedTask;
  readonly given: SetTask;
}

/** Its place in Redis, and in the set. */
interface Place extends Wanted {
  /** Its name as stored: another one if it is to be renamed. */
  readonly from: TaskName;
  /** Its name after the apply: in another queue than the set says if a person moved it. */
  readonly to: TaskName;
}

/** @throws as `putMany`; `INVALID_OPTION`, `INVALID_NAME` */
export async function planning(call: Call, input: SetInput): Promise<Planning> {
  const { store, scope } = call;
  const name = assertName(input.set, "set");
  for (const field of ["version", "commit"] as const) shortText(input[field], field);
  const grace = durationOption(input.prune as Duration | undefined, "prune", 0, MAX_DURATION);
  const { calendars, outcomes } = await changedCalendars(call, input);
  const schedules = withCalendars(store, calendars);
  const record = await store.sets.get(name);
  const writer = new TaskWriter(scope, undefined, Number.MAX_SAFE_INTEGER);
  const checked = await writer.checkAll(input.tasks.map(plain), schedules);
  const wanted = new Map<string, Wanted>();
  for (const [i, task] of checked.entries())
    wanted.set(keyOf(task.definition), { task, given: input.tasks[i] as SetTask });
  const { members, retired } = await owned(store, name);
  const now = await store.freezes.time();
  const places = await placesOf(store, wanted, members);
  const steps: Step[] = [];
  const adopts = new Set(input.adopt?.map((ref) => (ref === "*" ? ref : localOf(ref))));
  let [unchanged, drifted] = [0, 0];
  const gone = new Set<string>();
  const coming: [queue: string, timing: Timing][] = [];
  const details = new Details(store, schedules ?? store.calendars.schedules, now);
  for await (const { place, planned } of plannedPuts(store, name, places, schedules)) {
    const step = stepOf(name, place, planned, adopts);
    const drift = planned.stored?.set?.name === name ? driftOf(planned.stored) : undefined;
    if (drift) drifted += 1;
    if (!step) {
      unchanged += 1;
      continue;
    }
    const { definition } = place.task;
    gone.add(keyOf(place.from));
    coming.push(...timingOf(planned, definition).map((one): [string, Timing] => [definition.queue, one]));
    steps.push({
      ...step,
      item: await details.of({ ...step.item, ...(drift && { drift }) }, planned, place.task),
    });
    scope.progress(0);
  }
  const kept = new Set(places.flatMap(({ from, to }) => [keyOf(from), keyOf(to)]));
  if (!input.keep) {
    const lost = [...members].filter(([key]) => !kept.has(key)).map(([, task]) => task);
    for (const { definition, revision } of await readAll(store, lost)) {
      gone.add(keyOf(definition));
      steps.push({ item: { action: "remove", task: shortName(definition), revision } });
    }
  }
  if (grace !== undefined) {
    const old = [...retired]
      .filter(([key, { at }]) => at <= now - grace && !kept.has(key))
      .map(([, { task }]) => task);
    for (const { definition, revision } of await readAll(store, old))
      steps.push({ item: { action: "prune", task: shortName(definition), revision } });
  }
  const counts = { create: 0, update: 0, rename: 0, remove: 0, conflict: 0, prune: 0 };
  for (const { item } of steps) counts[item.action] += 1;
  const items = steps.map(({ item }) => item);
  const changed = steps.some(({ task }) => task) || counts.remove > 0;
  const load = changed ? await loads(store, now, gone, coming) : undefined;
  const base = record?.generation ?? 0;
  const facts = items.map(({ action, task, from, revision, state }) => [action, task, from, revision, state]);
  const digest = digestOf([input, checked.map(({ definition }) => definition)]);
  return {
    plan: {
      format: 1,
      id: digestOf([digest, base, facts]),
      ...{ set: name, base, at: now },
      ...(input.version !== undefined && { version: input.version }),
      ...(input.commit !== undefined && { commit: input.commit }),
      counts: { ...counts, unchanged, drift: drifted },
      calendars: outcomes,
      items,
      ...(load && { load }),
      refused: refusals(input, record, items, members.size),
      warnings: await warningsOf(call, steps, details, now, load),
    },
    ...{ steps, calendars, input: digest, protect: input.protect ?? [] },
    members: wanted.size + (input.keep ? [...members.keys()].filter((key) => !kept.has(key)).length : 0),
  };
}

/** A task as a put takes it. */
function plain(task: SetTask): SetTask {
  if (typeof task !== "object" || task === null) return task;
  const { state, renamedFrom, ...rest } = task;
  if (state !== undefined && state !== "paused" && state !== "running")
    throw new CarillonError("INVALID_TASK", "not a state.", {
      field: "state",
      remedy: "Use paused or running.",
    });
  if (renamedFrom !== undefined) assertName(renamedFrom, "renamedFrom");
  return state === undefined ? rest : { ...rest, enabled: state === "running" };
}

async function changedCalendars({ store }: Call, { calendars = {} }: SetInput) {
  const stored = new Map((await store.calendars.list()).map(({ name, entries }) => [name, entries]));
  const changed = Object.entries(calendars)
    .map(([name, entries]) => [assertName(name, "calendars"), checkCalendar(entries)] as const)
    .filter(([name, entries]) => JSON.stringify(stored.get(name)) !== JSON.stringify(entries));
  const outcomes: Plan["calendars"] = changed.map(([name]) => ({
    name,
    outcome: stored.has(name) ? "updated" : "created",
  }));
  return { calendars: new Map<string, readonly string[]>(changed), outcomes };
}

/** Schedules as they are once the calendars are stored; undefined: none differs. */
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

/** The tasks of a set, and those that were removed from it and are still there. */
async function owned(store: Store, set: string) {
  const members = new Map<string, TaskName>();
  const retired = new Map<string, { task: TaskName; at: number }>();
  for (const queue of await store.registry.queues()) {
    for (const [local, at] of await store.tasks.owned(queue, set)) {
      const task = { queue, ...parseLocalName(local) };
      if (at === 0) members.set(keyOf(task), task);
      else retired.set(keyOf(task), { task, at });
    }
  }
  return { members, retired };
}

/** Finds the tasks that are to be renamed, and those that have another queue than the set says. */
async function placesOf(
  store: Store,
  wanted: ReadonlyMap<string, Wanted>,
  members: ReadonlyMap<string, TaskName>,
): Promise<Place[]> {
  const elsewhere = new Map<string, TaskName>();
  for (const [key, task] of members) if (!wanted.has(key)) elsewhere.set(localName(task), task);
  const places: Place[] = [];
  for (const [key, one] of wanted) {
    const to = shortName(one.task.definition);
    if (elsewhere.size === 0 || (members.has(key) && one.given.renamedFrom === undefined)) {
      places.push({ ...one, from: to, to });
      continue;
    }
    const same = elsewhere.get(localName(to));
    const { renamedFrom } = one.given;
    const former =
      same ?? (renamedFrom === undefined ? undefined : elsewhere.get(localName({ ...to, id: renamedFrom })));
    const stored = former && (await store.tasks.get(former));
    // The rename was interrupted if it is held for one.
    const held = stored?.moving === `to ${to.queue}`;
    const there = held || !stored ? undefined : await store.tasks.get(to);
    if (!former || !stored || (there && !isCopy(there, stored))) {
      places.push({ ...one, from: to, to });
      continue;
    }
    elsewhere.delete(localName(former));
    // A person moved it: it stays there.
    const kept = stored.set?.filed === to.queue;
    const queue = kept ? former.queue : to.queue;
    const task = { ...one.task, definition: { ...one.task.definition, queue } };
    places.push({ task, given: one.given, from: former, to: { ...to, queue } });
  }
  return places;
}

/** Whether an interrupted rename has left it. */
function isCopy(there: StoredTask, stored: StoredTask): boolean {
  const [one, other] = [there, stored].map(({ definition }) =>
    JSON.stringify(Object.entries({ ...definition, queue: "", id: "", enabled: true, mode: "" }).sort()),
  );
  const isNew = !there.set && there.state === "paused" && there.cursor === undefined;
  return one === other && (isNew || there.moving?.startsWith("from ") === true);
}

async function* plannedPuts(
  store: Store,
  set: string,
  places: readonly Place[],
  schedules: ScheduleCache | undefined,
) {
  for (const [queue, all] of grouped(places, ({ from }) => from.queue)) {
    for (let at = 0; at < all.length; at += PAGE) {
      const some = all.slice(at, at + PAGE);
      const drafts = some.map(({ task, from }) => ({ ...task, definition: { ...task.definition, ...from } }));
      const filed = new Map(some.map(({ given, from }) => [localName(from), given.queue]));
      const planned = await store.tasks.plan(queue, drafts, { set: { name: set, filed }, schedules });
      for (const [i, one] of planned.entries()) yield { place: some[i] as Place, planned: one };
    }
  }
}

/** Undefined: nothing is to be done. */
function stepOf(
  set: string,
  place: Place,
  planned: PlannedPut,
  adopts: ReadonlySet<string>,
): Step | undefined {
  const { stored, outcome } = planned;
  const { from, to, task, given } = place;
  const renamed = keyOf(from) !== keyOf(to);
  const state = given.state && stateChange(given.state, planned);
  const held = stored?.moving?.startsWith("from ");
  if (outcome === "unchanged" && !state && !renamed && !held) return undefined;
  const other =
    stored && (stored.set?.name !== set || undefined) && (isRetired(stored) ? "" : (stored.set?.name ?? ""));
  const adopted = adopts.has("*") || adopts.has(localName(to));
  const conflicts = other !== undefined && !adopted;
  const action = conflicts ? "conflict" : renamed ? "rename" : stored ? "update" : "create";
  return {
    ...{ task, filed: given.queue, held },
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

async function readAll(store: Store, tasks: readonly TaskName[]): Promise<StoredTask[]> {
  const read: StoredTask[] = [];
  for (let at = 0; at < tasks.length; at += PAGE) {
    const some = await Promise.all(tasks.slice(at, at + PAGE).map((task) => store.tasks.get(task)));
    read.push(...some.filter((one) => one !== undefined));
  }
  return read;
}

/** Reads for the first changes all that a person wants to see. */
class Details {
  /** Shortest gap between the next times of each detailed task that has run before. */
  readonly gaps: { readonly task: TaskName; readonly gap: number }[] = [];
  /** Next times of detailed tasks. */
  readonly soonest: { readonly task: TaskName; readonly due: number }[] = [];
  #left = DETAILED;
  readonly #store: Store;
  readonly #schedules: ScheduleCache;
  readonly #now: number;
  readonly #slice = new TimeSlice(2_000_000);

  constructor(store: Store, schedules: ScheduleCache, now: number) {
    this.#store = store;
    this.#schedules = schedules;
    this.#now = now;
  }

  async of(item: PlanItem, planned: PlannedPut, task: CheckedTask): Promise<PlanItem> {
    const { stored, due } = planned;
    if (due !== undefined && due < this.#now + 5 * MINUTE) this.soonest.push({ task: item.task, due });
    if (this.#left === 0) return item;
    this.#left -= 1;
    const preview = previewOf(this.#schedules, planned, {
      ...task,
      definition: { ...task.definition, ...item.from },
    });
    const [first, second] = preview.times.after;
    if (first && second && stored)
      this.gaps.push({ task: planned.name, gap: second.nominal - first.nominal });
    const moved = !stored || (preview.before && "schedule" in preview.before) || item.returns;
    if (!moved) return { ...item, preview };
    const before =
      stored &&
      (await this.#fires({ ...stored.definition, ...planned.name }, this.#store.calendars.schedules));
    const after = await this.#fires(task.definition, this.#schedules);
    return { ...item, preview, schedule: { ...(before && { before }), after } };
  }

  async #fires(definition: StoredTask["definition"], schedules: ScheduleCache) {
    try {
      const seed = seedOf(definition);
      const ranges: [number, number][] = [[this.#now + 1, this.#now + DAY]];
      const counted = await countTimes(
        { definition },
        schedules.get(definition),
        ranges,
        MOST_TIMES,
        this.#slice,
      );
      const shown = previewSchedule(definition.schedule, {
        ...{ from: this.#now, count: 5, seed, context: schedules.context },
      });
      const notes = [
        ...new Set(shown.times.flatMap(({ local, notes }) => notes.map(({ text }) => `${local}: ${text}`))),
      ];
      return { humanized: describeSchedule(definition.schedule, seed), perDay: counted.count, notes };
    } catch {
      // Its calendar was deleted.
      return undefined as never;
    }
  }
}

function refusals(
  { tasks, allowRemovals, version, protect = [], keep }: SetInput,
  record: Awaited<ReturnType<Store["sets"]["get"]>>,
  items: readonly PlanItem[],
  members: number,
): Plan["refused"] {
  const refused: Plan["refused"][number][] = [];
  const add = (code: string, message: string, remedy: string) => refused.push({ code, message, remedy });
  if (tasks.length === 0 && !keep)
    add(
      "EMPTY_SET",
      "the set has no tasks.",
      "Check that its file was loaded. To remove the last task, delete it.",
    );
  if (record?.version !== undefined && (version === undefined || isOlder(version, record.version))) {
    const what = version === undefined ? "no version" : `version ${version}`;
    add("OLD_VERSION", `${what} was given, and the set has version ${record.version}.`, "Apply a newer one.");
  }
  const removed = items.filter(({ action }) => action === "remove").map(({ task }) => task);
  const most = allowRemovals ?? Math.max(REMOVALS.least, Math.floor(members * REMOVALS.part));
  if (removed.length > most)
    add(
      "TOO_MANY_REMOVALS",
      `${removed.length} of ${members} tasks would be removed, and ${most} may be.`,
      `If that is meant, allow ${removed.length} removals.`,
    );
  const guarded = new Set([...protect, ...(record?.protect ?? [])].map(localOf));
  const lost = removed.filter((task) => guarded.has(localName(task)));
  if (lost.length > 0)
    add(
      "PROTECTED",
      `${some(lost)} would be removed.`,
      "Take it out of `protect` first, in an apply of its own.",
    );
  const taken = items.filter(({ action }) => action === "conflict");
  if (taken.length > 0) {
    const first = taken[0]?.set;
    const whose = first ? `belong to other sets, such as ${first}` : "were put without a set";
    add(
      "CONFLICT",
      `${some(taken.map(({ task }) => task))} ${whose}.`,
      "Adopt them if this set shall define them.",
    );
  }
  return refused;
}

const NUMERIC = new Intl.Collator("en", { numeric: true });

/** Numbers in the texts count as numbers: 1.9.0 is older than 1.10.0. */
export function isOlder(one: string, other: string): boolean {
  return NUMERIC.compare(one, other) < 0;
}

async function warningsOf(
  { scope, store }: Call,
  steps: readonly Step[],
  details: Details,
  now: number,
  load: Plan["load"],
): Promise<Plan["warnings"]> {
  const found = new Map<
    string,
    { code: string; message: string; remedy: string; tasks: string[]; count: number }
  >();
  const add = (warning: { code: string; message: string; remedy: string }, task?: TaskName) => {
    const one = found.get(warning.code) ?? { ...warning, tasks: [], count: 0 };
    one.count += 1;
    if (task && one.tasks.length < NAMED) one.tasks.push(localName(task));
    found.set(warning.code, one);
  };
  const puts = steps.flatMap(({ task }) => task ?? []);
  const lacks = await scope.coverage.warnings(puts.map(({ definition }) => definition));
  for (const [i, { definition, warnings }] of puts.entries())
    for (const warning of [...warnings, ...(lacks[i] ?? [])]) add(warning, definition);
  for (const { task, due } of details.soonest) {
    const message = `it is due ${Math.max(0, Math.round((due - now) / 1_000))} s after this plan.`;
    add({ code: "FIRES_SOON", message, remedy: "Check that its worker is deployed." }, task);
  }
  const stats = await store.runs.manyStats(details.gaps.map(({ task }) => task));
  for (const [i, { task, gap }] of details.gaps.entries()) {
    const { usualMs } = statsView(stats[i]?.stored ?? {}, 0, 0);
    if (usualMs === undefined || usualMs <= gap) continue;
    const message = `its runs take ${usualMs} ms, longer than the ${gap} ms to the next time.`;
    add(
      { code: "INTERVAL_SHORT", message, remedy: "Give a longer interval, or see the overlap policy." },
      task,
    );
  }
  const { busiest } = load?.after ?? {};
  if (busiest && busiest.count >= CROWD && busiest.count > (load?.before.busiest?.count ?? 0)) {
    const message = `${busiest.count} tasks are due in the minute of ${new Date(busiest.at).toISOString()}.`;
    add({ code: "BUSY_MINUTE", message, remedy: "Spread them: H in cron, or jitter." });
  }
  return [...found.values()];
}

function some(tasks: readonly TaskName[]): string {
  const more = tasks.length > 3 ? ` and ${tasks.length - 3} more` : "";
  return `${tasks.slice(0, 3).map(localName).join(", ")}${more}`;
}

function digestOf(value: unknown): string {
  return createHash("sha256").update(JSON.stringify(value)).digest("hex").slice(0, 16);
}

/** @param ref `[owner/]id` */
function localOf(ref: string): string {
  return ref.includes("/") ? ref : localName({ owner: DEFAULT_OWNER, id: ref });
}

function keyOf({ queue, owner, id }: TaskName): string {
  return `${queue}/${owner}/${id}`;
}

function shortName({ queue, owner, id }: TaskName): TaskName {
  return { queue, owner, id };
}
