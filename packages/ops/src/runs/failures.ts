import { OUTCOMES, type TaskName } from "@carillon/core";
import { ALERTS_QUEUE, type Cause, causeOf, grouped, invalid, parseLocalName } from "@carillon/core/internal";
import { roundedInstant, type Scope, wholeNumber } from "@carillon/sdk/internal";
import type { Failure, FailureError, Store } from "@carillon/store";
import { z } from "zod";
import { operation } from "../operation.js";
import { count, given, instant, oneOf, taskName, time, wholeNumber as whole } from "../shapes.js";
import { type Begin, changeShape, changesBefore } from "./changes-before.js";

const DAY = 86_400_000;
/** Runs that are looked at, of all outcomes: the newest. Beyond it `from` of the answer is later than asked. */
const MOST = 200_000;
/** Parts of a group's strip. */
const PARTS = 24;
const EXAMPLES = 3;
/** Runs of a group whose tasks are asked for a change before the first of them. */
const FIRST = 5;

const group = z
  .object({
    cause: z
      .object({
        id: z.string().describe("Eight hexadecimal digits. A silence may name it."),
        outcome: z.enum(OUTCOMES),
        error: z.string().describe("First line; `…` is what differs from run to run."),
        frame: z.string().optional().describe("The user's own frame on top of the stack."),
      })
      .optional(),
    owner: z.string().optional(),
    queue: z.string().optional(),
    task: taskName.optional(),
    runs: count.describe("Number that failed."),
    madeUp: count.describe("Those whose task has succeeded since."),
    owed: count.describe("The others."),
    tasks: count,
    failing: count.describe("Number of its tasks whose last run is one of these: 0 says that it is over."),
    owners: count,
    queues: count,
    first: time.describe("End of the first of these runs."),
    last: time,
    strip: z.array(count).describe(`Number of runs in each of ${PARTS} equal parts of the range.`),
    examples: z
      .array(z.object({ run: z.string(), task: taskName, at: time }))
      .describe(`The newest ${EXAMPLES}, of several tasks if there are.`),
    change: changeShape.optional(),
  })
  .meta({ id: "FailureGroup" });
type Group = z.output<typeof group>;

const KINDS = ["cause", "owner", "queue", "task"] as const;
type Kind = (typeof KINDS)[number];

export const failures = operation({
  http: "GET /runs/failures",
  role: "viewer",
  reach: "owner",
  cost: "computes",
  summary:
    "Groups the runs that failed by their cause, or by owner, queue or task: what fails, whom it hits, and what is left to do.",
  input: z.strictObject({
    by: oneOf(KINDS).optional().describe("Default: cause."),
    cause: given.optional().describe("Only of this cause, by its `id`."),
    owner: given.optional().describe("Of the task."),
    queue: given.optional(),
    from: instant.optional().describe("The end of the run, both included. Default: a day before `to`."),
    to: instant.optional().describe("Default: now."),
    limit: whole.optional().describe("Most groups, those with most runs; 1 to 1,000. Default: 100."),
  }),
  output: z.object({
    from: time.describe(
      "Later than asked if more than 200,000 runs of all outcomes ended in the range: the newest were read.",
    ),
    to: time,
    runs: count.describe("Number that failed in this range."),
    groups: z.array(group),
    more: count.describe("Number of groups beyond `limit`."),
  }),
  async run({ scope }, { by = "cause", ...given }) {
    const limit = wholeNumber(given.limit ?? 100, "limit", 1, 1_000);
    const { window, all } = await failuresIn(scope, given);
    await all.readEnds();
    const found = all.found.sort((a, b) => b.at - a.at);
    const groups = [...grouped(found, keyOf(by)).values()].sort(
      (a, b) => b.length - a.length || (b[0]?.at ?? 0) - (a[0]?.at ?? 0),
    );
    const shown = groups.slice(0, limit);
    const changes = by === "cause" ? await changesBefore(scope, shown.map(beginOf)) : [];
    return {
      ...window,
      runs: found.length,
      groups: shown.map((runs, i) => ({
        ...groupOf(by, runs, window),
        ...(changes[i] && { change: changes[i] }),
      })),
      more: groups.length - shown.length,
    };
  },
});

interface Asked {
  readonly cause?: string | undefined;
  readonly owner?: string | undefined;
  readonly queue?: string | undefined;
  readonly from?: z.output<typeof instant> | undefined;
  readonly to?: z.output<typeof instant> | undefined;
}

/** The failed runs of a range, which begins later than asked if too many runs ended in it. @throws `INVALID_OPTION`, `FORBIDDEN` */
async function failuresIn(
  scope: Scope,
  input: Asked,
): Promise<{ asked: number; window: { from: number; to: number }; all: Failures }> {
  const { store } = scope;
  const { cause, owner, queue, ...given } = scope.bind(input);
  const to = given.to === undefined ? await store.freezes.time() : roundedInstant(given.to, "to");
  const asked = given.from === undefined ? to - DAY : roundedInstant(given.from, "from");
  if (asked > to) throw invalid("from", "after to.", "Give the earlier time first.");
  const queues = queue === undefined ? (await scope.queues()).filter((one) => one !== ALERTS_QUEUE) : [queue];
  const window = { from: await readableFrom(store, queues, asked, to), to };
  const all = new Failures(scope, owner, cause);
  await Promise.all(queues.map((one) => all.read(one, window)));
  return { asked, window, all };
}

/** Ids of the failed runs of one cause. @throws `INVALID_OPTION` if too many runs ended in the range to know them all */
export async function runsOfCause(scope: Scope, given: Asked): Promise<ReadonlySet<string>> {
  const { asked, window, all } = await failuresIn(scope, given);
  if (window.from > asked)
    throw invalid("from", `more than ${MOST} runs ended since.`, "Give a shorter range.");
  return new Set(all.found.map(({ id }) => id));
}

