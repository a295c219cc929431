import { DEFAULT_NAMESPACE } from "@carillon/core";
import {
  assertName,
  assertOptions,
  assertWhole,
  durationOption,
  isName,
  MAX_DURATION,
  parseLocalName,
} from "@carillon/core/internal";
import { AlertRepository } from "./alerts.js";
import { BackfillRepository } from "./backfills.js";
import { ItemRepository } from "./bull/items.js";
import { loadBull } from "./bull/load.js";
import { QueueRepository } from "./bull/queues.js";
import { CalendarRepository } from "./calendars.js";
import { ChangeLog } from "./changes.js";
import { ClaimRepository } from "./claim/claims.js";
import { EventReads } from "./events.js";
import { FreezeRepository } from "./freezes.js";
import { rememberInternals, type StoreInternals } from "./internals.js";
import { namespaceKeys } from "./keys.js";
import { Marks } from "./marks.js";
import { ObservationRepository } from "./observations.js";
import { OptimisticWrites } from "./optimistic.js";
import {
  type ConnectionProfile,
  type ConnectionSpec,
  mastersOf,
  type RedisClient,
  redisError,
} from "./redis/connection.js";
import { failing } from "./redis/failpoints.js";
import { type ConnectionEars, Link, type LinkOptions } from "./redis/link.js";
import { type Lease, NO_MUTEX, redlockMutex } from "./redis/mutex.js";
import { readServerInfo, readSlowlog, type ServerInfo, type SlowCommand } from "./redis/server-info.js";
import { type Ears, Subscription } from "./redis/subscription.js";
import { Registry } from "./registry.js";
import { RunRepository } from "./run/runs.js";
import { type Guard, REDIS_TIME } from "./script/context.js";
import { FACTS } from "./script/facts.js";
import { Scripts } from "./script/scripts.js";
import { seamsOf } from "./seams.js";
import { SetRepository } from "./sets.js";
import { Settings } from "./settings.js";
import { DEFAULT_RETENTION, type Retention, type RetentionOptions } from "./task/codec.js";
import { MoveRepository } from "./task/moves.js";
import { TaskRepository } from "./task/tasks.js";
import { TokenRepository } from "./tokens.js";

export interface StoreOptions extends Omit<LinkOptions, "connection"> {
  /** Undefined: an error of the first call. */
  connection: ConnectionSpec | undefined;
  /** Default `carillon`. */
  namespace?: string | undefined;
  retention?: RetentionOptions | undefined;
}

/** Channels of a namespace: due times that came nearer (`queue part at`), and cancelled runs (`queue run`). */
export type Channel = "wake" | "cancel";

/** Keys that one SCAN reads, and the most calls of it for each server. */
const [SCANNED, SCANS] = [5_000, 200];

/** Entries of a server's log of slow commands that are read: all that it keeps by default. */
const SLOWLOG = 128;

type Server = Pick<RedisClient, "info" | "scan" | "slowlog">;

/** All of Carillon's data in Redis, by subject. Uses one connection. */
export class Store {
  readonly namespace: string;
  readonly tasks: TaskRepository;
  readonly claims: ClaimRepository;
  readonly runs: RunRepository;
  readonly registry: Registry;
  readonly calendars: CalendarRepository;
  readonly freezes: FreezeRepository;
  readonly alerts: AlertRepository;
  readonly backfills: BackfillRepository;
  readonly queues: QueueRepository;
  readonly items: ItemRepository;
  readonly changes: ChangeLog;
  readonly events: EventReads;
  /** Alerts that were delivered or silenced. */
  readonly alertLog: ChangeLog;
  readonly tokens: TokenRepository;
  readonly sets: SetRepository;
  readonly moves: MoveRepository;
  readonly observations: ObservationRepository;
  readonly #options: StoreOptions;
  readonly #internals: StoreInternals;

