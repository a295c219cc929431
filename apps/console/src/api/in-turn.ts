import { CarillonError } from "@carillon/sdk";
import type { Ctx } from "../context.js";
import { RequestError } from "../errors.js";

/** Most calls of one caller that may wait; further ones are refused. */
const MOST = 10;
/** Seconds after which a refused caller may try again. */
const RETRY_AFTER = 5;

/** The calls of one token or session: the number in progress, and the end of the last one. */
interface Line {
  length: number;
  last: Promise<void>;
}

/** Does the work of a request in its turn, if it is still wanted then. */
export type Turn = <Answer>(c: Ctx, work: () => Promise<Answer>, isWanted: () => boolean) => Promise<Answer>;

/**
 * For expensive operations: runs the calls of one token, or of one session, one at a time, in order, across all of these operations.
 */
export function inTurn(): Turn {
  const lines = new Map<string, Line>();
  return async (c, work, isWanted) => {
    const { key } = c.var.identity;
    const line = lines.get(key) ?? { length: 0, last: Promise.resolve() };
    lines.set(key, line);
    if (line.length > MOST) {
      c.header("Retry-After", String(RETRY_AFTER));
      throw new CarillonError("RATE_LIMITED", "too many requests that compute times are waiting.", {
        remedy: "Calls with one token, or of one session, run one at a time: wait for the answers.",
      });
    }
    line.length += 1;
    const ended = line.last
      .then(() => {
        if (!isWanted()) throw new RequestError(400, "the caller has left.", { field: "request" });
        return work();
      })
      .finally(() => {
        line.length -= 1;
        if (line.length === 0) lines.delete(key);
      });
    line.last = ended.then(
      () => {},
      () => {},
    );
    return ended;
  };
}
