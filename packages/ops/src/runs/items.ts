import { ITEM_STATES, type ItemState, type RunItem } from "@carillon/core";
import { invalid, quote } from "@carillon/core/internal";
import { findRun, wholeNumber } from "@carillon/sdk/internal";
import { z } from "zod";
import { operation } from "../operation.js";
import { as, count, nextPage, page, runId, someOf, time } from "../shapes.js";

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
    // An unfinished item of a run that has ended is stored with its last status.
    const shown = (status: ItemState) =>
      run.state === "final" && status === "waiting" ? "cancelled" : status;
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

/** @throws `INVALID_OPTION` */
function firstOf(cursor = "0"): number {
  if (/^\d{1,5}$/.test(cursor)) return Number(cursor);
  throw invalid("cursor", `got ${quote(cursor)}.`, "Give the cursor of the previous page.");
}
