import { type ConnectionSpec, namespaceKeys, Store, type StoreOptions } from "@carillon/store";
import { internalsOf, seamsOf, withSeams } from "@carillon/store/internal";

/**
 * Lua that reads the time from a key in the queue's own slot. This is the only way to load Carillon's scripts with
 * another time than that of Redis; no option of a node can enable it.
 */
const CLOCK_KEY_LUA = `local clock = tonumber(redis.call("GET", string.match(KEYS[1], "^{[^}]*}") .. ":~clock"))
local time = redis.call("TIME")
local function nowMs() return clock end
local function nowMicros() return string.format("%.0f", clock * 1000) end`;

export interface VirtualClock {
  /** Now, in UTC ms. */
  readonly now: number;
  /** @param time epoch ms or ISO 8601 */
  set(time: number | string): Promise<void>;
  advance(ms: number): Promise<void>;
}

export interface VirtualStore {
  readonly store: Store;
  readonly clock: VirtualClock;
}

/**
 * A store whose scripts use a clock that the test moves: hours pass at once, and two runs of a test see the same
 * times. Name the queues that the test uses; each has the clock in its own cluster slot.
 */
export async function virtualStore(
  options: Omit<StoreOptions, "connection"> & {
    connection: ConnectionSpec;
    queues: readonly string[];
    start?: number | string;
  },
): Promise<VirtualStore> {
  const { queues, start = "2026-01-01T00:00:00Z", ...rest } = options;
  const store = new Store(withSeams(rest, { ...seamsOf(options), time: { lua: CLOCK_KEY_LUA } }));
  const keys = namespaceKeys(store.namespace);
  let now = Number.NaN;
  const clock: VirtualClock = {
    get now() {
      return now;
    },
    async set(time) {
      now = typeof time === "number" ? time : Date.parse(time);
      await internalsOf(store).link.ask((client) =>
        Promise.all(
          [`{${store.namespace}}`, ...queues.map((queue) => keys.queue(queue).tag)].map((tag) =>
            client.set(`${tag}:~clock`, String(now)),
          ),
        ),
      );
    },
    async advance(ms) {
      await clock.set(now + ms);
    },
  };
  await clock.set(start);
  return { store, clock };
}
