import type { TaskName } from "@carillon/core";
import {
  ALERTS_QUEUE,
  assertName,
  FAILURES,
  grouped,
  invalid,
  localName,
  parseLocalName,
  SUCCESSES,
} from "@carillon/core/internal";
import { roundedInstant, type Scope, wholeNumber } from "@carillon/sdk/internal";
import type { Ended, Skip } from "@carillon/store";
import { z } from "zod";
import { operation } from "../operation.js";
import { count, flag, given, instant, oneOf, taskName, time, wholeNumber as whole } from "../shapes.js";
import { entriesSince } from "./changes-before.js";
import { readableFrom } from "./failures.js";
import { isLate, percentile } from "./figures.js";

const WEEK = 7 * 86_400_000;
/** Tasks, and runs, that are read at once. */
const AT_ONCE = 500;
/** Deploys of an answer. */
const DEPLOYS = 50;

const KINDS = ["task", "owner", "queue", "tag"] as const;
type Kind = (typeof KINDS)[number];

const figures = z
  .object({
    runs: count.describe("Number that ended."),
    share: z
      .number()
      .optional()
      .describe("Successes among successes and failures, 0 to 1. Missing: there are none."),
    p50: count.optional().describe("Of the durations of runs that succeeded, in ms."),
    p95: count.optional(),
    late: count.describe("Runs enqueued 1 s late or later, or that waited 1 min for a worker."),
    skipped: count.describe("Decisions to skip an occurrence, or several in a row."),
  })
  .meta({ id: "TrendFigures" });
type Figures = z.output<typeof figures>;

const trend = z
  .object({
    task: taskName.optional(),
    owner: z.string().optional(),
    queue: z.string().optional(),
    tag: z.string().optional().describe("Empty: tasks without a tag."),
    tasks: count.describe("Number of its tasks with runs or skips in the two times."),
    compared: count.describe(
      "Those whose records reach back to `start`: all figures are of these. 0: they are of all, and nothing is compared.",
    ),
    since: time
      .optional()
      .describe("If nothing is compared: the earliest time from which on records are complete."),
    figures,
    before: figures.optional().describe("Of the time before."),
  })
  .meta({ id: "Trend" });
export type Trend = z.output<typeof trend>;

const COLUMNS = ["name", "runs", "share", "p50", "p95", "late", "skipped"] as const;

/**
 * Reads the records that `retention` keeps. A task whose records do not reach back is not compared: its older runs would seem not to have
 * been. Limits of retention that only workers and nodes have as an option are not known here; they may hide failures.
 */
export const trends = operation({
  http: "GET /runs/trends",
  role: "viewer",
  reach: "owner",
  cost: "computes",
  summary:
    "Compares the runs of a time with those of the same time before, by task, owner, queue or tag: number, share of success, durations, late starts and skips, with the sets that were applied.",
  input: z.strictObject({
    by: oneOf(KINDS).optional().describe("Default: task."),
    owner: given.optional().describe("Only its tasks."),
    queue: given.optional().describe("Only its tasks."),
    tag: given.optional().describe("Only tasks that have it now."),
    from: instant
      .optional()
      .describe("Start of the later time; the time before it is as long. Default: 7 days before `to`."),
    to: instant.optional().describe("Default: now."),
    sort: oneOf(COLUMNS)
      .optional()
      .describe("Worst first: lowest share, highest of all others; or by name. Default: runs."),
    change: flag.optional().describe("Sort by the difference from the time before."),
    reverse: flag.optional().describe("Best first."),
    limit: whole.optional().describe("Most rows, 1 to 1,000. Default: 100."),
  }),
  output: z.object({
    start: time.describe(
      "Start of the time before. Later if more than 200,000 runs ended in the two: the newest were read, and nothing is compared.",
    ),
    from: time,
    to: time,
    runs: count.describe(
      "Number of runs of these tasks that ended from `from` to `to`, as far as they are kept.",
    ),
    rows: z.array(trend),
    more: count.describe("Number of rows beyond `limit`."),
    deploys: z
      .array(
        z.object({
          id: z.string(),
          at: time,
          set: z.string(),
          version: z.string().optional(),
          by: z.string(),
        }),
      )
      .describe(
        `Sets of tasks that were applied in the two times, newest first, at most ${DEPLOYS}. None for a caller that is bound to an owner.`,
      ),
  }),
  async run({ scope }, { by = "task", sort = "runs", change = false, reverse = false, ...input }) {
    const limit = wholeNumber(input.limit ?? 100, "limit", 1, 1_000);
    const { owner, queue, tag } = scope.bind(input);
    for (const [field, name] of Object.entries({ owner, tag }))
      if (name !== undefined) assertName(name, field);
    const queues = (await scope.queuesOf(queue)).filter((one) => one !== ALERTS_QUEUE);
    const { store } = scope;
    const now = await store.freezes.time();
    const to = input.to === undefined ? now : roundedInstant(input.to, "to");
    const from = input.from === undefined ? to - WEEK : roundedInstant(input.from, "from");
    if (from >= to) throw invalid("from", "not before to.", "Give the earlier time first.");
    const asked = Math.max(0, 2 * from - to);
    const start = await readableFrom(store, queues, asked, to);
    const reading = new Reading(scope, { start, from, to, now, isCut: start > asked }, owner);
    const [log] = await Promise.all([
      entriesSince(scope, asked, new Set(["apply"])),
      ...queues.map((one) => reading.read(one)),
    ]);
    const tagsOf = by === "tag" || tag !== undefined ? await reading.tags() : () => [];
    const tallies = reading.tallies.filter((one) => tag === undefined || tagsOf(one).includes(tag));
    const groups = new Map<string, Tally[]>();
    for (const tally of tallies)
      for (const name of namesOf(by, tally, tagsOf(tally))) {
        const group = groups.get(name);
        if (group) group.push(tally);
        else groups.set(name, [tally]);
      }
    const rows = [...groups]
      .map(([name, of]) => ({ name, row: rowOf(by, name, of, start) }))
      .sort(order(sort, change, reverse))
      .map(({ row }) => row);
    return {
      ...{ start, from, to },
      runs: tallies.reduce((sum, { later }) => sum + later.runs, 0),
      rows: rows.slice(0, limit),
      more: Math.max(0, rows.length - limit),
      deploys: log
        .filter(({ at }) => at <= to)
        .slice(0, DEPLOYS)
        .map(({ id, at, scope: { set = "" }, by: author = "", after: { version } = {} }) => ({
          ...{ id, at, set, by: author },
          ...(version !== undefined && { version: String(version) }),
        })),
    };
  },
});

