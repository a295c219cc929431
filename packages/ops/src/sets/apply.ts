import { CarillonError, type Duration, isCarillonError, type TaskName } from "@carillon/core";
import { durationOption, grouped, localName } from "@carillon/core/internal";
import type { PutOptions, Store, TaskSet } from "@carillon/store";
import { keyOf } from "../bulk/bulk.js";
import { replan } from "../calendars/calendar.js";
import { setMark, undoMark } from "../changes/replaced.js";
import { type Call, exampleTask, operation } from "../operation.js";
import { duration, given } from "../shapes.js";
import { release, relocate } from "../tasks/move.js";
import { compare, type Planning, prepare, type Step } from "./planning.js";
import { outdates } from "./refusals.js";
import { applied, type GivenSet, setInput } from "./set.js";

/** Tasks that are changed at once after the puts. */
const CHUNK = 1_000;
/** Tasks that the log shows, and the most that it lists to undo an apply. */
const [SAMPLE, MOST_UNDONE] = [10, 10_000];
/** Tasks whose open runs are waited for at once. */
const MOVES = 20;
/** Longest wait for the end of runs of a task that is renamed or moved, in ms, and the most that can be asked for. */
const [PATIENCE, MOST_PATIENCE] = [5_000, 3_600_000];

const crew = (hour: number) => ["s1", "s2"].map((id) => exampleTask(id, { cron: `0 ${hour} * * *` }));
const input = setInput.extend({
  plan: given.optional().describe("Id of the plan that was shown: another one is refused as STALE_PLAN."),
  wait: duration
    .optional()
    .describe(
      "Longest wait for the end of the open runs of a task that it moves or renames, during which nothing of that task is claimed. Default: `5s`; at most `1h`.",
    ),
});

/**
 * Makes the plan, checks all of it, and then does it. Interrupted, the same call goes on. Nothing that an apply does makes an occurrence due: new
 * times are strictly after it. A removed task finishes, and lingers with its history.
 */
export const applySet = operation({
  http: "POST /sets/:set/apply",
  role: "admin",
  reach: "namespace",
  cost: "computes",
  logs: "apply",
  once: {
    known: "revision",
    leaves: "held",
    // The tasks as they are stored: that call has nothing to do.
    against: [["sets.apply", { version: "3", tasks: crew(10) }]],
  },
  example: { set: "crew", version: "2", tasks: crew(11) },
  summary:
    "Makes the stored tasks of a set those that are given. Of two applies at once, one is STALE_PLAN. A task with open runs that is to be moved does not hold up the others: it is CONFLICT at the end, and a repetition goes on with it.",
  input,
  output: applied,
  async run(call, { plan: shown, wait, ...given }) {
    const patience = durationOption(wait as Duration | undefined, "wait", 0, MOST_PATIENCE) ?? PATIENCE;
    return (await apply(call, async () => given, shown, patience)).made.plan;
  },
});

/**
 * Makes the plan and does it.
 *
 * @param read the input; read again if another apply may have written meanwhile
 * @param shown id of the plan that was shown; undefined: any
 * @returns what it did, and the id of its entry in the change log, if it did anything
 */
export async function apply(
  call: Call,
  read: () => Promise<GivenSet>,
  shown?: string,
  patience = PATIENCE,
): Promise<{ made: Planning; change: string | undefined }> {
  const make = async () => compare(call, await prepare(call, await read()));
  const made = await make();
  const { plan } = made;
  const record = await call.store.sets.get(plan.set);
  const token = `${shown ?? plan.id} ${made.input}`;
  // Only the answer was lost if there is nothing left to do.
  const resumes = record?.applying === token || (isOf(record?.applied, made) && isNothing(made));
  const isExact = shown !== undefined && !resumes;
  if (isExact && shown !== plan.id)
    throw stale("what is stored, or the input, has changed since it was shown");
  assertNotRefused(made);
  const begun = await begin(call, made, token);
  const done = begun?.isContested ? await renewed(call, make, made, isExact, begun) : made;
  const applying = new Apply(call, done, token, begun?.generation, patience);
  const change = await applying.run(record).catch((error: unknown) => {
    if (!isCarillonError(error, "CONFLICT") || error.field !== "ifRevision") throw error;
    throw stale(`${error.message} Some tasks are written already`);
  });
  return { made: done, change };
}

