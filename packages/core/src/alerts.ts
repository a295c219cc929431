import { scopesOf } from "./defaults.js";
import { carrierOf } from "./destinations/index.js";
import { CarillonError, invalid } from "./errors.js";
import { ALERTS_QUEUE, assertName, type TaskName } from "./names.js";
import type { AlertKind, Policies } from "./policies.js";
import { type CompiledSchedule, compileSchedule, parseDuration } from "./schedule/index.js";
import type { TaskDefinition } from "./task.js";

/** A place that gets alerts, the kinds that it gets, and its quiet times. */
export type AlertDestination = NonNullable<Policies["alerts"]>[number];

export type RoutedDestination = AlertDestination & {
  /** It comes from the defaults of all tasks, or of a type: one receiver for the alerts of all owners. */
  readonly shared: boolean;
};

/** The part of an alert that decides who gets it. */
interface About {
  readonly kind: AlertKind;
  /** Absent for an alert about the whole namespace. */
  readonly task?: TaskName | undefined;
  readonly queue?: string | undefined;
  readonly ended?: readonly AlertKind[] | undefined;
  /** Id of the cause of the run's failure; of a `recovered`, of the failure before. */
  readonly cause?: string | undefined;
}

/**
 * The destinations of an alert: those that its task names, else the defaults of its type, its owner, or all tasks. An
 * alert about the namespace goes to the defaults of all tasks. A `recovered` goes to those that get the kinds that it
 * ends.
 *
 * @param definition of its task
 */
export function destinationsOf(
  { kind, ended = [] }: About,
  definition: TaskDefinition | undefined,
  defaults: ReadonlyMap<string, Policies>,
): readonly RoutedDestination[] {
  const scopes = definition === undefined ? (["all"] as const) : scopesOf(definition);
  // A delivery that fails must not cause further deliveries.
  const scope =
    definition?.alerts !== undefined || definition?.queue === ALERTS_QUEUE
      ? undefined
      : scopes.find((one) => defaults.get(one)?.alerts !== undefined);
  const alerts = scope === undefined ? definition?.alerts : defaults.get(scope)?.alerts;
  const shared = scope !== undefined && !scope.startsWith("owner:");
  return (alerts ?? [])
    .filter(
      ({ on }) =>
        on.includes(kind) &&
        (kind !== "recovered" || on.length === 1 || ended.some((one) => on.includes(one))),
    )
    .map((destination) => ({ ...destination, shared }));
}

type QuietTime = NonNullable<AlertDestination["quiet"]>[number];
const compiled = new WeakMap<QuietTime, CompiledSchedule>();

function endOf(quiet: QuietTime, now: number): number | undefined {
  let schedule = compiled.get(quiet);
  if (!schedule) {
    schedule = compileSchedule(quiet.schedule, "quiet", {});
    compiled.set(quiet, schedule);
  }
  const begin = schedule.latest(now);
  const end = begin === undefined ? undefined : begin + parseDuration(quiet.for);
  return end !== undefined && now < end ? end : undefined;
}

/** The alerts of a minute that a destination gets alone, if it does not say so: the others are collected. A mail has all of a minute. */
export function perMinuteOf(destination: AlertDestination): number {
  return destination.perMinute ?? (carrierOf(destination) === "mail" ? 0 : 3);
}

/** Quiet times that follow each other without a gap count as one, up to this number. */
const CHAIN = 32;

/** End of the current quiet time, UTC ms. Undefined outside of quiet times. */
export function quietUntil({ quiet = [] }: AlertDestination, now: number): number | undefined {
  let until: number | undefined;
  for (let i = 0; i < CHAIN; i++) {
    const ends = quiet.flatMap((one) => endOf(one, until ?? now) ?? []);
    if (ends.length === 0) break;
    until = Math.max(...ends);
  }
  return until;
}

/** Scope of a silence: alerts that match all given fields; `all` alone means every alert. */
export interface SilenceScope {
  readonly owner?: string | undefined;
  readonly task?: string | undefined;
  readonly queue?: string | undefined;
  readonly kind?: AlertKind | undefined;
  /** Id of a cause: alerts about runs that failed by it, and their ends. */
  readonly cause?: string | undefined;
  /** Every alert of the namespace. Default: false. */
  readonly all?: boolean | undefined;
}

/** A silence as stored: until its end, alerts that match are recorded and not delivered. Times in UTC ms. */
export interface Silence extends SilenceScope {
  readonly id: string;
  readonly until: number;
  /** It ends when its cause is gone: each alert that it silences moves `until` to a day later. */
  readonly untilGone?: true;
  readonly note?: string;
  /** The name of the person or service that silenced. */
  readonly by?: string;
  readonly created: number;
}

/**
 * The silence that applies to an alert, if there is one. A silence of a kind also covers the `recovered` that ends it.
 */
export function silenceOf(
  silences: readonly Silence[],
  { kind, task, queue, ended, cause }: About,
  now: number,
): Silence | undefined {
  const kinds = kind === "recovered" && ended ? ended : [kind];
  return silences.find(
    (one) =>
      now < one.until &&
      (one.owner === undefined || one.owner === task?.owner) &&
      (one.task === undefined || one.task === task?.id) &&
      (one.queue === undefined || one.queue === (task?.queue ?? queue)) &&
      (one.cause === undefined || (one.cause === cause && kinds.every(hasCause))) &&
      (one.kind === undefined || one.kind === kind || kinds.every((each) => each === one.kind)),
  );
}

/** Whether alerts of this kind are about a run that failed. */
export function hasCause(kind: AlertKind): boolean {
  return kind === "failed" || kind === "crashed" || kind === "paused";
}

/** A cause is gone if no alert of it came for this long, in ms. */
const GONE = 86_400_000;

/** The end of a silence that lasts until its cause is gone, after it silenced an alert, or began, at this time. UTC ms. */
export function goneAt(now: number): number {
  return now + GONE;
}

/** @throws `INVALID_OPTION`, `INVALID_NAME` unless a scope names an owner, a task, a queue, a kind or a cause, or all alerts */
export function assertSilenceScope({ owner, task, queue, kind, cause, all }: SilenceScope): void {
  for (const [field, value] of Object.entries({ owner, task, queue }))
    if (value !== undefined) assertName(value, field);
  if (cause !== undefined && !/^[0-9a-f]{8}$/.test(cause))
    throw invalid("cause", "not the id of a cause.", "Give the id that an alert or runs.failures shows.");
  const given = [owner, task, queue, kind, cause].some((value) => value !== undefined);
  if (given !== (all ?? false)) return;
  throw new CarillonError(
    "INVALID_OPTION",
    all
      ? "all is given together with an owner, task, queue, kind or cause."
      : "no owner, task, queue, kind, cause or all is given.",
    { remedy: "Select alerts by one of these." },
  );
}