/** Runs and skips of a task in one of the two times. */
class Tally {
  readonly task: TaskName;
  /** Time from which on its records are complete. */
  readonly since: number;
  readonly later = new Sum();
  readonly before = new Sum();

  constructor(task: TaskName, since: number) {
    this.task = task;
    this.since = since;
  }
}

/** Runs and skips, added up. */
class Sum {
  runs = 0;
  successes = 0;
  failures = 0;
  late = 0;
  skipped = 0;
  /** Durations of runs that succeeded. */
  readonly took: number[] = [];

  addRun(run: Ended): void {
    const { outcome, started, at } = run;
    this.runs += 1;
    if (isLate(run)) this.late += 1;
    if (FAILURES.has(outcome)) this.failures += 1;
    if (!SUCCESSES.has(outcome)) return;
    this.successes += 1;
    if (started !== undefined) this.took.push(Math.max(0, at - started));
  }
}

interface Window {
  readonly start: number;
  readonly from: number;
  readonly to: number;
  readonly now: number;
  /** Whether too many runs ended to compare anything. */
  readonly isCut: boolean;
}

/** The runs and skips of the two times, a page at a time. */
class Reading {
  readonly #scope: Scope;
  readonly #window: Window;
  readonly #owner: string | undefined;
  readonly #tallies = new Map<string, Tally>();

  constructor(scope: Scope, window: Window, owner: string | undefined) {
    this.#scope = scope;
    this.#window = window;
    this.#owner = owner;
  }

  get tallies(): Tally[] {
    return [...this.#tallies.values()];
  }

  async read(queue: string): Promise<void> {
    const { store, progress } = this.#scope;
    const { start, to, now } = this.#window;
    const own = this.#owner === undefined ? "" : `${this.#owner}/`;
    /** Times from which on the records of tasks are complete, if they do not reach back. */
    const since = new Map<string, number>();
    for await (const names of store.tasks.names(queue, AT_ONCE)) {
      const locals = names.filter((local) => local.startsWith(own));
      for (const [i, kept] of (await store.runs.kept(queue, locals, now)).entries()) {
        const local = locals[i] as string;
        const from = this.#window.isCut ? Math.max(kept.since, start + 1) : kept.since;
        if (from > start) since.set(local, from);
        for (const skip of kept.skips) this.#addSkip(queue, local, from, skip);
      }
      progress(0);
    }
    for await (const ended of store.runs.ended(queue, { from: start, to })) {
      for (const run of ended) {
        const { local, at } = run;
        const from = since.get(local) ?? 0;
        if (!local.startsWith(own) || at < from) continue;
        const tally = this.#tallyOf(queue, local, from);
        (at < this.#window.from ? tally.before : tally.later).addRun(run);
      }
      progress(0);
    }
  }

  #addSkip(queue: string, local: string, since: number, skip: Skip): void {
    const { start, from, to } = this.#window;
    const before = timesIn(skip, Math.max(start, since), from - 1);
    const later = timesIn(skip, Math.max(from, since), to);
    if (before + later === 0) return;
    const tally = this.#tallyOf(queue, local, since);
    tally.before.skipped += before;
    tally.later.skipped += later;
  }

  #tallyOf(queue: string, local: string, since: number): Tally {
    const key = `${queue}/${local}`;
    let tally = this.#tallies.get(key);
    if (!tally) {
      tally = new Tally({ queue, ...parseLocalName(local) }, since);
      this.#tallies.set(key, tally);
    }
    return tally;
  }

