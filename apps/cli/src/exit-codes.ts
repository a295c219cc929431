import type { ErrorCode } from "@carillon/sdk";

/** Exit codes for scripts. Public: a number never changes its meaning. */
export const EXIT = {
  ok: 0,
  unexpected: 1,
  usage: 2,
  notFound: 3,
  redis: 4,
  refused: 5,
  /** Verdicts of `status`, `doctor`, `plan`, `drift` and `shadow report`, which no failure of a command has. */
  attention: 10,
  trouble: 11,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

export const EXIT_HELP = `
Exit codes:
  0  done
  1  unexpected error
  2  wrong usage or invalid input; nothing was written (but see put --batch)
  3  no such task, run, queue, backfill, calendar, freeze, silence, token or
     set, or several answer to the name (say --queue)
  4  Redis: unreachable, refused the password, read-only, out of memory
  5  refused by the state of things: trigger met a running run (overlap), a
     freeze or the limit of its owner; a quota is used up; a finished task
     cannot be paused; a run that is over cannot be cancelled; put
     --if-revision found another revision; a calendar that tasks use cannot be
     deleted; a backfill that was waited for was stopped; a plan is stale, or
     breaks a rule of its set

Those of status: 0 on time, 10 behind, 11 stopped, also without Redis; of
doctor: 0 healthy, 10 warnings, 11 errors; of plan, drift and
shadow report with --exit-code: 10 if something differs.`;

type ByName = `INVALID_${string}` | `REDIS_${string}` | `${string}_NOT_FOUND`;

/** All other codes, and an exception. Complete on purpose: a new code does not compile until its exit code is chosen. */
const BY_ERROR: Record<Exclude<ErrorCode, ByName> | "REDIS_ERROR", ExitCode> = {
  PAYLOAD_TOO_LARGE: EXIT.usage,
  NEVER_FIRES: EXIT.usage,
  UNKNOWN_TASK_TYPE: EXIT.usage,
  FORBIDDEN: EXIT.usage,
  UNAUTHORIZED: EXIT.usage,
  TOKEN_EXPIRED: EXIT.usage,
  AMBIGUOUS_TASK: EXIT.notFound,
  CONFLICT: EXIT.refused,
  CALENDAR_IN_USE: EXIT.refused,
  UNSUPPORTED_FORMAT: EXIT.refused,
  OWNER_LIMIT: EXIT.refused,
  QUOTA_TASKS: EXIT.refused,
  QUOTA_INTERVAL: EXIT.refused,
  QUOTA_WAITING: EXIT.refused,
  FROZEN: EXIT.refused,
  STALE_PLAN: EXIT.refused,
  PLAN_REFUSED: EXIT.refused,
  SKIPPED_OVERLAP: EXIT.refused,
  RATE_LIMITED: EXIT.refused,
  REDIS_ERROR: EXIT.unexpected,
  INTERNAL: EXIT.unexpected,
};

export function exitCodeOf(code: string): ExitCode {
  const known = BY_ERROR[code as keyof typeof BY_ERROR];
  if (known !== undefined) return known;
  if (code.startsWith("INVALID_")) return EXIT.usage;
  if (code.endsWith("_NOT_FOUND")) return EXIT.notFound;
  return code.startsWith("REDIS_") ? EXIT.redis : EXIT.unexpected;
}
