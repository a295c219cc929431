import { type Duration, describeSchedule, type Schedule, seedOf, type TaskName } from "@carillon/core";
import {
  assertName,
  canonicalSchedule,
  covers,
  delayOf,
  durationOption,
  type Freeze,
  frozenAt,
  invalid,
  jitterOf,
  scheduleSteps,
  usesSeed,
} from "@carillon/core/internal";
import { roundedInstant, type Scope } from "@carillon/sdk/internal";
import type { Store, Timing } from "@carillon/store";
import { z } from "zod";
import { conditions } from "../conditions.js";
import { operation } from "../operation.js";
import { count, duration, instant, taskName, time } from "../shapes.js";
import { TimeSlice } from "./time-slice.js";
import { timesFrom } from "./walk.js";

const contributor = z.object({
  humanized: z.string().describe("The schedule in words."),
  tasks: count,
  sample: z.array(taskName).describe("The first ten of them."),
  jitter: z
    .string()
    .optional()
    .describe(
      "A jitter that would spread them to about one a second, or over half of the gap to their next time. Missing: they are too few.",
    ),
});
const collision = z.object({
  at: time,
  count,
  schedules: z
    .array(contributor)
    .describe("At most ten schedules that are due at this instant, those of most tasks first."),
});
const busyStep = z.object({
  at: time,
  count,
  collisions: z
    .array(collision)
    .describe("The five instants at which most tasks meet, most first. Tasks with jitter meet nobody."),
});
const planned = z.object({
  from: time.describe("Start of the first step: a multiple of `step`."),
  step: count.describe("In ms."),
  counts: z.array(count).describe("Occurrences in each step."),
  total: count,
  frozen: count.describe("Occurrences that a freeze skips, or holds beyond the end: not counted."),
  tasks: count.describe("Scheduled tasks that were counted."),
  busiest: z.array(busyStep).describe("The five busiest steps, busiest first."),
});
type Load = z.output<typeof planned>;
type BusyStep = z.output<typeof busyStep>;
type Collision = z.output<typeof collision>;
type Contributor = z.output<typeof contributor>;

const input = z.strictObject({
  from: instant.optional().describe("Default: now."),
  to: instant.optional().describe("Default: 24 hours after `from`."),
  step: duration.optional().describe("Length of a step, at least 1 s; at most 2,000 steps. Default: 1h."),
  queue: conditions.queue,
  owner: conditions.owner,
  tag: conditions.tag,
});

/**
 * Each distinct schedule is computed once. What is owed, waits or is held is not counted; jitter counts at the time it leads to. Refused if it
 * takes more than 2,000,000 steps of schedules.
 */
export const plannedLoad = operation({
  http: "GET /load",
  role: "viewer",
  reach: "owner",
  cost: "computes",
  summary:
    "Counts the occurrences planned in each step of a range of time, and where most tasks meet at one instant.",
  input,
  output: planned,
  run: ({ scope }, input) => load(scope, input),
});

/** Tasks whose times are the same. */
interface Group {
  readonly schedule: Schedule;
  readonly json: string;
  /** The next time of all these tasks, if their times depend on it. */
  readonly first: number | undefined;
  /** Most times of each; undefined: any number. */
  readonly left: number | undefined;
  /** Freezes that hold these tasks at some time. */
  readonly freezes: readonly Freeze[];
  tasks: number;
  /** All that have a jitter; of others, some. */
  readonly names: TaskName[];
}

const MOST_STEPS = 2_000;
/** Steps of schedules for one answer. */
const MOST_WORK = 2_000_000;
/** Number of jitters that are computed one by one; more are assumed to be spread evenly. */
const MOST_EXACT = 50_000;
const BUSIEST = 5;
const SAMPLE = 10;
/** Fewer tasks at one instant need no jitter. */
const CROWD = 10;
const JITTERS = ["10s", "30s", "1m", "2m", "5m", "10m", "15m", "30m", "1h"] as const;
const SECONDS = [10, 30, 60, 120, 300, 600, 900, 1_800, 3_600] as const;

/**
 * @param freezes default: those that are stored @param tasks only these
 * @throws `INVALID_OPTION`, `INVALID_NAME`, `FORBIDDEN`
 */
export async function load(
  scope: Scope,
  options: z.output<typeof input>,
  freezes?: readonly Freeze[],
  tasks?: readonly TaskName[],
): Promise<Load> {
  const { queue, owner, tag } = scope.bind(options);
  for (const [field, value] of Object.entries({ queue, owner, tag })) {
    if (value !== undefined) assertName(value, field);
  }
  const { store } = scope;
  const queues = await scope.queuesOf(queue);
  const step = durationOption((options.step ?? "1h") as Duration, "step", 1_000, 31 * DAY);
  const now = queues[0] === undefined ? 0 : await store.tasks.time(queues[0]);
  // Occurrences due at this instant are claimed already, or owed.
  const start = options.from === undefined ? now + 1 : roundedInstant(options.from, "from");
  const end = options.to === undefined ? start + DAY : roundedInstant(options.to, "to");
  if (end <= start) throw invalid("to", "not after from.", "Give a later time.");
  const range = rangeOf(start, end, step);
  if (range.size > MOST_STEPS)
    throw invalid("step", `more than ${MOST_STEPS} steps.`, "Give a longer step, or a shorter time.");
  await store.calendars.refresh();
  const work = new Work(store, freezes ?? (await store.freezes.list()), range);
  const known = new Map<string, Schedule>();
  for (const name of queues) {
    for await (const timings of store.tasks.timings({ queue: name, owner, tag }, known)) {
      work.add(name, tasks ? timings.filter((one) => covers({ tasks }, { queue: name, ...one })) : timings);
      scope.progress(timings.length);
    }
  }
  return work.count(() => scope.progress(0));
}

