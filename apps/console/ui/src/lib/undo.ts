import type { AnswerTo, InputTo, OperationName } from "@carillon/ops";
import { countText } from "@carillon/ops/words";
import type { Task } from "@carillon/sdk";
import { notify } from "../parts/notices.js";
import { call, refOf } from "./api.js";
import { queryClient } from "./query.js";

/** The call that takes an act back. */
export interface Undo {
  readonly operation: OperationName;
  readonly input: object;
}

type Undone = Undo | undefined;
const undo = <Name extends OperationName>(operation: Name, input: InputTo<Name>): Undo => ({
  operation,
  input,
});

/** The calls that take acts back, if input and answer of an act tell them. An act that lifts something needs to know what that was. */
const INVERSES: {
  readonly [Name in OperationName]?: (
    input: InputTo<Name>,
    answer: AnswerTo<Name>,
  ) => Undone | Promise<Undone>;
} = {
  "tasks.pause": ({ queue, owner, id }, { changed, freeze }) => {
    if (freeze !== undefined) return undo("freezes.delete", { id: freeze });
    return changed ? undo("tasks.resume", { queue, owner, id, missed: "catch-up" }) : undefined;
  },
  "tasks.delete": (name) => undo("tasks.restore", name),
  "tasks.put": (_, put) => formerOf(put),
  "tasks.replace": (_, put) => formerOf(put),
  "tasks.restore": (_, put) => formerOf(put),
  "freezes.put": (_, { id }) => undo("freezes.delete", { id }),
  "silences.put": (_, { id }) => undo("silences.delete", { id }),
  "queues.pause": ({ queue }, { changed }) => (changed ? undo("queues.resume", { queue }) : undefined),
};

/** The call that takes a put back, as long as nobody else has changed the task. */
export async function formerOf({ task, outcome }: AnswerTo<"tasks.put">): Promise<Undone> {
  if (outcome === "unchanged") return undefined;
  if (outcome === "created") return undo("tasks.delete", refOf(task));
  const stored = await call("tasks.get", refOf(task)).catch(() => undefined);
  return stored && undo("tasks.restore", { ...refOf(task), ifRevision: stored.revision });
}

/** The call that pauses a task again that was resumed. */
export function pauseOf(task: Task): Undo {
  return undo("tasks.pause", { ...refOf(task), note: task.paused?.note });
}

/** The call that takes an act back. Undefined: there is none, or it cannot be told. */
export async function undoOf<Name extends OperationName>(
  does: Name,
  input: InputTo<Name>,
  answer: AnswerTo<Name>,
): Promise<Undone> {
  return INVERSES[does]?.(input, answer);
}

/** Says that an act is done, with the button that takes it back. */
export function done(text: string, back: Undone): void {
  notify("ok", text, { undo: back && (() => void takeBack(back)) });
}

/** Texts after `Undone: `. */
const UNDONE: Partial<Record<OperationName, string>> = {
  "tasks.pause": "the task is paused.",
  "tasks.resume": "the task is resumed.",
  "tasks.restore": "its definition is back.",
  "tasks.delete": "the task is deleted.",
  "freezes.put": "the freeze holds.",
  "freezes.delete": "the freeze is lifted.",
  "silences.put": "the silence holds.",
  "silences.delete": "the silence is lifted.",
  "queues.pause": "the queue is paused.",
  "queues.resume": "the queue is resumed.",
};

const MANY: Partial<Record<OperationName, keyof typeof DONE>> = {
  "tasks.pauseMany": "pause",
  "tasks.resumeMany": "resume",
};

const DONE = {
  pause: "paused",
  resume: "resumed",
  trigger: "triggered",
  tag: "changed",
  spread: "spread",
  edit: "changed",
  undo: "restored",
  delete: "deleted",
} as const;

async function takeBack({ operation, input }: Undo): Promise<void> {
  try {
    const answer = await call(operation, input as InputTo<OperationName>);
    const one = UNDONE[operation];
    if (one) notify("ok", `Undone: ${one}`);
    else doneToMany(MANY[operation] ?? "undo", answer as DoneToMany);
  } catch (error) {
    notify("bad", `Not undone: ${(error as Error).message}`);
  } finally {
    await queryClient.invalidateQueries();
  }
}

interface DoneToMany {
  readonly count: number;
  /** Id of the change, if it can be undone. */
  readonly change?: string | undefined;
  readonly undo?: { readonly operation: string; readonly input: object } | undefined;
  readonly refused: { readonly count: number; readonly sample: readonly { readonly message: string }[] };
}

/** Says what a change of many tasks did, with the button that takes it back. */
export function doneToMany(
  verb: keyof typeof DONE | "cancel",
  { count, change, undo: back, refused }: DoneToMany,
): void {
  const id = change !== undefined && count > 0 ? undo("changes.undo", { id: change }) : undefined;
  const text =
    verb === "cancel"
      ? `${countText(count, "run was", "runs were")} asked to end.`
      : `${countText(count, "task")} ${DONE[verb]}.`;
  done(text, id ?? (back as Undone));
  if (refused.count > 0)
    notify("bad", `${countText(refused.count, "task")} refused: ${refused.sample[0]?.message ?? ""}`);
}
