import { ALERTS_QUEUE } from "@carillon/core";
import type { RedisClient, Store } from "@carillon/store";
import { bullPrefix } from "@carillon/store";
import { internalsOf, type StoreSeams, turnWorker, withSeams } from "@carillon/store/internal";
import { type RedisServer, type VirtualClock, virtualStore } from "@carillon/testing";
import { createRedisBackend, Queue, setDefaultBackendFactory } from "bullmq";
import type { Redis } from "ioredis";
import { type Director, START } from "./director.js";
import { LateCopies } from "./late-copies.js";
import { QUEUE } from "./operations.js";
import { virtualMutex } from "./virtual-mutex.js";

const NAMESPACE = "simulation";
export const PREFIX = bullPrefix(NAMESPACE, QUEUE);
/** Records are never pruned in a short history, because the checks read all of them. */
const RETENTION = {
  successes: 1_000,
  failures: 1_000,
  completedJobs: { for: 3_600_000 },
  failedJobs: { for: 3_600_000 },
};

/** Safety parts that the nodes omit. */
export type Sabotaged = NonNullable<StoreSeams["sabotage"]>;

/** The Redis of a simulation. */
interface Place {
  readonly redis: RedisServer;
  readonly admin: Redis;
}

/** Actors that have their own store, by role. */
export const ROLES = {
  node: ["node-0", "node-1", "node-2"],
  client: ["client-0", "client-1"],
  worker: ["worker-0", "worker-1"],
  plain: ["plain"],
} as const;
export type Role = (typeof ROLES)[keyof typeof ROLES][number];

/** The simulation that uses the equipment now. */
export interface User {
  readonly director: Director;
  pass(role: Role, point: string, key?: string): Promise<void>;
}

/** A store, and a connection for BullMQ. */
export interface Gear {
  readonly store: Store;
  readonly connection: RedisClient;
}

/** Connections of all actors, which simulations use one after the other. No data of a history stays in them. */
export class Equipment {
  user: User | undefined;
  /** The store of the checks; no failpoint stops it. */
  readonly observer: Store;
  /** Redis time. */
  readonly clock: VirtualClock;
  /** The queue as operators see it, for changes from outside. */
  readonly queue: Queue;
  readonly gear = new Map<Role, Gear>();
  readonly copies = new LateCopies();

  private constructor(observer: Store, clock: VirtualClock, queue: Queue) {
    this.observer = observer;
    this.clock = clock;
    this.queue = queue;
  }

  static async open({ redis, admin }: Place, sabotage: Sabotaged): Promise<Equipment> {
    // Omits the connection that blocks until a job comes: the director tells our workers when to check.
    setDefaultBackendFactory((name, options) => createRedisBackend(name, options));
    const common = {
      connection: redis.url,
      namespace: NAMESPACE,
      queues: [QUEUE, ALERTS_QUEUE],
      start: START,
      retention: RETENTION,
    };
    const { store: observer, clock } = await virtualStore(common);
    // Loading a module takes real time, for which no move waits: BullMQ, and redlock with the first mutex.
    await Promise.all([turnWorker(), internalsOf(observer).mutex.take(`{${NAMESPACE}}:~loads`, 1)]);
    const queue = new Queue(QUEUE, { connection: admin, prefix: PREFIX, skipMetasUpdate: true });
    queue.on("error", () => {});
    const equipment = new Equipment(observer, clock, queue);
    for (const role of Object.values(ROLES).flat()) {
      const failpoint = async (point: string, key: string) => equipment.user?.pass(role, point, key);
      const left = sabotage.filter((part) => role.startsWith("node") || part === "once");
      const { store } = await virtualStore(withSeams(common, { sabotage: left, failpoint }));
      equipment.copies.watch(store);
      const connection = store.connect("patient");
      equipment.gear.set(role, { store: equipment.#virtual(store), connection });
      for (const client of [internalsOf(store).link.client, connection]) equipment.#watch(client);
      await connection.ping();
    }
    await queue.waitUntilReady();
    return equipment;
  }

  /** Replaces the parts of a store that use real time by the director's time. */
  #virtual(store: Store): Store {
    const key = `{${NAMESPACE}}:~clock`;
    const internals = internalsOf(store);
    internals.mutex = virtualMutex(internals.mutex, () => (this.user as User).director);
    return Object.assign(store, {
      serverTime: async () =>
        Number(await internalsOf(store).link.ask((client: RedisClient) => client.get(key))),
    });
  }

  /** Lets the director wait for the commands of the current actor. */
  #watch(client: RedisClient): void {
    const send = client.sendCommand.bind(client) as (...args: unknown[]) => unknown;
    Object.assign(client, {
      sendCommand: (command: { promise: Promise<unknown> }, ...rest: unknown[]) => {
        void this.user?.director.track(command.promise);
        return send(command, ...rest);
      },
    });
  }

  of(role: Role): Gear {
    return this.gear.get(role) as Gear;
  }

  /** Forgets state that the role's previous user left in memory. */
  asNew(role: Role): void {
    internalsOf(this.of(role).store).optimistic.forget();
  }

  async close(): Promise<void> {
    await this.queue.close();
    for (const { store, connection } of this.gear.values()) {
      connection.disconnect();
      await store.close();
    }
    await this.observer.close();
  }
}
