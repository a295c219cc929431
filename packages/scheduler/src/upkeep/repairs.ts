import { redisError, type Store } from "@carillon/store";
import type { Settings } from "../options.js";
import { auditIndexes } from "./audit.js";
import { eachQueue } from "./each-queue.js";
import { Zones } from "./zones.js";

/** Interval in ms at which copies of freezes, time zone data and indexes are checked; calendars are checked each time. */
const SLOW_EVERY = 600_000;

/** Repairs, in the background, what other processes left behind: tasks planned by an older calendar or older time zones, copies of freezes, indexes. */
export class Repairs {
  readonly #zones: Zones;
  #slowAt = 0;
  #working: Promise<void> | undefined;

  /** @param tzdata version of the time zone data, `2026a` */
  constructor(
    private readonly store: Store,
    private readonly settings: Settings,
    tzdata: string | undefined = process.versions.tz,
  ) {
    this.#zones = new Zones(store, settings, tzdata);
  }

  /** Begins a check in the background, unless one is in progress. */
  begin(queues: readonly string[]): void {
    this.#working ??= this.check(queues)
      .catch((error: unknown) => {
        const { code, message } = redisError(error);
        this.settings.logger.error({ code, error: message }, "repairs failed");
      })
      .finally(() => {
        this.#working = undefined;
      });
  }

  /** Resolves when the check in progress has ended. */
  async stop(): Promise<void> {
    await this.#working;
  }

  /** Checks all queues, also if one fails. @throws the last failure */
  async check(queues: readonly string[]): Promise<void> {
    const { calendars } = this.store;
    await calendars.refresh();
    const failures = await eachQueue(this.store, queues, (queue) => calendars.replanStale(queue));
    if (performance.now() >= this.#slowAt) {
      await this.store.freezes.mend(queues);
      const others = [
        ...(await this.#zones.check(queues)),
        ...(await auditIndexes(this.store, this.settings, queues)),
      ];
      if (others.length === 0) this.#slowAt = performance.now() + SLOW_EVERY;
      failures.push(...others);
    }
    if (failures.length > 0) throw failures.at(-1);
  }
}
