import { CarillonError, type Environment, readEnvironment } from "@carillon/sdk";
import { nearest } from "@carillon/sdk/internal";
import { z } from "zod";

const LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;
const SABOTAGE = ["mutex", "fence", "early", "overlap-guard", "limit", "freeze"] as const;

function wholeNumber(unit: string, least: number, most: number) {
  const error = `Give ${unit} from ${least} to ${most}.`;
  return z
    .string()
    .regex(/^\d{1,15}$/, { error })
    .transform(Number)
    .pipe(z.number().min(least, { error }).max(most, { error }));
}

function oneOf<const Values extends readonly [string, ...string[]]>(values: Values) {
  return z.enum(values, { error: `Use one of ${values.join(", ")}.` });
}

const name = z
  .string()
  .regex(/^[A-Za-z0-9._-]{1,128}$/, { error: "Use 1 to 128 letters, digits, '.', '_' or '-'." });

/** The variables of this program. Bounds are those of the scheduler's options, repeated so that errors name the variable. */
const variables = z.object({
  CARILLON_NODE_ID: name.optional(),
  CARILLON_METRICS_TAG: name.optional(),
  CARILLON_CONSOLE_URL: z
    .url({ protocol: /^https?$/, error: "Give the http or https address of the console." })
    .optional(),
  CARILLON_WATCHDOG_URL: z
    .url({ protocol: /^https?$/, error: "Give the http or https address that expects a heartbeat." })
    .optional(),
  CARILLON_WATCHDOG_EVERY_MS: wholeNumber("whole milliseconds", 1_000, 86_400_000).default(60_000),
  CARILLON_PORT: wholeNumber("a port", 0, 65_535).default(9464),
  CARILLON_HOST: z.string().default("127.0.0.1"),
  CARILLON_LOG_LEVEL: oneOf(LEVELS).default("info"),
  CARILLON_UNSAFE_REDIS: oneOf(["refuse", "warn"]).default("refuse"),
  CARILLON_MUTEX_TTL_MS: wholeNumber("whole milliseconds", 100, 60_000).optional(),
  CARILLON_REREAD_MS: wholeNumber("whole milliseconds", 10, 30_000).optional(),
  CARILLON_HEARTBEAT_MS: wholeNumber("whole milliseconds", 100, 300_000).optional(),
  CARILLON_GRACE_MS: wholeNumber("whole milliseconds", 0, 10 ** 14).optional(),
  CARILLON_TEST_ONLY_SABOTAGE: z
    .string()
    .transform((text) => text.split(",").map((part) => part.trim()))
    .pipe(z.array(oneOf(SABOTAGE)))
    .default([]),
});

/** Read by `readEnvironment` of the SDK. */
const SHARED = [
  "CARILLON_NAMESPACE",
  "REDIS_TLS_CA_FILE",
  "REDIS_TLS_CERT_FILE",
  "REDIS_TLS_KEY_FILE",
  "REDIS_TLS_SERVERNAME",
];

/** Read by the console: programs may share one environment. */
const OTHERS = [
  "CARILLON_CONSOLE_PORT",
  "CARILLON_TOKEN",
  "CARILLON_OPERATOR_TOKEN",
  "CARILLON_VIEWER_TOKEN",
  "CARILLON_REDACT",
  "CARILLON_TRACE_URL",
  "CARILLON_TRUSTED_PROXIES",
];

export interface Config extends Environment {
  readonly nodeId: string | undefined;
  /** Tasks with this tag get metrics of their own. Default: no task. */
  readonly metricsTag: string | undefined;
  readonly consoleUrl: string | undefined;
  readonly watchdog: { readonly url: string; readonly every: number } | undefined;
  readonly host: string;
  readonly port: number;
  readonly logLevel: (typeof LEVELS)[number];
  readonly unsafeRedis: "refuse" | "warn";
  readonly mutexTtl: number | undefined;
  readonly rereadEvery: number | undefined;
  readonly heartbeatEvery: number | undefined;
  readonly grace: number | undefined;
  readonly sabotage: readonly (typeof SABOTAGE)[number][];
}

/** A fault in one variable. */
interface Problem {
  readonly variable: string;
  readonly message: string;
}

export interface Reading {
  /** Undefined when there are problems. */
  readonly config: Config | undefined;
  readonly problems: readonly Problem[];
  readonly warnings: readonly Problem[];
}

/** Reads the whole environment at once, so that all mistakes are reported together. Never throws. */
export function readConfig(env: NodeJS.ProcessEnv): Reading {
  // Compose files and shells pass empty strings for variables that are not set.
  const given = Object.fromEntries(
    Object.entries(env).filter(([, value]) => value !== "" && value !== undefined),
  );
  const problems: Problem[] = [];
  const shared = readShared(given, problems);
  const own = variables.safeParse(given);
  for (const issue of own.error?.issues ?? []) {
    const variable = String(issue.path[0]);
    problems.push({ variable, message: `${variable}: got ${shown(given[variable])}. ${issue.message}` });
  }
  const config =
    shared && own.success && problems.length === 0 ? { ...shared, ...named(own.data) } : undefined;
  return { config, problems, warnings: unknownVariables(given) };
}

function readShared(env: Record<string, string | undefined>, problems: Problem[]): Environment | undefined {
  try {
    return readEnvironment(env);
  } catch (error) {
    if (!(error instanceof CarillonError)) throw error;
    problems.push({ variable: error.field ?? "environment", message: error.message });
    return undefined;
  }
}

function named(own: z.output<typeof variables>): Omit<Config, keyof Environment> {
  return {
    nodeId: own.CARILLON_NODE_ID,
    metricsTag: own.CARILLON_METRICS_TAG,
    consoleUrl: own.CARILLON_CONSOLE_URL,
    watchdog: own.CARILLON_WATCHDOG_URL
      ? { url: own.CARILLON_WATCHDOG_URL, every: own.CARILLON_WATCHDOG_EVERY_MS }
      : undefined,
    host: own.CARILLON_HOST,
    port: own.CARILLON_PORT,
    logLevel: own.CARILLON_LOG_LEVEL,
    unsafeRedis: own.CARILLON_UNSAFE_REDIS,
    mutexTtl: own.CARILLON_MUTEX_TTL_MS,
    rereadEvery: own.CARILLON_REREAD_MS,
    heartbeatEvery: own.CARILLON_HEARTBEAT_MS,
    grace: own.CARILLON_GRACE_MS,
    sabotage: own.CARILLON_TEST_ONLY_SABOTAGE,
  };
}

/** Reports misspelt variables, which would otherwise silently do nothing. */
function unknownVariables(env: Record<string, string | undefined>): Problem[] {
  const known = [...Object.keys(variables.shape), ...SHARED];
  return Object.keys(env)
    .filter((name) => /^(CARILLON|REDIS_TLS)_/.test(name) && ![...known, ...OTHERS].includes(name))
    .map((variable) => {
      const meant = nearest(variable, known);
      return { variable, message: `${variable} is not known here.${meant ? ` Did you mean ${meant}?` : ""}` };
    });
}

function shown(value: string | undefined): string {
  const text = value ?? "";
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text);
}
