import { isTraceUrl, TRACE_URL_REMEDY } from "@carillon/ops/words";
import { CarillonError, type Environment, readEnvironment } from "@carillon/sdk";
import type { TokenRole } from "@carillon/sdk/internal";
import { z } from "zod";
import { OWN_PATHS } from "./paths.js";

export interface Config extends Environment {
  host: string;
  port: number;
  logLevel: string;
  /** Without a token of an admin, one is created at start. */
  tokens: Readonly<Record<TokenRole, readonly string[]>>;
  redact: readonly string[];
  basePath: string;
  traceUrl: string | undefined;
  trustedProxies: number;
}

const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;

/** Treats an empty text as not set, because Compose passes that for variables that are not set. */
const optional = (value: unknown) => (value === "" ? undefined : value);

const list = z
  .string()
  .default("")
  .transform((text) => (text === "" ? [] : text.split(",")));

/** Most tokens of a role. A rotation needs few, and each takes time at the start. */
const MAX_TOKENS = 10;
/**
 * No control characters, because they cannot be typed into a form or sent in a header. Not short, because wrong tokens
 * never lock out a right one, so a short one could be guessed.
 */
const TOKEN = /^[\x21-\x7e]{16,512}$/;
const WANTED = "a token must be 16 to 512 visible ASCII characters without spaces";

export const tokensOfRole = z
  .array(z.string("not a text"), "not a list of tokens")
  .max(MAX_TOKENS, `more than ${MAX_TOKENS} tokens`)
  .refine((given) => given.every((token) => TOKEN.test(token)), WANTED);

const tokens = z.preprocess(optional, list.pipe(tokensOfRole));

/** Path at which the console is mounted; "" at the root. */
export const BASE_PATH = z
  .string("not a path")
  .regex(/^\/?$|^(\/(?!\.{1,2}(\/|$))[A-Za-z0-9._~-]+)+$/, "not a path such as /ops/carillon")
  .refine((path) => path === "/" || !OWN_PATHS.includes(path), "a path of the console's own")
  .transform((path) => (path === "/" ? "" : path));

/** Address of a trace, with `{traceId}` in place of its id. */
export const TRACE_URL = z.string("not a text").refine(isTraceUrl, "not the address of a trace");

const MAX_FIELDS = 100;
/** A name, or several joined by dots. */
const FIELD = /^[^\s.]{1,128}(\.[^\s.]{1,128}){0,15}$/;

const schema = z.object({
  CARILLON_CONSOLE_PORT: z.preprocess(
    optional,
    z
      .string()
      .regex(/^\d{1,5}$/, "not a port")
      .transform(Number)
      .refine((port) => port <= 65_535, "not a port")
      .default(3000),
  ),
  CARILLON_HOST: z.preprocess(
    optional,
    z
      .string()
      .regex(/^[A-Za-z0-9.:_-]{1,253}$/, "not a host name or address")
      .default("127.0.0.1"),
  ),
  CARILLON_BASE_PATH: z.preprocess(optional, BASE_PATH.default("")),
  CARILLON_TRACE_URL: z.preprocess(optional, TRACE_URL.optional()),
  CARILLON_TRUSTED_PROXIES: z.preprocess(
    optional,
    z
      .string()
      .regex(/^(\d|10)$/, "not a number of proxies")
      .transform(Number)
      .default(0),
  ),
  CARILLON_LOG_LEVEL: z.preprocess(optional, z.enum(LOG_LEVELS, "not a log level").default("info")),
  CARILLON_TOKEN: tokens,
  CARILLON_OPERATOR_TOKEN: tokens,
  CARILLON_VIEWER_TOKEN: tokens,
  CARILLON_REDACT: z.preprocess(
    optional,
    list
      .transform((fields) => fields.map((field) => field.trim()))
      .refine((fields) => fields.length <= MAX_FIELDS, `more than ${MAX_FIELDS} fields`)
      .refine((fields) => fields.every((field) => FIELD.test(field)), "not a list of fields"),
  ),
});

const TOKENS = ["CARILLON_TOKEN", "CARILLON_OPERATOR_TOKEN", "CARILLON_VIEWER_TOKEN"] as const;

const REMEDIES: Readonly<Record<string, string>> = {
  CARILLON_CONSOLE_PORT: "Use a number from 0 to 65535; 0 takes any free port.",
  CARILLON_HOST: "Use an address of this machine, for example 127.0.0.1, or 0.0.0.0 for all.",
  CARILLON_BASE_PATH:
    "Use the path in the browser's address bar, for example /ops/carillon, or leave it out.",
  CARILLON_TRUSTED_PROXIES:
    "Use the number of your proxies that a request passes, from 0 to 10, for example 1.",
  CARILLON_TRACE_URL: TRACE_URL_REMEDY,
  CARILLON_LOG_LEVEL: `Use one of ${LOG_LEVELS.join(", ")}.`,
  CARILLON_TOKEN:
    "Use a long random one, for example from `openssl rand -hex 32`, or several with commas between: new,old.",
  CARILLON_OPERATOR_TOKEN: "Use long random ones that no other role has, or leave it out.",
  CARILLON_VIEWER_TOKEN: "Use long random ones that no other role has, or leave it out.",
  CARILLON_REDACT:
    "Use names of payload fields with commas between, for example password,headers.authorization.",
};

/** @throws `INVALID_OPTION`, `INVALID_NAME` with the variable; errors never quote a token */
export function readConfig(env: Record<string, string | undefined>): Config {
  const shared = readEnvironment(env);
  const parsed = schema.safeParse(env);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    throw refused(String(issue?.path[0]), issue?.message ?? parsed.error.message);
  }
  const given = parsed.data;
  const repeated = repeatedToken(TOKENS.map((variable) => [variable, given[variable]]));
  if (repeated) throw refused(repeated.field, repeated.what);
  return {
    ...shared,
    host: given.CARILLON_HOST,
    port: given.CARILLON_CONSOLE_PORT,
    logLevel: given.CARILLON_LOG_LEVEL,
    tokens: {
      admin: given.CARILLON_TOKEN,
      operator: given.CARILLON_OPERATOR_TOKEN,
      viewer: given.CARILLON_VIEWER_TOKEN,
    },
    redact: given.CARILLON_REDACT,
    basePath: given.CARILLON_BASE_PATH,
    traceUrl: given.CARILLON_TRACE_URL,
    trustedProxies: given.CARILLON_TRUSTED_PROXIES,
  };
}

/** Finds a token that is given twice: if two roles had it, its role would be ambiguous. */
export function repeatedToken(fields: readonly (readonly [field: string, tokens: readonly string[]])[]) {
  const seen = new Map<string, string>();
  for (const [field, tokens] of fields) {
    for (const token of tokens) {
      const other = seen.get(token);
      if (other === field) return { field, what: "contains a token twice" };
      if (other !== undefined) return { field, what: `contains a token of ${other}` };
      seen.set(token, field);
    }
  }
  return undefined;
}

/** Error of `listen`: the port is taken or not permitted, or the address does not exist. */
export function cannotListen({ code, message }: NodeJS.ErrnoException): CarillonError {
  const taken = code === "EADDRINUSE" || code === "EACCES";
  return refused(taken ? "CARILLON_CONSOLE_PORT" : "CARILLON_HOST", `cannot listen: ${message}`);
}

function refused(field: string, what: string): CarillonError {
  return new CarillonError("INVALID_OPTION", `${what}.`, { field, remedy: REMEDIES[field] ?? "" });
}
