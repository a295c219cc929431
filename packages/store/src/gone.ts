import type { QueueKeys } from "./keys.js";
import type { Link } from "./link.js";
import type { Script } from "./scripts.js";

/** Runs cleared in one script, at most. */
const AT_ONCE = 200;
/** The reconciler looks at what it could not finish again after, in ms. */
export const LOOK_AGAIN = 5_000;

/**
 * Where what was open of a deleted task is set aside, before its name: none of that name is put before it is cleared, so that those
 * runs are nobody's.
 */
export const GONE_OPEN = "gone:open:";

/** Clears the runs that a deleted task left, in bounded steps. Cut off, whoever comes next goes on with it. */
export async function clearGone(link: Link, script: Script, keys: QueueKeys, mark: string): Promise<void> {
  let taken: number;
  do {
    const answer = await link.run(
      script,
      [keys.gone(mark), keys.runs, keys.next, `${keys.bull}repeat`, keys.journal],
      [mark, `${keys.tag}:~`, keys.bull, AT_ONCE, LOOK_AGAIN],
    );
    taken = answer as number;
  } while (taken > 0);
}
