import { ALERTS_QUEUE, type Run } from "@carillon/core";
import { FAILURES, grouped, invalid, isRunId } from "@carillon/core/internal";
import type { Scope } from "@carillon/sdk/internal";
import type { StoredTask } from "@carillon/store";
import type { z } from "zod";
import { type Backfills, Doings, whichOf } from "../backfills/doings.js";
import { type BulkRefusal, keyOf, refusalOf, type Tally } from "../bulk/bulk.js";
import type { Call } from "../operation.js";
import { given } from "../shapes.js";
import { runsOfCause } from "./failures.js";
import { journal, readJournal } from "./journal.js";
import { faultOf } from "./replay.js";

/** Limits beyond which a call is more likely a mistake: runs named, and runs found. */
const [MOST_NAMED, MOST_FOUND] = [1_000, 10_000];
const PAGE = 1_000;

const { task, owner, queue, text, took, node, from, to } = journal.input.shape;
/** Select failed runs as the journal does, or by their cause. */
export const conditions = {
  ...{ task, owner, queue, text, took, node, from, to },
  cause: given.optional().describe("Of this cause, by its `id` in `runs.failures`."),
};
type Conditions = z.output<z.ZodObject<typeof conditions>>;

/** Runs of one task that are to be run again, in the order of their nominal times. */
export interface TaskRuns {
  readonly task: StoredTask;
  readonly runs: readonly Run[];
  readonly total: number;
}

/** @param backfills of all tasks @param batch of this call: runs that its backfills have are left out, whatever their state */
export async function runsToReplay(
  call: Call,
  ids: readonly string[] | undefined,
  filter: Conditions,
  backfills: Backfills,
  batch: string,
  refused: Tally<BulkRefusal>,
): Promise<{ readonly found: TaskRuns[]; readonly left: number }> {
  const { scope, store } = call;
  const runs = ids ? await namedRuns(scope, ids, filter, refused, "final") : await failures(call, filter);
  const found: TaskRuns[] = [];
  let left = 0;
  for (const [, its] of grouped(runs, ({ task }) => keyOf(task))) {
    const task = await store.tasks.get((its[0] as Run).task);
    scope.progress(1);
    // Its records are deleted with it.
    if (!task) continue;
    const own = (backfills.get(keyOf(task.definition)) ?? []).filter((one) => one.batch === batch);
    const taken = new Set(own.flatMap(({ runs = [] }) => runs.map(({ key }) => whichOf(key))));
    const doings = ids ? new Doings(task, backfills) : await Doings.of(store, task, backfills);
    const asked = new Map(its.map((run) => [whichOf(run.key), run]));
    const wanted = ids ? asked : doings.failed;
    const meant = [...wanted].flatMap(([which, run]) => {
      if (!asked.has(which) || taken.has(which)) return [];
      return (ids ? doings.isUnderway(which) : doings.isDone(which)) ? [] : [run];
    });
    left += asked.size - meant.length;
    const runs = meant.filter((run) => isReplayable(run, refused)).sort((a, b) => a.nominal - b.nominal);
    if (runs.length > 0) found.push({ task, runs, total: runs.length });
  }
  return { found, left };
}

/** The failed runs that match. @throws `INVALID_OPTION` */
async function failures({ client, scope }: Call, { cause, ...filter }: Conditions): Promise<Run[]> {
  if (filter.from === undefined)
    throw invalid("from", "missing.", "Give the time since which runs have ended, or the ids of runs.");
  const its = cause === undefined ? undefined : await runsOfCause(scope, { ...filter, cause });
  const found: Run[] = [];
  let cursor: string | undefined;
  do {
    const page = await readJournal(client, { ...filter, outcome: [...FAILURES], limit: PAGE, cursor });
    found.push(
      ...page.runs.filter(
        ({ id, task }) => task.queue !== ALERTS_QUEUE && (its === undefined || its.has(id)),
      ),
    );
    if (found.length > MOST_FOUND)
      throw invalid("from", `more than ${MOST_FOUND} failed runs.`, "Give a shorter range, or a task.");
    cursor = page.cursor;
    scope.progress(0);
  } while (cursor !== undefined);
  return found;
}

/**
 * The runs of these ids; unknown ones, and those of other owners, are refused.
 * @param conditions must be none
 * @param only `final`: runs that have not ended are refused too
 * @throws `INVALID_OPTION`
 */
export async function namedRuns(
  scope: Scope,
  ids: readonly string[],
  conditions: object,
  refused: Tally<BulkRefusal>,
  only?: "final",
): Promise<Run[]> {
  const other = Object.entries(conditions).find(([, value]) => value !== undefined)?.[0];
  if (other !== undefined)
    throw invalid(other, "cannot be combined with runs.", "Give ids, or conditions; not both.");
  if (ids.length > MOST_NAMED) throw invalid("runs", `more than ${MOST_NAMED}.`, "Name fewer.");
  const wanted = [...new Set(ids)];
  const known = wanted.filter(isRunId);
  const queues = await scope.queues();
  const all = (await Promise.all(queues.map((queue) => scope.store.runs.many(queue, known)))).flat();
  const byId = new Map(
    all
      .filter(({ task }) => scope.owner === undefined || task.owner === scope.owner)
      .map((run) => [run.id, run]),
  );
  return wanted.flatMap((id) => {
    const run = byId.get(id);
    if (run && (only === undefined || run.state === only)) return [run];
    const [code, message] = run
      ? (["CONFLICT", "it has not ended."] as const)
      : (["RUN_NOT_FOUND", "there is no such run, or no longer."] as const);
    refused.add({ task: id, code, message });
    return [];
  });
}

function isReplayable(run: Run, refused: Tally<BulkRefusal>): boolean {
  const fault = faultOf(run);
  if (fault) refused.add(refusalOf(run.id, fault));
  return !fault;
}
