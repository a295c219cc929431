import {
  fieldTable,
  type Imported,
  intervalOf,
  Notes,
  readFields,
  settle,
  type TheirTimes,
} from "@carillon/ops/internal";
import humanInterval from "human-interval";
import { isTrue, jsonOf, type Row, readRows, textOf, timeOf } from "./rows.js";
import type { Source, SourceOptions, Task } from "./source.js";

/** Fields of a job of Agenda 4 to 6, in MongoDB, PostgreSQL or Redis. */
const FIELDS = fieldTable(`
  kept: name data nextRunAt repeatInterval repeatTimezone startDate endDate skipDays disabled
  kept: type = normal single once
  dropped: priority = 0 -- here 0 is the most urgent, then 1, 2, …
  dropped: fork = false f -- a handler runs in the process of its worker.
  dropped: unique uniqueOpts -- the id of a task is unique.
  refused: repeatAt -- write a cron expression.
  record: _id id lockedAt lockedAtMs lastRunAt lastFinishedAt failedAt failCount failReason progress result
  record: shouldSaveResult lastModifiedBy debounceStartedAt createdAt updatedAt`);

/** Jobs of Agenda that recur, and single ones that have not run yet. */
export const agenda: Source = (text, options) =>
  settle(readRows(text).flatMap((row) => convert(row, options)));

function convert(row: Row, options: SourceOptions): Imported[] {
  const notes = new Notes();
  readFields(row, FIELDS, notes);
  const [name, rule, next] = [textOf(row["name"]), textOf(row["repeatInterval"]), timeOf(row["nextRunAt"])];
  // Agenda empties the next time of a job that has run once.
  if (rule === undefined && next === undefined && row["repeatAt"] === undefined) return [];
  if (name === undefined) notes.refuse("It has no name.");
  const { schedule, theirs } =
    rule === undefined ? once(next, notes, options) : recurring(rule, row, notes, options);
  notes.add(
    "CONCURRENCY",
    "concurrency and lockLimit are no part of a job: give a type that needs a limit its own queue.",
  );
  const task: Task = {
    id: notes.name("id", name ?? ""),
    type: notes.name("type", name ?? ""),
    queue: options.queue,
    schedule,
    payload: jsonOf(row["data"]) ?? {},
    // A job that is due while it runs starts when that run has ended.
    overlap: "queue-one",
    ...(isTrue(row["disabled"]) && { state: "paused" }),
  };
  return [{ from: name ?? "", task, theirs, notes: notes.list }];
}

interface Times {
  readonly schedule: Task["schedule"];
  readonly theirs?: TheirTimes;
}

const iso = (time: number) => new Date(time).toISOString();

function once(next: number | undefined, notes: Notes, { now }: SourceOptions): Times {
  if (next === undefined || next > now) return { schedule: { at: iso(next ?? now) } };
  notes.add("DUE", `Due since ${iso(next)}, and not yet run: let Agenda run it, or trigger it here.`);
  return { schedule: { manual: true } };
}

/** Agenda tries a number, then words, then cron. */
function recurring(rule: string, row: Row, notes: Notes, options: SourceOptions): Times {
  const [next, start, end] = ["nextRunAt", "startDate", "endDate"].map((name) => timeOf(row[name]));
  if (next === undefined)
    notes.add("DEAD", "It has no next time: Agenda does not fire it any more. Here it fires again.");
  const skipped = [jsonOf(row["skipDays"]) ?? []].flat().map(Number);
  if (skipped.some((day) => !DAYS[day]))
    notes.refuse(`skipDays: ${JSON.stringify(row["skipDays"])} are no days.`);
  if (skipped.length > 0)
    notes.add(
      "SKIP_DAYS",
      "Agenda moves a time on a skipped day to the next allowed one; here it is left out.",
    );
  const every = Number.isFinite(Number(rule)) ? Number(rule) : humanInterval(rule);
  const isInterval = every !== undefined && Number.isFinite(every);
  // Agenda reads the days, and a cron expression, in this zone.
  const timezone =
    isInterval && skipped.length === 0 ? "UTC" : notes.zone(textOf(row["repeatTimezone"]), options);
  const limits = {
    ...(end !== undefined && { end: iso(end) }),
    ...(skipped.length > 0 && {
      except: [{ calendar: skipped.map((day) => DAYS[day]).join(","), timezone }],
    }),
  };
  const bounds = { start, end, skipped, first: next !== undefined && next > options.now ? next : undefined };
  if (isInterval) {
    notes.add(
      "DRIFT",
      "Agenda counts an interval from the start of each run, so its times drift; here they do not.",
    );
    const first = next ?? options.now;
    return {
      schedule: {
        ...intervalOf(every, first),
        ...(first > options.now + every && { start: iso(first) }),
        ...limits,
      },
      theirs: { library: "interval", every, next: first, timezone, ...bounds },
    };
  }
  return {
    schedule: {
      cron: rule,
      timezone,
      dialect: "cron-parser",
      ...(start && { start: iso(start) }),
      ...limits,
    },
    theirs: { library: "cron-parser 5", cron: rule, timezone, ...bounds },
  };
}

const DAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