  /** Reads the tags of these tasks. */
  async tags(): Promise<(tally: Tally) => readonly string[]> {
    const found = new Map<Tally, readonly string[]>();
    const queues = grouped(this.#tallies.values(), ({ task }) => task.queue);
    await Promise.all(
      [...queues].map(async ([queue, tallies]) => {
        const tags = await this.#scope.store.tasks.tags(
          queue,
          tallies.map(({ task }) => localName(task)),
        );
        for (const [i, tally] of tallies.entries()) found.set(tally, tags[i] ?? []);
      }),
    );
    return (tally) => found.get(tally) ?? [];
  }
}

/** Decisions of an entry of the ledger about times from one to the other, both included. Those that it counts are taken as evenly apart. */
function timesIn({ from, to, decisions }: Skip, first: number, last: number): number {
  if (to < first || from > last) return 0;
  const step = decisions > 1 ? (to - from) / (decisions - 1) : 0;
  if (step === 0) return from >= first && from <= last ? decisions : 0;
  const until = (at: number) => Math.min(decisions, Math.max(0, Math.floor((at - from) / step) + 1));
  return until(last) - until(first - 1);
}

function namesOf(by: Kind, { task }: Tally, tags: readonly string[]): readonly string[] {
  if (by === "tag") return tags.length > 0 ? tags : [""];
  return [by === "task" ? `${localName(task)} ${task.queue}` : task[by]];
}

function rowOf(by: Kind, name: string, tallies: readonly Tally[], start: number): Trend {
  const compared = tallies.filter(({ since }) => since <= start);
  const shown = compared.length > 0 ? compared : tallies;
  return {
    ...(by === "task" ? { task: (tallies[0] as Tally).task } : { [by]: name }),
    ...{ tasks: tallies.length, compared: compared.length },
    figures: figuresOf(shown.map(({ later }) => later)),
    ...(compared.length > 0
      ? { before: figuresOf(shown.map(({ before }) => before)) }
      : { since: shown.reduce((least, { since }) => Math.min(least, since), Number.MAX_SAFE_INTEGER) }),
  };
}

function figuresOf(sums: readonly Sum[]): Figures {
  const total = (field: "runs" | "successes" | "failures" | "late" | "skipped") =>
    sums.reduce((all, one) => all + one[field], 0);
  const [successes, failures] = [total("successes"), total("failures")];
  const took = Float64Array.from(sums.flatMap((one) => one.took)).sort();
  const [p50, p95] = [percentile(took, 0.5), percentile(took, 0.95)];
  return {
    runs: total("runs"),
    ...(successes + failures > 0 && { share: successes / (successes + failures) }),
    ...(p50 !== undefined && { p50, p95 }),
    ...{ late: total("late"), skipped: total("skipped") },
  };
}

interface Named {
  readonly name: string;
  readonly row: Trend;
}

/** Rows without the figure come last, and of equal ones the first by name is first. */
function order(column: (typeof COLUMNS)[number], change: boolean, reverse: boolean) {
  const sign = (column === "share" || column === "name" ? 1 : -1) * (reverse ? -1 : 1);
  const byName = (a: Named, b: Named) => (a.name < b.name ? -1 : 1);
  if (column === "name") return (a: Named, b: Named) => sign * byName(a, b);
  const sortedBy = ({ row: { figures, before } }: Named) => {
    const value = figures[column];
    if (!change || value === undefined) return value;
    const was = before?.[column];
    return was === undefined ? undefined : value - was;
  };
  return (a: Named, b: Named) => {
    const [x, y] = [sortedBy(a), sortedBy(b)];
    if (x === undefined || y === undefined)
      return Number(x === undefined) - Number(y === undefined) || byName(a, b);
    return sign * (x - y) || byName(a, b);
  };
}
