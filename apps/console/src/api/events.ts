import { parseInput } from "@carillon/ops/internal";
import { CarillonError, type Client, isCarillonError } from "@carillon/sdk";
import { type SSEStreamingApi, streamSSE } from "hono/streaming";
import { z } from "zod";
import { type Ctx, queryOf } from "../context.js";
import { clientFor } from "./clients.js";
import { type Call, type Endpoint, NOTHING } from "./route.js";

/** Life of a stream in ms. The browser then reconnects. */
const LIFE = 5 * 60_000;
/**
 * Interval in ms of comments, which keep proxies from closing the stream, and of checks whether its token or session still
 * holds.
 */
const BEAT = 5_000;
/** Streams of this process; further ones are refused. */
const MOST = 500;
/** The owner, for a token that is bound to several. */
const QUERY = z.strictObject({ owner: z.string().exactOptional() });
const TYPE = "text/event-stream; charset=utf-8";

/** Streams events as server-sent events, until the client leaves or the console closes. Resumes after `Last-Event-ID`. */
export function eventsEndpoint(): Endpoint {
  let open = 0;
  const call: Call = async (c) => {
    const client = clientFor(c);
    const { owner: _, ...asked } = queryOf(c);
    parseInput(QUERY, asked);
    if (open >= MOST) {
      c.header("Retry-After", "10");
      throw new CarillonError("RATE_LIMITED", `more than ${MOST} streams of events are open.`, {
        remedy: "Close some, or ask another console.",
      });
    }
    c.header("X-Accel-Buffering", "no");
    if (c.req.method === "HEAD") return c.body(null, 200, { "Content-Type": TYPE });
    open += 1;
    const ended = () => {
      open -= 1;
    };
    const answer = streamSSE(c, (stream) => tell(c, client, stream).finally(ended));
    // Headers of HTTP/1.1 only, which the server adds itself.
    for (const name of ["Connection", "Transfer-Encoding"]) answer.headers.delete(name);
    answer.headers.set("Content-Type", TYPE);
    answer.headers.set("Cache-Control", "no-store");
    return answer;
  };
  return Object.assign(call, {
    described: { query: QUERY, body: NOTHING, answer: z.string(), status: [200], type: "text/event-stream" },
  });
}

/** Whether a token could be checked, by the error of the check: an expired one holds no more. */
function isExpired(error: unknown): boolean {
  return !isCarillonError(error, "TOKEN_EXPIRED");
}

/** Never throws: a stream that has begun can only end, and the browser reconnects. */
async function tell(c: Ctx, client: Client, stream: SSEStreamingApi): Promise<void> {
  const ends = new AbortController();
  const end = () => stream.abort();
  stream.onAbort(() => ends.abort());
  const { closing } = c.var.site;
  closing.addEventListener("abort", end, { once: true });
  const life = setTimeout(end, LIFE);
  const { holds } = c.var;
  const check = async () => {
    // If it cannot be checked, Redis is away, and sends no events either.
    if ((await holds?.().catch(isExpired)) === false) end();
    else await stream.write(":\n\n");
  };
  const beat = setInterval(() => void check(), BEAT);
  try {
    const events = client.events({ after: c.req.header("last-event-id"), signal: ends.signal });
    await stream.write("retry: 2000\n\n");
    // Waits for a slow client; if it misses events meanwhile, it gets `reset`.
    for await (const { id, ...event } of events)
      await stream.write(`id: ${id}\nevent: ${event.kind}\ndata: ${JSON.stringify(event)}\n\n`);
  } catch {
    // Redis cannot be reached.
  } finally {
    closing.removeEventListener("abort", end);
    clearTimeout(life);
    clearInterval(beat);
  }
}
