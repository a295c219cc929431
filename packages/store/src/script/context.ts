/**
 * Source of the time in scripts. Production reads Redis `TIME`; only `@carillon/testing` makes another one, and
 * no option or environment variable of a node can.
 */
export interface TimeSource {
  /** Lua that defines `nowMs()` (a number), `nowMicros()` (a string of digits) and `time` (Redis' own `TIME`, whatever time it is here). */
  readonly lua: string;
}

export const REDIS_TIME: TimeSource = {
  lua: `local time = redis.call("TIME")
local function nowMs() return time[1] * 1000 + math.floor(time[2] / 1000) end
local function nowMicros() return string.format("%d", time[1] * 1000000 + time[2]) end`,
};

/** Safety parts that a test can take out to see its check fail. Nothing else may. */
export type Sabotage =
  | "fence"
  | "early"
  | "freeze"
  | "overlap-guard"
  | "limit"
  | "places"
  | "wake"
  | "once"
  | "guard";

/** Settings that change the text of a script, besides its files. */
export interface ScriptContext {
  readonly time: TimeSource;
  readonly sabotage: readonly Sabotage[];
  /** Whether scripts check a guard first. */
  readonly guarded?: boolean;
}

/**
 * Protects a thing that several callers change by many scripts, such as a set: whoever takes it over gets a higher number and raises the
 * guard in each slot concerned. From then on every script of earlier callers is refused there, however late it arrives.
 */
export interface Guard {
  readonly subject: string;
  readonly number: number;
}
