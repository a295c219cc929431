import { type Imported, intervalOf, Notes, settle } from "@carillon/ops/internal";
import { type Row, readRows, textOf, timeOf } from "./rows.js";
import type { Source, SourceOptions, Task } from "./source.js";

/** Rows of `QRTZ_TRIGGERS` joined with those of `QRTZ_CRON_TRIGGERS` and `QRTZ_SIMPLE_TRIGGERS`. */
export const quartz: Source = (text, options) => settle(readRows(text).map((row) => convert(row, options)));

function convert(row: Row, options: SourceOptions): Imported {
  const notes = new Notes();
  const [group, name = "", job = name] = ["triggerGroup", "triggerName", "jobName"].map((field) =>
    textOf(row[field]),
  );
  const from = `${group ?? "DEFAULT"}/${name}`;
  const schedule = scheduleOf(row, notes, options);
  if (!schedule) return { from, notes: notes.list };
  if (textOf(row["jobData"])) notes.add("DROPPED", "Its job data is a serialised object: write the payload.");
  const limits = { start: timeOf(row["startTime"]), end: timeOf(row["endTime"]) };
  const iso = (time: number) => new Date(time).toISOString();
  const alone = ["1", "true", "t"].includes(String(row["isNonconcurrent"]));
  const task: Task = {
    id: notes.name("id", name),
    type: notes.name("type", textOf(row["jobClassName"])?.split(".").pop() ?? job),
    queue: options.queue,
    schedule: {
      ...schedule,
      ...(limits.start && limits.start > options.now && { start: iso(limits.start) }),
      ...(limits.end && { end: iso(limits.end) }),
    },
    ...(textOf(row["description"]) && { description: textOf(row["description"]) }),
    overlap: alone ? "queue-all" : "allow",
    catchUp: catchUpOf(Number(row["misfireInstr"] ?? 0)),
    ...(/^PAUSED/.test(String(row["triggerState"])) && { state: "paused" }),
  };
  return { from, task, notes: notes.list };
}

/** Quartz' misfire instructions of cron triggers; those of simple triggers come closest to the same. */
function catchUpOf(instruction: number): Task["catchUp"] {
  return instruction === -1 ? "all" : instruction === 2 ? "skip" : "one";
}

function scheduleOf(row: Row, notes: Notes, options: SourceOptions): Task["schedule"] | undefined {
  const [cron, interval] = [textOf(row["cronExpression"]), Number(row["repeatInterval"] ?? 0)];
  const next = timeOf(row["nextFireTime"]);
  if (cron !== undefined) {
    const timezone = notes.zone(textOf(row["timeZoneId"]), options);
    const expression = fromQuartz(cron);
    if (expression !== undefined) return { cron: expression, timezone };
    notes.add("REFUSED", `${cron} names years: give start and end.`);
    return undefined;
  }
  const [count, fired] = [Number(row["repeatCount"] ?? 0), Number(row["timesTriggered"] ?? 0)];
  if (interval > 0 && next !== undefined) {
    return { ...intervalOf(interval, next), ...(count >= 0 && { maxRuns: Math.max(1, count + 1 - fired) }) };
  }
  if (next !== undefined) return { at: new Date(next).toISOString() };
  notes.add("FINISHED", "It has no rule and no next time: it never fires again.");
  return undefined;
}

const NAMES = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];
const RANGES = [
  [0, 59],
  [0, 59],
  [0, 23],
  [1, 31],
  [1, 12],
  [1, 7],
] as const;

/** A cron expression of Quartz in ours: weekdays from 1, `5/15` to the end of the field, ranges over its end. Undefined: it names years. */
export function fromQuartz(expression: string): string | undefined {
  const fields = expression.trim().toUpperCase().split(/\s+/);
  if (fields.length === 7 && fields.pop() !== "*") return undefined;
  return fields
    .map((field, i) =>
      field
        .split(",")
        .map((item) => fromItem(item, i))
        .join(","),
    )
    .join(" ");
}

function fromItem(item: string, field: number): string {
  const [least, most] = RANGES[field] ?? [0, 59];
  const names = (text: string) =>
    field === 5 ? text.replace(/^\d(?=[L#-]|$)|(?<=-)\d$/g, (day) => NAMES[Number(day) - 1] ?? day) : text;
  if (item === "?") return "*";
  if (field === 5 && item === "L") return "SAT";
  const [range = "", step] = item.split("/");
  const [from = "", to] =
    /^[\dA-Z]+-[\dA-Z]+$/.test(range) && !range.startsWith("L-") ? range.split("-") : [range];
  const suffix = step === undefined ? "" : `/${step}`;
  if (step !== undefined && to === undefined && from !== "*")
    return `${names(from)}-${names(String(most))}${suffix}`;
  if (to !== undefined && Number(from) > Number(to))
    return `${names(from)}-${names(String(most))}${suffix},${names(String(least))}-${names(to)}${suffix}`;
  // `6L`, `6#3`: the number is a weekday too, and only names of days are the same in both.
  return field === 5 && /^\d[L#]/.test(range)
    ? `${Number(range[0]) - 1}${range.slice(1)}`
    : `${names(range)}${suffix}`;
}