/**
 * The load, in whole steps, of tasks that are added to it. Its count refuses too many steps: `INVALID_OPTION`. @param slice shared by
 * several of them
 */
export function emptyLoad(
  store: Store,
  freezes: readonly Freeze[],
  { from, to, step }: { from: number; to: number; step: number },
  slice?: TimeSlice,
): Work {
  return new Work(store, freezes, rangeOf(from, to, step), slice);
}

const DAY = 86_400_000;

interface Range {
  readonly from: number;
  /** Occurrences from here to `end` are counted. */
  readonly start: number;
  readonly end: number;
  readonly step: number;
  readonly size: number;
}

function rangeOf(start: number, end: number, step: number): Range {
  const from = Math.floor(start / step) * step;
  return { from, start, end, step, size: Math.ceil((end - from) / step) };
}

class Work {
  /** By their text, for schedules whose times do not depend on their task the schedule itself. */
  readonly #groups = new Map<string | Schedule, Group>();
  readonly #traits = new Map<Schedule, { seeded: boolean; apart: boolean }>();
  #tasks = 0;
  #frozen = 0;
  #exact = MOST_EXACT;

  constructor(
    private readonly store: Store,
    private readonly freezes: readonly Freeze[],
    private readonly range: Range,
    private readonly slice = new TimeSlice(MOST_WORK),
  ) {}

  /** Adds tasks of one queue. Corrupt or foreign ones are left out. */
  add(queue: string, timings: readonly Timing[]): void {
    for (const { owner, id, tags, schedule, scheduleJson, nominal, fired } of timings) {
      try {
        const { seeded: isSeeded, apart } = this.#traitsOf(schedule);
        const freezes = this.freezes.filter((one) => covers(one, { owner, queue, id, tags }));
        const isPlain = !isSeeded && !apart && freezes.length === 0;
        const first = apart ? nominal : undefined;
        const { maxRuns } = schedule;
        const left = maxRuns === undefined ? undefined : Math.max(0, maxRuns - fired);
        const seeded = isSeeded ? canonicalSchedule(schedule, seedOf({ owner, id })) : "";
        const frozen = freezes.map((one) => one.id).join();
        const key = isPlain ? schedule : [scheduleJson, frozen, seeded, first, left].join("\n");
        let group = this.#groups.get(key);
        if (!group) {
          group = { schedule, json: scheduleJson, first, left, freezes, tasks: 0, names: [] };
          this.#groups.set(key, group);
        }
        group.tasks += 1;
        if (schedule.jitter !== undefined || group.names.length < SAMPLE)
          group.names.push({ queue, owner, id });
        this.#tasks += 1;
      } catch {
        // A schedule that is corrupt or foreign.
      }
    }
  }

