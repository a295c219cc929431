import { setTimeout as delay } from "node:timers/promises";
import { CarillonError } from "@carillon/core";
import { Redis } from "ioredis";
import type { Script } from "../script/script.js";
import {
  type ConnectionProfile,
  type ConnectionSpec,
  connect,
  isUnknown,
  leadsToCluster,
  type RedisClient,
  redisError,
} from "./connection.js";
import type { Failpoint } from "./failpoints.js";
import { Functions, NOT_RUN } from "./functions.js";
import { NO_ANSWER } from "./redis-error.js";
import { readServerInfo } from "./server-info.js";

export interface LinkOptions {
  /** Undefined: an error of the first call. */
  connection: ConnectionSpec | undefined;
  /** Longest wait of one call for the connection, in ms; default 5,000. */
  readyTimeout?: number | undefined;
  /** Number of resends of a call whose reply was lost; default 3. */
  retries?: number | undefined;
  /** Receives every connection error; without it they only surface in the calls that fail. */
  onError?: ((error: CarillonError) => void) | undefined;
  onReady?: (() => void) | undefined;
}

/** Receives connection events, like `onError` and `onReady` of a store's options. */
export interface ConnectionEars {
  lost(error: CarillonError): void;
  back(): void;
  /** Redis refuses functions, so scripts are sent: until it takes one again, once. */
  functionsRefused?(error: CarillonError): void;
}

/** Wait before a call is sent again, in ms; doubled each time. */
const PAUSE = 20;

/**
 * Messages that only repeat an earlier error of the connection: the earlier one says why. A connection that Redis
 * refuses may also close before the reason arrives; the previous attempt may have received it.
 */
const ECHO = /Stream isn't writeable|ECONNRESET/;

type Arg = string | number | Buffer;

function closedError(): CarillonError {
  return new CarillonError("REDIS_UNAVAILABLE", "this client was closed.", {
    remedy: "Use it before close(), or make a new one.",
  });
}

/**
 * One connection, and the rule for lost answers: a script that may or may not have run is sent again with the same
 * arguments. All our scripts are made for that (claim token, run id, generation), so repeating is safe.
 */
