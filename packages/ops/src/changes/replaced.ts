import type { TaskName } from "@carillon/core";
import { conflict } from "@carillon/core/internal";
import { type Definition, revisionView } from "@carillon/sdk/internal";
import type { Store } from "@carillon/store";

/** Facts of an entry of the change log. */
interface Logged {
  readonly id: string;
  readonly at: number;
  readonly scope: { readonly set?: string | undefined };
  readonly details?: Readonly<Record<string, unknown>> | undefined;
}

/** Kept with the definitions that a change replaced. All undos of one change have one mark, since each goes on with those before. */
export function markOf({ id, scope, details }: Omit<Logged, "at">): string {
  if (typeof details?.["undoes"] === "string") return undoMark(details["undoes"]);
  return scope.set === undefined ? id : setMark(scope.set, Number(details?.["generation"]));
}

export function undoMark(id: string): string {
  return `undo:${id}`;
}

/** The mark of an apply in revisions; its repetitions have the same. */
export function setMark(set: string, generation: number): string {
  return `set:${set}:${generation}`;
}

/**
 * The definition that a change replaced; undefined: the change has not reached the task, or was undone.
 * @throws `CONFLICT` if it was changed since
 */
export async function replacedBy(
  store: Store,
  change: Logged,
  name: TaskName,
): Promise<Definition | undefined> {
  const mark = markOf(change);
  const kept = await store.tasks.revisions(name);
  const [newest] = kept;
  if (newest?.change === mark) return revisionView(newest).definition;
  if (newest?.change === undoMark(change.id)) return undefined;
  const isNewer = newest && (newest.until > change.at || newest.deleted !== undefined);
  if (!isNewer && !kept.some((one) => one.change === mark)) return undefined;
  throw conflict("it was changed since.", "Restore a definition of it by itself.");
}
