import { type Imported, intervalOf, Notes, settle, type TheirTimes } from "@carillon/ops/internal";
import humanInterval from "human-interval";
import { jsonOf, type Row, readRows, textOf, timeOf } from "./rows.js";
import type { Source, SourceOptions, Task } from "./source.js";

/** Jobs of Agenda's collection or table that recur, and those that are to come once. */
export const agenda: Source = (text, options) =>
  settle(readRows(text).flatMap((row) => convert(row, options)));

function convert(row: Row, options: SourceOptions): Imported[] {
  const notes = new Notes();
  const name = textOf(row["name"]) ?? "";
  const [rule, next] = [textOf(row["repeatInterval"]), timeOf(row["nextRunAt"])];
  const from = name;
  if (textOf(row["repeatAt"]) !== undefined) {
    notes.add("REFUSED", `repeatAt ${JSON.stringify(row["repeatAt"])}: write a cron expression.`);
    return [{ from, notes: notes.list }];
  }
  // A job without a rule that has run is history.
  if (rule === undefined && (next === undefined || next <= options.now)) return [];
  const { schedule, theirs } = rule === undefined ? once(next!) : recurring(rule, row, notes, options);
  const paused = row["disabled"] === true || row["disabled"] === "true" || row["disabled"] === "t";
  if (Number(row["priority"] ?? 0) !== 0)
    notes.add("DROPPED", "Its priority: here 0 is the most urgent, then 1, 2, …");
  const task: Task = {
    id: notes.name("id", name),
    type: notes.name("type", name),
    queue: options.queue,
    schedule: { ...schedule, ...limitsOf(row, notes) },
    payload: jsonOf(row["data"]) ?? {},
    // A job that is due while it runs starts when that run has ended.
    overlap: "queue-one",
    ...(paused && { state: "paused" }),
  };
  return [{ from, task, theirs, notes: notes.list }];
}

interface Times {
  readonly schedule: Task["schedule"];
  readonly theirs?: TheirTimes;
}

function once(time: number): Times {
  return { schedule: { at: new Date(time).toISOString() } };
}

/** Agenda tries a number, then words, then cron. */
function recurring(rule: string, row: Row, notes: Notes, options: SourceOptions): Times {
  const every = Number.isFinite(Number(rule)) ? Number(rule) : humanInterval(rule);
  if (every !== undefined && Number.isFinite(every)) {
    const next = timeOf(row["nextRunAt"]) ?? options.now;
    notes.add(
      "DRIFT",
      "Agenda counts an interval from the start of each run, so its times drift; here they do not.",
    );
    return { schedule: intervalOf(every, next), theirs: { library: "interval", every, next } };
  }
  const timezone = notes.zone(textOf(row["repeatTimezone"]), options);
  const theirs = { library: "cron-parser 5", cron: rule, timezone } as const;
  return { schedule: { cron: rule, timezone, dialect: "cron-parser" }, theirs };
}

const DAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

function limitsOf(row: Row, notes: Notes): Pick<Task["schedule"], "start" | "end" | "except"> {
  const [start, end, skip] = [timeOf(row["startDate"]), timeOf(row["endDate"]), jsonOf(row["skipDays"])];
  const days = Array.isArray(skip)
    ? skip.map((day) => DAYS[Number(day)]).filter((day) => day !== undefined)
    : [];
  if (days.length > 0)
    notes.add(
      "SKIP_DAYS",
      "Agenda moves a time on a skipped day to the next allowed one; here it is left out.",
    );
  return {
    ...(start && { start: new Date(start).toISOString() }),
    ...(end && { end: new Date(end).toISOString() }),
    ...(days.length > 0 && { except: [{ calendar: days.join(",") }] }),
  };
}
