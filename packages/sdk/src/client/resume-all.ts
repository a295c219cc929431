import { createHash } from "node:crypto";
import { CarillonError, type TaskName } from "@carillon/core";
import { assertOptions, quote } from "@carillon/core/internal";
import type { StoredTask } from "@carillon/store";
import { assertRate, newBatch, paced } from "./backfill-all.js";
import {
  type BulkOptions,
  type BulkRefusal,
  type BulkResult,
  bulk,
  checkedFilter,
  nameOf,
  type ResumeFilter,
  selected,
  Tally,
} from "./bulk.js";
import { shortText } from "./input.js";
import { MOST_OWED, owedBy } from "./owed.js";
import { wasPaused } from "./resume-plan.js";
import type { Scope } from "./scope.js";
import { TimeSlice } from "./time-slice.js";
import type { ResumeOptions } from "./types.js";

export interface ResumeAllOptions extends Omit<ResumeOptions, "from"> {
  /**
   * The same as for one task; also `latest` and `all`: the last occurrence that each task owes, or each of them, whatever its
   * catch-up policy says. Default `now`.
   */
  readonly from?: ResumeOptions["from"] | "latest" | "all";
  /** For `latest` and `all`: occurrences a minute, of all tasks together; above 0, at most 60,000. Required for `all`. */
  readonly perMinute?: number | undefined;
}

/** The result of other calls, with the backfills that it started. */
export interface ResumeAllResult extends BulkResult {
  /** Id of the backfills, for `client.backfills.list` and `cancel`. Undefined: there are none. */
  readonly batch?: string | undefined;
}

const FROM: readonly unknown[] = ["now", "catch-up", "latest", "all"];
/** Tasks whose paces are held in memory. */
const MOST_TASKS = 100_000;

/** @throws `INVALID_OPTION` */
export async function resumeAll(
  scope: Scope,
  filter: ResumeFilter,
  options: BulkOptions & ResumeAllOptions,
): Promise<ResumeAllResult> {
  assertOptions(options, ["from", "perMinute", "by", "dryRun"]);
  const { from = "now", perMinute, dryRun } = options;
  if (!FROM.includes(from))
    throw new CarillonError("INVALID_OPTION", `got ${quote(from)}.`, {
      field: "from",
      remedy: `Use one of ${FROM.join(", ")}.`,
    });
  const replays = from === "latest" || from === "all";
  if (perMinute !== undefined || (from === "all" && !dryRun)) assertRate(perMinute);
  if (perMinute !== undefined && !replays)
    throw new CarillonError("INVALID_OPTION", `given with from ${from}.`, {
      field: "perMinute",
      remedy: "Leave it out.",
    });
  const by = scope.author(options.by);
  const { note, pausedBy, ...checked } = checkedFilter(scope, filter, ["note", "pausedBy"]);
  shortText(note, "note");
  shortText(pausedBy, "pausedBy");
  const isMeant = (task: StoredTask) => wasPaused(task, { note, pausedBy });
  const named = by.replace(/\s/g, "_");
  const batch = replays && !dryRun ? newBatch() : undefined;
  const replay =
    batch === undefined
      ? undefined
      : await Replay.of(
          scope,
          { checked, isMeant, from: from as "latest" | "all", perMinute },
          { batch, by },
        );
  const result = await bulk(scope, {
    kind: "resume",
    ...{ filter: checked, by, dryRun, state: "paused", isMeant },
    act: async (task, name) => {
      if (replay) return replay.resume(task, name, named);
      return (await scope.store.tasks.resume(name, from as "now" | "catch-up", named)) === "OK";
    },
    details: { from, note, pausedBy, perMinute, batch },
  });
  return { ...result, ...(replay && replay.started > 0 && { batch }) };
}

interface Asked {
  readonly checked: ResumeFilter;
  readonly isMeant: (task: StoredTask) => boolean;
  readonly from: "latest" | "all";
  readonly perMinute: number | undefined;
}

