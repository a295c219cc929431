import { setMaxListeners } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { hostname } from "node:os";
import { parseInput } from "@carillon/ops/internal";
import { CarillonError, Client, type Logger } from "@carillon/sdk";
import { defaultLogger, storeOf, TOKEN_ROLES } from "@carillon/sdk/internal";
import { z } from "zod";
import { createApp } from "./app.js";
import type { Tokens } from "./auth.js";
import type { Env } from "./context.js";
import { BASE_PATH, repeatedToken, TRACE_URL, tokensOfRole } from "./environment.js";
import type { OwnAuth } from "./identity.js";
import { nodeHandler } from "./server.js";

export interface ConsoleOptions {
  /** Client of the namespace that is shown. Not bound to an owner. The console does not close it. */
  readonly client: Client;
  /**
   * Tokens of each role, with which people and programs sign in; named tokens work too. Or a function that says who
   * sent a request, for example from headers of a proxy that has signed people in; then the console has no sign-in of
   * its own.
   */
  readonly auth: Tokens | OwnAuth;
  /** Path at which the console is mounted, for example `/ops/carillon`. Default: at the root. */
  readonly basePath?: string | undefined;
  /** Whether Bull Board is served below `/queues`. Default true. */
  readonly bullBoard?: boolean | undefined;
  /** Default: JSON lines on stdout, from level info. */
  readonly logger?: Logger | undefined;
  /** Payload fields whose values are hidden from everyone. Default none. */
  readonly redact?: readonly string[] | undefined;
  /** Address of a trace, with `{traceId}` in place of its id, to which the pages of runs link. Default: no links. */
  readonly traceUrl?: string | undefined;
  /** Number of proxies in front of the console that add to `X-Forwarded-For`. Default 0: the header is ignored. */
  readonly trustedProxies?: number | undefined;
}

/** A console that can be mounted in any server. */
export interface Console {
  /**
   * Answers a request to a path below `basePath`, or to one from which a proxy or a router has removed it. Compresses
   * nothing: that is for the framework to do.
   *
   * @param env of Hono on Node.js, `c.env`: has the client's address
   */
  readonly fetch: (request: Request, env?: unknown) => Promise<Response>;
  /** The same for Node's `http` server, and for Express. Compresses scripts and styles. */
  readonly handler: (req: IncomingMessage, res: ServerResponse) => Promise<void>;
  /** Ends open streams of events, and closes the console's own connections. */
  close(): Promise<void>;
}

const OPTIONS = z.strictObject({
  client: z.custom<Client>((given) => Object(given) === given && storeOf(given as object), "not a client"),
  auth: z.unknown(),
  basePath: BASE_PATH.default(""),
  bullBoard: z.boolean("not true or false").default(true),
  logger: z.looseObject({}, "not a logger").optional(),
  redact: z.array(z.string("not a text"), "not a list of texts").optional(),
  traceUrl: TRACE_URL.optional(),
  trustedProxies: z.int("not a whole number").min(0, "less than 0").max(10, "more than 10").optional(),
});

const TOKENS = z.strictObject(
  { admin: tokensOfRole.default([]), operator: tokensOfRole.default([]), viewer: tokensOfRole.default([]) },
  "neither tokens nor a function",
);

/**
 * A console to mount in a server of your own. It begins to read the list of queues at once.
 *
 * @throws `INVALID_OPTION`
 * @example
 * const ops = createConsole({ client, basePath: "/ops", auth: { admin: [process.env.OPS_TOKEN] } });
 * app.use("/ops", ops.handler); // Express
 * app.all("/ops/*", (c) => ops.fetch(c.req.raw, c.env)); // Hono
 */
export function createConsole(options: ConsoleOptions): Console {
  const { client, basePath, bullBoard, redact, traceUrl, trustedProxies } = parseInput(OPTIONS, options);
  const auth = readAuth(options.auth);
  if (client.owner !== undefined) {
    const remedy = "Bind people instead: by named tokens, or by `owners` in the result of `auth`.";
    throw new CarillonError("INVALID_OPTION", "bound to an owner.", { field: "client", remedy });
  }
  const logger = options.logger ?? defaultLogger();
  const store = storeOf(client);
  const closing = new AbortController();
  // Each open stream of events listens to it; their number is limited.
  setMaxListeners(0, closing.signal);
  const { app, board } = createApp({
    // An edit on the board stores the payload again, which passed the limit of the client that stored it first.
    client: new Client({ store, origin: `board ${hostname()}` }),
    closing: closing.signal,
    store,
    bullBoard,
    logger,
    auth,
    basePath,
    redact,
    traceUrl,
    trustedProxies,
  });
  board.start();
  const fetch = async (request: Request, env?: unknown) => app.fetch(request, env as Env["Bindings"]);
  return {
    fetch,
    handler: nodeHandler(fetch),
    async close() {
      closing.abort();
      await board.close();
    },
  };
}

/** @throws `INVALID_OPTION` of a field below `auth`; errors never quote a token */
function readAuth(given: unknown): Tokens | OwnAuth {
  if (typeof given === "function") return given as OwnAuth;
  const auth = parseInput(TOKENS, given, "auth");
  const repeated = repeatedToken(TOKEN_ROLES.toReversed().map((role) => [`auth.${role}`, auth[role]]));
  if (repeated) throw new CarillonError("INVALID_OPTION", `${repeated.what}.`, { field: repeated.field });
  return auth;
}
