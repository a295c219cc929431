import { DEFAULT_OWNER, type TaskName } from "@carillon/core";
import { localName } from "@carillon/core/internal";
import type { TaskSet } from "@carillon/store";
import type { GivenSet, Plan, PlanItem } from "./set.js";

/** Removals that need no flag: so many, or this part of the set. */
const REMOVALS = { least: 5, part: 0.1 };

/** Rules that an apply would break. @param members number of the set's tasks before it */
export function refusals(
  { tasks, allowRemovals, version, protect = [], keep, undoes }: GivenSet,
  record: TaskSet | undefined,
  items: readonly PlanItem[],
  members: number,
): Plan["refused"] {
  const refused: Plan["refused"][number][] = [];
  const add = (code: string, message: string, remedy: string) => refused.push({ code, message, remedy });
  if (tasks.length === 0 && !keep)
    add(
      "EMPTY_SET",
      "the set has no tasks.",
      "Check that its file was loaded. To remove the last task, delete it.",
    );
  if (record && !undoes && outdates(version, record)) {
    const what = version === undefined ? "no version" : `version ${version}`;
    add("OLD_VERSION", `${what} was given, and the set has version ${record.version}.`, "Apply a newer one.");
  }
  const removed = items.filter(({ action }) => action === "remove").map(({ task }) => task);
  const most = allowRemovals ?? Math.max(REMOVALS.least, Math.floor(members * REMOVALS.part));
  if (removed.length > most)
    add(
      "TOO_MANY_REMOVALS",
      `${removed.length} of ${members} tasks would be removed, and ${most} may be.`,
      `If that is meant, allow ${removed.length} removals.`,
    );
  const guarded = new Set([...protect, ...(record?.protect ?? [])].map(localOf));
  const lost = removed.filter((task) => guarded.has(localName(task)));
  if (lost.length > 0)
    add(
      "PROTECTED",
      `${some(lost)} would be removed.`,
      "Take it out of `protect` first, in an apply of its own.",
    );
  const taken = items.filter(({ action }) => action === "conflict");
  if (taken.length > 0) {
    const first = taken[0]?.set;
    const whose = first ? `belong to other sets, such as ${first}` : "were put without a set";
    add(
      "CONFLICT",
      `${some(taken.map(({ task }) => task))} ${whose}.`,
      "Adopt them if this set shall define them.",
    );
  }
  return refused;
}

const NUMERIC = new Intl.Collator("en", { numeric: true });

/** Whether a set has a version that is newer than this one. */
export function outdates(version: string | undefined, { version: other }: Pick<TaskSet, "version">): boolean {
  return other !== undefined && (version === undefined || isOlder(version, other));
}

/** Numbers in the texts count as numbers: 1.9.0 is older than 1.10.0. */
function isOlder(one: string, other: string): boolean {
  return NUMERIC.compare(one, other) < 0;
}

/** @param ref `[owner/]id` */
export function localOf(ref: string): string {
  return ref.includes("/") ? ref : localName({ owner: DEFAULT_OWNER, id: ref });
}

function some(tasks: readonly TaskName[]): string {
  const more = tasks.length > 3 ? ` and ${tasks.length - 3} more` : "";
  return `${tasks.slice(0, 3).map(localName).join(", ")}${more}`;
}