  /** `apart`: whether the times of its tasks depend on their next times. */
  #traitsOf(schedule: Schedule): { seeded: boolean; apart: boolean } {
    let traits = this.#traits.get(schedule);
    if (!traits) {
      const apart = schedule.maxRuns !== undefined || delayOf(schedule) !== undefined;
      traits = { seeded: usesSeed(schedule), apart };
      this.#traits.set(schedule, traits);
    }
    return traits;
  }

  /** Occurrences in each step. @param onStep called from time to time */
  async counts(onStep = () => {}): Promise<number[]> {
    const counts = new Array<number>(this.range.size).fill(0);
    for (const group of this.#groups.values()) {
      await this.#spread(group, counts);
      onStep();
    }
    return counts.map(Math.round);
  }

  /** @param onStep called from time to time */
  async count(onStep: () => void): Promise<Load> {
    const { from, step } = this.range;
    const whole = await this.counts(onStep);
    const busiest = whole
      .map((count, i) => ({ at: from + i * step, count }))
      .filter(({ count }) => count > 0)
      .sort((a, b) => b.count - a.count || a.at - b.at)
      .slice(0, BUSIEST);
    const found: BusyStep[] = [];
    for (const one of busiest) found.push({ ...one, collisions: await this.#collisions(one.at) });
    return {
      from,
      step,
      counts: whole,
      total: whole.reduce((sum, count) => sum + count, 0),
      frozen: Math.round(this.#frozen),
      tasks: this.#tasks,
      busiest: found,
    };
  }

  async #spread(group: Group, counts: number[]): Promise<void> {
    const { from, start, end, step } = this.range;
    const { schedule, names } = group;
    const add = (due: number, count: number) => {
      const at = releaseOf(group, due, end);
      if (at === undefined) {
        this.#frozen += count;
        return;
      }
      const i = Math.floor((at - from) / step);
      if (i < counts.length) counts[i] = (counts[i] ?? 0) + count;
    };
    for await (const [at, following] of this.#times(group, start, end)) {
      const { jitter } = schedule;
      if (jitter === undefined) {
        add(at, group.tasks);
      } else if (this.#exact >= names.length) {
        this.#exact -= names.length;
        for (const name of names) add(at + jitterOf(jitter, seedOf(name), at, following()), 1);
      } else {
        // The jitter of many tasks is even, so a sample stands for all.
        const every = Math.ceil(names.length / SAMPLED);
        const some = names.filter((_, i) => i % every === 0);
        const next = following();
        for (const name of some)
          add(at + jitterOf(jitter, seedOf(name), at, next), names.length / some.length);
      }
    }
  }

  /** Times of a group from `start` to before `end`, frozen ones too, each with a function for the one that follows. */
  async *#times(
    group: Group,
    start: number,
    end: number,
  ): AsyncGenerator<[at: number, following: () => number | undefined]> {
    const { schedule, json, first, left = Number.POSITIVE_INFINITY, freezes, names } = group;
    const seed = seedOf(names[0] as TaskName);
    const steps = scheduleSteps(schedule);
    const compiled = this.store.calendars.schedules.compiled(schedule, seed, json);
    const after = first === undefined ? start - 1 : first - 1;
    const begin = first !== undefined && delayOf(schedule) !== undefined ? first : compiled.next(after);
    let n = 0;
    for await (const at of this.slice.over(timesFrom(compiled, begin, end - 1), steps)) {
      if (n >= left) return;
      if (!frozenAt(freezes, at)) n += 1;
      if (at >= start) yield [at, () => compiled.next(at)];
    }
    if (this.slice.spent)
      throw invalid(
        "to",
        "the load takes too many steps.",
        "Ask for a shorter time, one queue or one owner.",
      );
  }

  /** The instants of a step at which most tasks meet. */
  async #collisions(at: number): Promise<Collision[]> {
    const { start, end, step } = this.range;
    const met = new Map<number, Group[]>();
    for (const group of this.#groups.values()) {
      if (group.schedule.jitter !== undefined) continue;
      // A freeze may hold single times of earlier steps until this one.
      const first = isSingle(group) && group.freezes.length > 0 ? start : Math.max(at, start);
      for await (const [due] of this.#times(group, first, Math.min(at + step, end))) {
        const time = releaseOf(group, due, end);
        if (time === undefined || time < at || time >= at + step) continue;
        const there = met.get(time);
        if (there) there.push(group);
        else met.set(time, [group]);
      }
    }
    const size = (groups: readonly Group[]) => groups.reduce((sum, { tasks }) => sum + tasks, 0);
    return [...met]
      .map(([time, groups]) => ({ time, groups, count: size(groups) }))
      .filter(({ count }) => count > 1)
      .sort((a, b) => b.count - a.count || a.time - b.time)
      .slice(0, BUSIEST)
      .map(({ time, groups, count }) => ({
        at: time,
        count,
        schedules: groups
          .sort((a, b) => b.tasks - a.tasks)
          .slice(0, SAMPLE)
          .map((group) => this.#contributor(group, time, count)),
      }));
  }

  #contributor({ schedule, json, tasks, names }: Group, at: number, crowd: number): Contributor {
    const seed = seedOf(names[0] as TaskName);
    const following = this.store.calendars.schedules.compiled(schedule, seed, json).next(at);
    const jitter =
      crowd < CROWD || "at" in schedule || delayOf(schedule) !== undefined
        ? undefined
        : proposal(tasks, following === undefined ? DAY : following - at);
    return {
      humanized: describeSchedule(schedule, seed),
      tasks,
      sample: names.slice(0, SAMPLE),
      ...(jitter !== undefined && { jitter }),
    };
  }
}

function isSingle({ schedule }: Group): boolean {
  return "at" in schedule;
}

/**
 * Time at which occurrences that are due then are enqueued. A freeze holds single times until it ends, and skips others:
 * undefined, also beyond `end`.
 */
function releaseOf(group: Group, due: number, end: number): number | undefined {
  let frozen = frozenAt(group.freezes, due);
  let at = due;
  while (frozen) {
    if (!isSingle(group) || frozen.until === undefined || frozen.until >= end) return undefined;
    at = frozen.until;
    frozen = frozenAt(group.freezes, at);
  }
  return at;
}

/** Jitters of one group and time that are computed if there are too many for all. */
const SAMPLED = 100;

/** The shortest jitter with about one task a second, or the longest within half of the gap. */
function proposal(tasks: number, gap: number): string | undefined {
  const fits = SECONDS.filter((seconds) => seconds * 2_000 <= gap);
  const enough = fits.findIndex((seconds) => seconds >= tasks);
  return tasks < 2 ? undefined : JITTERS[enough < 0 ? fits.length - 1 : enough];
}
