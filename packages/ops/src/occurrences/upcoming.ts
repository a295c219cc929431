import { covers, type Freeze, type Frozen, frozenAt } from "@carillon/core/internal";
import { wholeNumber } from "@carillon/sdk/internal";
import { nextOf, type StoredTask } from "@carillon/store";
import { z } from "zod";
import { operation } from "../operation.js";
import { dueTasks, pick, upcoming, widening } from "./due-tasks.js";

export const listUpcoming = operation({
  http: "GET /upcoming",
  role: "viewer",
  reach: "owner",
  summary:
    "Lists the tasks that are acted on next, each once, earliest first: 20 unless `limit` (at most 1,000) says otherwise.",
  input: z.strictObject(pick),
  output: z.object({ upcoming: z.array(upcoming) }),
  async run({ scope, store, owner }, { queue, limit: most = 20 }) {
    const limit = wholeNumber(most, "limit", 1, 1_000);
    const queues = await scope.queuesOf(queue);
    const freezes = await store.freezes.list();
    const now = freezes.length === 0 ? 0 : await store.freezes.time();
    const found = await widening(limit, async (most) => {
      const { tasks, horizon } = await dueTasks(store, queues, Number.POSITIVE_INFINITY, most, owner);
      const found = tasks.flatMap(({ name, task }) => {
        const next = nextOf(task);
        return next ? [{ task: name, ...next, ...frozenBy(freezes, task, Math.max(now, next.due)) }] : [];
      });
      return { found: found.sort((a, b) => a.due - b.due).slice(0, limit), horizon };
    });
    return { upcoming: found };
  },
});

function frozenBy(freezes: readonly Freeze[], { definition }: StoredTask, at: number): { frozen?: Frozen } {
  const frozen = frozenAt(
    freezes.filter((one) => covers(one, definition)),
    at,
  );
  return frozen ? { frozen } : {};
}
