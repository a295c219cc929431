import { assertName, CarillonError, DEFAULT_NAMESPACE, parseLocalName } from "@carillon/core";
import { AlertRepository } from "./alerts.js";
import { BackfillRepository } from "./backfills.js";
import { obliterate } from "./bullmq.js";
import { CalendarRepository } from "./calendars.js";
import { ClaimRepository } from "./claims.js";
import { type ConnectionProfile, type ConnectionSpec, connect, type RedisClient } from "./connection.js";
import { Contention } from "./contention.js";
import { type Failpoint, failing } from "./failpoints.js";
import { type NamespaceKeys, namespaceKeys } from "./keys.js";
import { Link, type LinkOptions } from "./link.js";
import { type Mutex, NO_MUTEX, redlockMutex } from "./mutex.js";
import { Registry } from "./registry.js";
import { RunRepository } from "./runs.js";
import { loadScripts, REDIS_TIME, type Sabotage, type TimeSource } from "./scripts.js";
import { type Ears, Subscription } from "./subscription.js";
import { DEFAULT_RETENTION, type Retention } from "./task-codec.js";
import { TaskRepository } from "./tasks.js";

export interface StoreOptions extends Omit<LinkOptions, "connection"> {
  connection: ConnectionSpec;
  /** Default `carillon`. */
  namespace?: string | undefined;
  retention?: Partial<Retention> | undefined;
}

/** What is a burst, and so prepared ahead. */
export interface BurstSeam {
  /** So many shards that come due at one instant; default all. */
  shards: number;
  /** How long before, in ms; default 500. */
  ahead: number;
}

/** What only tests may change. Not reachable from any option of a node, a client or the environment. */
export interface TestSeams {
  time?: TimeSource;
  /** Parts of the protocol to leave out, to see the check for them fail. */
  sabotage?: readonly (Sabotage | "mutex")[];
  failpoint?: Failpoint;
  burst?: BurstSeam;
}

/** Everything Carillon keeps in Redis, by what it is about. One connection. */
export class Store {
  readonly namespace: string;
  readonly keys: NamespaceKeys;
  readonly tasks: TaskRepository;
  readonly claims: ClaimRepository;
  readonly runs: RunRepository;
  readonly registry: Registry;
  readonly calendars: CalendarRepository;
  readonly alerts: AlertRepository;
  readonly backfills: BackfillRepository;
  readonly mutex: Mutex;
  readonly link: Link;
  readonly contention = new Contention();
  /** Scripts go by a test's clock, which may jump. */
  readonly virtualTime: boolean;
  /** A test's, see `TestSeams`. */
  readonly burst: BurstSeam | undefined;
  readonly #connection: ConnectionSpec;

  constructor(options: StoreOptions, seams: TestSeams = {}) {
    this.namespace = assertName(options.namespace ?? DEFAULT_NAMESPACE, "namespace");
    this.#connection = options.connection;
    this.keys = namespaceKeys(this.namespace);
    this.virtualTime = seams.time !== undefined;
    const sabotage = seams.sabotage ?? [];
    // What is shared out beforehand keeps nodes apart, as the mutex does.
    const apart = sabotage.includes("mutex") ? { shards: Number.POSITIVE_INFINITY, ahead: 0 } : undefined;
    this.burst = seams.burst ?? apart;
    const scripts = loadScripts(
      seams.time ?? REDIS_TIME,
      sabotage.filter((part) => part !== "mutex"),
    );
    this.link = new Link(options, seams.failpoint);
    this.registry = new Registry(this.link, this.keys, scripts);
    this.calendars = new CalendarRepository(this.link, this.keys, scripts);
    const { link, keys, registry, calendars, contention } = this;
    this.tasks = new TaskRepository(link, keys, scripts, registry, calendars, contention);
    this.claims = new ClaimRepository(link, keys, scripts, calendars.schedules, contention);
    this.runs = new RunRepository(link, keys, scripts, calendars, contention, retention(options.retention));
    this.backfills = new BackfillRepository(link, keys, scripts);
    this.alerts = new AlertRepository(link, keys, scripts);
    const mutex = sabotage.includes("mutex") ? NO_MUTEX : redlockMutex(this.link.client);
    this.mutex = seams.failpoint ? failing(mutex, seams.failpoint) : mutex;
  }

  /** Listens to a channel, on a connection of its own, until `stop`. */
  subscribe(channel: string, ears: Ears): Subscription {
    return new Subscription(this.connect("subscriber"), channel, ears);
  }

  /** Another connection to the same Redis, for BullMQ's workers say. */
  connect(profile: ConnectionProfile): RedisClient {
    return connect(this.#connection, profile);
  }

  /** The server's time in ms, with how long the answer took. */
  async serverTime(): Promise<number> {
    const [seconds, micros] = (await this.link.ask((client) => client.time())) as unknown as [string, string];
    return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
  }

  /**
   * Deletes a queue: its tasks with their records, and all that BullMQ keeps of it. Returns how many tasks there were. Jobs that
   * are being worked lose their ground: stop the workers first.
   */
  async deleteQueue(queue: string): Promise<number> {
    let deleted = 0;
    // By their names: also those that this version cannot read.
    for (let after: string | undefined; ; ) {
      const locals = await this.tasks.names(queue, 100, after);
      for (const local of locals) await this.tasks.delete({ queue, ...parseLocalName(local) });
      deleted += locals.length;
      if (locals.length < 100) break;
      after = locals.at(-1);
    }
    const client = this.connect("patient");
    try {
      await obliterate(client, this.namespace, queue);
      await this.tasks.clearGone(queue);
      const { runs, next, alerts, journal, outcomes, expected, backfills, priorities } =
        this.keys.queue(queue);
      await client.del(runs, alerts, journal, outcomes, expected, backfills, priorities);
      // Not the shards': of a task that was put meanwhile nobody would know.
      await client.zrem(next, "r", "a", "e", "b");
    } finally {
      client.disconnect();
    }
    await this.registry.forgetIfEmpty(queue);
    return deleted;
  }

  async close(): Promise<void> {
    await this.link.close();
  }
}

function retention(given: Partial<Retention> = {}): Retention {
  for (const [option, value] of Object.entries(given)) {
    if (value !== undefined && (!Number.isInteger(value) || value < 0)) {
      throw new CarillonError("INVALID_OPTION", "must be a whole number of 0 or more.", {
        field: `retention.${option}`,
      });
    }
  }
  return { ...DEFAULT_RETENTION, ...given };
}
