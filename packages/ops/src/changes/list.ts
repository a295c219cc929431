import { isDeepStrictEqual } from "node:util";
import type { TaskDefinition, TaskName } from "@carillon/core";
import { firstNext, invalid, type ResolvedRef } from "@carillon/core/internal";
import {
  assertEntry,
  CHANGE_KINDS,
  type ChangeFacts,
  type ChangeScope,
  roundedInstant,
  shortText,
  wholeNumber,
} from "@carillon/sdk/internal";
import type { Store, StoredChange } from "@carillon/store";
import { z } from "zod";
import { nameOfKey } from "../bulk/bulk.js";
import { operation } from "../operation.js";
import { count, given, instant, nextPage, page, pause, taskName, time } from "../shapes.js";
import { markOf } from "./replaced.js";

const name = z.string().optional();
const fields = z.record(z.string(), z.unknown()).readonly().optional();
const change = z.object({
  id: z.string(),
  at: time,
  kind: z.enum(CHANGE_KINDS),
  by: name.describe("The name that was given as the author."),
  origin: z
    .string()
    .describe(
      "The kind of program and its host, or the address of its client: `cli build-7`, `api 10.1.2.3`.",
    ),
  scope: z
    .object({
      queue: name,
      owner: name,
      id: name,
      tag: name,
      calendar: name,
      freeze: name,
      token: name,
      set: name,
    })
    .describe(
      "A task if `id` is there; the tasks of a queue, an owner or a tag if `count` is. Empty: the namespace.",
    ),
  count: count.optional().describe("Number of tasks, if many were changed together."),
  sample: z
    .array(
      taskName.extend({
        paused: pause.optional(),
        schedule: z.object({ before: fields, after: fields }).optional(),
        next: z
          .object({ before: time.optional(), after: time.optional() })
          .optional()
          .describe("Its next time before and after the change, as planned then."),
      }),
    )
    .readonly()
    .optional()
    .describe(
      "The first ten of them, with the pauses that the change ended, and schedules that an apply changed. With `task`, that one.",
    ),
  undo: count.optional().describe("Number of tasks whose former definitions `changes.undo` puts again."),
  before: fields.describe(
    "The fields that were replaced or deleted. A value of more than 1,000 characters of JSON is replaced by its size.",
  ),
  after: fields.describe("Their new values."),
  details: fields.describe("Options of the call, such as `note`, `run` or `missed`."),
});
type Change = z.output<typeof change>;
/** As it is stored. */
export type Entry = Omit<Change, "undo"> & Pick<ChangeFacts, "undo">;

/**
 * An entry is written right after its change: it is missing if the process died between the two, and may be listed twice if the connection was
 * lost. One that can be undone is written right before, and counts the tasks that were to be changed.
 */
export const listChanges = operation({
  http: "GET /changes",
  role: "viewer",
  reach: "owner",
  summary:
    "Lists who changed what, newest first, of the last 10,000 changes of the namespace; for a caller that is bound to an owner, those of the owner.",
  input: z.strictObject({
    task: given
      .optional()
      .describe(
        "Only changes of this task, `id` or `owner/id`, those of more than ten tasks that may contain it included.",
      ),
    owner: given.optional().describe("Of the task."),
    queue: given.optional().describe("Of the task; needed if it is deleted."),
    by: given.optional().describe("Only changes by this author."),
    from: instant.optional().describe("Only changes since this time."),
    to: instant.optional().describe("Only changes before this time."),
    ...page,
  }),
  output: z.object({ changes: z.array(change), cursor: nextPage }),
  async run({ scope, store, owner: bound }, { task: id, owner, queue, ...filter }) {
    const limit = wholeNumber(filter.limit ?? 100, "limit", 1, 1_000);
    const from = filter.from === undefined ? 0 : roundedInstant(filter.from, "from");
    const to = filter.to === undefined ? Number.POSITIVE_INFINITY : roundedInstant(filter.to, "to");
    const by = filter.by === undefined ? undefined : shortText(filter.by, "by");
    const alone =
      id === undefined && Object.entries({ owner, queue }).find(([, value]) => value !== undefined);
    if (alone) throw invalid(alone[0], "given without task.", "Give the task's id as well.");
    const ref =
      id !== undefined && owner === undefined && queue === undefined ? id : { id: id ?? "", owner, queue };
    const task = id === undefined ? undefined : await scope.nameOf(ref);
    if (task) await store.calendars.refresh();
    const changes: Change[] = [];
    for await (const stored of store.changes.newest(assertEntry(filter.cursor))) {
      if (stored.at < from) break;
      const change = decodeChange(stored);
      if (!change || stored.at >= to || (bound !== undefined && change.scope.owner !== bound)) continue;
      if (by !== undefined && change.by !== by) continue;
      if (task !== undefined && !matchesTask(change, task)) continue;
      changes.push({
        ...change,
        ...(task && change.scope.set !== undefined && (await ofTask(store, change, task))),
        undo: change.undo?.length,
      });
      if (changes.length === limit) return { changes, cursor: stored.id };
    }
    return { changes };
  },
});

/** A change of many tasks concerns those that it names, if it names all; else each that it may contain. */
export function matchesTask({ scope, count, sample = [], undo }: Entry, task: ResolvedRef): boolean {
  const matches = (name: ChangeScope | TaskName) =>
    (["queue", "owner", "id"] as const).every(
      (part) => name[part] === undefined || task[part] === undefined || name[part] === task[part],
    );
  if (count === undefined) return scope.id !== undefined && matches(scope);
  if (count <= sample.length) return sample.some(matches);
  return undo ? undo.map(nameOfKey).some(matches) : matches(scope);
}

async function ofTask(
  store: Store,
  change: Entry,
  task: ResolvedRef,
): Promise<Partial<Pick<Entry, "sample">>> {
  const isMeant = (name: TaskName) => matchesTask({ ...change, count: undefined, scope: name }, task);
  const shown = change.sample?.filter(isMeant);
  if (shown && shown.length > 0) return { sample: shown };
  const sample = (change.undo ?? [])
    .map(nameOfKey)
    .filter(isMeant)
    .map(async (name) => {
      const kept = await store.tasks.revisions(name);
      const at = kept.findIndex((one) => one.change === markOf(change));
      const [before, after] = [kept[at], kept[at - 1] ?? (await store.tasks.get(name))];
      const isMoved =
        before && after && !isDeepStrictEqual(before.definition.schedule, after.definition.schedule);
      if (!isMoved) return name;
      const [was, is] = [before, after].map(({ definition }) => ({
        schedule: { ...definition.schedule },
        next: nextOf(store, definition, change.at),
      }));
      return {
        ...name,
        schedule: { before: was?.schedule, after: is?.schedule },
        next: { before: was?.next, after: is?.next },
      };
    });
  return { sample: await Promise.all(sample) };
}

/** Undefined also if the calendar that it names was deleted. */
function nextOf({ calendars }: Store, definition: TaskDefinition, at: number): number | undefined {
  try {
    return firstNext(calendars.schedules.get(definition), {}, at)?.nominal;
  } catch {
    return undefined;
  }
}

/** An entry of the log; undefined: it is corrupt or foreign. */
export function decodeChange({ id, at, entry }: StoredChange): Entry | undefined {
  try {
    const { kind, by, origin, scope, ...facts } = JSON.parse(entry) as Omit<Entry, "id" | "at">;
    return { id, at, kind, by, origin, scope: { ...scope }, ...facts };
  } catch {
    return undefined;
  }
}
