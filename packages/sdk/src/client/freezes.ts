import { randomBytes } from "node:crypto";
import {
  ALERTS_QUEUE,
  CarillonError,
  type Duration,
  type Freeze,
  type FreezeScope,
  type ScheduleInput,
} from "@carillon/core";
import {
  assertFreezeScope,
  assertOptions,
  frozenAt,
  isThawed,
  nextFreeze,
  parseWindows,
} from "@carillon/core/internal";
import { instant } from "../instant.js";
import { shown } from "./change.js";
import { type Holds, holdsOf } from "./holds.js";
import { shortText } from "./input.js";
import type { Scope } from "./scope.js";
import type { DeleteOptions } from "./types.js";

/** Tasks to freeze, and for how long: until a time, until it is lifted, or in recurring windows. */
export interface FreezeInput extends FreezeScope {
  /** Begin: ISO 8601 with offset, a Date or epoch ms. Default: now. Not with `schedule`. */
  readonly from?: string | number | Date | undefined;
  /** End: ISO 8601 with offset, a Date or epoch ms. Default: none, until it is lifted. Not with `schedule`. */
  readonly until?: string | number | Date | undefined;
  /** Begins of recurring windows: a `cron` or `calendar` expression, with `timezone`. Default: none. */
  readonly schedule?: ScheduleInput | undefined;
  /** Length of each recurring window: `"2h"`, or whole milliseconds, at least 1 s. Required with `schedule`, and only there. */
  readonly for?: Duration | undefined;
  /** Text that the ledger, `explain` and errors show, at most 500 characters. Default: none. */
  readonly reason?: string | undefined;
  /** The name of the person or service that freezes, at most 500 characters. Default: none. */
  readonly by?: string | undefined;
}

/** A freeze, and whether it holds now. */
export interface FreezeView extends Freeze {
  readonly active: boolean;
  /** End of the freeze or of the present window, UTC ms; absent if it holds until it is lifted, or does not hold now. */
  readonly activeUntil?: number;
}

/** Freezes of a namespace, at `client.freezes`. Each is independent of the pauses of tasks, and of other freezes. */
export class Freezes {
  readonly #scope: Scope;

  /** @internal */
  constructor(scope: Scope) {
    this.#scope = scope;
  }

  /**
   * Freezes tasks, tasks that are put later included. It holds on all nodes when this resolves. Due times of schedules are skipped with the
   * reason `frozen`; single times, retries, waiting occurrences and backfills are held until the end. Open runs go on.
   *
   * @throws `INVALID_OPTION`, `INVALID_NAME`, `INVALID_SCHEDULE`, `NEVER_FIRES`; `FORBIDDEN` for another owner than the client is bound
   * to, and for the queue of alerts
   */
  async put(input: FreezeInput): Promise<FreezeView> {
    const { freeze, now, by } = await this.#checked(input);
    const { owner, tag, queue } = freeze;
    await this.#scope.store.freezes.put(freeze);
    const { id, by: _, created: __, ...facts } = freeze;
    this.#scope.log("freeze", { owner, tag, queue, freeze: id }, by, { after: shown(facts) });
    return view(freeze, now);
  }

