import { CarillonError, formatDuration } from "@carillon/core";
import { parseTask, reviewSchedule } from "@carillon/core/internal";
import type { SetTask } from "../sets/set.js";

/** A schedule of another system, as a task. */
export interface Imported {
  /** Its name there. */
  readonly from: string;
  /** Undefined: it cannot become one, and a note says why. */
  readonly task?: SetTask | undefined;
  readonly notes: readonly ImportNote[];
  /** Computes times as the other system does; undefined: no library here computes as it does. */
  readonly theirs?: TheirTimes | undefined;
}

/** Facts that a reader should know about one schedule. */
export interface ImportNote {
  readonly code: string;
  readonly text: string;
}

/** Rule of the other system, to be computed by the library that it uses. */
export type TheirTimes = TheirBounds &
  (
    | {
        readonly library: "cron-parser 4" | "cron-parser 5";
        readonly cron: string;
        readonly timezone: string;
        /** Length of a slot of the clock in ms, in which it fires at most once. */
        readonly slot?: number;
      }
    | {
        readonly library: "interval";
        readonly every: number;
        readonly next: number;
        /** Zone of the skipped days. */
        readonly timezone?: string;
        /** It fires once more after its end. */
        readonly overruns?: true;
      }
  );

interface TheirBounds {
  /** UTC ms. */
  readonly start?: number | undefined;
  readonly end?: number | undefined;
  /** UTC ms: its next time, whatever the rule says. */
  readonly first?: number | undefined;
  /** Days of the week, 0 is Sunday, that are left out. */
  readonly skipped?: readonly number[];
}

/** Choices of whoever imports. */
export interface ImportOptions {
  /** IANA zone of schedules that name none. */
  readonly timezone?: string | undefined;
  /** UTC ms. */
  readonly now: number;
}

/** Collects the notes of one schedule. */
export class Notes {
  readonly list: ImportNote[] = [];

  add(code: string, text: string): void {
    this.list.push({ code, text });
  }

  /** Refuses the schedule: it is not imported, for this reason. */
  refuse(text: string): void {
    this.add("REFUSED", text);
  }

  /** A zone that the schedule does not name. */
  zone(given: string | null | undefined, { timezone }: ImportOptions): string {
    if (given) return given;
    if (timezone === undefined)
      this.add(
        "ZONE_ASSUMED",
        "It names no time zone, and was read in that of its process. Give --timezone; UTC is assumed.",
      );
    return timezone ?? "UTC";
  }

  /**
   * A name of Carillon: each run of characters that names cannot have becomes `-`, and leading ones are removed, since a name
   * that begins with `-` reads as an option.
   */
  name(field: string, text: string): string {
    const name =
      text
        .replace(/[^A-Za-z0-9._-]+/g, "-")
        .replace(/^-+/, "")
        .slice(0, 128) || "unnamed";
    if (name !== text) this.add("RENAMED", `${field} ${JSON.stringify(text)} is ${name} here.`);
    return name;
  }
}

/** An interval in ms that has this time, UTC ms. */
export function intervalOf(every: number, next: number): { every: string; origin?: string } {
  const phase = next % every;
  return { every: formatDuration(every), ...(phase > 0 && { origin: new Date(phase).toISOString() }) };
}

/** Tasks that an apply accepts and starts paused, under different names: of those with one name, the second gets `-2`. */
export function settle(all: readonly Imported[]): Imported[] {
  const taken = new Set<string>();
  return all.map(checked).map((one) => {
    if (!one.task) return one;
    const { id, queue } = one.task;
    let name = id;
    for (let i = 2; taken.has(`${queue}/${name}`); i++) name = `${id.slice(0, 120)}-${i}`;
    taken.add(`${queue}/${name}`);
    const note = { code: "RENAMED", text: `id ${id} is taken; it is ${name} here.` };
    const task = { ...one.task, id: name, enabled: false };
    return { ...one, task, notes: name === id ? one.notes : [...one.notes, note] };
  });
}

/** A task as a plan accepts it, or the reasons why there is none. */
function checked(one: Imported): Imported {
  const reasons = one.notes.filter(({ code }) => code === "REFUSED" || code === "FINISHED");
  if (!one.task || reasons.length > 0) return { from: one.from, notes: reasons };
  const { state: _, ...task } = one.task;
  try {
    const { never } = reviewSchedule(parseTask(task).definition.schedule);
    if (never === undefined) return one;
    const text = `It never fires: ${never} Here it is only triggered.`;
    return {
      ...one,
      task: { ...one.task, schedule: { manual: true } },
      theirs: undefined,
      notes: [...one.notes, { code: "NEVER", text }],
    };
  } catch (error) {
    if (!(error instanceof CarillonError)) throw error;
    return { from: one.from, notes: [{ code: "REFUSED", text: error.message }] };
  }
}
