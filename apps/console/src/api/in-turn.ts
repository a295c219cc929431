import { CarillonError } from "@carillon/sdk";
import { identityOf } from "../guard.js";
import type { Call } from "./route.js";

/** Most calls of one token that may wait; further ones are refused. */
const MOST = 10;
/** When to try again, in seconds. */
const RETRY_AFTER = 5;

/** The calls of one token: the number in progress, and the end of the last one. */
interface Line {
  length: number;
  last: Promise<void>;
}

/** For endpoints that compute much: runs the calls of one token one at a time, in order, over all these endpoints. */
export function inTurn(): <Wrapped extends Call>(endpoint: Wrapped) => Wrapped {
  const lines = new Map<string, Line>();
  return (endpoint) => {
    const call: Call = async (req, res) => {
      const { digest } = identityOf(res).credential;
      const line = lines.get(digest) ?? { length: 0, last: Promise.resolve() };
      lines.set(digest, line);
      if (line.length > MOST) {
        res.set("Retry-After", String(RETRY_AFTER));
        throw new CarillonError("RATE_LIMITED", "too many requests that compute times are waiting.", {
          remedy: "Calls with one token run one at a time: wait for the answers.",
        });
      }
      line.length += 1;
      const ended = line.last
        .then(() => (res.destroyed ? undefined : endpoint(req, res)))
        .finally(() => {
          line.length -= 1;
          if (line.length === 0) lines.delete(digest);
        });
      line.last = ended.catch(() => {});
      await ended;
    };
    // With its description.
    return Object.assign(call, endpoint);
  };
}