  /**
   * Counts what a freeze would hold, and puts none: a dry run. A scope that matches nothing gets the warning `MATCHES_NOTHING`, with the
   * nearest name. Of recurring windows, counts the current or next one.
   *
   * @throws as `put`
   */
  async preview(input: FreezeInput): Promise<Holds> {
    const { freeze, now } = await this.#checked(input);
    const from = frozenAt([freeze], now) ? now : (nextFreeze([freeze], now) ?? now);
    return holdsOf(this.#scope, freeze, { from, until: frozenAt([freeze], from)?.until });
  }

  /** @throws as `put` */
  async #checked(input: FreezeInput): Promise<{ freeze: Freeze; now: number; by: string }> {
    const fields = [
      "owner",
      "tag",
      "queue",
      "all",
      "from",
      "until",
      "schedule",
      "for",
      "reason",
      "by",
    ] as const;
    assertOptions(input, fields);
    const { owner, tag, queue, all } = this.#scope.bind(input);
    assertFreezeScope({ owner, tag, queue, all: this.#scope.owner === undefined ? all : undefined });
    if (queue === ALERTS_QUEUE)
      throw new CarillonError("FORBIDDEN", "alerts go through this queue; it cannot be frozen.", {
        field: "queue",
      });
    const [by, reason] = [this.#scope.author(input.by), shortText(input.reason, "reason")];
    const given = { from: input.from, until: input.until };
    const times = this.#times(input);
    const { freezes } = this.#scope.store;
    const now = await freezes.time();
    const from = given.from === undefined ? now : instant(given.from, "from");
    if (times.until !== undefined && times.until <= Math.max(from, now))
      throw new CarillonError("INVALID_OPTION", "the end is in the past or before the beginning.", {
        field: "until",
        remedy: "Give a time after the beginning and after now.",
      });
    const freeze: Freeze = {
      id: randomBytes(6).toString("hex"),
      ...(owner !== undefined && { owner }),
      ...(tag !== undefined && { tag }),
      ...(queue !== undefined && { queue }),
      ...(owner === undefined && all && { all }),
      ...times,
      from,
      ...(reason && { reason }),
      ...(by && { by }),
      created: now,
    };
    return { freeze, now, by };
  }

  /** Freezes that hold or will hold. A bound client gets those of its owner and of no owner. */
  async list(): Promise<FreezeView[]> {
    const { store } = this.#scope;
    const [all, now] = await Promise.all([store.freezes.list(), store.freezes.time()]);
    return all.filter((one) => this.#mayRead(one) && !isThawed(one, now)).map((one) => view(one, now));
  }

  /**
   * Lifts a freeze. The occurrences that it held continue at once, unless another freeze or a pause holds them.
   *
   * @throws `FREEZE_NOT_FOUND`; `FORBIDDEN` for a bound client, if the freeze is not its owner's
   */
  async delete(id: string, options: DeleteOptions = {}): Promise<void> {
    assertOptions(options, ["by"]);
    const by = this.#scope.author(options.by);
    const { store } = this.#scope;
    const freeze = (await store.freezes.list()).find((one) => one.id === id && this.#mayRead(one));
    if (freeze) this.#scope.bind({ owner: freeze.owner ?? (this.#scope.owner && "*") });
    if (freeze && (await store.freezes.lift(id))) {
      const { owner, tag, queue } = freeze;
      return this.#scope.log("unfreeze", { owner, tag, queue, freeze: id }, by);
    }
    throw new CarillonError("FREEZE_NOT_FOUND", "there is no such freeze.", {
      field: "id",
      remedy: "It may have ended or been lifted: list the freezes.",
    });
  }

  #mayRead({ owner }: Freeze): boolean {
    return this.#scope.owner === undefined || owner === undefined || owner === this.#scope.owner;
  }

  #times({ from, until, schedule, for: length }: FreezeInput): Pick<Freeze, "until" | "schedule" | "length"> {
    if (schedule === undefined) {
      if (length !== undefined)
        throw new CarillonError("INVALID_OPTION", "given without schedule.", {
          field: "for",
          remedy: "Give until, or the schedule of the windows.",
        });
      return until === undefined ? {} : { until: instant(until, "until") };
    }
    const other = from !== undefined ? "from" : until !== undefined ? "until" : undefined;
    if (other !== undefined)
      throw new CarillonError("INVALID_OPTION", "given with schedule.", {
        field: other,
        remedy: "Windows take their times from the schedule.",
      });
    return parseWindows(schedule, length);
  }
}

function view(freeze: Freeze, now: number): FreezeView {
  const frozen = frozenAt([freeze], now);
  const until = frozen?.until;
  return { ...freeze, active: frozen !== undefined, ...(until !== undefined && { activeUntil: until }) };
}
