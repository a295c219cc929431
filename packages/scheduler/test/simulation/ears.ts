import { EventEmitter } from "node:events";
import type { RedisClient } from "@carillon/store";
import type { Actor } from "./actor.js";

/** A subscriber whose messages come when the director delivers them, if at all. */
export class Ears extends EventEmitter {
  readonly status = "ready";
  readonly channels = new Set<string>();

  constructor() {
    super();
    queueMicrotask(() => this.emit("ready"));
  }

  async subscribe(channel: string): Promise<number> {
    this.channels.add(channel);
    return this.channels.size;
  }

  async ping(): Promise<string> {
    return "PONG";
  }

  disconnect(): void {
    this.channels.clear();
  }

  get client(): RedisClient {
    return this as unknown as RedisClient;
  }
}

/** Puts a published message into the mail of an actor that listens. */
export function post(actor: Actor, ears: Ears | undefined, channel: string, text: string): void {
  if (ears?.channels.has(channel)) actor.mail.push({ channel, text });
}
