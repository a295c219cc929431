import type { Client, Preview, PutResult, TaskInput } from "@carillon/sdk";
import { type Register, withClient } from "../command.js";
import { misuse } from "../failure.js";
import { parseJson, readAll, readLines } from "../input.js";
import type { Output } from "../output.js";
import { table } from "../table.js";
import { printable, warningText } from "../text.js";
import { type TimeTexts, utcIso } from "../times.js";
import { putLines } from "./put-lines.js";

export const registerPut: Register = (program, out) => {
  program
    .verb(
      "put",
      "store tasks, or change them",
      "Stores tasks, or changes them. Idempotent: identical data does not change.\n" +
        "FILE holds one task as a JSON object, or an array of them: all are checked before the first is written.\n" +
        "With --batch it holds one task a line, any number of lines.",
    )
    .argument("[file]", "a file; - or nothing for standard input")
    .flag("--batch", "JSON lines, stored as they are read; stops at the first bad line and names it")
    .takes("tasks.put", ["ifRevision", "dryRun"], { flags: { ifRevision: "--if-revision <revision>" } })
    .does(async (options, file: string | undefined) => {
      if (options.batch && options.ifRevision !== undefined)
        throw misuse("--if-revision", "given with --batch.", ONE_TASK);
      if (options.batch && options.dryRun)
        throw misuse("--dry-run", "given with --batch.", "Give an array of tasks.");
      if (options.batch) {
        const lines = readLines(options.io, file);
        return withClient(options, (client) => putLines(client, lines, options, out));
      }
      const input = parseJson(
        await readAll(options.io, file, "Write one task a line and use --batch."),
        "Give one task, or an array; --batch takes one task a line.",
      );
      const puts = await withClient(options, (client) => putDocument(client, input, options));
      if (options.json) return out.json(Array.isArray(input) ? { results: puts } : (puts[0] as PutResult));
      await out.write(putsText(puts, out));
    });
};

/** Result of each task, for people. Warnings go to `out`. */
export function putsText(puts: readonly PutResult[], out: Output): string {
  const previews = puts.map(
    ({ task: { owner, id }, preview }) => preview && previewText(`${owner}/${id}`, preview),
  );
  // One worker that is missing is the same warning for many tasks.
  const named = new Map<string, { names: string[]; warning: PutResult["warnings"][number] }>();
  for (const { task, warnings } of puts) {
    for (const warning of warnings) {
      const one = named.get(warningText(warning)) ?? { names: [], warning };
      named.set(warningText(warning), one);
      one.names.push(`${task.owner}/${task.id}`);
    }
  }
  for (const { names, warning } of named.values()) {
    const others = names.length > 1 ? ` and ${names.length - 1} more` : "";
    out.warn(`${names[0]}${others}`, [warning]);
  }
  return table(COLUMNS, puts, out) + previews.join("");
}

async function putDocument(
  client: Client,
  input: unknown,
  { ifRevision, by, dryRun }: { ifRevision?: string; by?: string; dryRun?: boolean },
): Promise<PutResult[]> {
  // The SDK's schema checks the content.
  if (!Array.isArray(input)) return [await client.put(input as TaskInput, { ifRevision, by, dryRun })];
  if (ifRevision !== undefined) throw misuse("--if-revision", "given for a list.", ONE_TASK);
  return client.putMany(input as TaskInput[], { by, dryRun });
}

/** Differences of a put that was not made; nothing if there is none. */
export function previewText(name: string, preview: Preview): string {
  const { before, after, times, givenUp } = preview;
  if (!before && !after) return "";
  const moved = before && "schedule" in before ? besides(times) : [];
  const lost = givenUp ? [`gives up ${utcIso(givenUp.from)} to ${utcIso(givenUp.to)}`] : [];
  const lines = [...fieldLines(preview), ...moved, ...lost].map((line) => `  ${printable(line)}`);
  return `${printable(name)}\n${lines.join("\n")}\n`;
}

/** Fields that differ, old and new. */
export function fieldLines({ before, after }: Preview): string[] {
  return Object.keys({ ...before, ...after }).map((field) => {
    const [was, is] = [before?.[field], after?.[field]].map((one) => JSON.stringify(one) ?? "-");
    return before ? `${field}: ${was} -> ${is}` : `${field}: ${is}`;
  });
}

/** Next times, old and new, next to each other. */
export function besides({ before, after }: Preview["times"]): string[] {
  const at = (slot: (typeof after)[number] | undefined) => (slot ? utcIso(slot.nominal) : "-").padEnd(26);
  const rows = Array.from({ length: Math.max(before.length, after.length) }, (_, i) =>
    `  ${at(before[i])}${at(after[i])}`.trimEnd(),
  );
  return rows.length === 0 ? [] : [`  ${"was".padEnd(26)}is`, ...rows];
}

const ONE_TASK = "Put that task by itself: a revision is that of one task.";

const COLUMNS = [
  { title: "RESULT", value: (put: PutResult) => put.outcome },
  { title: "QUEUE", value: (put: PutResult) => put.task.queue, rank: 1, least: 8 },
  { title: "TASK", value: (put: PutResult) => `${put.task.owner}/${put.task.id}` },
  { title: "STATE", value: (put: PutResult) => put.state },
  { title: "NEXT", value: (put: PutResult, { when }: TimeTexts) => when(put.nextExecution) },
];