/** A task with failures. */
interface Failing {
  readonly name: TaskName;
  readonly local: string;
  /** Ends of its last run and of its last success. */
  ends: { last?: number; success?: number };
}

interface Found {
  readonly id: string;
  readonly at: number;
  readonly cause: Cause;
  readonly task: Failing;
}

/** The failed runs that are asked for, each with its cause and its task. */
class Failures {
  readonly found: Found[] = [];
  readonly #tasks = new Map<string, Failing>();
  readonly #causes = new Map<string, Cause>();

  constructor(
    private readonly scope: Scope,
    private readonly owner: string | undefined,
    private readonly cause: string | undefined,
  ) {}

  async read(queue: string, window: { from: number; to: number }): Promise<void> {
    const own = this.owner === undefined ? "" : `${this.owner}/`;
    for await (const page of this.scope.store.runs.failures(queue, window)) {
      for (const failure of page) if (failure.local.startsWith(own)) this.#add(queue, failure);
      this.scope.progress(0);
    }
  }

  #add(queue: string, { id, at, local, error }: Failure): void {
    const cause = this.#causeOf(error);
    if (this.cause !== undefined && cause.id !== this.cause) return;
    const key = `${queue}/${local}`;
    const task = this.#tasks.get(key) ?? { name: { queue, ...parseLocalName(local) }, local, ends: {} };
    this.#tasks.set(key, task);
    this.found.push({ id, at, cause, task });
  }

  #causeOf({ outcome, line, frame }: FailureError): Cause {
    const key = `${outcome}\n${line}\n${frame}`;
    const cause = this.#causes.get(key) ?? causeOf(outcome, line, frame);
    this.#causes.set(key, cause);
    return cause;
  }

  /** Reads the ends of the last runs of all these tasks. */
  async readEnds(): Promise<void> {
    const queues = grouped([...this.#tasks.values()], ({ name }) => name.queue);
    await Promise.all(
      [...queues].map(async ([queue, tasks]) => {
        const ends = await this.scope.store.runs.lastEnds(
          queue,
          tasks.map(({ local }) => local),
        );
        for (const [i, task] of tasks.entries()) task.ends = ends[i] ?? {};
      }),
    );
  }
}

/** The earliest time from which on not too many runs have ended. */
export async function readableFrom(
  store: Store,
  queues: readonly string[],
  from: number,
  to: number,
): Promise<number> {
  const ended = async (since: number) => {
    const counts = await Promise.all(
      queues.map((queue) => store.runs.countEnded(queue, { from: since, to })),
    );
    return counts.reduce((sum, one) => sum + one, 0);
  };
  if ((await ended(from)) <= MOST) return from;
  let [many, few] = [from, to];
  while (few - many > 1) {
    const middle = Math.floor((many + few) / 2);
    if ((await ended(middle)) > MOST) many = middle;
    else few = middle;
  }
  return few;
}

function keyOf(by: Kind): (one: Found) => string {
  switch (by) {
    case "cause":
      return ({ cause }) => cause.id;
    case "owner":
      return ({ task }) => task.name.owner;
    case "queue":
      return ({ task }) => task.name.queue;
    case "task":
      return ({ task }) => `${task.name.queue}/${task.local}`;
  }
}

/** The first of its runs, and their tasks. @param newest newest first */
function beginOf(newest: readonly Found[]): Begin {
  const first = newest.slice(-FIRST).reverse();
  return { at: (first[0] as Found).at, tasks: [...new Set(first.map(({ task }) => task.name))] };
}

function groupOf(by: Kind, runs: readonly Found[], { from, to }: { from: number; to: number }): Group {
  const { cause, task } = runs[0] as Found;
  const tasks = new Set(runs.map((one) => one.task));
  const strip = new Array<number>(PARTS).fill(0);
  let [first, last, madeUp, failing] = [Number.POSITIVE_INFINITY, 0, 0, new Set<Failing>()];
  for (const { at, task: its } of runs) {
    const part = Math.min(PARTS - 1, Math.floor(((at - from) * PARTS) / Math.max(1, to - from)));
    strip[part] = (strip[part] ?? 0) + 1;
    [first, last] = [Math.min(first, at), Math.max(last, at)];
    if ((its.ends.success ?? 0) > at) madeUp += 1;
    if (its.ends.last === at) failing.add(its);
  }
  const { owner, queue } = task.name;
  return {
    ...(by === "cause" && { cause }),
    ...(by === "owner" && { owner }),
    ...(by === "queue" && { queue }),
    ...(by === "task" && { task: task.name }),
    ...{ runs: runs.length, madeUp, owed: runs.length - madeUp },
    ...{ tasks: tasks.size, failing: failing.size },
    owners: new Set([...tasks].map(({ name }) => name.owner)).size,
    queues: new Set([...tasks].map(({ name }) => name.queue)).size,
    ...{ first, last, strip, examples: examplesOf(runs) },
  };
}

/** The newest, each of another task as far as there are so many. */
function examplesOf(newest: readonly Found[]): Group["examples"] {
  const tasks = new Set<Failing>();
  const others = newest.filter(({ task }) => tasks.size < EXAMPLES && !tasks.has(task) && tasks.add(task));
  const rest = newest.slice(0, EXAMPLES).filter((one) => !others.includes(one));
  return [...others, ...rest]
    .slice(0, EXAMPLES)
    .map(({ id, at, task }) => ({ run: id, task: task.name, at }));
}