function isNothing({ steps, calendars }: Planning): boolean {
  return steps.length === 0 && calendars.size === 0;
}

/** Whether a token is of an apply of the same input. */
function isOf(token: string | undefined, { input }: Planning): boolean {
  return token?.endsWith(` ${input}`) ?? false;
}

function assertNotRefused({ plan: { refused } }: Planning): void {
  const [first] = refused;
  if (first)
    throw new CarillonError("PLAN_REFUSED", first.message, { field: first.code, remedy: first.remedy });
}

/** An apply that has a generation of the set. */
interface Begun {
  readonly generation: number;
  /** The record that it has replaced; undefined: none, or it has joined another call with the same input. */
  readonly former: TaskSet | undefined;
  /** Whether another call had not ended. */
  readonly isContested: boolean;
  /** Queues in which no apply before it can write any more. */
  readonly queues: ReadonlySet<string>;
}

/**
 * Takes the set's next generation, and shuts out all applies before it: nothing that they have sent, or will send, is written any more. An
 * apply that has nothing to do takes a generation too if another one has not ended. One with the same input is joined instead: both do the
 * same under one generation. Undefined: no generation is needed.
 */
async function begin({ store, by }: Call, made: Planning, token: string): Promise<Begun | undefined> {
  const { set, base, version } = made.plan;
  let begun: Begun | undefined;
  await store.sets.change(set, (stored) => {
    const joins = isOf(stored?.applying, made);
    if (!joins && (stored?.generation ?? 0) !== base) throw stale("another apply has begun");
    if (stored && !made.undoes && outdates(version, stored))
      throw stale(`version ${stored.version} was applied`);
    if (isNothing(made) && stored?.applying === undefined) return undefined;
    const queues = new Set([...(stored?.queues ?? []), ...queuesOf(made)]);
    if (stored && joins && [...queues].every((queue) => stored.queues?.includes(queue))) {
      // If it is this call, the answer to this change was lost.
      begun ??= { generation: stored.generation, former: undefined, isContested: true, queues };
      return undefined;
    }
    const isContested = stored?.applying !== undefined;
    begun = { generation: (stored?.generation ?? 0) + 1, former: stored, isContested, queues };
    const members = stored?.members ?? 0;
    const taken = { generation: begun.generation, members, queues: [...queues], applying: token };
    return { ...recordOf(made, by, stored), ...taken };
  });
  if (begun) await store.sets.raise(store.sets.guard(set, begun.generation), [...begun.queues]);
  return begun;
}

function queuesOf({ steps }: Planning): Set<string> {
  return new Set(steps.flatMap(({ item: { task, from } }) => [task.queue, ...(from ? [from.queue] : [])]));
}

/** Compares again, since an apply that had not ended may have written until it was shut out. */
async function renewed(
  call: Call,
  make: () => Promise<Planning>,
  made: Planning,
  isExact: boolean,
  { generation, former, queues }: Begun,
): Promise<Planning> {
  const now = await make();
  if (now.does === made.does) return made;
  try {
    assertNotRefused(now);
    if ((isExact && former) || [...queuesOf(now)].some((queue) => !queues.has(queue)))
      throw stale("another apply has written since it was shown");
    return now;
  } catch (error) {
    // This one has written nothing, so that the record names the other one as interrupted again.
    await call.store.sets.change(made.plan.set, (stored) =>
      former && stored?.generation === generation
        ? { ...former, generation, queues: [...queues] }
        : undefined,
    );
    throw error;
  }
}

