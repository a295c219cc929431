import { localName, shardOf } from "@carillon/core/internal";
import type { RedisClient, Store } from "@carillon/store";
import { internalsOf } from "@carillon/store/internal";
import { fail } from "./promises.js";

const ANY_OWNER = "*";
/** The most tasks that the end of one run wakes (lib/places.lua). */
const WOKEN = 16;

/** Wait for a place after which a task is checked again even if nothing wakes it, in ms (`placeWait` of the store). */
const PLACE_WAIT = 30_000;

/** State of an owner's limit in a queue. */
interface Held {
  readonly limit: number | undefined;
  readonly runs: ReadonlySet<string>;
  readonly waiting: readonly string[];
}

/** Promises of the limits by owner in one queue. `step` follows each operation or script that moves runs. */
export class Places {
  readonly #store: Store;
  readonly #client: RedisClient;
  readonly #queue: string;
  readonly #owners: readonly string[];
  readonly #before = new Map<string, Held>();
  /** Open runs that were enqueued while their owner had no limit: they need no place. */
  readonly #unlimited = new Set<string>();

  constructor(store: Store, client: RedisClient, queue: string, owners: readonly string[]) {
    this.#store = store;
    this.#client = client;
    this.#queue = queue;
    this.#owners = owners;
  }

  get #keys() {
    return internalsOf(this.#store).keys.queue(this.#queue);
  }

  async #read(owner: string): Promise<Held> {
    const [limits, runs, waiting] = await Promise.all([
      this.#client.hgetall(this.#keys.limits),
      this.#client.zrange(this.#keys.places(owner), 0, "-1"),
      this.#client.zrange(this.#keys.waiting(owner), 0, "-1"),
    ]);
    const limit = limits[owner] ?? limits[ANY_OWNER];
    return { limit: limit === undefined ? undefined : Number(limit), runs: new Set(runs), waiting };
  }

  /** Call this after a change of the queue's limits. */
  async limited(): Promise<void> {
    const open = await this.#open();
    for (const owner of this.#owners) {
      const held = await this.#read(owner);
      this.#before.set(owner, held);
      for (const run of open.get(owner) ?? []) if (!held.runs.has(run)) this.#unlimited.add(run);
    }
  }

  /** @param ends places were left only by runs that ended, not by deleted tasks */
  async step(ends: boolean): Promise<void> {
    for (const owner of this.#owners) {
      const [before, held] = [this.#before.get(owner), await this.#read(owner)];
      this.#before.set(owner, held);
      if (held.limit === undefined) continue;
      await this.#withinLimit(owner, held, before);
      if (ends && before) this.#woken(owner, held.limit, held, before);
    }
  }

  /**
   * Open runs never exceed the limit that held when the last one was enqueued, except for runs that are retried from
   * outside.
   */
  async #withinLimit(owner: string, { limit = 0, runs }: Held, before: Held | undefined): Promise<void> {
    const taken = [...runs].filter((run) => !before?.runs.has(run));
    const reopened = await Promise.all(
      taken.map((run) => this.#client.hexists(this.#keys.run(run), "reopened")),
    );
    const again = reopened.filter((is) => is === 1).length;
    if (taken.length > again && runs.size - again > limit)
      fail(
        `${owner}: ${runs.size - again} runs are open, over its limit of ${limit}: ${[...runs].join(" ")}`,
      );
  }

  /** The end of a run wakes as many of the waiting tasks as there are places. */
  #woken(owner: string, limit: number, { runs, waiting }: Held, before: Held): void {
    if (before.runs.size < limit || runs.size >= limit) return;
    const left = before.waiting.filter((one) => waiting.includes(one)).length;
    const woken = Math.min(before.waiting.length, limit - runs.size, WOKEN);
    if (left > before.waiting.length - woken)
      fail(`${owner}: a run ended, and did not wake what waits for a place: ${before.waiting.join(", ")}`);
  }

  /** The runs that hold places are exactly the open ones, and only existing tasks wait for places. */
  async agree(): Promise<void> {
    const [open, cleared] = [await this.#open(), await this.#ofDeleted()];
    for (const owner of this.#owners) {
      const { limit, runs, waiting } = await this.#read(owner);
      for (const one of waiting) {
        const task = this.#keys.task(one.split(" ")[1] as string);
        if ((await this.#client.exists(task)) === 0) fail(`${one} was deleted, and waits for a place`);
      }
      const are = open.get(owner) ?? new Set();
      for (const run of runs)
        if (!are.has(run) && !cleared.has(run)) fail(`${owner}: ${run} is not open, and holds a place`);
      if (limit === undefined) continue;
      for (const run of are)
        if (!runs.has(run) && !this.#unlimited.has(run)) fail(`${owner}: ${run} is open without a place`);
    }
  }

  /** Whether these runs hold all places of an owner: nothing else of that owner is enqueued until they end. */
  async areFilledBy(owner: string, held: readonly string[]): Promise<boolean> {
    const { limit, runs } = await this.#read(owner);
    return limit !== undefined && held.filter((run) => runs.has(run)).length >= limit;
  }

  /**
   * Due tasks are checked again in time, even if nothing wakes them.
   * @param now Redis time, which never went back
   */
  async rechecked(now: number): Promise<void> {
    const { tasks } = await this.#store.tasks.list({ queue: this.#queue }, 100);
    for (const { definition, state, due } of tasks) {
      if (state !== "scheduled" || due === undefined || due > now) continue;
      const local = localName(definition);
      const at = await this.#client.zscore(this.#keys.due(shardOf(local)), local);
      if (at === null || Number(at) > now + PLACE_WAIT)
        fail(`${local}: due since ${due}, and checked again at ${at}`);
    }
  }

  /** Open runs by owner. */
  async #open(): Promise<Map<string, Set<string>>> {
    const open = new Map(this.#owners.map((owner) => [owner, new Set<string>()]));
    const { tasks } = await this.#store.tasks.list({ queue: this.#queue }, 100);
    for (const { definition } of tasks)
      for (const run of await this.#store.runs.open(definition)) open.get(definition.owner)?.add(run);
    return open;
  }

  /** Runs of deleted tasks that are not cleared yet. */
  async #ofDeleted(): Promise<Set<string>> {
    const marks = await this.#client.keys(this.#keys.gone("gone:open:*"));
    return new Set((await Promise.all(marks.map((mark) => this.#client.zrange(mark, 0, "-1")))).flat());
  }
}
