import { CarillonError } from "@carillon/sdk";
import { z } from "zod";
import { clientFor } from "./clients.js";
import { readAs } from "./fault.js";
import { EVENTS_QUERY } from "./query.js";
import { type Call, type Endpoint, NOTHING } from "./route.js";

/** A stream ends after this many ms, and the browser comes back: a token that was revoked is refused then. */
const LIFE = 5 * 60_000;
/** A comment after this many ms keeps proxies from closing the stream. */
const BEAT = 20_000;
/** Streams of this process; further ones are refused. */
const MOST = 500;

/** Streams events as server-sent events, until the client leaves. Resumes after `Last-Event-ID`. */
export function eventsEndpoint(): Endpoint {
  let open = 0;
  const call: Call = async (req, res) => {
    const client = clientFor(req, res);
    readAs(EVENTS_QUERY, { ...req.query });
    if (open >= MOST) {
      res.set("Retry-After", "10");
      throw new CarillonError("RATE_LIMITED", `more than ${MOST} streams of events are open.`, {
        remedy: "Close some, or ask another console.",
      });
    }
    const ends = new AbortController();
    const end = () => ends.abort();
    const life = setTimeout(end, LIFE);
    const beat = setInterval(() => res.write(":\n\n"), BEAT);
    res.on("close", end);
    open += 1;
    try {
      const events = client.events({ after: req.get("last-event-id"), signal: ends.signal });
      res.set({
        "Content-Type": "text/event-stream",
        "Cache-Control": "no-store",
        "X-Accel-Buffering": "no",
      });
      res.write("retry: 2000\n\n");
      if (req.method === "HEAD") return;
      for await (const { id, ...event } of events) {
        // A client that does not read is ended, not buffered for.
        if (!res.write(`id: ${id}\nevent: ${event.kind}\ndata: ${JSON.stringify(event)}\n\n`)) {
          if (res.writableLength > 1_000_000) break;
        }
      }
    } catch (error) {
      // Once it has begun, a stream can only end: the browser comes back.
      if (!res.headersSent) throw error;
    } finally {
      open -= 1;
      clearTimeout(life);
      clearInterval(beat);
      if (res.headersSent) res.end();
    }
  };
  return Object.assign(call, {
    described: {
      ...{ query: EVENTS_QUERY, body: NOTHING, answer: z.string(), status: [200] },
      type: "text/event-stream",
    },
  });
}
