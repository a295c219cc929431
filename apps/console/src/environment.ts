import { CarillonError, type Environment, readEnvironment } from "@carillon/sdk";
import { z } from "zod";

export interface Config extends Environment {
  host: string;
  port: number;
  logLevel: string;
  /** Undefined: one is made at start. */
  token: string | undefined;
  operatorToken: string | undefined;
  viewerToken: string | undefined;
  redact: readonly string[];
}

const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;

/** What Compose writes for a variable that is not set; the same as none. */
const optional = (value: unknown) => (value === "" ? undefined : value);

// No control characters: what cannot be typed into a form or sent in a header is a mistake.
const token = (what: string) =>
  z.preprocess(
    optional,
    z
      .string()
      .regex(/^[\x21-\x7e]{1,512}$/, `${what} must be 1 to 512 visible ASCII characters without spaces`)
      .optional(),
  );

const MAX_FIELDS = 100;
/** A name, or several with dots between. */
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
  CARILLON_LOG_LEVEL: z.preprocess(optional, z.enum(LOG_LEVELS, "not a log level").default("info")),
  CARILLON_TOKEN: token("the token"),
  CARILLON_OPERATOR_TOKEN: token("the token"),
  CARILLON_VIEWER_TOKEN: token("the token"),
  CARILLON_REDACT: z.preprocess(
    optional,
    z
      .string()
      .default("")
      .transform((list) => list.split(",").map((field) => field.trim()))
      .transform((fields) => (fields.join() === "" ? [] : fields))
      .refine((fields) => fields.length <= MAX_FIELDS, `more than ${MAX_FIELDS} fields`)
      .refine((fields) => fields.every((field) => FIELD.test(field)), "not a list of fields"),
  ),
});

/** Each must differ from the others: of a token that two roles have, nobody could say which role it gives. */
const TOKENS = ["CARILLON_TOKEN", "CARILLON_OPERATOR_TOKEN", "CARILLON_VIEWER_TOKEN"] as const;

const REMEDIES: Readonly<Record<string, string>> = {
  CARILLON_CONSOLE_PORT: "Use a number from 0 to 65535; 0 takes any free port.",
  CARILLON_HOST: "Use an address of this machine, for example 127.0.0.1, or 0.0.0.0 for all.",
  CARILLON_LOG_LEVEL: `Use one of ${LOG_LEVELS.join(", ")}.`,
  CARILLON_TOKEN: "Use a long random one, for example from `openssl rand -hex 32`.",
  CARILLON_OPERATOR_TOKEN: "Use a long random one that is not CARILLON_TOKEN, or leave it out.",
  CARILLON_VIEWER_TOKEN: "Use a long random one that is none of the other two, or leave it out.",
  CARILLON_REDACT:
    "Use names of payload fields with commas between, for example password,headers.authorization.",
};

/** @throws `INVALID_OPTION`, `INVALID_NAME` naming the variable; no value of a token is ever quoted. */
export function readConfig(env: Record<string, string | undefined>): Config {
  const shared = readEnvironment(env);
  const parsed = schema.safeParse(env);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    throw refused(String(issue?.path[0]), issue?.message ?? parsed.error.message);
  }
  const given = parsed.data;
  for (const [i, variable] of TOKENS.entries()) {
    const same = TOKENS.slice(0, i).find(
      (other) => given[other] !== undefined && given[other] === given[variable],
    );
    if (same !== undefined) throw refused(variable, `the same as ${same}`);
  }
  return {
    ...shared,
    host: given.CARILLON_HOST,
    port: given.CARILLON_CONSOLE_PORT,
    logLevel: given.CARILLON_LOG_LEVEL,
    token: given.CARILLON_TOKEN,
    operatorToken: given.CARILLON_OPERATOR_TOKEN,
    viewerToken: given.CARILLON_VIEWER_TOKEN,
    redact: given.CARILLON_REDACT,
  };
}

/** Tokens of fewer characters can be guessed. */
const SHORT = 16;

/** The variables whose tokens are short. */
export function shortTokens({ token, operatorToken, viewerToken }: Config): string[] {
  return [token, operatorToken, viewerToken].flatMap((given, i) =>
    given !== undefined && given.length < SHORT ? [TOKENS[i] as string] : [],
  );
}

/** What only shows when the settings are used: that the port is taken, or is not for us; that there is no such address. */
export function cannotListen({ code, message }: NodeJS.ErrnoException): CarillonError {
  const taken = code === "EADDRINUSE" || code === "EACCES";
  return refused(taken ? "CARILLON_CONSOLE_PORT" : "CARILLON_HOST", `cannot listen: ${message}`);
}

function refused(field: string, what: string): CarillonError {
  return new CarillonError("INVALID_OPTION", `${what}.`, { field, remedy: REMEDIES[field] ?? "" });
}
