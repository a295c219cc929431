import type { CarillonError } from "@carillon/core";
import type { Resident } from "../script/script.js";
import { isUnknown, mastersOf, type RedisClient, redisError } from "./connection.js";

/** Answer for the caller if Redis has not run the function: the script is to be sent. */
export const NOT_RUN = Symbol("not run");

const MISSING = /Function not found/;
/** Another client has loaded it. */
const LOADED = /already exists/;
/** The function has run: an error of a command within it, or the one that our scripts themselves return. */
const HAS_RUN = / script: .*, on @|\bOVERTAKEN\b|Error running script/;
/** Redis takes no writes. It refuses the function at once, and a script only when it writes, or a command that needs memory. */
const NO_WRITES = /^-?(OOM|MISCONF|NOREPLICAS) /;

/** After a refusal only scripts are sent for this many ms: rights may be granted, and a server replaced by a newer one. */
const REFUSED_FOR = 10_000;

/** Calls scripts as functions, on servers that keep them. */
export class Functions {
  readonly #onRefused: (error: CarillonError) => void;
  #isRefused = false;
  #refusedUntil = 0;
  /** Libraries that are being loaded, by name. */
  readonly #loads = new Map<string, Promise<unknown>>();

  /** @param onRefused receives the first refusal since a function was last called */
  constructor(onRefused: (error: CarillonError) => void) {
    this.#onRefused = onRefused;
  }

  /**
   * Calls the function once. If Redis lacks it (it is new, was flushed, or the master is another), loads it once, and calls again.
   * @returns the answer, or `NOT_RUN`
   */
  async call(
    client: RedisClient,
    { name, lua }: Resident,
    keys: number,
    all: readonly (string | number | Buffer)[],
  ): Promise<unknown> {
    if (performance.now() < this.#refusedUntil) return NOT_RUN;
    try {
      const answer = await client.fcall(name, keys, ...all).catch(async (error: unknown) => {
        if (!MISSING.test(String(error))) throw error;
        await this.#load(client, name, lua);
        return client.fcall(name, keys, ...all);
      });
      this.#isRefused = false;
      return answer;
    } catch (error) {
      if (!isRefusal(error)) throw error;
      if (!this.#isRefused) this.#onRefused(redisError(error));
      this.#isRefused = true;
      this.#refusedUntil = performance.now() + REFUSED_FOR;
      return NOT_RUN;
    }
  }

  /** Loads it into each master. Calls that wait for it share one load, which ends with the client's `commandTimeout` at the latest. */
  #load(client: RedisClient, name: string, lua: string): Promise<unknown> {
    let load = this.#loads.get(name);
    if (!load) {
      const loads = mastersOf(client).map((server) =>
        server.function("LOAD", lua).catch((error: unknown) => {
          if (!LOADED.test(String(error))) throw error;
        }),
      );
      // The call that follows comes after the load on the same connection, so one master that is down delays no other.
      load = Promise.any(loads)
        .catch((error: AggregateError) => {
          throw error.errors[0] ?? error;
        })
        .finally(() => this.#loads.delete(name));
      this.#loads.set(name, load);
    }
    return load;
  }
}

/**
 * Whether a script may do what the function has not. This holds for every error that says neither that the function has run, nor that the
 * connection or the whole server fails: providers word their refusals as they like, and a script that runs twice does no harm.
 */
function isRefusal(error: unknown): boolean {
  const text = error instanceof Error ? error.message : "";
  if (NO_WRITES.test(text)) return true;
  const coded = redisError(error);
  return !HAS_RUN.test(text) && !isUnknown(coded) && coded.code !== "REDIS_READ_ONLY";
}
