// PLACEHOLDER, to be replaced by the engine being written.
import { CronExpressionParser } from "cron-parser";
import { z } from "zod";
import { CarillonError } from "../errors.js";
import type { CompiledSchedule, Schedule } from "./types.js";
export * from "./types.js";
export const scheduleSchema: z.ZodType<Schedule, Schedule> = z.union([
  z.strictObject({ cron: z.string().min(9), timezone: z.string().optional() }),
  z.strictObject({ every: z.string().refine((t) => parseDurationOr0(t) > 0), origin: z.string().optional() }),
  z.strictObject({ at: z.union([z.string(), z.number()]) }),
]);
function parseDurationOr0(t: string): number { const m = /^(\d+)(ms|s|m|h|d)$/.exec(t); return m ? Number(m[1]) * ({ ms: 1, s: 1000, m: 60000, h: 3600000, d: 86400000 }[m[2] as "s"] as number) : 0; }
export function parseDuration(t: string): number { const v = parseDurationOr0(t); if (!v) throw new CarillonError("INVALID_DURATION", t); return v; }
export function formatDuration(ms: number): string { return `${ms}ms`; }
export function describeSchedule(s: Schedule): string { return JSON.stringify(s); }
export function canonicalSchedule(s: Schedule): string { return JSON.stringify(s); }
export function lintSchedule(_s: Schedule): Array<{ code: string; message: string }> { return []; }
export function neverFires(_s: Schedule): boolean { return false; }
export function compileSchedule(s: Schedule, _seed = ""): CompiledSchedule {
  if ("every" in s) {
    const ms = parseDuration(s.every); const o = s.origin ? Date.parse(s.origin) : 0;
    return { next: (a) => Math.max(o, o + (Math.floor((a - o) / ms) + 1) * ms), latest: (a) => (a < o ? undefined : o + Math.floor((a - o) / ms) * ms) };
  }
  if ("at" in s) { const t = typeof s.at === "number" ? s.at : Date.parse(s.at); return { next: (a) => (a < t ? t : undefined), latest: (a) => (a >= t ? t : undefined) }; }
  if ("cron" in s) return {
    next: (a) => CronExpressionParser.parse(s.cron, { currentDate: new Date(a), tz: s.timezone ?? "UTC" }).next().getTime(),
    latest: (a) => CronExpressionParser.parse(s.cron, { currentDate: new Date(a + 1), tz: s.timezone ?? "UTC" }).prev().getTime(),
  };
  throw new CarillonError("INVALID_SCHEDULE", "not yet");
}
