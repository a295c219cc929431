/** The possible future of a task. */
interface Left {
  /** Its next nominal time. */
  readonly nominal?: number | undefined;
  /** Whether the end of a run gives the next time. */
  readonly waits?: boolean | undefined;
  /** Occurrences that are to be enqueued later. */
  readonly pending: readonly unknown[];
  /** Whether only triggers start it. */
  readonly manual?: boolean | undefined;
}

/** Whether a task has nothing left to do: then it is finished, unless it is paused. */
export function isOver({ nominal, waits = false, pending, manual = false }: Left): boolean {
  return nominal === undefined && !waits && pending.length === 0 && !manual;
}