  /** @param shared the connection of another store, and the guard of all changes: see `guarded` */
  constructor(options: StoreOptions, shared?: { readonly link: Link; readonly guard: Guard }) {
    this.#options = options;
    this.namespace = assertName(options.namespace ?? DEFAULT_NAMESPACE, "namespace");
    const seams = seamsOf(options);
    const sabotage = seams.sabotage ?? [];
    const keys = namespaceKeys(this.namespace);
    const link = shared?.link ?? new Link(options, seams.failpoint);
    const checks = sabotage.filter((part) => part !== "mutex");
    const scripts = new Scripts(link, seams.time ?? REDIS_TIME, checks, shared?.guard);
    const optimistic = new OptimisticWrites();
    const marks = new Marks(link);
    const settings = new Settings(link, scripts, marks);
    const parts = { link, keys, scripts, marks, settings, optimistic };
    this.freezes = new FreezeRepository(parts);
    this.registry = new Registry(parts, this.freezes);
    this.calendars = new CalendarRepository(parts);
    const { registry, calendars } = this;
    this.tasks = new TaskRepository(parts, registry, this.freezes, calendars);
    this.claims = new ClaimRepository(link, keys, scripts, calendars.schedules, optimistic);
    this.runs = new RunRepository(parts, calendars, retention(options.retention));
    this.backfills = new BackfillRepository(parts);
    this.alerts = new AlertRepository(parts);
    this.queues = new QueueRepository(parts, this.namespace);
    this.items = new ItemRepository(parts);
    this.changes = new ChangeLog(parts);
    this.events = new EventReads(parts);
    this.alertLog = new ChangeLog({ ...parts, keys: { ...keys, changes: keys.alertLog } });
    this.sets = new SetRepository(parts);
    this.tokens = new TokenRepository(parts);
    this.moves = new MoveRepository(parts);
    this.observations = new ObservationRepository(parts);
    const mutex = sabotage.includes("mutex") ? NO_MUTEX : redlockMutex(() => link.client);
    this.#internals = {
      link,
      keys,
      optimistic,
      seams,
      mutex: seams.failpoint ? failing(mutex, seams.failpoint) : mutex,
    };
    rememberInternals(this, this.#internals);
  }

  /** The same store, on the same connection; once somebody has raised the guard above its number, each change is `STALE_PLAN`. */
  guarded(guard: Guard): Store {
    return new Store(this.#options, { link: this.#internals.link, guard });
  }

  /** Whether the connection is ready for commands now. */
  get ready(): boolean {
    return this.#internals.link.ready;
  }

  /** Listens for lost and restored connections. @returns ends it */
  watch(ears: ConnectionEars): () => void {
    return this.#internals.link.watch(ears);
  }

  /** Listens to a channel, on a connection of its own, until `stop`. */
  listen(channel: Channel, ears: Ears): Subscription {
    return new Subscription(this.connect("safe"), this.#internals.keys[channel], ears);
  }

  /** Takes the mutex of a queue's part for `ttl` ms. Undefined: another node has it. */
  lease(queue: string, part: string, ttl: number): Promise<Lease | undefined> {
    const { mutex, keys } = this.#internals;
    return mutex.take(keys.queue(queue).mutex(part), ttl);
  }

  /** Frees the mutex of a queue's part, whoever has it. */
  freeLease(queue: string, part: string): Promise<void> {
    const { mutex, keys } = this.#internals;
    return mutex.free(keys.queue(queue).mutex(part));
  }

  /** Facts about each master, from `INFO`. */
  info(): Promise<ServerInfo[]> {
    return this.#masters(async (server) => readServerInfo(await server.info()));
  }

  /** The slowest commands that each master still remembers. @throws `REDIS_AUTH` if this user may not ask */
  async slowCommands(): Promise<SlowCommand[]> {
    const logs = await this.#masters(async (server) => readSlowlog(await server.slowlog("GET", SLOWLOG)));
    return logs.flat().sort((a, b) => b.tookMs - a.tookMs);
  }

  /** The namespaces of this Redis that have queues, among the first million keys or so of each master. */
  async namespaces(): Promise<string[]> {
    const found = await this.#masters(async (server) => {
      const names: string[] = [];
      let cursor = "0";
      for (let step = 0; step === 0 || (cursor !== "0" && step < SCANS); step++) {
        const [next, keys] = await server.scan(cursor, "MATCH", namespaceKeys("*").queues, "COUNT", SCANNED);
        cursor = next;
        names.push(...keys.map((key) => key.slice(1, key.indexOf("}"))).filter(isName));
      }
      return names;
    });
    return [...new Set(found.flat())].sort();
  }