function recordOf({ plan, members }: Planning, by: string, stored: TaskSet | undefined): TaskSet {
  const { set: name, version, commit, at } = plan;
  return {
    name,
    generation: stored?.generation ?? 0,
    members,
    at,
    protect: stored?.protect ?? [],
    ...(stored?.applied !== undefined && { applied: stored.applied }),
    ...(stored?.queues !== undefined && { queues: stored.queues }),
    ...(version !== undefined && { version }),
    ...(commit !== undefined && { commit }),
    ...(by !== "" && { by }),
  };
}

class Apply {
  /** Refuses each change once another apply has taken over. */
  readonly #store: Store;
  /** Kept with the definitions that it replaces: a repetition has the same one. */
  readonly #mark: string;

  /** @param generation undefined: there is nothing to do */
  constructor(
    private readonly call: Call,
    private readonly made: Planning,
    private readonly token: string,
    private readonly generation: number | undefined,
    private readonly patience: number,
  ) {
    const { store } = call;
    this.#store =
      generation === undefined ? store : store.guarded(store.sets.guard(made.plan.set, generation));
    this.#mark = made.undoes ? undoMark(made.undoes.change) : setMark(made.plan.set, generation ?? 0);
  }

  /** @param former the set before it @returns the id of its entry in the change log, if it did anything */
  async run(former: TaskSet | undefined): Promise<string | undefined> {
    const { steps, calendars } = this.made;
    const { by, scope } = this.call;
    // Written first, so that an apply that dies midway can be undone too.
    const change = isNothing(this.made) ? undefined : await this.#record(former);
    for (const [name, entries] of calendars) await this.#store.calendars.put(name, entries, by);
    if (calendars.size > 0) await replan(this.#store);
    for (const { item, held } of steps) if (held) await release(this.#store, item.task);
    const busy = await this.#move(steps.filter(({ item }) => item.from));
    const left = steps.filter(({ item }) => !busy.has(item));
    await this.#put(left.filter(({ task }) => task !== undefined));
    await inChunks(left, CHUNK, async (some) => {
      await Promise.all(some.map((step) => this.#finish(step)));
      scope.progress(some.filter(({ task }) => !task).length);
    });
    const [first] = busy.values();
    if (first) throw isBusy([...busy.keys()], first, left.length);
    await this.#end();
    return change;
  }

  #record(former: TaskSet | undefined): Promise<string> {
    const { steps, plan, undoes, calendars } = this.made;
    const { create, update, rename, remove } = plan.counts;
    const some = steps.slice(0, SAMPLE).map(({ item, moves }) => ({ ...item.task, ...moves }));
    return this.call.record(
      { set: plan.set },
      {
        ...{ count: steps.length, sample: some },
        ...(calendars.size === 0 && steps.length <= MOST_UNDONE && { undo: steps.map(undoLine) }),
        ...(former?.version !== plan.version && { before: versionOf(former), after: versionOf(plan) }),
        details: {
          ...{ create, update, rename, remove, generation: this.generation },
          ...(calendars.size > 0 && { calendars: [...calendars.keys()] }),
          ...(undoes && { undoes: undoes.change }),
        },
      },
    );
  }

  /** Renames and moves tasks. Returns those that have open runs or a backfill, with the reasons: they stay as they are. */
  async #move(steps: readonly Step[]): Promise<Map<Step["item"], CarillonError>> {
    const busy = new Map<Step["item"], CarillonError>();
    await inChunks(steps, MOVES, async (some) => {
      const moves = some.map(async ({ item }) => {
        const from = item.from as TaskName;
        await relocate(this.#store, from, item.task, this.patience, this.call.by).catch((error: unknown) => {
          if (isCarillonError(error, "CONFLICT")) busy.set(item, error);
          // An edit, or another call, came first: the put says what to do.
          else if (!isCarillonError(error, "TASK_NOT_FOUND")) throw error;
        });
      });
      // The others end first: each is held until then.
      const failed = (await Promise.allSettled(moves)).find((one) => one.status === "rejected");
      if (failed) throw failed.reason;
    });
    return busy;
  }

  async #put(steps: readonly Step[]): Promise<void> {
    for (const [queue, some] of grouped(steps, ({ item }) => item.task.queue)) {
      const name = ({ item }: Step) => localName(item.task);
      // A renamed task has just got another revision.
      const fixed = some.filter(({ item }) => !item.from);
      const options: PutOptions = {
        by: this.call.by,
        set: {
          name: this.made.plan.set,
          filed: new Map(some.map((step) => [name(step), step.filed ?? queue])),
        },
        ifRevision: new Map(fixed.map((step) => [name(step), step.item.revision])),
        change: this.#mark,
        onStored: this.call.scope.progress,
      };
      const tasks = some.flatMap(({ task }) => task ?? []);
      await this.#store.tasks.put(queue, tasks, options);
    }
  }

