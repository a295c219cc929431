import { bullRepeats } from "../bull/bull-keys.js";
import type { QueueKeys } from "../keys.js";
import { CLEAR, NEXT } from "../script/libraries.js";
import { answers, script } from "../script/script.js";
import type { Scripts } from "../script/scripts.js";

/** Runs cleared in one script, at most. */
const AT_ONCE = 200;

const CLEAR_RUNS = script("clear-runs", {
  once: { repeats: "It clears only runs whose task was deleted." },
  keys: ["gone", "runs", "next", "repeats", "journal"],
  args: ["mark", "most"],
  uses: [NEXT, CLEAR],
  answer: answers<number>(),
});

/** Clears the runs that a deleted task left, in bounded steps. If this is interrupted, a later call continues. */
export async function clearDeletedRuns(scripts: Scripts, queue: QueueKeys, mark: string): Promise<void> {
  const { runs, next, journal } = queue;
  const keys = { gone: queue.gone(mark), runs, next, repeats: bullRepeats(queue.bull), journal };
  let taken: number;
  do {
    taken = await scripts.run(CLEAR_RUNS, keys, { mark, most: AT_ONCE });
  } while (taken > 0);
}
