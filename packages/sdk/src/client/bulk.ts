import { CarillonError, type TaskName, type TaskState } from "@carillon/core";
import { assertName, assertOptions } from "@carillon/core/internal";
import type { StoredTask } from "@carillon/store";
import type { ChangeFacts, ChangeKind } from "./change.js";
import { resumeFrom, shortText } from "./input.js";
import type { Scope } from "./scope.js";
import type { DeleteOptions, PauseOptions, ResumeOptions } from "./types.js";

/** Selects tasks; at least one field is required. */
export interface BulkFilter {
  readonly owner?: string | undefined;
  readonly tag?: string | undefined;
  readonly queue?: string | undefined;
}

/** Further conditions on how the tasks were paused. */
export interface ResumeFilter extends BulkFilter {
  /** Only tasks that were paused with exactly this note. */
  readonly note?: string | undefined;
  /** Only tasks that were paused by exactly this name. */
  readonly pausedBy?: string | undefined;
}

export interface BulkOptions {
  /** Change nothing; say how many tasks would be changed. Default false. */
  readonly dryRun?: boolean | undefined;
}

/** Tasks that a call changed, or with `dryRun` would change. */
export interface BulkResult {
  readonly count: number;
  /** The first ten of these tasks, as they were before, in the order of queue, owner, id. */
  readonly sample: readonly BulkSample[];
}

export interface BulkSample extends TaskName {
  /** When, by whom and why it was paused, if it was. */
  readonly paused?: StoredTask["paused"];
}

/** Tasks at a time: bounded memory, and Redis is never held for long. */
const CHUNK = 100;

/** Tasks in a sample. */
const SAMPLE = 10;

export async function pauseAll(
  scope: Scope,
  filter: BulkFilter,
  options: BulkOptions & Omit<PauseOptions, "cancelQueued">,
): Promise<BulkResult> {
  assertOptions(options, ["note", "by", "dryRun"]);
  const [by, note] = [scope.author(options.by), shortText(options.note, "note")];
  const checked = boundTo(scope, filter);
  const done = await eachTask(scope, checked, "scheduled", options, async (name) => {
    return (await scope.store.tasks.pause(name, by, note)) === "OK";
  });
  log(scope, "pause", checked, by, options, done, { note: note || undefined });
  return done;
}

export async function resumeAll(
  scope: Scope,
  filter: ResumeFilter,
  options: BulkOptions & ResumeOptions,
): Promise<BulkResult> {
  assertOptions(options, ["from", "by", "dryRun"]);
  const by = scope.author(options.by);
  const from = resumeFrom(options.from);
  const checked = boundTo(scope, filter, ["note", "pausedBy"]);
  shortText(checked.note, "note");
  shortText(checked.pausedBy, "pausedBy");
  const done = await eachTask(scope, checked, "paused", options, async (name) => {
    return (await scope.store.tasks.resume(name, from, by.replace(/\s/g, "_"))) === "OK";
  });
  const { note, pausedBy } = checked;
  log(scope, "resume", checked, by, options, done, { from, note, pausedBy });
  return done;
}

export async function deleteAll(
  scope: Scope,
  filter: BulkFilter,
  options: BulkOptions & DeleteOptions,
): Promise<BulkResult> {
  assertOptions(options, ["dryRun", "by"]);
  const by = scope.author(options.by);
  const checked = boundTo(scope, filter);
  const done = await eachTask(scope, checked, undefined, options, (name) => scope.store.tasks.delete(name));
  log(scope, "delete", checked, by, options, done);
  return done;
}

/** One entry for all tasks, if there were any. */
function log(
  scope: Scope,
  kind: ChangeKind,
  { owner, tag, queue }: BulkFilter,
  by: string,
  { dryRun }: BulkOptions,
  { count, sample }: BulkResult,
  details?: ChangeFacts["details"],
): void {
  if (dryRun || count === 0) return;
  const names = sample.map(({ queue, owner, id }) => ({ queue, owner, id }));
  scope.log(kind, { owner, tag, queue }, by, { count, sample: names, details });
}

function boundTo<Filter extends BulkFilter>(
  scope: Scope,
  filter: Filter,
  more: (keyof Filter & string)[] = [],
): Filter {
  assertOptions(filter, ["owner", "tag", "queue", ...more]);
  for (const field of ["queue", "owner", "tag"] as const) {
    if (filter[field] !== undefined) assertName(filter[field], field);
  }
  return scope.bind(filter);
}

/**
 * Changes each task that matches, in chunks.
 *
 * @param change returns false if there was nothing to change
 * @throws `INVALID_OPTION` for a filter without owner, tag and queue: nobody means all tasks of a namespace by accident
 */
async function eachTask(
  { store }: Scope,
  { note, pausedBy, ...filter }: ResumeFilter,
  state: TaskState | undefined,
  { dryRun = false }: BulkOptions,
  change: (name: TaskName) => Promise<boolean>,
): Promise<BulkResult> {
  if (filter.owner === undefined && filter.tag === undefined && filter.queue === undefined) {
    throw new CarillonError("INVALID_OPTION", "no owner, tag or queue.", {
      remedy: "Select tasks by one of these.",
    });
  }
  const isMeant = ({ paused }: StoredTask) =>
    (note === undefined || paused?.note === note) && (pausedBy === undefined || paused?.by === pausedBy);
  let count = 0;
  const sample: BulkSample[] = [];
  let cursor: string | undefined;
  do {
    const page = await store.tasks.list({ ...filter, state }, CHUNK, cursor);
    const tasks = page.tasks.filter(isMeant).map(sampleOf);
    const changed = await Promise.all(
      tasks.map(async ({ queue, owner, id }) => dryRun || change({ queue, owner, id })),
    );
    const done = tasks.filter((_, i) => changed[i]);
    count += done.length;
    sample.push(...done.slice(0, SAMPLE - sample.length));
    cursor = page.cursor;
  } while (cursor !== undefined);
  return { count, sample };
}

function sampleOf({ definition: { queue, owner, id }, paused }: StoredTask): BulkSample {
  return { queue, owner, id, ...(paused && { paused }) };
}
