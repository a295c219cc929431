import { grouped, invalid, quote } from "@carillon/core/internal";
import { CHUNK, type TaskOrder } from "./name-sets.js";

/** A position in a list. */
export interface Entry {
  /** Its position in the order: 0 by name; UTC ms of the next check; minus those of the last run's end. */
  readonly at: number;
  readonly queue: string;
  readonly local: string;
}

/** Some names of a list, in their order. */
export interface Slice {
  readonly entries: readonly Entry[];
  readonly end: Entry | undefined;
}

export function byQueue(entries: readonly Entry[]): [queue: string, locals: string[]][] {
  const groups = [...grouped(entries, ({ queue }) => queue)];
  return groups.map(([queue, some]) => [queue, some.map(({ local }) => local)]);
}
function byPosition(a: Entry, b: Entry): number {
  if (a.at !== b.at) return a.at - b.at;
  if (a.queue !== b.queue) return a.queue < b.queue ? -1 : 1;
  return a.local === b.local ? 0 : a.local < b.local ? -1 : 1;
}

/** Known names from `start` on, in parts. */
export function* sorted(entries: readonly Entry[], start: Entry | undefined): Generator<Slice> {
  const left = entries.filter((one) => start === undefined || byPosition(start, one) < 0).sort(byPosition);
  for (let from = 0; from < left.length; from += CHUNK)
    yield { entries: left.slice(from, from + CHUNK), end: undefined };
}

/**
 * The first entries of several indexes. `last`: there are no others.
 *
 * @param pages the beginning of each index; one with `each` entries may go on
 */
export function merged(
  pages: readonly Entry[][],
  each: number,
  most: number,
): { names: Entry[]; last: boolean } {
  // Entries after the end of a page that may go on are dropped: others of that index may come first.
  const [end] = pages.flatMap((page) => (page.length < each ? [] : page.slice(-1))).sort(byPosition);
  const known = pages.flat().filter((one) => end === undefined || byPosition(one, end) <= 0);
  const names = known.sort(byPosition).slice(0, most);
  return { names, last: end === undefined && names.length === known.length };
}

/** By name: queue and name. By time: the time too, which is negative by last run. */
export function encodeCursor({ at, queue, local }: Entry, order: TaskOrder): string {
  const parts = order === "name" ? [queue, local] : [at, queue, local];
  return Buffer.from(parts.join(" ")).toString("base64url");
}

/** @throws `INVALID_OPTION` */
export function decodeCursor(cursor: string | undefined, order: TaskOrder): Entry | undefined {
  if (cursor === undefined) return undefined;
  const parts = Buffer.from(cursor, "base64url").toString().split(" ");
  if (order === "name") parts.unshift("0");
  const [at, queue, local] = [Number(parts[0]), parts[1], parts[2]];
  const fits = order === "name" || at < 0 === (order === "last");
  if (parts.length === 3 && queue && local && Number.isSafeInteger(at) && fits) return { at, queue, local };
  throw invalid(
    "cursor",
    `got ${quote(cursor)}.`,
    "Give the cursor of the previous page, with the same sort.",
  );
}
