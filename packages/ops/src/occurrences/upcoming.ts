import { covers, dueOwnerShape, type Freeze, type Frozen, frozenAt } from "@carillon/core/internal";
import { wholeNumber } from "@carillon/sdk/internal";
import { nextOf, type StoredTask } from "@carillon/store";
import { z } from "zod";
import { conditions } from "../conditions.js";
import { operation } from "../operation.js";
import { duration, wholeNumber as whole } from "../shapes.js";
import { dueTasks, heldBy, type Upcoming, upcoming, widening } from "./due-tasks.js";
import { forecast } from "./forecast.js";

/** From this many ms on an occurrence is overdue. */
const LATE = 1_000;

export const listUpcoming = operation({
  http: "GET /upcoming",
  role: "viewer",
  reach: "owner",
  cost: "computes",
  summary:
    "Lists the tasks that are acted on next, each once, earliest first: 20 unless `limit` (at most 1,000) says otherwise; or with `within` each occurrence until then, 1,000 unless `limit` (at most 100,000) says otherwise.",
  input: z.strictObject({
    within: duration
      .optional()
      .describe(
        "Each occurrence within this time from now: `2h`. Refused if it takes more than 250,000 steps of schedules.",
      ),
    queue: conditions.queue,
    limit: whole
      .optional()
      .describe("At most 1,000, default 20; with `within` at most 100,000, default 1,000."),
  }),
  output: z.object({
    upcoming: z.array(upcoming),
    overdue: z
      .array(dueOwnerShape.extend({ queue: z.string() }))
      .optional()
      .describe(
        "The owner with most of what is overdue in each queue. Missing: nothing is, or not for this reader, or `within` is given.",
      ),
  }),
  async run(call, { within, queue, limit: most }) {
    if (within !== undefined) return { upcoming: await forecast(call, within, queue, most) };
    const { scope, store, owner } = call;
    const limit = wholeNumber(most ?? 20, "limit", 1, 1_000);
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
    const since = (await store.serverTime()) - LATE;
    const isLate = ({ due }: Upcoming) => due < since;
    const late = [...new Set(found.flatMap((one) => (isLate(one) ? [one.task.queue] : [])))];
    const limits = new Map(
      await Promise.all(late.map(async (name) => [name, await store.queues.limits(name)] as const)),
    );
    const shown = await Promise.all(
      found.map(async (one) => {
        const runs = limits.get(one.task.queue) ?? {};
        if (!isLate(one) || (runs[one.task.owner] ?? runs["*"]) === undefined) return one;
        const limit = await heldBy(store, one.task);
        return limit === undefined ? one : { ...one, limit };
      }),
    );
    // A bound client does not learn how much of others is due.
    if (owner !== undefined) return { upcoming: shown };
    const owners = await Promise.all(late.map((name) => store.claims.dueOwner(name, since)));
    const overdue = owners.flatMap((most, i) => (most ? [{ queue: late[i] as string, ...most }] : []));
    return overdue.length > 0 ? { upcoming: shown, overdue } : { upcoming: shown };
  },
});

function frozenBy(freezes: readonly Freeze[], { definition }: StoredTask, at: number): { frozen?: Frozen } {
  const frozen = frozenAt(
    freezes.filter((one) => covers(one, definition)),
    at,
  );
  return frozen ? { frozen } : {};
}
