import { ITEM_STATES, type ItemState, type Run, type RunItem } from "@carillon/core";
import { invalid, quote } from "@carillon/core/internal";
import { findRun, wholeNumber } from "@carillon/sdk/internal";
import { z } from "zod";
import { type Call, operation } from "../operation.js";
import { as, count, given, nextPage, page, refOf, runId, someOf, taskRef, time } from "../shapes.js";

/** Items that one search looks at, and runs: of a task, the newest. */
const [LOOKS, RUNS] = [10_000, 1_000];
const LONGEST_TEXT = 200;

const text = z.string();
const json = z.unknown();

const item = z.object({
  index: count,
  status: z.enum(ITEM_STATES),
  data: json,
  planned: time,
  attempts: count,
  maxAttempts: count,
  ...z
    .object({
      started: time,
      finished: time,
      worker: text,
      pid: count,
      crashes: count,
      notBefore: time,
      key: text,
      result: json,
      output: text,
      error: text,
    })
    .partial().shape,
});

/** Kept as long as the run's record. */
export const listItems = operation({
  http: "GET /runs/:id/items",
  role: "viewer",
  reach: "owner",
  summary: "Lists the items of a fan-out by index. Empty if the run has none.",
  input: z.strictObject({
    id: runId,
    status: someOf(ITEM_STATES).optional().describe("With this status. Default: all."),
    ...page,
  }),
  output: z.object({ items: z.array(as<RunItem>(item)), cursor: nextPage }),
  async run({ scope, store }, { id, status = ITEM_STATES, limit: most = 100, cursor: after }) {
    const limit = wholeNumber(most, "limit", 1, 1_000);
    const from = firstOf(after);
    const asked: readonly ItemState[] = [status].flat();
    const run = await findRun(scope, id);
    const shown = shownIn(run);
    const { items, next } = await store.items.page(
      run.task.queue,
      id,
      (status) => asked.includes(shown(status)),
      { from, limit },
    );
    const cursor = next === undefined ? undefined : String(next);
    return { items: items.map((item) => ({ ...item, status: shown(item.status) })), cursor };
  },
});

type FoundItem = RunItem & Pick<Run, "nominal"> & { readonly run: string };

/** The question of support: was this customer's item done, when, and in which run? */
export const findItems = operation({
  http: "GET /tasks/:queue/:owner/:id/runs/find-items",
  role: "viewer",
  reach: "owner",
  summary: `Finds items by their data, in all runs of a task that are kept (the newest ${RUNS.toLocaleString("en")}), newest first. One call looks at ${LOOKS.toLocaleString("en")} items at most: a page may be short, and even empty, and have a cursor.`,
  input: z.strictObject({
    ...taskRef,
    text: given.describe(
      `Stands in the JSON of an item's data, in capitals or not; 1 to ${LONGEST_TEXT} characters.`,
    ),
    ...page,
  }),
  example: { text: "cust-045" },
  output: z.object({
    items: z.array(as<FoundItem>(item.extend({ run: z.string(), nominal: time }))),
    cursor: nextPage,
  }),
  async run({ scope, store, replacer }, { text, limit: most = 100, cursor, ...ref }) {
    const limit = wholeNumber(most, "limit", 1, 1_000);
    if (text === "" || text.length > LONGEST_TEXT)
      throw invalid("text", `it has ${text.length} characters.`, `Give 1 to ${LONGEST_TEXT}.`);
    const start = cursor === undefined ? undefined : placeOf(cursor);
    const all = await store.runs.list(await scope.locate(refOf(ref)), RUNS);
    const runs = all.sort(newestFirst).filter((run) => !start || newestFirst(run, start) >= 0);
    const items: FoundItem[] = [];
    const has = (json: string) => json.toLowerCase().includes(text.toLowerCase());
    // Hidden values neither match nor count, or the cursor would tell of them.
    const matches = (data: string) => has(data) && has(shownAs(data, replacer));
    let looks = LOOKS;
    for (const run of runs) {
      if (looks <= 0 || items.length === limit) return { items, cursor: `${run.enqueued} 0 ${run.id}` };
      const from = run.id === start?.id ? start.index : 0;
      const which = { from, matches, most: looks, limit: limit - items.length };
      const found = await store.items.page(run.task.queue, run.id, () => true, which);
      const shown = shownIn(run);
      const { id, nominal } = run;
      for (const item of found.items) items.push({ ...item, status: shown(item.status), run: id, nominal });
      if (found.next !== undefined) return { items, cursor: `${run.enqueued} ${found.next} ${run.id}` };
      looks -= Math.max(1, found.seen);
    }
    return { items, cursor: undefined };
  },
});

/** Data as the caller sees it; "" if it is not JSON. */
function shownAs(data: string, replacer: Call["replacer"]): string {
  try {
    return JSON.stringify({ data: JSON.parse(data) }, replacer);
  } catch {
    return "";
  }
}

type Place = Pick<Run, "enqueued" | "id">;
const newestFirst = (a: Place, b: Place) =>
  b.enqueued - a.enqueued || (a.id < b.id ? -1 : Number(a.id > b.id));

/** The place of a search's cursor. @throws `INVALID_OPTION` */
function placeOf(cursor: string): Place & { index: number } {
  const [, enqueued, index, id] = /^(\d{1,16}) (\d{1,5}) (\S+)$/.exec(cursor) ?? [];
  if (id === undefined)
    throw invalid("cursor", `got ${quote(cursor)}.`, "Give the cursor of the previous page.");
  return { enqueued: Number(enqueued), index: Number(index), id };
}

/** An unfinished item of a run that has ended is stored with its last status. */
function shownIn({ state }: Run): (status: ItemState) => ItemState {
  return (status) => (state === "final" && status === "waiting" ? "cancelled" : status);
}

/** @throws `INVALID_OPTION` */
function firstOf(cursor = "0"): number {
  if (/^\d{1,5}$/.test(cursor)) return Number(cursor);
  throw invalid("cursor", `got ${quote(cursor)}.`, "Give the cursor of the previous page.");
}
