import { randomBytes } from "node:crypto";
import type { Outcome, TaskName } from "@carillon/core";
import { assertOptions, invalid, parseLocalName, quote } from "@carillon/core/internal";
import { isAlive, type QueuePosition, type Store, type StreamEntry } from "@carillon/store";
import type { ChangeKind, ChangeScope } from "./change.js";
import type { Scope } from "./scope.js";

/** Something that happened. Times in UTC ms of Redis time. */
export type LiveEvent = { readonly id: string } & (
  | {
      readonly kind: "run-started" | "run-ended";
      readonly task: TaskName;
      readonly run: string;
      readonly nominal: number;
      readonly started?: number | undefined;
      readonly finished?: number | undefined;
      readonly outcome?: Outcome | undefined;
    }
  | {
      readonly kind: "skipped";
      readonly task: TaskName;
      readonly reason: string;
      readonly from: number;
      readonly to: number;
    }
  | {
      readonly kind: "changed";
      readonly change: ChangeKind;
      readonly scope: ChangeScope;
      readonly by?: string;
    }
  | { readonly kind: "node-up" | "node-gone"; readonly node: string }
  /** More happened than is reported, or events were missed: read the shown data again. */
  | { readonly kind: "reset" }
);

export interface EventsOptions {
  /** Only events after the one with this id; `reset` comes first if it is no longer known. Default: from now on. */
  readonly after?: string | undefined;
  /** Ends the iteration. */
  readonly signal?: AbortSignal | undefined;
}

/** Number of events that are kept for listeners that return, or are slow. */
const KEPT = 1_000;
/** Entries read of one stream at once, and runs whose records are read for them. */
const MOST = 100;
/** Shortest time between two reads, in ms, and for each command of a read: at most some 15 commands a second. */
const EVERY = 500;
const EVERY_COMMAND = 70;
/** Nodes and queues are read again after this many ms. */
const SLOW = 5_000;
/** Time in ms for which reading continues without listeners, for those that return. */
const LINGER = 30_000;

type Draft = LiveEvent extends infer Event ? (Event extends unknown ? Omit<Event, "id"> : never) : never;

/** The feeds of this process: one for each store, whatever the number of listeners. */
const FEEDS = new WeakMap<Store, Feed>();

/** Events from now on. @throws `INVALID_OPTION` */
export async function* liveEvents(
  { store, owner }: Scope,
  options: EventsOptions,
): AsyncGenerator<LiveEvent> {
  assertOptions(options, ["after", "signal"]);
  const { after, signal } = options;
  if (after !== undefined && typeof after !== "string")
    throw invalid("after", `got ${quote(after)}.`, "Give the id of an event.");
  let feed = FEEDS.get(store);
  if (!feed) {
    feed = new Feed(store);
    FEEDS.set(store, feed);
  }
  for await (const event of feed.listen(after, signal)) if (isFor(event, owner)) yield event;
}

/** A bound client receives events of its owner only. */
function isFor(event: LiveEvent, owner: string | undefined): boolean {
  if (owner === undefined || event.kind === "reset") return true;
  if ("task" in event) return event.task.owner === owner;
  return event.kind === "changed" && event.scope.owner === owner;
}

/**
 * Reads events from data that is written anyway: BullMQ's events of each queue, the newest skips, the change log, the
 * heartbeats. So claims and workers do no extra work, and Redis answers a few commands a second, only while someone
 * listens.
 */
class Feed {
  readonly #kept: LiveEvent[] = [];
  /** Number of the first event that is kept. */
  #first = 0;
  #name = "";
  #listeners = 0;
  #quietSince = 0;
  #running = false;
  #woken = resolvers();
  readonly #positions = new Map<string, QueuePosition>();
  #changes = "";
  #nodes: Set<string> | undefined;
  #slowAt = 0;

  constructor(private readonly store: Store) {}

