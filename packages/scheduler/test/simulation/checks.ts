import { isDeepStrictEqual } from "node:util";
import type { RedisClient, Store, StoredTask } from "@carillon/store";
import { internalsOf } from "@carillon/store/internal";
import { FreezeWatch } from "./freeze-watch.js";
import { type Character, OWNER, QUEUE, SHADE } from "./operations.js";
import { Places } from "./places.js";
import { checkTask, fail, Progress } from "./promises.js";

/** An attempt of a run, by the fence that its handler got. */
export interface Attempt {
  readonly run: string;
  readonly fence: number;
}

const TAKES_PLACES = /^(commit|enqueue-new|delete|clear-runs)$/;
const ENDS_RUNS = /^(start-run|settle-run|reconcile)$/;

/** Checks the data in Redis between two steps of a simulation. */
export class Checks {
  /** Tasks that may have two live runs: their policy was `allow` at some time, or a trigger allowed it. */
  readonly mayOverlap = new Set<string>();
  readonly places: Places;
  readonly freezes: FreezeWatch;
  readonly progress = new Progress();
  readonly #created = new Map<string, number>();
  readonly #fences = new Map<string, Set<number>>();
  readonly #store: Store;
  readonly #client: RedisClient;
  readonly #character: Character;

  constructor(store: Store, client: RedisClient, character: Character) {
    this.#store = store;
    this.#client = client;
    this.#character = character;
    this.freezes = new FreezeWatch(store, client, QUEUE);
    this.places = new Places(store, client, QUEUE, [OWNER]);
  }

  /** @param now Redis time, unless it may have gone back */
  async all(now?: number): Promise<void> {
    const { tasks } = await this.#store.tasks.list({ queue: QUEUE }, 100);
    for (const task of tasks) {
      const { id, schedule } = task.definition;
      if (this.#created.get(id) !== task.created) this.progress.deleted(id);
      this.#created.set(id, task.created);
      // The shadow's schedule changes, and it may be planned before the clock goes back, and stored after that.
      const kept = this.#character.schedules !== undefined && id !== SHADE;
      const known = { mayOverlap: this.mayOverlap.has(id), shadow: id === SHADE, born: task.created };
      const whole = { ...known, schedule: kept ? schedule : undefined };
      await checkTask(this.#store, this.#client, task, whole, this.progress);
    }
    await this.#indexes(tasks);
    if (this.#character.limits) {
      await this.places.agree();
      if (now !== undefined) await this.places.rechecked(now);
    }
    if (this.#character.freezes) await this.freezes.ledgers();
  }

  /** Call this when an actor has continued from this point. */
  async moved(point: string): Promise<void> {
    const script = point.slice("before ".length);
    if (!this.#character.limits || (!TAKES_PLACES.test(script) && !ENDS_RUNS.test(script))) return;
    // A reconcile also clears the runs of deleted tasks.
    await this.places.step(ENDS_RUNS.test(script) && !(script === "reconcile" && this.#character.deletes));
  }

  /** Every due task has its entries in the indexes. */
  async #indexes(tasks: readonly StoredTask[]): Promise<void> {
    const mended = await this.#store.tasks.audit(QUEUE);
    const told = tasks.map(({ definition: { id }, state, due, pending, waiting }) => ({
      id,
      state,
      due,
      pending,
      waiting,
    }));
    if (mended > 0) fail(`the due index differed from ${mended} definitions: ${JSON.stringify(told)}`);
    if (tasks.length > 0 && !(await this.#store.registry.queues()).includes(QUEUE))
      fail("a queue with tasks is not in the registry");
    const keys = internalsOf(this.#store).keys.queue(QUEUE);
    const next = await this.#store.claims.next(QUEUE);
    const parts = [
      ...keys.dues.map((key, shard) => [String(shard), key] as const),
      ["r", keys.runs] as const,
    ];
    const heads = await Promise.all(parts.map(([, key]) => this.#client.zrange(key, 0, "0", "WITHSCORES")));
    for (const [i, [part]] of parts.entries()) {
      const head = heads[i]?.[1];
      const at = next.get(part);
      if (head !== undefined && (at === undefined || at > Number(head)))
        fail(`part ${part} is due at ${head}, and its nodes look at ${at}`);
    }
  }

  /**
   * Work that is left to do, or that waits for something.
   * @param now Redis time
   */
  async unrest(now: number): Promise<string> {
    const { tasks } = await this.#store.tasks.list({ queue: QUEUE }, 100);
    const told: string[] = [];
    const entries = await Promise.all(
      tasks.map(async (task) => {
        const ids = await this.#store.runs.open(task.definition);
        const runs = await this.#store.runs.many(QUEUE, ids);
        // A crashed run of a paused task waits for the resume, and keeps its place.
        const held = runs.filter((run) => task.state === "paused" && run.notBefore !== undefined);
        return { ...task, ids, held: held.map(({ id }) => id) };
      }),
    );
    const full = await this.places.areFilledBy(
      OWNER,
      entries.flatMap(({ held }) => held),
    );
    for (const { definition, state, pending, due, ids, held } of entries) {
      const { id } = definition;
      const open = ids.filter((run) => !held.includes(run));
      const waits = !full && state === "scheduled" && (pending.length > 0 || (due ?? Number.NaN) <= now);
      if (waits || open.length > 0) told.push(JSON.stringify({ id, state, due, pending, open }));
    }
    return told.join(" ");
  }

  /** Call this when a handler begins. Returns the fault, if there is one: no two attempts of a task share a fence. */
  began(task: string, fence: number): string | undefined {
    const fences = this.#fences.get(task) ?? new Set();
    this.#fences.set(task, fences);
    if (fences.has(fence)) return `${task}: two attempts have the fence ${fence}`;
    fences.add(fence);
    return undefined;
  }

  /**
   * If another attempt has taken over the run: a function that tells whether a report of this attempt was counted
   * meanwhile.
   */
  async outdated(attempt: Attempt | undefined): Promise<(() => Promise<string | undefined>) | undefined> {
    if (!attempt) return undefined;
    const { run, fence } = attempt;
    const key = internalsOf(this.#store).keys.queue(QUEUE).run(run);
    const before = await this.#client.hgetall(key);
    if (before.fence === undefined || before.fence === String(fence)) return undefined;
    return async () => {
      const after = await this.#client.hgetall(key);
      // Redis may return the fields in another order.
      if (isDeepStrictEqual(after, before)) return undefined;
      return `${run}: the word of an attempt counted that another had taken over from`;
    };
  }
}
