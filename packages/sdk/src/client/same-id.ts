import type { TaskName } from "@carillon/core";
import { localName, sameIdText } from "@carillon/core/internal";
import type { Warning } from "./types.js";

/** @param elsewhere by task, the other queues that have one of the same owner and id */
export function sameIdElsewhere(
  name: TaskName | undefined,
  elsewhere: ReadonlyMap<TaskName, readonly string[]>,
): Warning[] {
  const queues = name && elsewhere.get(name);
  if (!name || !queues) return [];
  return [
    {
      code: "SAME_ID_ELSEWHERE",
      message: sameIdText(localName(name), queues),
      remedy: `If its queue was renamed: delete the old one (carillon rm ${localName(name)} --queue ${queues[0]}). Next time, move it first.`,
    },
  ];
}
