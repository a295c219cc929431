import { type ConnectionSpec, namespaceKeys, Store, type StoreOptions } from "@carillon/store";
import { internalsOf, withSeams } from "@carillon/store/internal";

/** The key of clock.ts, but one for the whole namespace: a kit's Redis is one server, so slots do not matter. */
const CLOCK_LUA = `local clock = tonumber(redis.call("GET", string.match(KEYS[1], "^{[^:}]*") .. "}:~clock"))
local time = redis.call("TIME")
local function nowMs() return clock end
local function nowMicros() return string.format("%.0f", clock * 1000) end`;

/** The time of all scripts in the namespace, and of `Date` in this process. */
export class KitClock {
  readonly start: number;
  readonly #key: string;
  #now: number;

  constructor(namespace: string, start: number) {
    this.start = start;
    this.#now = start;
    this.#key = `${namespaceKeys(namespace).queues.replace(/}.*/, "}")}:~clock`;
  }

  get now(): number {
    return this.#now;
  }

  async set(store: Store, time: number): Promise<void> {
    await internalsOf(store).link.ask((client) => client.set(this.#key, String(time)));
    this.#now = time;
  }
}

/** Retention of records, in ms: assertions need all of them. */
const KEEP = 10 * 366 * 86_400_000;

export function kitStore(
  connection: ConnectionSpec,
  namespace: string,
  retention: StoreOptions["retention"],
): Store {
  const options = {
    connection,
    namespace,
    retention: {
      successes: 1_000_000,
      failures: 1_000_000,
      successesFor: KEEP,
      failuresFor: KEEP,
      completedJobs: { for: KEEP, most: 1_000_000 },
      failedJobs: { for: KEEP, most: 1_000_000 },
      ...retention,
    },
  };
  return new Store(withSeams(options, { time: { lua: CLOCK_LUA } }));
}
