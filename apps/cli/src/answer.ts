import type { ErrorCode } from "@carillon/sdk";
import type * as Sdk from "@carillon/sdk/schedule";
import { Failure } from "./failure.js";
import type { Question } from "./question.js";
import { utcIso } from "./times.js";

/** Answer to a line of a batch, and to a single expression with --json. */
export interface Answer {
  readonly canonical: string;
  readonly description: string;
  readonly next: readonly string[];
  /** No time follows these. */
  readonly exhausted: boolean;
}

/** @throws coded errors about the expression */
export function answer(sdk: typeof Sdk, { schedule, from, count, task }: Question): Answer {
  const parsed = parseSchedule(sdk, schedule);
  const seed = sdk.seedOf(task);
  const compiled = sdk.compileSchedule(parsed, seed);
  const next: string[] = [];
  let time = compiled.next(from);
  while (time !== undefined && next.length < count) {
    next.push(utcIso(time));
    time = compiled.next(time);
  }
  return {
    canonical: sdk.canonicalSchedule(parsed, seed),
    description: sdk.describeSchedule(parsed, seed),
    next,
    exhausted: time === undefined,
  };
}

/** @throws the first issue of the schema, with its code */
export function parseSchedule(sdk: typeof Sdk, schedule: unknown): Sdk.Schedule {
  const parsed = sdk.scheduleSchema.safeParse(schedule);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  const params = (issue as { params?: { code?: ErrorCode } } | undefined)?.params;
  const field = issue?.path.reduce<string>(
    (path, part) => (typeof part === "number" ? `${path}[${part}]` : `${path}${path && "."}${String(part)}`),
    "",
  );
  const what = issue?.message ?? "does not fit.";
  throw new Failure({
    code: params?.code ?? "INVALID_SCHEDULE",
    message: field ? `${field}: ${what}` : what,
    ...(field ? { field } : {}),
  });
}
