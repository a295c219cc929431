import { useState } from "react";

/** Everything that the question finds, including rows that are not read yet. */
export const ALL = "all";

export interface Selection<Row> {
  readonly rows: readonly Row[];
  readonly isAll: boolean;
  has(row: Row): boolean;
  choose(rows: readonly Row[] | typeof ALL): void;
  toggle(row: Row): void;
}

/**
 * The chosen rows of a list. A selection belongs to the question that the list answers: another question begins without one, and a row
 * that is no longer shown is no longer chosen.
 */
export function useSelection<Row>(
  question: unknown,
  shown: readonly Row[],
  keyOf: (row: Row) => string,
): Selection<Row> {
  const asked = JSON.stringify(question);
  const [chosen, setChosen] = useState<{ asked: string; keys: ReadonlySet<string> | typeof ALL }>();
  const keys = chosen?.asked === asked ? chosen.keys : new Set<string>();
  const isAll = keys === ALL;
  const rows = isAll ? shown : shown.filter((row) => keys.has(keyOf(row)));
  const choose = (rows: readonly Row[] | typeof ALL) =>
    setChosen({ asked, keys: rows === ALL ? ALL : new Set(rows.map(keyOf)) });
  const has = (row: Row) => isAll || keys.has(keyOf(row));
  const toggle = (row: Row) =>
    choose(isAll ? [] : has(row) ? rows.filter((one) => keyOf(one) !== keyOf(row)) : [...rows, row]);
  return { rows, isAll, has, choose, toggle };
}
