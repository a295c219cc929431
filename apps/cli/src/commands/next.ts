import { Option } from "commander";
import type { Globals, Register } from "../command.js";
import { wholeNumber } from "../command.js";
import { type Answer, answer, type Question, readQuestion, SYNTAXES } from "../expression.js";
import { Failure, misuse, reportOf } from "../failure.js";
import { type Line, parseJson, readLines } from "../input.js";
import type { Output } from "../output.js";
import { facts, table } from "../text.js";
import { localIso, relative, utcIso } from "../times.js";

type Sdk = typeof import("@carillon/sdk");

/** Answers are collected up to this many characters: a write for each would cost more than the answer. */
const WRITE_AT = 256 * 1024;

interface NextOptions extends Globals {
  syntax?: string;
  timezone?: string;
  from?: string;
  count?: number;
  id?: string;
  batch?: boolean;
}

export const registerNext: Register = (program, out) => {
  program
    .command("next")
    .summary("when an expression fires; needs no Redis")
    .description(
      "Shows what a schedule expression means and when it fires next. Needs no Redis.\n" +
        'With --batch: JSON lines {"syntax","expr","timezone","from","count"} from stdin, one JSON line each to stdout.',
    )
    .argument("[expr]", "for example '*/5 * * * *', 'Mon..Fri 09:00', 10s, 2026-01-01T00:00:00Z")
    .addOption(new Option("-s, --syntax <syntax>", "guessed when absent").choices(SYNTAXES))
    .option("-z, --timezone <zone>", "IANA zone, for example Europe/Berlin; default UTC")
    .option("--from <time>", "ISO 8601; times strictly after it; default now")
    .option("-n, --count <n>", "how many; default 5", wholeNumber)
    .option("--id <id>", "the task id that spreads H in a cron expression")
    .option("--batch", "answer JSON lines from stdin")
    .action(async (expr: string | undefined, _: unknown, command) => {
      const options: NextOptions = command.optsWithGlobals();
      if (options.batch) {
        if (expr !== undefined) throw misuse("EXPR", "given beside --batch.", "Leave one of the two out.");
        return answerAll(await import("@carillon/sdk"), out);
      }
      if (expr === undefined)
        throw misuse("EXPR", "missing.", "Give an expression, or --batch with JSON lines.");
      const question = readQuestion({ ...options, expr }, Date.now());
      const found = answer(await import("@carillon/sdk"), question);
      if (options.json) return out.json(documentOf(found));
      await out.write(describe(found, question, out));
    });
};

function documentOf({ warnings, ...found }: Answer) {
  return { ...found, next: found.next.map(utcIso), ...(warnings.length ? { warnings } : {}) };
}

function describe(found: Answer, { syntax, timezone, from }: Question, out: Output): string {
  const head = facts(
    [
      [syntax, found.canonical],
      ["means", found.description],
      ...found.warnings.map(({ code, message }) => ["warning", `${message} [${code}]`] as const),
    ],
    out.paint,
  );
  const rows = table<number>(
    [
      { title: "UTC", value: utcIso },
      { title: "LOCAL", value: (time) => localIso(time, timezone) },
      { title: "", value: (time) => relative(time, from) },
    ],
    found.next,
    out.paint,
  );
  const end = found.exhausted ? (found.next.length ? "Nothing follows.\n" : "It never fires again.\n") : "";
  return `${head}${found.next.length ? `\n${rows}` : ""}${end && `\n${end}`}`;
}

/** In order, one answer a line; a bad line is answered with its error, and the rest goes on. */
async function answerAll(sdk: Sdk, out: Output): Promise<void> {
  for await (const lines of readLines(undefined)) {
    let text = "";
    for (const line of lines) {
      text += `${JSON.stringify(answerLine(sdk, line))}\n`;
      if (text.length < WRITE_AT) continue;
      await out.write(text);
      text = "";
    }
    await out.write(text);
    if (out.closed) return;
  }
}

function answerLine(sdk: Sdk, { text, number }: Line): object {
  try {
    if (text === undefined)
      throw new Failure({ code: "INVALID_SCHEDULE", message: `line ${number}: too long.` });
    const asked = parseJson(text, "Give one JSON object a line.");
    const { warnings: _, ...found } = answer(sdk, readQuestion(asked, Date.now()));
    return { ...found, next: found.next.map(utcIso) };
  } catch (error) {
    const { code, message } = reportOf(error);
    return { error: { code, message } };
  }
}