export class Link {
  readonly #options: LinkOptions;
  #client: RedisClient | undefined;
  readonly #readyTimeout: number;
  readonly #retries: number;
  readonly #failpoint: Failpoint | undefined;
  #lastError: unknown;
  #closed = false;
  #readiness: Promise<void> | undefined;
  #endWait = () => {};
  readonly #ears = new Set<ConnectionEars>();
  readonly #functions = new Functions((error) => {
    for (const ears of this.#ears) ears.functionsRefused?.(error);
  });
  /** Whether the server is part of a cluster; undefined: not yet known. */
  #cluster: boolean | undefined;

  /** @param failpoint for tests only */
  constructor(options: LinkOptions, failpoint?: Failpoint) {
    this.#failpoint = failpoint;
    this.#readyTimeout = options.readyTimeout ?? 5_000;
    this.#retries = options.retries ?? 3;
    this.#options = options;
    // Only a place that is known by now can be checked now.
    if (options.connection !== undefined && typeof options.connection !== "function")
      this.#client = this.#open();
  }

  /** @throws `INVALID_OPTION` if the place is missing or wrong */
  get client(): RedisClient {
    this.#client ??= this.#open();
    return this.#client;
  }

  #open(): RedisClient {
    const options = this.#options;
    const client = this.connect("lazy");
    client.on("error", (error: unknown) => {
      if (this.#lastError !== undefined && ECHO.test(String(error))) return;
      this.#lastError = error;
      const coded = redisError(error);
      // Another attempt would get the same answer, so waiting calls fail now.
      if (coded.code === "REDIS_AUTH") this.#endWait();
      options.onError?.(coded);
      for (const ears of this.#ears) ears.lost(coded);
    });
    client.on("ready", async () => {
      this.#cluster ??= await isOfCluster(client);
      if (this.#cluster === undefined || this.#closed) return;
      if (this.#cluster && client instanceof Redis && leadsToCluster(client.options)) {
        client.disconnect();
        this.#client = this.#open();
        this.#client.connect().catch(() => {});
        return;
      }
      this.#lastError = undefined;
      this.#endWait();
      options.onReady?.();
      for (const ears of this.#ears) ears.back();
    });
    return client;
  }

  /** Another connection to the same place: to the cluster, if this link has found one there. */
  connect(profile: ConnectionProfile): RedisClient {
    return connect(this.#options.connection, profile, this.#cluster);
  }

  /** @returns ends it */
  watch(ears: ConnectionEars): () => void {
    this.#ears.add(ears);
    return () => void this.#ears.delete(ears);
  }

  get ready(): boolean {
    return this.#cluster !== undefined && this.#client?.status === "ready";
  }

  /** Runs a script until Redis has answered it, or the retries are used up. @throws coded Redis errors */
  async run(script: Script, keys: readonly string[], args: readonly Arg[]): Promise<unknown> {
    return this.repeat(async () => {
      if (!this.#failpoint) return this.#send(script, keys, args);
      await this.#failpoint(`before ${script.name}`, keys[0] as string);
      const answer = await this.#send(script, keys, args);
      await this.#failpoint(`after ${script.name}`, keys[0] as string);
      return answer;
    });
  }

  async #send(script: Script, keys: readonly string[], args: readonly Arg[]): Promise<unknown> {
    const all = [...keys, ...args];
    if (script.resident) {
      const answer = await this.#functions.call(this.client, script.resident, keys.length, all);
      if (answer !== NOT_RUN) return answer;
    }
    try {
      return await this.client.evalsha(script.sha, keys.length, ...all);
    } catch (error) {
      if (!(error instanceof Error) || !error.message.startsWith("NOSCRIPT")) throw error;
      return await this.client.eval(script.lua, keys.length, ...all);
    }
  }

  /** One command or a few that may be sent again. @throws coded Redis errors */
  async ask<T>(command: (client: RedisClient) => Promise<T>): Promise<T> {
    return this.repeat(() => command(this.client));
  }

  /** All calls that wait share one wait. @throws `REDIS_UNAVAILABLE`, `REDIS_AUTH` when the time is up */
  #untilReady(): Promise<void> {
    this.#readiness ??= new Promise<void>((resolve, reject) => {
      const end = () => {
        clearTimeout(timer);
        this.#endWait = () => {};
        this.#readiness = undefined;
        if (this.ready) return resolve();
        if (this.#closed) return reject(closedError());
        const coded = redisError(this.#lastError ?? new Error("Connection is closed."));
        // A server that is reached and silent is slow, not gone.
        const silent = this.#client?.status === "connect" && coded.code === "REDIS_UNAVAILABLE";
        reject(silent ? redisError(new Error(NO_ANSWER)) : coded);
      };
      const timer = setTimeout(end, this.#readyTimeout);
      this.#endWait = end;
      if (this.#closed) return end();
      const { status } = this.client;
      if (status === "wait" || status === "end") this.client.connect().catch(() => {});
    });
    return this.#readiness;
  }

  private async repeat<T>(send: () => Promise<T>): Promise<T> {
    for (let attempt = 0; ; attempt++) {
      // Nothing was sent yet, so a failed connection is a final answer.
      if (!this.ready) await this.#untilReady();
      try {
        return await send();
      } catch (error) {
        const coded = redisError(error);
        if (this.#closed) throw closedError();
        if (!isUnknown(coded) || attempt >= this.#retries) throw coded;
        // ioredis takes a moment to notice that its socket has ended; until then it says "ready" and refuses all.
        await delay(PAUSE * 2 ** attempt);
      }
    }
  }

  /** Calls that wait for the connection fail. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#client?.disconnect();
    this.#endWait();
  }
}

/** Undefined if the connection ended meanwhile. A server that does not say it is taken for one alone. */
async function isOfCluster(client: RedisClient): Promise<boolean | undefined> {
  if (client.isCluster) return true;
  try {
    return readServerInfo(await client.info("cluster")).cluster;
  } catch (error) {
    return isUnknown(redisError(error)) ? undefined : false;
  }
}