  async #finish({ item }: Step): Promise<void> {
    const { action, task, state, revision } = item;
    const { tasks } = this.#store;
    const { by } = this.call;
    if (action === "remove") await tasks.retire(task, revision);
    else if (action === "prune") await tasks.delete(task);
    else if (state === "paused") await tasks.pause(task, by, pauseNote(this.made.plan.set));
    else if (state === "running") await tasks.resume(task, "skip", by.replace(/\s/g, "_"));
  }

  async #end(): Promise<void> {
    const { by } = this.call;
    await this.#store.sets.change(this.made.plan.set, (stored) => {
      const { applying: _, ...record } = { ...recordOf(this.made, by, stored), protect: this.made.protect };
      if (this.generation !== undefined) {
        // Another apply may have taken over: all of this one is done.
        if (stored?.generation !== this.generation) return undefined;
        return { ...record, applied: this.token, queues: [...queuesOf(this.made)] };
      }
      const same = stored && record.version === stored.version && record.commit === stored.commit;
      return same && JSON.stringify(stored.protect) === JSON.stringify(record.protect) ? undefined : record;
    });
  }
}

/**
 * A step as the log lists it, for an undo: `queue/owner/id`; of others than an update of its definition alone, ` ACTION STATE`, where the state is
 * the one that the step gave it, or for a removed task the one it had.
 */
function undoLine({ item, adopted, paused }: Step): string {
  const { action, returns, task, state = paused ? "paused" : undefined } = item;
  const how = adopted ? "adopt" : returns ? "create" : action;
  const more = how === "update" && !state ? [] : [how, ...(state ? [state] : [])];
  return [keyOf(task), ...more].join(" ");
}

export function pauseNote(set: string): string {
  return `set ${set}`;
}

function versionOf({ version, commit }: Pick<TaskSet, "version" | "commit"> = {}) {
  return { ...(version !== undefined && { version }), ...(commit !== undefined && { commit }) };
}

async function inChunks<One>(
  all: readonly One[],
  size: number,
  act: (some: readonly One[]) => Promise<void>,
): Promise<void> {
  for (let at = 0; at < all.length; at += size) await act(all.slice(at, at + size));
}

function stale(why: string): CarillonError {
  return new CarillonError("STALE_PLAN", `${why.replace(/\.$/, "")}.`, { remedy: "Plan again." });
}

/** @param done changes that were made nevertheless */
function isBusy(items: readonly Step["item"][], first: CarillonError, done: number): CarillonError {
  const names = items.slice(0, 3).map(({ from }) => localName(from as TaskName));
  const more = items.length > 3 ? ` and ${items.length - 3} more` : "";
  return new CarillonError(
    "CONFLICT",
    `${names.join(", ")}${more} could not be moved, the other ${done} changes are made: ${first.message}`,
    { remedy: "Then apply again: it goes on with the rest." },
  );
}
