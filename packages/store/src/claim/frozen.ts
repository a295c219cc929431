import {
  assertQuotaScope,
  type Freeze,
  parseQuota,
  type QuotaInput,
  type Quotas,
} from "@carillon/core/internal";

/**
 * A script's answer about freezes and quotas: their revision and list, both absent if there are none, and the owners
 * whose quota of waiting jobs is used up.
 */
export type FrozenReply = readonly [revision?: string | null, list?: string | null, full?: string | null];

/** The freezes and quotas that a task was read with. A commit is `STALE` if they have changed. */
export interface Freezes {
  readonly revision: string;
  readonly list: readonly Freeze[];
  readonly quotas: Quotas;
  /** Owners whose quota of waiting jobs in the queue is used up. */
  readonly full: ReadonlySet<string>;
}

const NONE: Freezes = { revision: "", list: [], quotas: new Map(), full: new Set() };

/** The last list that was read, because nearly all reads return the same one. */
let last: { revision: string; text: string; freezes: Freezes } | undefined;

export function readFrozen([revision, text, full]: FrozenReply): Freezes {
  if (!revision || !text) return NONE;
  if (last?.revision !== revision || last.text !== text) {
    const values = valuesOf(text);
    const list = values.filter(isFreeze);
    last = { revision, text, freezes: { ...NONE, revision, list, quotas: quotasIn(values) } };
  }
  return full ? { ...last.freezes, full: new Set(full.split(" ")) } : last.freezes;
}

/** None if the text is corrupt or foreign. */
function valuesOf(text: string): object[] {
  try {
    const list = JSON.parse(text) as object[];
    return Array.isArray(list) ? list : [];
  } catch {
    return [];
  }
}

/** Drops corrupt or foreign data. */
export function quotasIn(values: readonly object[]): Quotas {
  return new Map(
    values.flatMap((value) => {
      const { scope, ...quota } = value as { scope?: unknown } & QuotaInput;
      if (scope === undefined) return [];
      try {
        return [[assertQuotaScope(scope), parseQuota(quota)] as const];
      } catch {
        return [];
      }
    }),
  );
}

export function isFreeze(value: object | null): value is Freeze {
  const { id, from, created, tasks = [] } = (value ?? {}) as Partial<Freeze>;
  return typeof id === "string" && Number.isFinite(from) && Number.isFinite(created) && Array.isArray(tasks);
}
