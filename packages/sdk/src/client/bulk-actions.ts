import { CarillonError, type TriggerOptions } from "@carillon/core";
import { assertName, assertOptions } from "@carillon/core/internal";
import { type BulkFilter, type BulkOptions, type BulkResult, bulk, checkedFilter } from "./bulk.js";
import { shortText } from "./input.js";
import type { Scope } from "./scope.js";
import { assertTriggerOptions, triggerOne } from "./task-actions.js";
import type { TaskWriter } from "./task-writer.js";
import type { AuthorOptions, DeleteOptions, PauseOptions } from "./types.js";

/** Tags to put on tasks, and to take off them; at least one. */
export interface TagChange {
  readonly add?: readonly string[] | undefined;
  readonly remove?: readonly string[] | undefined;
}

export async function pauseAll(
  scope: Scope,
  filter: BulkFilter,
  options: BulkOptions & Omit<PauseOptions, "cancelQueued">,
): Promise<BulkResult> {
  assertOptions(options, ["note", "by", "dryRun"]);
  const [by, note] = [scope.author(options.by), shortText(options.note, "note")];
  return bulk(scope, {
    kind: "pause",
    ...{ filter: checkedFilter(scope, filter), by, dryRun: options.dryRun, state: "scheduled" },
    act: async (_, name) => (await scope.store.tasks.pause(name, by, note)) === "OK",
    details: { note: note || undefined },
  });
}

export async function deleteAll(
  scope: Scope,
  filter: BulkFilter,
  options: BulkOptions & DeleteOptions,
): Promise<BulkResult> {
  assertOptions(options, ["dryRun", "by"]);
  const checked = checkedFilter(scope, filter);
  return bulk(scope, {
    kind: "delete",
    // The deliveries of an owner's alerts belong to the owner too.
    filter: { ...checked, deliveries: checked.deliveries ?? true },
    ...{ by: scope.author(options.by), dryRun: options.dryRun },
    act: (_, name) => scope.store.tasks.delete(name),
  });
}

export async function triggerAll(
  scope: Scope,
  filter: BulkFilter,
  options: BulkOptions & Omit<TriggerOptions, "payload">,
): Promise<BulkResult> {
  assertTriggerOptions(options, ["dryRun"]);
  const { dryRun, overlap } = options;
  const by = scope.author(options.by);
  return bulk(scope, {
    kind: "trigger",
    ...{ filter: checkedFilter(scope, filter), by, dryRun },
    act: async (_, name) => {
      const { outcome, repeated } = (await triggerOne(scope, name, by, options)).result;
      if (outcome !== "skipped") return !repeated;
      throw new CarillonError("SKIPPED_OVERLAP", "an earlier run of the task has not ended.", {
        remedy: "Wait for it, or give the overlap policy allow.",
      });
    },
    details: { overlap },
  });
}

/** @throws `INVALID_OPTION`, `INVALID_NAME` */
export async function tagAll(
  scope: Scope,
  writer: TaskWriter,
  filter: BulkFilter,
  change: TagChange,
  options: BulkOptions & AuthorOptions,
): Promise<BulkResult> {
  assertOptions(options, ["dryRun", "by"]);
  const by = scope.author(options.by);
  const [add, remove] = [tagsOf(change, "add"), tagsOf(change, "remove")];
  if (add.length + remove.length === 0)
    throw new CarillonError("INVALID_OPTION", "no tags.", {
      field: "add",
      remedy: "Give tags to add or to remove.",
    });
  const tagged = (tags: readonly string[]) =>
    [...new Set([...tags, ...add])].filter((tag) => !remove.includes(tag));
  return bulk(scope, {
    kind: "put",
    ...{ filter: checkedFilter(scope, filter), by, dryRun: options.dryRun },
    isMeant: ({ definition: { tags } }) => tagged(tags).join() !== tags.join(),
    act: async (_, name) => {
      const edited = await writer.edit(name, (task) => ({ ...task, tags: tagged(task.tags ?? []) }), {
        by,
        many: true,
      });
      return edited.outcome === "updated";
    },
    details: { add: [...add], remove: [...remove] },
  });
}

function tagsOf(change: TagChange, field: keyof TagChange): readonly string[] {
  assertOptions(change, ["add", "remove"]);
  const tags = change[field] ?? [];
  if (!Array.isArray(tags)) throw new CarillonError("INVALID_OPTION", "not a list of tags.", { field });
  for (const tag of tags) assertName(tag, field);
  return tags;
}