/** For the backfills of one call. */
interface How {
  readonly batch: string;
  readonly by: string;
}

interface Pace {
  readonly from: number;
  readonly to: number;
  readonly single: boolean;
  readonly total: number;
  readonly every: number;
  readonly after: number;
}

/** Runs what tasks owe as backfills, at a pace, and lets their schedules go on after it. */
class Replay {
  started = 0;
  readonly #scope: Scope;
  readonly #paces: ReadonlyMap<string, Pace>;
  readonly #how: How;

  private constructor(scope: Scope, paces: ReadonlyMap<string, Pace>, how: How) {
    this.#scope = scope;
    this.#paces = paces;
    this.#how = how;
  }

  static async of(scope: Scope, { checked, isMeant, from, perMinute }: Asked, how: How): Promise<Replay> {
    const { store } = scope;
    const [now] = await Promise.all([store.freezes.time(), store.calendars.refresh()]);
    const slice = new TimeSlice();
    const goOn = () => slice.pass().then(() => true);
    const found = [];
    for await (const page of selected(scope, checked, "paused", new Tally<BulkRefusal>(0))) {
      for (const task of page.filter(isMeant)) {
        const owed = await owedBy(task, store.calendars.schedules.get(task.definition), { now, slice, goOn });
        if (!owed) continue;
        const { to, single } = owed;
        const range = from === "all" ? { from: owed.from, total: owed.count.count } : { from: to, total: 1 };
        found.push({ key: keyOf(nameOf(task)), ...range, to, single });
        if (found.length > MOST_TASKS)
          throw new CarillonError("INVALID_OPTION", `more than ${MOST_TASKS} tasks.`, {
            remedy: "Select fewer.",
          });
      }
    }
    const pace =
      perMinute === undefined
        ? found.map((times) => ({ times, every: 0, after: 0 }))
        : paced(found, perMinute);
    const paces = pace.map(({ times, ...rest }) => [times.key, { ...times, ...rest }] as const);
    return new Replay(scope, new Map(paces), how);
  }

  /** @returns whether it was paused */
  async resume(task: StoredTask, name: TaskName, named: string): Promise<boolean> {
    const { tasks, backfills } = this.#scope.store;
    const pace = this.#paces.get(keyOf(name));
    // Times that became due since the count are left to catch-up policies.
    if (!pace) return (await tasks.resume(name, "catch-up", named)) === "OK";
    if (pace.single) return (await tasks.resume(name, "catch-up", named, pace.after)) === "OK";
    if (pace.total > MOST_OWED)
      throw new CarillonError("INVALID_OPTION", `it owes more than ${MOST_OWED} occurrences.`, {
        remedy: "Resume it from now, and backfill the times that matter.",
      });
    const { from, to, every, after, total } = pace;
    const id = idOf(task, name);
    const { batch, by } = this.#how;
    // A repeated call finds the backfill of one that died before it resumed the task.
    await backfills.put(
      {
        ...{ id, task: name, taskCreated: task.created, from, to, at: from - 1, total, every, batch },
        overlap: task.definition.overlap === "allow" ? undefined : "queue-all",
        by: by || this.#scope.actor,
      },
      after,
    );
    const stored = await backfills.get(name.queue, id);
    const resumed = await tasks.resume(name, stored?.to ?? to, named);
    if (resumed === "OK") this.started += 1;
    // Someone else resumed it meanwhile, and decided about the owed times.
    else await backfills.end(name.queue, id, "cancelled");
    return resumed === "OK";
  }
}

function keyOf({ queue, owner, id }: TaskName): string {
  return `${queue}/${owner}/${id}`;
}

/** Id of a backfill: the same for each call during one pause. */
function idOf({ paused, nominal }: StoredTask, name: TaskName): string {
  return createHash("sha256")
    .update(`${keyOf(name)} ${paused?.at} ${nominal}`)
    .digest("hex")
    .slice(0, 16);
}
