import { z } from "zod";
import { type Call, operation } from "../operation.js";
import { changed as changedShape, given } from "../shapes.js";
import { backfillNotFound, findBackfill } from "./backfill.js";
import { isBatch } from "./batch.js";

export const cancelBackfill = operation({
  http: "POST /backfills/:id/cancel",
  role: "operator",
  reach: "owner",
  logs: "backfill.cancel",
  once: { known: "state", leaves: "whole", against: [["tasks.deleteMany", { tag: "nightly" }]] },
  summary: "Stops a backfill, or all of a batch; what it has enqueued goes on.",
  input: z.strictObject({ id: given.describe("A backfill's id, or that of a batch.") }),
  output: changedShape,
  async run(call, { id }) {
    if (isBatch(id)) return { changed: await cancelBatch(call, id) };
    const { task } = await findBackfill(call, id);
    const changed = await call.store.backfills.end(task.queue, id, "cancelled");
    if (changed) call.log(task, { details: { backfill: id } });
    return { changed };
  },
});

async function cancelBatch({ scope, store, owner, log }: Call, batch: string): Promise<boolean> {
  let [found, count] = [false, 0];
  for (const queue of await scope.queues()) {
    for await (const page of store.backfills.all(queue)) {
      const its = page.filter((one) => one.batch === batch && [undefined, one.task.owner].includes(owner));
      found ||= its.length > 0;
      const running = its.filter(({ state }) => state === "running");
      const ended = await Promise.all(running.map(({ id }) => store.backfills.end(queue, id, "cancelled")));
      count += ended.filter(Boolean).length;
    }
  }
  if (!found) throw backfillNotFound(batch);
  if (count > 0) log({ owner }, { count, details: { batch } });
  return count > 0;
}
