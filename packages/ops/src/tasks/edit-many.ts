import { isDeepStrictEqual } from "node:util";
import type { TaskInput, TaskName } from "@carillon/core";
import { conflict, DEFAULT_PAYLOAD_LIMITS, encodePayload, invalid } from "@carillon/core/internal";
import type { PutResult } from "@carillon/sdk";
import { type Definition, TaskWriter } from "@carillon/sdk/internal";
import { z } from "zod";
import {
  type BulkRefusal,
  bulkUndoable,
  keyOf,
  nameOf,
  refusalOf,
  selected,
  Tally,
  undoableResult,
} from "../bulk/bulk.js";
import { checkedFilter, dryRun, filter, MOST_NAMED } from "../bulk/filter.js";
import { exampleTask, operation } from "../operation.js";
import { given, taskName } from "../shapes.js";
import { withFields } from "./fields.js";
import { preview } from "./task.js";

interface Planned {
  readonly name: TaskName;
  readonly seen: Definition;
  readonly put: PutResult;
}

/** Tasks whose differences an answer has; refusals of a sample. */
const [SHOWN, SAMPLE] = [100, 10];

export const editMany = operation({
  http: "POST /tasks/edit",
  role: "admin",
  reach: "owner",
  cost: "computes",
  logs: "put",
  once: { known: "state", leaves: "whole", against: [["tasks.put", { task: exampleTask("u1") }]] },
  example: { tag: "nightly", fields: { "schedule.jitter": "5m" } },
  summary:
    "Changes fields of all tasks that match, at most 1,000: of none if the change does not fit one of them. One change, which an undo takes back.",
  input: z.strictObject({
    ...filter,
    fields: z
      .record(z.string(), z.unknown(), "not an object")
      .optional()
      .describe(
        'New values by field, nested names joined by dots: `{ "schedule.timezone": "Europe/Paris" }`.',
      ),
    unset: z
      .array(given, "not a list")
      .readonly()
      .optional()
      .describe("Fields that get their defaults again."),
    add: z
      .record(z.string(), z.array(z.unknown(), "not a list"), "not an object")
      .optional()
      .describe(
        'Entries that lists get if they lack them: `{ "schedule.except": [{ "named": "holidays" }] }`.',
      ),
    dryRun,
  }),
  output: undoableResult.extend({
    edits: z
      .array(taskName.extend({ preview }))
      .readonly()
      .describe(
        "The first 100 of these tasks, with the fields that differ and the next times, before and after.",
      ),
  }),
  async run(call, { fields, unset, add, dryRun, ...input }) {
    const { scope, by } = call;
    const changes = { fields, unset, add };
    if (Object.values(changes).every((one = {}) => Object.keys(one).length === 0))
      throw invalid("fields", "none.", "Give fields to set, to unset or to add to.");
    const edited = (task: Definition) => {
      const to = withFields(task, changes) as TaskInput;
      if (!isDeepStrictEqual(to.payload, task.payload)) assertSize(to.payload, task.payload);
      return to;
    };
    // A wrong path is wrong for all.
    withFields({}, changes);
    const checked = checkedFilter(scope, input);
    const refused = new Tally<BulkRefusal>(SAMPLE);
    // A payload that stays as it is may have any size.
    const writer = new TaskWriter(scope, undefined, Number.MAX_SAFE_INTEGER);
    const plan = async (name: TaskName): Promise<Planned> => {
      let seen = {} as Definition;
      const put = await writer.edit(
        name,
        (task) => {
          seen = task;
          return edited(task);
        },
        { by, dryRun: true },
      );
      return { name, seen, put };
    };
    const planned: Planned[] = [];
    const faults: unknown[] = [];
    let found = 0;
    for await (const page of selected(scope, checked, undefined, refused)) {
      found += page.length;
      if (found > MOST_NAMED)
        throw invalid(
          "tasks",
          `more than ${MOST_NAMED} match.`,
          "Give another condition, or change them in parts.",
        );
      const names = page.map(nameOf);
      const plans = await Promise.allSettled(names.map(plan));
      for (const [i, one] of plans.entries()) {
        const name = names[i] as TaskName;
        if (one.status === "fulfilled") planned.push(one.value);
        else {
          faults.push(one.reason);
          refused.add(refusalOf(name, one.reason));
        }
      }
    }
    // Nobody's task fits: the fault is in the input.
    if (planned.length === 0 && faults.length > 0) throw faults[0];
    const meant = planned.filter(({ put }) => put.outcome !== "unchanged");
    const edits = meant.slice(0, SHOWN).map(({ name, put }) => ({ ...name, preview: put.preview! }));
    if (refused.count > 0) return { count: 0, sample: [], refused: refused.result, edits };
    const { owner = scope.owner, tag, queue } = checked;
    const seen = new Map(meant.map((one) => [keyOf(one.name), one.seen]));
    const again = (name: TaskName) => (task: Definition) => {
      const to = edited(task);
      if (!isDeepStrictEqual(to, task) && !isDeepStrictEqual(task, seen.get(keyOf(name))))
        throw conflict("it was changed meanwhile.", "Edit it again, if it is still meant.");
      return to;
    };
    const done = await bulkUndoable(
      call,
      { owner, tag, queue },
      meant.map(({ name }) => name),
      {
        dryRun,
        act: async (name, change) =>
          (await writer.edit(name, again(name), { by, many: true, change })).outcome === "updated",
        // Values may be secret.
        details: {
          fields: Object.values(changes).flatMap((one) =>
            Array.isArray(one) ? one : Object.keys(one ?? {}),
          ),
        },
      },
    );
    return { ...done, edits };
  },
});

/** A changed payload must have room in a task, or be no longer than it was. @throws `INVALID_PAYLOAD`, `PAYLOAD_TOO_LARGE` */
function assertSize(payload: unknown, before: unknown): void {
  const least = Buffer.byteLength(JSON.stringify(before) ?? "");
  const maxBytes = Math.max(DEFAULT_PAYLOAD_LIMITS.maxBytes, least);
  encodePayload(payload, { ...DEFAULT_PAYLOAD_LIMITS, maxBytes });
}
