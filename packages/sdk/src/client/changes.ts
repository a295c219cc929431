import { CarillonError, type TaskName, type TaskRef } from "@carillon/core";
import { assertOptions, type ResolvedRef } from "@carillon/core/internal";
import type { StoredChange } from "@carillon/store";
import { roundedInstant } from "../instant.js";
import type { ChangeFacts, ChangeKind, ChangeScope } from "./change.js";
import { assertCursor, shortText, wholeNumber } from "./input.js";
import type { Scope } from "./scope.js";

/** An entry of the change log. */
export interface Change extends ChangeFacts {
  readonly id: string;
  /** UTC ms of Redis time. */
  readonly at: number;
  readonly kind: ChangeKind;
  /** The name that was given as the author; undefined: none. */
  readonly by: string | undefined;
  /** The kind of program and its host, or the address of its client: `cli build-7`, `api 10.1.2.3`. */
  readonly from: string;
  readonly scope: ChangeScope;
}

/** Selects changes to list. */
export interface ChangeFilter {
  /** Only changes of this task, those of more than ten tasks that may contain it included. If it is deleted, give its queue too. */
  readonly task?: TaskRef | undefined;
  /** Only changes by this author. */
  readonly by?: string | undefined;
  /** Not before this time: ISO 8601 with offset, a Date or epoch ms. */
  readonly since?: string | number | Date | undefined;
  /** At most this many; default 100, at most 1,000. */
  readonly limit?: number | undefined;
  /** The cursor of the previous page. */
  readonly cursor?: string | undefined;
}

export interface ChangePage {
  readonly changes: Change[];
  /** Gives the next page; undefined: this was the last. */
  readonly cursor: string | undefined;
}

/** Entries read at once. */
const STEP = 500;

/**
 * The log of changes with their authors, at `client.changes`: the last 10,000 changes of the namespace, made by
 * clients, the CLI and the console.
 */
export class Changes {
  readonly #scope: Scope;

  /** @internal */
  constructor(scope: Scope) {
    this.#scope = scope;
  }

  /**
   * The changes that match, newest first; for a bound client, those of its owner. An entry is written right after its change: it is missing
   * if the process died between the two, and may be listed twice if the connection was lost.
   *
   * @throws `INVALID_OPTION`, `INVALID_NAME`, `AMBIGUOUS_TASK`
   */
  async list(filter: ChangeFilter = {}): Promise<ChangePage> {
    assertOptions(filter, ["task", "by", "since", "limit", "cursor"]);
    const limit = wholeNumber(filter.limit ?? 100, "limit", 1, 1_000);
    const since = filter.since === undefined ? 0 : roundedInstant(filter.since, "since");
    const by = filter.by === undefined ? undefined : shortText(filter.by, "by");
    const { owner, store } = this.#scope;
    const task = filter.task === undefined ? undefined : await this.#scope.nameOf(filter.task);
    let before = assertEntry(filter.cursor);
    const changes: Change[] = [];
    for (;;) {
      const found = await store.changes.page(before, STEP);
      for (const stored of found) {
        before = stored.id;
        if (stored.at < since) return { changes, cursor: undefined };
        const change = decode(stored);
        if (!change || (owner !== undefined && change.scope.owner !== owner)) continue;
        if (by !== undefined && change.by !== by) continue;
        if (task !== undefined && !concerns(change, task)) continue;
        changes.push(change);
        if (changes.length === limit) return { changes, cursor: stored.id };
      }
      if (found.length < STEP) return { changes, cursor: undefined };
    }
  }
}

/** A change of many tasks concerns those that it names, if it names all; else each that it may contain. */
function concerns({ scope, count, sample = [] }: Change, task: ResolvedRef): boolean {
  const matches = (name: ChangeScope | TaskName) =>
    (["queue", "owner", "id"] as const).every(
      (part) => name[part] === undefined || task[part] === undefined || name[part] === task[part],
    );
  if (count === undefined) return scope.id !== undefined && matches(scope);
  return count <= sample.length ? sample.some(matches) : matches(scope);
}

function decode({ id, at, entry }: StoredChange): Change | undefined {
  try {
    const { kind, by, from, scope, ...facts } = JSON.parse(entry) as Omit<Change, "id" | "at">;
    return { id, at, kind, by, from, scope: { ...scope }, ...facts };
  } catch {
    return undefined;
  }
}

/** @throws `INVALID_OPTION` */
export function assertEntry(cursor: string | undefined): string | undefined {
  assertCursor(cursor);
  if (cursor === undefined || /^\d{1,20}-\d{1,20}$/.test(cursor)) return cursor;
  throw new CarillonError("INVALID_OPTION", "not a cursor.", {
    field: "cursor",
    remedy: "Give the cursor of the previous page.",
  });
}
