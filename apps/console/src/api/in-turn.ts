import { CarillonError } from "@carillon/sdk";
import type { Call } from "./route.js";

/** Most calls of one token that may wait; further ones are refused. */
const MOST = 10;
/** Seconds after which a refused caller may try again. */
const RETRY_AFTER = 5;

/** The calls of one token: the number in progress, and the end of the last one. */
interface Line {
  length: number;
  last: Promise<void>;
}

/** For expensive endpoints: runs the calls of one token one at a time, in order, across all of these endpoints. */
export function inTurn(): <Wrapped extends Call>(endpoint: Wrapped) => Wrapped {
  const lines = new Map<string, Line>();
  return (endpoint) => {
    const call: Call = async (c) => {
      const { key } = c.var.identity;
      const line = lines.get(key) ?? { length: 0, last: Promise.resolve() };
      lines.set(key, line);
      if (line.length > MOST) {
        c.header("Retry-After", String(RETRY_AFTER));
        throw new CarillonError("RATE_LIMITED", "too many requests that compute times are waiting.", {
          remedy: "Calls with one token run one at a time: wait for the answers.",
        });
      }
      line.length += 1;
      const ended = line.last
        .then(() => (c.req.raw.signal.aborted ? c.body(null, 400) : endpoint(c)))
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
    // Keeps the endpoint's description.
    return Object.assign(call, endpoint);
  };
}
