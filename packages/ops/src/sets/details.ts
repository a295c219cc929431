import {
  describeSchedule,
  type Json,
  previewSchedule,
  seedOf,
  type TaskDefinition,
  type TaskName,
} from "@carillon/core";
import { grouped, localName, parseLocalName, type ScheduleCache } from "@carillon/core/internal";
import type { Preview } from "@carillon/sdk";
import { previewOf } from "@carillon/sdk/internal";
import { type Timing, usualMsOf } from "@carillon/store";
import { keyOf } from "../bulk/bulk.js";
import { TimeSlice } from "../occurrences/time-slice.js";
import { countTimes } from "../occurrences/walk.js";
import type { Call } from "../operation.js";
import { type Redactor, redactorOf } from "../redact.js";
import { isSpread, loads, timingOf } from "./load.js";
import type { Detail, Prepared, Step } from "./planning.js";
import { localOf } from "./refusals.js";
import type { Plan } from "./set.js";

/** Changes that are shown with their times. */
const DETAILED = 500;
/** Starts in one minute that are worth a warning. */
const CROWD = 500;
/** Tasks that a plan moves to one minute, from others, that are worth a warning. */
const GATHERED = 100;
const [MINUTE, DAY] = [60_000, 86_400_000];
/** Times of one schedule that are counted for a day: one a second. */
const MOST_TIMES = 86_400;
/** Tasks that a warning names. */
const NAMED = 10;

/** All that people want to see of a plan, and an apply need not know: times of the first changes, load and warnings. */
export class Details {
  readonly #schedules: ScheduleCache;
  readonly #now: number;
  readonly #redactor: Redactor;
  readonly #slice = new TimeSlice(2_000_000);
  #left = DETAILED;
  /** Changed tasks that are counted in the load after the apply. */
  readonly #coming: [queue: string, timing: Timing][] = [];
  readonly #soonest: { readonly task: TaskName; readonly due: number }[] = [];
  /** Minutes of the next times, by the minute that they move to, of stored tasks that nothing spreads. */
  readonly #moved = new Map<number, number[]>();
  /** Shortest gap between the next times of each detailed task that has run before. */
  readonly #gaps: { readonly task: TaskName; readonly gap: number }[] = [];

  /** Tasks that the set protects, and does not any more. */
  readonly #unprotected: readonly { readonly owner: string; readonly id: string }[];

  constructor(
    private readonly call: Call,
    { schedules, now, record, input }: Prepared,
  ) {
    const still = new Set(input.protect?.map(localOf));
    const ended = (record?.protect ?? []).map(localOf).filter((local) => !still.has(local));
    this.#unprotected = ended.map(parseLocalName);
    this.#schedules = schedules ?? call.store.calendars.schedules;
    this.#now = now;
    this.#redactor = redactorOf(input);
  }

