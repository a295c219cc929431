import {
  assertQuotaScope,
  type Freeze,
  parseQuota,
  type QuotaInput,
  type Quotas,
} from "@carillon/core/internal";

/** Revision and list of the freezes and quotas, both absent if there are none, and the owners as many of whose jobs wait as may, as scripts answer. */
export type FrozenReply = readonly [revision?: string | null, list?: string | null, full?: string | null];

/** The freezes and quotas that a task was read with. A commit is `STALE` if they have changed. */
export interface Freezes {
  readonly revision: string;
  readonly list: readonly Freeze[];
  readonly quotas: Quotas;
  /** Owners as many of whose jobs wait in the queue as may. */
  readonly full: ReadonlySet<string>;
}

const NONE: Freezes = { revision: "", list: [], quotas: new Map(), full: new Set() };

/** The last list that was read: nearly all reads are of one. */
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
  const { id, from, created } = (value ?? {}) as Partial<Freeze>;
  return typeof id === "string" && Number.isFinite(from) && Number.isFinite(created);
}