  #masters<T>(ask: (server: Server) => Promise<T>): Promise<T[]> {
    return this.#internals.link.ask((client) => Promise.all(mastersOf(client).map(ask)));
  }

  /**
   * Another connection to the same Redis, for example for BullMQ's workers. Open it after the first answer: only then is a cluster
   * with one address known as such.
   */
  connect(profile: ConnectionProfile): RedisClient {
    return this.#internals.link.connect(profile);
  }

  /** The server's time in ms, with how long the answer took. */
  async serverTime(): Promise<number> {
    const [seconds, micros] = (await this.#internals.link.ask((client) => client.time())) as unknown as [
      string,
      string,
    ];
    return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
  }

  /**
   * Deletes a queue: its tasks with their records, and all that BullMQ keeps of it. Returns how many tasks there were. Active
   * jobs are deleted too: stop the workers first.
   */
  async deleteQueue(queue: string): Promise<number> {
    let deleted = 0;
    // Deletes by name, so that tasks that this version cannot read are deleted too.
    for await (const locals of this.tasks.names(queue, 100)) {
      for (const local of locals)
        if (await this.tasks.delete({ queue, ...parseLocalName(local) })) deleted += 1;
    }
    const client = this.connect("patient");
    try {
      await (await loadBull()).obliterate(client, this.namespace, queue);
      await this.tasks.clearDeletedRuns(queue);
      const keys = this.#internals.keys.queue(queue);
      const { runs, next, alerts, journal, outcomes, expected, backfills, priorities, limits, held } = keys;
      await client.del(journal, outcomes, limits, held, keys.collected, keys.digests);
      // A task that was put meanwhile needs these: without them, nobody would find its run if it is lost.
      if ((await client.exists(keys.tasks)) === 0) {
        await client.del(runs, alerts, expected, backfills, priorities);
        // Keeps the shards' parts, for a task that is put now.
        await client.zrem(next, ...Object.values(FACTS.parts));
      }
    } catch (error) {
      throw redisError(error);
    } finally {
      client.disconnect();
    }
    await this.registry.forgetIfEmpty(queue);
    return deleted;
  }

  /** Stores the entries sent to the change log first, if the connection is ready. */
  async close(): Promise<void> {
    if (this.ready) await this.changes.settled();
    await this.#internals.link.close();
  }
}

/** @throws `INVALID_OPTION` */
function retention({ completedJobs, failedJobs, ...runs }: RetentionOptions = {}): Retention {
  return {
    ...limits("retention", DEFAULT_RETENTION, runs),
    completedJobs: limits("retention.completedJobs", DEFAULT_RETENTION.completedJobs, completedJobs),
    failedJobs: limits("retention.failedJobs", DEFAULT_RETENTION.failedJobs, failedJobs),
  };
}

function limits<T extends object>(field: string, defaults: T, given: object = {}): T {
  assertOptions(given as T, Object.keys(defaults) as (keyof T & string)[], field);
  const read = Object.entries(given).map(([option, value]) => {
    if (/for$/i.test(option)) return [option, durationOption(value, `${field}.${option}`, 0, MAX_DURATION)];
    assertWhole(value, `${field}.${option}`, 0, Number.MAX_SAFE_INTEGER);
    return [option, value];
  });
  return { ...defaults, ...Object.fromEntries(read.filter(([, value]) => value !== undefined)) };
}
