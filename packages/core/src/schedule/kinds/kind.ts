import type { z } from "zod";
import type { Exclusion, Surroundings } from "../exclude/exclusion.js";
import type { Instant } from "../text/instant.js";
import type { Timetable } from "../timetable.js";
import type { DstChoice, WholeSchedule } from "../types.js";
import { requireZone } from "../zone/names.js";

/** Reports a warning about a schedule. `remedy`: what to do, as one sentence. */
export type Warn = (code: string, message: string, remedy: string) => void;

/** Position of a text about a schedule: alone, among the members of a union, or among exclusions. */
export type Role = "alone" | "member" | "exclusion";

/** Fields that only some kinds take. */
export interface KindFields {
  readonly timezone?: string | undefined;
  readonly origin?: Instant | undefined;
  readonly dst?: DstChoice | undefined;
  readonly dialect?: string | undefined;
}

/** A kind of exclusion: the times of a schedule, or a shared calendar. */
export interface ExclusionKind<Spec extends object = object, Shape extends z.ZodType = z.ZodType> {
  /** The field that only this kind has. */
  readonly key: string;
  /** The others that it takes, besides `start` and `end`. */
  readonly takes: readonly (keyof KindFields)[];
  /** Shape of the value of `key`. */
  readonly shape: Shape;
  /**
   * The part of its value that counts in the size of a schedule, see `checkSize`: its characters, or a reference to a
   * calendar. Default: nothing.
   */
  readonly counts?: "characters" | "reference";
  /** Its fields as they are stored, from `key`'s value and the others that it takes. @throws as `exclude` */
  normalise(value: z.output<Shape>, fields: KindFields): Spec;
  /** Resolves it as an exclusion. @throws `INVALID_SCHEDULE`, `INVALID_TIMEZONE`, `INVALID_DURATION` */
  exclude(spec: Spec, around: Surroundings): Exclusion;
  /** The name of an exclusion in a preview, as written. */
  label(spec: Spec): string;
  /** See `canonicalSchedule`. */
  canonical(spec: Spec, seed: string, role: Role): string;
  /** See `describeSchedule`. */
  describe(spec: Spec, seed: string, role: Role): string;
  /** Whether its times depend on the seed. Default: no. */
  usesSeed?(spec: Spec): boolean;
}

/** A kind of schedule: everything that differs between cron, calendar events, intervals, single times, and none. */
export interface Kind<Spec extends object = object, Shape extends z.ZodType = z.ZodType>
  extends ExclusionKind<Spec, Shape> {
  /** A value of `key`, for errors. */
  readonly example: string | true;
  /** @throws as `exclude` */
  compile(schedule: Spec, seed: string): Timetable;
  /** Warns about a schedule that is valid but probably not intended. */
  lint(schedule: Spec & WholeSchedule, warn: Warn): void;
}

/** A zone as it is stored. @throws `INVALID_TIMEZONE` */
export function storedZone({ timezone }: KindFields): { timezone?: string } {
  return timezone === undefined ? {} : { timezone: requireZone(timezone, "schedule.timezone") };
}
