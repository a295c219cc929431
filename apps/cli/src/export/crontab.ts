import { canonicalSchedule, compileSchedule, type Schedule, seedOf } from "@carillon/sdk/schedule";
import { mergeTimes } from "../merge-times.js";
import { printable } from "../text.js";
import { type Exported, inexpressible, lengthOf, lost, type Stored } from "./exported.js";

export interface CrontabLine {
  readonly timezone: string;
  readonly when: string;
  readonly command: string;
}

const LOCKS: Readonly<Record<string, string | undefined>> = {
  skip: "flock -n",
  "queue-one": "flock",
  "queue-all": "flock",
};
/** Times in which the line must be the schedule. */
const COMPARED = 2_000;

/** A task as a line for cronie: its command is `payload.command`, as an import of a crontab writes it. */
export function toCrontab(stored: Stored, now: number): Exported<CrontabLine> {
  const { definition } = stored;
  const task = `${definition.owner}/${definition.id}`;
  const notes = lost(stored, ["retry", "retention"]);
  const { command, stdin, user, env, ...more } = (definition.payload ?? {}) as Readonly<
    Record<string, unknown>
  >;
  const none = (why: string) => ({ task, notes: [...notes, why] });
  if (typeof command !== "string" || command.trim() === "") return none("its payload has no command");
  const variables = Object.entries((env ?? {}) as Readonly<Record<string, unknown>>);
  const text = [
    ...variables.map(([name, value]) => `export ${name}=${quoted(String(value))};`),
    command,
  ].join(" ");
  const odd = variables.filter(([name]) => !/^[A-Za-z_]\w*$/.test(name)).map(([name]) => name);
  if (odd.length > 0) return none(`names of variables that no shell has: ${odd.join(", ")}`);
  // cron would read the text after a line break as a line of its own.
  if (/[\n\r\0]/.test(text)) return none("a line break in its command or a variable: put it into a script");
  const input = typeof stdin === "string" ? stdin.split("\n") : [];
  if (input.slice(0, -1).some((one) => one.endsWith("\\")))
    return none("a backslash ends a line of its input");
  const { schedule } = definition;
  const when =
    schedule.maxRuns === undefined && !schedule.start && !schedule.end ? whenOf(stored, now) : undefined;
  if (when === undefined) return none(inexpressible(stored) ?? "not a time that a line of a crontab can say");
  if (user !== undefined) notes.push(`runs as the owner of the crontab, not as ${String(user)}`);
  if (Object.keys(more).length > 0) notes.push(`not expressed: payload ${Object.keys(more).join(", ")}`);
  const { overlap = "skip" } = definition;
  if (overlap === "cancel-running") notes.push("not expressed: overlap");
  if (overlap === "queue-one") notes.push("overlap queue-one: any number of runs can wait there");
  const lock = LOCKS[overlap];
  // Nobody else can hold it, as they could in /tmp, and no other task has it.
  const file = `~/${quoted(`.carillon:${definition.queue}:${definition.owner}:${definition.id}.lock`)}`;
  // cron reads `\%` as `%`, but the `%` of `\\%` ends the command: quotes separate a backslash from a `%`.
  const shell = lock || /\\(?=%|$)/.test(text) ? `sh -c ${quoted(text)}` : text;
  const line = lock ? `${lock} ${file} ${shell}` : shell;
  return {
    task,
    there: { ...when, command: [line, ...input].map((part) => part.replaceAll("%", "\\%")).join("%") },
    notes,
  };
}

/** Quotes a text as one word of a shell. */
function quoted(text: string): string {
  if (/^[\w./:@=+,-]+$/.test(text)) return text;
  return `'${text.replaceAll("'", "'\\''").replace(/\\(?=%)/g, "\\''")}'`;
}

/** Lines by zone: `CRON_TZ` counts for those below it. */
export function crontabText(all: readonly Exported<CrontabLine>[]): string {
  const notes = all.flatMap(({ task, notes }) => notes.map((note) => `# ${task}: ${printable(note)}\n`));
  const zones = new Map<string, string[]>();
  for (const { there } of all) {
    if (there)
      zones.set(there.timezone, [...(zones.get(there.timezone) ?? []), `${there.when} ${there.command}\n`]);
  }
  const head = zones.size > 0 ? "# For cronie: other crons, such as Debian's own, ignore CRON_TZ.\n" : "";
  return (
    notes.join("") + head + [...zones].map(([zone, lines]) => `CRON_TZ=${zone}\n${lines.join("")}`).join("")
  );
}

/** The expression that fires when the schedule does, if there is one. */
function whenOf({ definition }: Stored, now: number): { when: string; timezone: string } | undefined {
  const schedule = definition.schedule as Schedule;
  const seed = seedOf(definition);
  const timezone = ("timezone" in schedule && schedule.timezone) || "UTC";
  const when =
    "cron" in schedule
      ? canonicalOf(schedule, seed)
      : "every" in schedule
        ? everyOf(schedule.every, now, schedule)
        : undefined;
  if (when === undefined || when.split(" ").length !== 5 || /[LW#?]/.test(when)) return undefined;
  const line = compileSchedule({ cron: when, timezone });
  const ours = compileSchedule(schedule, seed);
  const next = (one: typeof line) => (after: number) => one.next(after) ?? Number.POSITIVE_INFINITY;
  let count = 0;
  for (const { only } of mergeTimes(next(ours), next(line), now)) {
    if (only !== undefined) return undefined;
    if (++count >= COMPARED) break;
  }
  return { when, timezone };
}

function canonicalOf(schedule: Extract<Schedule, { cron: string }>, seed: string): string {
  const { cron, dialect, timezone = "UTC" } = schedule;
  return canonicalSchedule({ cron, timezone, ...(dialect && { dialect }) }, seed).replace(/ \S+\/\S+$/, "");
}

/** Minutes or hours that divide the next larger unit. */
function everyOf(every: string, now: number, schedule: Schedule): string | undefined {
  const next = compileSchedule(schedule).next(now);
  const minutes = (lengthOf(every) ?? 0) / 60_000;
  if (next === undefined || minutes === 0 || !Number.isInteger(minutes) || next % 60_000 !== 0)
    return undefined;
  const at = new Date(next);
  const [minute, hour] = [at.getUTCMinutes(), at.getUTCHours()];
  const from = (least: number, most: number, step: number) =>
    step === 1 ? "*" : `${least % step}-${most}/${step}`;
  if (60 % minutes === 0) return `${from(minute, 59, minutes)} * * * *`;
  if (minutes % 60 === 0 && 24 % (minutes / 60) === 0)
    return `${minute} ${from(hour, 23, minutes / 60)} * * *`;
  return undefined;
}
