import { type RedisServer, startRedis } from "@carillon/testing";
import { Redis } from "ioredis";
import { Equipment, type Sabotaged } from "./equipment.js";

/** What all simulations of a run share: a Redis of their own, and connections to look at it. */
export class Ground {
  readonly redis: RedisServer;
  /** For what comes from outside: an operator, a fault. */
  readonly admin: Redis;
  readonly #subscriber: Redis;
  readonly #equipment = new Map<string, Equipment>();
  #heard: (channel: string, text: string) => void = () => {};

  private constructor(redis: RedisServer, admin: Redis, subscriber: Redis) {
    this.redis = redis;
    this.admin = admin;
    this.#subscriber = subscriber;
    subscriber.on("pmessage", (_pattern: string, channel: string, text: string) =>
      this.#heard(channel, text),
    );
  }

  static async open(): Promise<Ground> {
    const redis = await startRedis();
    const admin = new Redis(redis.url);
    const subscriber = new Redis(redis.url);
    await Promise.all([admin.ping(), subscriber.psubscribe("*")]);
    return new Ground(redis, admin, subscriber);
  }

  /** What a simulation without these safety parts needs. */
  async equipment(sabotage: Sabotaged = []): Promise<Equipment> {
    const key = sabotage.join();
    const equipment = this.#equipment.get(key) ?? (await Equipment.open(this, sabotage));
    this.#equipment.set(key, equipment);
    return equipment;
  }

  /** Told of everything that is published from now on. */
  listen(heard: (channel: string, text: string) => void): void {
    this.#heard = heard;
  }

  /** All that was published so far has been heard. */
  async caughtUp(): Promise<void> {
    await this.#subscriber.ping();
  }

  async clear(): Promise<void> {
    this.#heard = () => {};
    await this.admin.flushdb();
  }

  async close(): Promise<void> {
    for (const equipment of this.#equipment.values()) await equipment.close();
    this.admin.disconnect();
    this.#subscriber.disconnect();
    await this.redis.stop();
  }
}
