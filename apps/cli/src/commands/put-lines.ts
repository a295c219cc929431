import type { Client, PutResult, TaskInput } from "@carillon/sdk";
import { Failure, reportOf } from "../failure.js";
import { type Line, parseJson } from "../input.js";
import type { Output } from "../output.js";

/** Number of tasks that are checked and stored together. */
const CHUNK = 1_000;
/** Warnings of one code printed for people; the rest is counted. */
const SHOWN_OF_A_CODE = 3;

/**
 * Stores one task per line, in chunks, so that memory holds one chunk only.
 * @throws for the first bad line, naming it; every line before it is stored
 */
export async function putLines(
  client: Client,
  input: AsyncIterable<Line[]>,
  { json, by }: { json?: boolean; by?: string },
  out: Output,
): Promise<void> {
  const summary = new Summary(out);
  const store = async (lines: readonly Line[]) => {
    const { puts, failure } = await putChunk(client, lines, by);
    if (json)
      await out.write(
        puts.map((put, i) => `${JSON.stringify({ line: lines[i]?.number, ...put })}\n`).join(""),
      );
    for (const [i, put] of puts.entries()) summary.add(put, json ? undefined : lines[i]?.number);
    if (failure) throw withTotal(failure, summary.total);
  };
  let chunk: Line[] = [];
  for await (const lines of input) {
    for (const line of lines) {
      chunk.push(line);
      if (chunk.length < CHUNK) continue;
      await store(chunk);
      chunk = [];
    }
  }
  if (chunk.length > 0) await store(chunk);
  if (!json) await out.write(summary.text());
}

/** Stores the lines up to the first bad one. */
async function putChunk(
  client: Client,
  lines: readonly Line[],
  by: string | undefined,
): Promise<{ puts: PutResult[]; failure?: Failure }> {
  const tasks: TaskInput[] = [];
  let failure: Failure | undefined;
  for (const line of lines) {
    try {
      tasks.push(parseLine(line));
    } catch (error) {
      failure = error as Failure;
      break;
    }
  }
  try {
    const puts = await client.putMany(tasks, { by });
    return failure ? { puts, failure } : { puts };
  } catch (error) {
    // All are checked before the first is written, so the chunk is sent again without the bad line and the lines after
    // it.
    const bad = badLine(error, lines);
    if (bad === undefined) throw interrupted(error, lines);
    return { puts: await client.putMany(tasks.slice(0, bad.index), { by }), failure: bad.failure };
  }
}

function parseLine({ text, number, fault }: Line): TaskInput {
  if (text !== undefined) return parseJson(text, "Give one task a line.", { line: number }) as TaskInput;
  throw new Failure({ code: "INVALID_TASK", message: `line ${number}: ${fault}.`, line: number });
}

/** The SDK counts within the chunk (`[3].schedule.cron`); the user needs the line of the file. */
function badLine(error: unknown, lines: readonly Line[]): { index: number; failure: Failure } | undefined {
  const index = Number(/^\[(\d+)\]/.exec(reportOf(error).field ?? "")?.[1] ?? Number.NaN);
  if (Number.isNaN(index)) return undefined;
  const line = lines[index]?.number;
  const cause = reportOf((error as Error).cause);
  return {
    index,
    failure: new Failure({ ...cause, message: `line ${line}: ${cause.message}`, line }, error),
  };
}

function interrupted(error: unknown, lines: readonly Line[]): Failure {
  const report = reportOf(error);
  const where = `lines ${lines[0]?.number} to ${lines.at(-1)?.number}`;
  const then = "Run it again: what is stored already does not change.";
  return new Failure({ ...report, message: `${where}: ${report.message} ${then}` }, error);
}

function withTotal({ report, cause }: Failure, total: number): Failure {
  const stored = total === 1 ? "The 1 task before it is stored." : `The ${total} tasks before it are stored.`;
  return new Failure({ ...report, message: `${report.message} ${stored}` }, cause);
}

class Summary {
  total = 0;
  readonly #out: Output;
  readonly #outcomes = { created: 0, updated: 0, unchanged: 0 };
  readonly #warnings = new Map<string, number>();

  constructor(out: Output) {
    this.#out = out;
  }

  /** Prints warnings if `line` is given, the first few of each code. */
  add({ outcome, warnings }: PutResult, line: number | undefined): void {
    this.total += 1;
    this.#outcomes[outcome] += 1;
    for (const warning of warnings) {
      const seen = (this.#warnings.get(warning.code) ?? 0) + 1;
      this.#warnings.set(warning.code, seen);
      if (line !== undefined && seen <= SHOWN_OF_A_CODE) this.#out.warn(`line ${line}`, [warning]);
    }
  }

  text(): string {
    const { created, updated, unchanged } = this.#outcomes;
    const tasks = this.total === 1 ? "1 task" : `${this.total} tasks`;
    const warned = [...this.#warnings].map(([code, count]) => `${count} ${code}`).join(", ");
    const end = warned && ` (warnings: ${warned})`;
    return `${tasks}: ${created} created, ${updated} updated, ${unchanged} unchanged${end}\n`;
  }
}