  /** Adds its times to the item of a change. */
  readonly of: Detail = async (item, planned, task) => {
    const { stored, due, slot } = planned;
    const { queue, schedule } = task.definition;
    const [was, is] = [stored?.nominal, slot?.nominal].map((at) => at && at - (at % MINUTE));
    if (was && is && was !== is && !isSpread(schedule))
      this.#moved.set(is, [...(this.#moved.get(is) ?? []), was]);
    this.#coming.push(...timingOf(planned, task.definition).map((one): [string, Timing] => [queue, one]));
    if (due !== undefined && due < this.#now + 5 * MINUTE) this.#soonest.push({ task: item.task, due });
    if (this.#left === 0) return item;
    this.#left -= 1;
    const preview = this.#hidden(
      previewOf(this.#schedules, planned, { ...task, definition: { ...task.definition, ...item.from } }),
    );
    const [first, second] = preview.times.after;
    if (first && second && stored)
      this.#gaps.push({ task: planned.name, gap: second.nominal - first.nominal });
    const moved = !stored || (preview.before && "schedule" in preview.before) || item.returns;
    if (!moved) return { ...item, preview };
    const { schedules } = this.call.store.calendars;
    const before = stored && (await this.#fires({ ...stored.definition, ...planned.name }, schedules));
    const after = await this.#fires(task.definition, this.#schedules);
    return { ...item, preview, schedule: { ...(before && { before }), after } };
  };

  #hidden({ before, after, ...rest }: Preview): Preview {
    const shown = (fields: Preview["after"], was?: Preview["before"]) =>
      fields?.["payload"] === undefined
        ? fields
        : { ...fields, payload: this.#redactor.shown(fields["payload"], was?.["payload"]) as Json };
    return { ...rest, before: shown(before), after: shown(after, before) };
  }

  async #fires(definition: TaskDefinition, schedules: ScheduleCache) {
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
        from: this.#now,
        count: 5,
        seed,
        context: schedules.context,
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

  async ofAll(steps: readonly Step[]): Promise<Pick<Plan, "load" | "warnings">> {
    const moved = steps.filter(({ task, item }) => task || item.action === "remove");
    const gone = new Set(moved.map(({ item }) => keyOf(item.from ?? item.task)));
    const { store, scope } = this.call;
    const onStep = () => scope.progress(0);
    const found = gone.size > 0 ? await loads(store, this.#now, gone, this.#coming, onStep) : undefined;
    return { ...(found && { load: found.load }), warnings: await this.#warnings(steps, found) };
  }

  async #warnings(
    steps: readonly Step[],
    loaded: Awaited<ReturnType<typeof loads>>,
  ): Promise<Plan["warnings"]> {
    const { scope, store } = this.call;
    const found = new Warnings();
    const puts = steps.flatMap(({ task }) => task ?? []);
    const lacks = await scope.coverage.warnings(puts.map(({ definition }) => definition));
    for (const [i, { definition, warnings }] of puts.entries())
      for (const warning of [...warnings, ...(lacks[i] ?? [])]) found.add(warning, definition);
    for (const { task, due } of this.#soonest) {
      const message = `it is due ${Math.max(0, Math.round((due - this.#now) / 1_000))} s after this plan.`;
      found.add({ code: "FIRES_SOON", message, remedy: "Check that its worker is deployed." }, task);
    }
    for (const task of this.#unprotected) {
      const message = "its protection ends with this apply: a later one may remove it.";
      found.add(
        { code: "PROTECTION_ENDS", message, remedy: "Leave it in protect, or check that this is meant." },
        task,
      );
    }
    const stats = await store.runs.manyStats(this.#gaps.map(({ task }) => task));
    for (const [i, { task, gap }] of this.#gaps.entries()) {
      const usualMs = usualMsOf(stats[i]?.stored ?? {});
      if (usualMs === undefined || usualMs <= gap) continue;
      const message = `its runs take ${usualMs} ms, longer than the ${gap} ms to the next time.`;
      const remedy = "Give a longer interval, or see the overlap policy.";
      found.add({ code: "INTERVAL_SHORT", message, remedy }, task);
    }
    const { before, after } = loaded?.load ?? {};
    const most = after?.busiest?.count ?? 0;
    // Tasks that have jitter cannot be spread further.
    const crowd = most >= CROWD && most > (before?.busiest?.count ?? 0) ? await loaded?.crowd() : undefined;
    if (crowd && crowd.count >= CROWD) {
      const message = `${crowd.count} starts of tasks without jitter fall into the minute of ${new Date(crowd.at).toISOString()}.`;
      found.add({ code: "BUSY_MINUTE", message, remedy: "Spread them: H in cron, or jitter." });
    }
    for (const [at, from] of this.#moved) {
      const together = Math.max(...[...grouped(from, (was) => was)].map(([, some]) => some.length));
      if (from.length < GATHERED || together > from.length / 2) continue;
      const message = `${from.length} tasks move to the minute of ${new Date(at).toISOString()}; now at most ${together} of them start together.`;
      found.add({
        code: "GATHERS",
        message,
        remedy: "Check that this is meant, or spread them: H in cron, or jitter.",
      });
    }
    return found.all;
  }
}

/** Warnings by their codes, each with the first tasks that it is about. */
class Warnings {
  readonly #found = new Map<
    string,
    { code: string; message: string; remedy: string; tasks: string[]; count: number }
  >();

  get all(): Plan["warnings"] {
    return [...this.#found.values()];
  }

  add(
    warning: { code: string; message: string; remedy: string },
    task?: Pick<TaskName, "owner" | "id">,
  ): void {
    const { code, message, remedy } = warning;
    const one = this.#found.get(code) ?? { code, message, remedy, tasks: [], count: 0 };
    one.count += 1;
    if (task && one.tasks.length < NAMED) one.tasks.push(localName(task));
    this.#found.set(code, one);
  }
}
