import { CarillonError, isCarillonError, type TaskName } from "@carillon/core";
import { grouped, localName } from "@carillon/core/internal";
import type { PutOptions, Store, TaskSet } from "@carillon/store";
import { replan } from "../calendars/calendar.js";
import { type Call, operation } from "../operation.js";
import { given } from "../shapes.js";
import { relocate } from "../tasks/move.js";
import { compare, type Planning, prepare, type Step } from "./planning.js";
import { isOlder } from "./refusals.js";
import { applied, setInput } from "./set.js";

/** Tasks written between two checks that no other apply has begun. */
const CHUNK = 1_000;
/** Longest wait for the end of runs of a task that is renamed, in ms. */
const PATIENCE = 5_000;

const input = setInput.extend({
  plan: given.optional().describe("Id of the plan that was shown: another one is refused as STALE_PLAN."),
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
  summary: "Makes the stored tasks of a set those that are given. Of two applies at once, one is STALE_PLAN.",
  input,
  output: applied,
  async run(call, { plan: shown, ...given }) {
    const made = await compare(call, await prepare(call, given));
    const { plan } = made;
    const record = await call.store.sets.get(plan.set);
    const token = tokenOf(shown ?? "", made.input);
    // Only the answer was lost if there is nothing left to do.
    const resumes = record?.applying === token || (record?.applied === token && isNothing(made));
    if (shown !== undefined && shown !== plan.id && !resumes)
      throw stale("what is stored, or the input, has changed since it was shown");
    const [first] = plan.refused;
    if (first)
      throw new CarillonError("PLAN_REFUSED", first.message, { field: first.code, remedy: first.remedy });
    await begin(call, made, shown ?? plan.id);
    await new Apply(call, made, shown ?? plan.id).run();
    return plan;
  },
});

function tokenOf(plan: string, input: string): string {
  return `${plan} ${input}`;
}

function isNothing({ steps, calendars }: Planning): boolean {
  return steps.length === 0 && calendars.size === 0;
}

/** Takes the set's next generation; nobody else has it. An apply that changes nothing takes none. */
async function begin({ store, by }: Call, made: Planning, shown: string): Promise<void> {
  const { set, base, version } = made.plan;
  const token = tokenOf(shown, made.input);
  await store.sets.change(set, (stored) => {
    // The answer to this call was lost.
    if (stored?.applying === token && stored.generation === base + 1) return undefined;
    if ((stored?.generation ?? 0) !== base) throw stale("another apply has begun");
    if (stored?.version !== undefined && (version === undefined || isOlder(version, stored.version)))
      throw stale(`version ${stored.version} was applied`);
    if (isNothing(made)) return undefined;
    const members = stored?.members ?? 0;
    return { ...recordOf(made, by, stored), members, generation: base + 1, applying: token };
  });
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
    ...(version !== undefined && { version }),
    ...(commit !== undefined && { commit }),
    ...(by !== "" && { by }),
  };
}

class Apply {
  readonly #call: Call;
  readonly #store: Store;
  readonly #made: Planning;
  readonly #token: string;

  constructor(call: Call, made: Planning, shown: string) {
    this.#call = call;
    this.#store = call.store;
    this.#made = made;
    this.#token = tokenOf(shown, made.input);
  }

  async run(): Promise<void> {
    const { steps, calendars, plan } = this.#made;
    const { by, log, scope } = this.#call;
    for (const [name, entries] of calendars) await this.#store.calendars.put(name, entries, by);
    if (calendars.size > 0) await replan(this.#store);
    for (const { item } of steps) if (item.from) await this.#rename(item.from, item.task);
    const puts = steps.filter(({ task }) => task !== undefined);
    await this.#inChunks(puts, (some) => this.#put(some));
    await this.#inChunks(steps, async (some) => {
      await Promise.all(some.map((step) => this.#finish(step)));
      scope.progress(some.filter(({ task }) => !task).length);
    });
    await this.#end();
    if (!isNothing(this.#made)) {
      const { create, update, rename, remove } = plan.counts;
      log(
        { set: plan.set },
        { count: steps.length, details: { create, update, rename, remove, version: plan.version } },
      );
    }
  }

  /** Goes on only while no other apply has begun. */
  async #inChunks(steps: readonly Step[], act: (some: readonly Step[]) => Promise<void>): Promise<void> {
    for (let at = 0; at < steps.length; at += CHUNK) {
      const record = await this.#store.sets.get(this.#made.plan.set);
      if (record?.applying !== this.#token) throw stale("another apply has begun meanwhile");
      await act(steps.slice(at, at + CHUNK)).catch((error: unknown) => {
        if (!isCarillonError(error, "CONFLICT") || error.field !== "ifRevision") throw error;
        throw stale(`${error.message} Some tasks are written already`);
      });
    }
  }

  async #rename(from: TaskName, to: TaskName): Promise<void> {
    const source = await this.#store.tasks.get(from);
    if (!source) return;
    // The plan has seen that no other task has its name.
    await relocate(this.#call.scope, { source, target: undefined, to }, PATIENCE, this.#call.by);
  }

  async #put(steps: readonly Step[]): Promise<void> {
    for (const [queue, some] of grouped(steps, ({ item }) => item.task.queue)) {
      const name = ({ item }: Step) => localName(item.task);
      // A renamed task has just got another revision.
      const fixed = some.filter(({ item }) => !item.from);
      const options: PutOptions = {
        by: this.#call.by,
        set: {
          name: this.#made.plan.set,
          filed: new Map(some.map((step) => [name(step), step.filed ?? queue])),
        },
        ifRevision: new Map(fixed.map((step) => [name(step), step.item.revision])),
        onStored: this.#call.scope.progress,
      };
      const tasks = some.flatMap(({ task }) => task ?? []);
      await this.#store.tasks.put(queue, tasks, options);
    }
  }

  async #finish({ item, held }: Step): Promise<void> {
    const { action, task, state, revision } = item;
    const { tasks } = this.#store;
    const { by } = this.#call;
    if (held) await this.#store.moves.end(task);
    if (action === "remove") await tasks.retire(task, revision);
    else if (action === "prune") await tasks.delete(task);
    else if (state === "paused") await tasks.pause(task, by, `set ${this.#made.plan.set}`);
    else if (state === "running") await tasks.resume(task, "skip", by.replace(/\s/g, "_"));
  }

  async #end(): Promise<void> {
    const { by } = this.#call;
    await this.#store.sets.change(this.#made.plan.set, (stored) => {
      const nothing = isNothing(this.#made);
      if (!nothing && stored?.applying !== this.#token) return undefined;
      const { applying: _, ...record } = { ...recordOf(this.#made, by, stored), protect: this.#made.protect };
      // All of an apply that was interrupted is done.
      if (!nothing || stored?.applying) return { ...record, applied: this.#token };
      const same = stored && record.version === stored.version && record.commit === stored.commit;
      return same && JSON.stringify(stored.protect) === JSON.stringify(record.protect) ? undefined : record;
    });
  }
}

function stale(why: string): CarillonError {
  return new CarillonError("STALE_PLAN", `${why.replace(/\.$/, "")}.`, { remedy: "Plan again." });
}
