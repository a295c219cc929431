import type { Freeze } from "@carillon/core/internal";

/** Revision and list of the freezes, as scripts answer; both absent if there are none. */
export type FrozenReply = readonly [revision?: string | null, list?: string | null];

/** The freezes that a task was read with. A commit is `STALE` if they have changed. */
export interface Freezes {
  readonly revision: string;
  readonly list: readonly Freeze[];
}

const NONE: Freezes = { revision: "", list: [] };

/** The last list that was read: nearly all reads are of one. */
let last: { revision: string; text: string; freezes: Freezes } | undefined;

export function readFrozen([revision, text]: FrozenReply): Freezes {
  if (!revision || !text) return NONE;
  if (last?.revision !== revision || last.text !== text) {
    last = { revision, text, freezes: { revision, list: freezesOf(text) } };
  }
  return last.freezes;
}

/** Drops corrupt or foreign data. */
function freezesOf(text: string): Freeze[] {
  try {
    const list = JSON.parse(text) as Freeze[];
    return Array.isArray(list) ? list.filter(isFreeze) : [];
  } catch {
    return [];
  }
}

export function isFreeze(value: Partial<Freeze> | null): value is Freeze {
  return typeof value?.id === "string" && Number.isFinite(value.from) && Number.isFinite(value.created);
}
