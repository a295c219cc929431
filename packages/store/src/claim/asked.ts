import type { StoredTask } from "../task/codec.js";

/** `type`: of the task. `repeated`: an earlier call with the same key did it, and this is its answer. */
export type TriggerResult = { readonly type: string; readonly repeated: boolean } & (
  | { readonly outcome: "enqueued"; readonly run: string; readonly enqueued: number }
  /** It waits for the run in its way to end. */
  | { readonly outcome: "queued" }
  | { readonly outcome: "skipped"; readonly reason: "overlap" }
);

/** A trigger that is remembered for this many ms, by the key of its occurrence. */
export interface Asked {
  readonly key: string;
  /** Creation time of its task: another task may have its name later. */
  readonly created: number;
  readonly remember: number;
}

/** Items of a run that a new run does again. */
export interface ItemsAgain {
  /** Their key. */
  readonly items: string;
  /** Their note of an earlier new run, "" none. If it is another one by the commit, nothing is enqueued. */
  readonly noted: string;
}

/** The run that does failed items again. `repeated`: an earlier call enqueued it. */
export interface ItemsRetried {
  readonly run: string;
  readonly enqueued: number;
  readonly repeated: boolean;
}

/**
 * The answer to a trigger that was committed before.
 *
 * @param asked as commit.lua remembers it, "" not @param token of this call
 */
export function repetitionOf(asked: string, task: StoredTask, token: string): TriggerResult | undefined {
  const [at, by, run, created] = asked.split(" ");
  // Not by `at`: a clock that went back may remember a trigger as of before its task was created.
  if (run === undefined || Number(created) !== task.created) return undefined;
  const result = { type: task.definition.type, repeated: by !== token };
  return run === "-"
    ? { ...result, outcome: "queued" }
    : { ...result, outcome: "enqueued", run, enqueued: Number(at) };
}
