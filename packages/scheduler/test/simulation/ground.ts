import { type RedisServer, startRedis } from "@carillon/testing";
import { Redis } from "ioredis";
import { Equipment, type Sabotaged } from "./equipment.js";

/** The Redis of all simulations of a test run, and connections to inspect it. */
export class Ground {
  readonly redis: RedisServer;
  /** Connection for actions from outside: an operator, a fault. */
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

  /** The equipment of simulations without these safety parts. */
  async equipment(sabotage: Sabotaged = []): Promise<Equipment> {
    const key = sabotage.join();
    const equipment = this.#equipment.get(key) ?? (await Equipment.open(this, sabotage));
    this.#equipment.set(key, equipment);
    return equipment;
  }

  /** Reports every message that is published from now on. */
  listen(heard: (channel: string, text: string) => void): void {
    this.#heard = heard;
  }

  /** Resolves when all messages published so far have arrived. */
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
