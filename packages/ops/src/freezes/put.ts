import { shown } from "@carillon/sdk/internal";
import { holds } from "../holds.js";
import { operation } from "../operation.js";
import { dryRun } from "../shapes.js";
import { freeze, freezeInput, freezeOf, holdsOfFreeze, loggedOf, viewOf } from "./freeze.js";

/**
 * Freezes tasks, tasks that are put later included. It holds on all nodes before its answer is made, independently of pauses and other
 * freezes. Due times of schedules are skipped with the reason `frozen`; single times, retries, waiting occurrences and backfills are held
 * until the end. Open runs go on.
 */
export const putFreeze = operation({
  http: "POST /freezes",
  role: "operator",
  reach: "owner",
  logs: "freeze",
  once: { known: "new", leaves: "whole", against: [["freezes.delete"]] },
  example: { owner: "acme" },
  summary:
    "Holds all tasks of an owner, a tag, a queue or the namespace, or some tasks, also those put later, independently of pauses, and counts them. Due times are skipped as `frozen`; single times, retries and pending occurrences are held. Open runs go on.",
  input: freezeInput.extend({
    dryRun: dryRun.describe("Freeze nothing, count what it would hold. The id in that answer names nothing."),
  }),
  output: freeze.extend({ holds }),
  status: [200, 201],
  async run(call, { dryRun, ...input }) {
    const { freeze, now } = await freezeOf(call, input);
    if (!dryRun) {
      await call.store.freezes.put(freeze);
      const { id: _, by: __, created: ___, ...facts } = freeze;
      call.log(loggedOf(freeze), { after: shown(facts) });
    }
    // Counts last: the hold must not wait for it.
    return { ...viewOf(freeze, now), holds: await holdsOfFreeze(call, freeze, now) };
  },
});
