import { formatDuration, type TaskInput } from "@carillon/core";
import type { EnqueueOptions, Warning } from "./types.js";

/** Durations that are seldom shorter than a second. */
const LONG =
  /^(delay|timeLimit(Grace)?|linger|crash\.delay|catchUpLimits\.window|alertIf\.\w+(For|Than)|retention\.\w+For|schedule\.jitter)$/;
const INTERVAL = /^schedule\.(.*\.)?every$/;
const MOMENT = /^(schedule\.(.*\.)?)?(at|start|end|origin)$/;
/** In March 1973, or in the year 5138 if it counts seconds. */
const OLD = 100_000_000_000;

/** Warns of plain numbers that are milliseconds and look like seconds. @param input valid: a task, or the options of enqueue */
export function unitWarnings(input: TaskInput | EnqueueOptions): Warning[] {
  return [...numbersIn({ ...input, payload: undefined }, "")].flatMap(([field, value]) => {
    if (MOMENT.test(field)) return value !== 0 && value < OLD ? [looksLikeSeconds(field, value, iso)] : [];
    const short = LONG.test(field) ? value < 1_000 : INTERVAL.test(field) && value % 1_000 !== 0;
    return short ? [looksLikeSeconds(field, value)] : [];
  });
}

/** @param textOf text of ms */
function looksLikeSeconds(field: string, ms: number, textOf = formatDuration): Warning {
  const [given, meant] = [textOf(ms), textOf(ms * 1_000)];
  return {
    code: "LOOKS_LIKE_SECONDS",
    message: `${field}: ${ms} is in milliseconds, ${given}. In seconds it would be ${meant}.`,
    remedy: `Give "${given}" or "${meant}".`,
  };
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}

function* numbersIn(value: unknown, path: string): Generator<[field: string, value: number]> {
  if (typeof value === "number") yield [path, value];
  else if (typeof value === "object" && value !== null)
    for (const [key, inner] of Object.entries(value))
      yield* numbersIn(inner, Array.isArray(value) ? `${path}[${key}]` : path ? `${path}.${key}` : key);
}
