import { readCalendars } from "../calendar-entries.js";
import {
  type Command,
  collect,
  type Globals,
  type OptionsOf,
  type Register,
  wholeNumber,
} from "../command.js";
import { compose, flagsOf } from "../compose.js";
import { SYNTAXES } from "../expression.js";
import { misuse } from "../failure.js";
import { forecast } from "../forecast.js";
import { parseJson, readAll, readLines } from "../input.js";
import type { Output } from "../output.js";
import { type Range, readExpression, readRange } from "../question.js";
import { answerAll } from "./next-batch.js";
import { describe, documentOf } from "./next-text.js";

type NextOptions = OptionsOf<typeof nextCommand>;

const nextCommand = (program: Command) =>
  withLimits(
    program
      .verb(
        "next",
        "when a schedule fires; needs no Redis",
        "Shows what a schedule means and when it fires next. Needs no Redis.\n" +
          "Several expressions are a union; --schedule takes a whole schedule instead.\n" +
          'With --batch: JSON lines {"syntax","expr","dialect","timezone","from","count","id","owner"} from stdin, one JSON line each to stdout.',
      )
      .argument("[expr...]", "for example '*/5 * * * *', 'Mon..Fri 09:00', 10s, 2026-01-01T00:00:00Z")
      .flag("-s, --syntax <syntax>", "guessed when absent", SYNTAXES)
      .flag(
        "-z, --timezone <zone>",
        "IANA zone, for example Europe/Berlin; default UTC; --schedule is only shown in it",
      )
      .flag("--from <time>", "ISO 8601; times strictly after it; default now")
      .flag("-n, --count <n>", "how many; default 5", wholeNumber)
      .flag("--id <id>", "the task, [owner/]id, that spreads H in a cron expression, and jitter"),
  )
    .flag("--schedule <json>", "a schedule as it is stored: JSON, @FILE, or - for stdin; instead of EXPR")
    .flag(
      "--calendar <name=file>",
      "the entries of a named calendar, as for calendars put; repeatable",
      collect,
    )
    .flag("--batch", "answer JSON lines from stdin");

export const registerNext: Register = (program, out) => {
  nextCommand(program).does(async (options, exprs: string[]) => {
    refuseMixtures(exprs, options);
    if (options.batch)
      return answerAll(await import("@carillon/sdk/schedule"), readLines(options.io, undefined), out);
    await answerOne(exprs, options, out);
  });
};

function withLimits<Options extends Globals>(command: Command<Options>) {
  return command
    .flag("--origin <time>", "start of the count of intervals; default the Unix epoch")
    .flag("--start <time>", "the first time allowed")
    .flag("--end <time>", "the last time allowed")
    .flag("--except <expr>", "exclude these times, or those of a --calendar NAME; repeatable", collect)
    .flag("--dialect <name>", "cron rules: cron-parser, as BullMQ does; default cronie's")
    .flag("--dst-gap <choice>", "times that the clock skips", ["run-after", "skip"])
    .flag("--dst-overlap <choice>", "times that the clock repeats", ["first", "both"])
    .flag("--jitter <most>", "how much later a time may become due: 30s, or 10% of the gap to the next")
    .flag("--max-runs <n>", "maximum number of runs", wholeNumber)
    .flag("--anchor <what>", "count an interval from the finish of each run", ["finish"]);
}

function refuseMixtures(exprs: readonly string[], options: NextOptions): void {
  const { batch, schedule, syntax, calendar } = options;
  const given = [...(exprs.length ? ["EXPR"] : []), ...flagsOf(options)];
  if (batch) {
    const beside = [
      ...given,
      ...(schedule === undefined ? [] : ["--schedule"]),
      ...(calendar ? ["--calendar"] : []),
    ];
    if (beside[0]) throw misuse(beside[0], "cannot be combined with --batch.", "Leave one of the two out.");
  } else if (schedule !== undefined) {
    const beside = [...given, ...(syntax === undefined ? [] : ["--syntax"])];
    if (beside[0])
      throw misuse(beside[0], "cannot be combined with --schedule.", "Write it into the schedule.");
  } else if (exprs.length === 0) {
    throw misuse("EXPR", "missing.", "Give an expression, --schedule, or --batch with JSON lines.");
  }
}

async function answerOne(exprs: readonly string[], options: NextOptions, out: Output): Promise<void> {
  const sdk = await import("@carillon/sdk/schedule");
  const range = readRange(sdk, { ...options }, Date.now());
  const calendars = await readCalendars(options.io, options.calendar ?? []);
  const input = await scheduleOf(exprs, options, range, new Set(calendars.keys()));
  const alone = exprs.length === 1 && flagsOf(options).length === 0;
  // For a single expression no exclusion must be shown in another zone.
  const asked = alone ? { ...range, timezone: undefined } : range;
  const found = forecast(sdk, input, asked, calendars);
  if (options.json) return out.json(documentOf(found, alone));
  // An expression may name its own zone; if that is UTC, the default may be UTC as well.
  const { timezone } = found.preview;
  const own = options.schedule !== undefined || timezone !== "UTC";
  const zone = range.timezone ?? (own ? timezone : undefined);
  await out.write(describe(found, { from: range.from, zone }, out.paint));
}

async function scheduleOf(
  exprs: readonly string[],
  options: NextOptions,
  { timezone }: Range,
  calendars: ReadonlySet<string>,
): Promise<unknown> {
  if (options.schedule === undefined) {
    const expressions = exprs.map((expr) => readExpression(expr, options.syntax, timezone));
    return compose(expressions, options, calendars);
  }
  const file = /^(?:-$|@)/.test(options.schedule) ? options.schedule.replace("@", "") : undefined;
  const text =
    file === undefined ? options.schedule : await readAll(options.io, file, "A schedule is far smaller.");
  return parseJson(text, 'Give one schedule, {"cron":"0 3 * * *"}.', { code: "INVALID_SCHEDULE" });
}