  async *listen(after: string | undefined, signal: AbortSignal | undefined): AsyncGenerator<LiveEvent> {
    const aborted = new Promise<void>((resolve) => {
      signal?.addEventListener("abort", () => resolve(), { once: true });
    });
    this.#listeners += 1;
    try {
      await this.#start();
      let next = this.#placeAfter(after);
      while (!signal?.aborted) {
        if (next === undefined || next < this.#first) {
          next = this.#end;
          yield { id: this.#idOf(next - 1), kind: "reset" };
        }
        const event = this.#kept[next - this.#first];
        if (event) {
          next += 1;
          yield event;
        } else {
          await Promise.race([this.#woken.promise, aborted]);
        }
      }
    } finally {
      this.#listeners -= 1;
      if (this.#listeners === 0) this.#quietSince = performance.now();
    }
  }

  get #end(): number {
    return this.#first + this.#kept.length;
  }

  #idOf(place: number): string {
    return `${this.#name}-${place}`;
  }

  /** Undefined: the event is no longer known. */
  #placeAfter(id: string | undefined): number | undefined {
    if (id === undefined) return this.#end;
    const [name, place] = id.split("-");
    const next = Number(place) + 1;
    return name === this.#name && Number.isSafeInteger(next) && next <= this.#end ? next : undefined;
  }

  async #start(): Promise<void> {
    if (this.#running) return;
    this.#running = true;
    this.#name = randomBytes(6).toString("hex");
    this.#kept.length = 0;
    this.#first = 0;
    this.#positions.clear();
    this.#nodes = undefined;
    this.#slowAt = 0;
    try {
      this.#changes = `${await this.store.serverTime()}-0`;
      await this.#readSlow();
    } catch (error) {
      this.#running = false;
      throw error;
    }
    void this.#run();
  }

  async #run(): Promise<void> {
    while (this.#listeners > 0 || performance.now() - this.#quietSince < LINGER) {
      const wait = Math.max(EVERY, EVERY_COMMAND * (1 + 2 * this.#positions.size));
      await new Promise((resolve) => void setTimeout(resolve, wait).unref());
      // Entries that could not be read are read in the next round: positions advance only past those that were.
      await this.#read().catch(() => {});
    }
    this.#running = false;
  }

  async #read(): Promise<void> {
    if (performance.now() >= this.#slowAt) await this.#readSlow();
    const changes = await this.store.events.changes(this.#changes, MOST);
    this.#changes = changes.at(-1)?.id ?? this.#changes;
    for (const entry of changes) this.#add(changeOf(entry));
    for (const [queue, position] of this.#positions) await this.#readQueue(queue, position);
    if (changes.length === MOST) this.#add({ kind: "reset" });
  }

  async #readQueue(queue: string, position: QueuePosition): Promise<void> {
    const { jobs, skips, more } = await this.store.events.queue(queue, position, MOST);
    // The last event of each run.
    const seen = new Map<string, string>();
    for (const { fields } of jobs) {
      const { event = "", jobId = "" } = fields;
      if (["active", "completed", "failed"].includes(event)) seen.set(jobId, event);
    }
    const ids = [...seen.keys()];
    for (const run of await this.store.events.runs(queue, ids)) {
      if (!run) continue;
      const { id, task, nominal, started, finished, outcome } = run;
      const kind = seen.get(id) === "active" ? "run-started" : "run-ended";
      if (kind === "run-started" && run.state === "final") continue; // its end has an entry too, read next time
      this.#add({ kind, task, run: id, nominal, started, finished, outcome });
    }
    for (const { fields } of skips) {
      const [local = "", reason = "", from, to] = (fields["skip"] ?? "").split(" ");
      const task = { queue, ...parseLocalName(local) };
      this.#add({ kind: "skipped", task, reason, from: Number(from), to: Number(to) });
    }
    if (more) this.#add({ kind: "reset" });
  }

  /** Reads the list of queues, and the live nodes and workers. */
  async #readSlow(): Promise<void> {
    const { registry } = this.store;
    const [queues, nodes, now, beaten] = await Promise.all([
      registry.queues(),
      registry.nodes(),
      this.store.serverTime(),
      this.store.freezes.time(),
    ]);
    this.#slowAt = performance.now() + SLOW;
    for (const queue of this.#positions.keys()) if (!queues.includes(queue)) this.#positions.delete(queue);
    // A new queue may have events since the last check.
    const since = this.#nodes === undefined ? now : now - 2 * SLOW;
    for (const queue of queues)
      if (!this.#positions.has(queue))
        this.#positions.set(queue, { jobs: `${since}-0`, skips: `${since}-0` });
    const alive = new Set(nodes.filter((node) => isAlive(node, beaten)).map(({ id }) => id));
    const before = this.#nodes ?? alive;
    for (const node of alive) if (!before.has(node)) this.#add({ kind: "node-up", node });
    for (const node of before) if (!alive.has(node)) this.#add({ kind: "node-gone", node });
    this.#nodes = alive;
  }

  #add(event: Draft | undefined): void {
    if (!event) return;
    this.#kept.push({ id: this.#idOf(this.#end), ...event });
    if (this.#kept.length > KEPT) {
      this.#kept.shift();
      this.#first += 1;
    }
    const woken = this.#woken;
    this.#woken = resolvers();
    woken.resolve();
  }
}

/** Leaves out the changed fields, which may hold payloads. */
function changeOf({ fields }: StreamEntry): Draft | undefined {
  try {
    const { kind, scope, by } = JSON.parse(fields["entry"] ?? "") as {
      kind: ChangeKind;
      scope: ChangeScope;
      by?: string;
    };
    return { kind: "changed", change: kind, scope: { ...scope }, ...(by !== undefined && { by }) };
  } catch {
    return undefined;
  }
}

function resolvers(): { promise: Promise<void>; resolve: () => void } {
  let resolve = () => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}
