import { duration, relative } from "@carillon/ops/words";
import type { Client, TaskInput } from "@carillon/sdk";
import type { Validation } from "@carillon/sdk/internal";
import { type Register, withClient } from "../command.js";
import { Failure, reportOf } from "../failure.js";
import { parseJson, readAll } from "../input.js";
import { readMoment } from "../moment.js";
import type { Output } from "../output.js";
import { type Column, table } from "../table.js";
import { facts, warningText } from "../text.js";
import { HERE, localIso, utcIso } from "../times.js";
import { previewText } from "./put.js";

export const registerValidate: Register = (program, out) => {
  program
    .verb(
      "validate",
      "check tasks as put does, and show when they run; stores nothing",
      "Checks tasks as put does, and shows what their schedules mean and when they run next. Stores nothing.\n" +
        "FILE holds one task as a JSON object, or an array of them: the first invalid one is named.",
    )
    .argument("[file]", "a file; - or nothing for standard input")
    .flag("--from <time>", "ISO 8601; times strictly after it; default now")
    .takes("tasks.validate", ["count"], { flags: { count: "-n, --count <n>" } })
    .does(async (options, file: string | undefined) => {
      const input = parseJson(
        await readAll(options.io, file, "Check fewer tasks at once."),
        "Give one task, or an array of them.",
      );
      const found = await withClient(options, (client) => validateAll(client, input, options));
      if (options.json) return out.json(Array.isArray(input) ? { results: found } : (found[0] as Validation));
      const { owner } = options;
      const tasks = [input].flat() as TaskInput[];
      const texts = found.map((one, i) => describe(one, { owner, ...tasks[i] } as TaskInput, out));
      await out.write(texts.join("\n"));
    });
};

async function validateAll(
  client: Client,
  input: unknown,
  options: { from?: string; count?: number },
): Promise<Validation[]> {
  const sdk = await import("@carillon/sdk/schedule");
  const from =
    options.from === undefined
      ? undefined
      : readMoment(sdk, options.from, { zone: HERE, now: await client.serverTime(), field: "from" }).time;
  const asked = {
    ...(from === undefined ? {} : { from }),
    ...(options.count === undefined ? {} : { count: options.count }),
  };
  // The SDK's schema checks the content.
  if (!Array.isArray(input)) return [await client.validate(input as TaskInput, asked)];
  const found: Validation[] = [];
  for (const task of input) {
    try {
      found.push(await client.validate(task as TaskInput, asked));
    } catch (error) {
      throw nth(error, found.length);
    }
  }
  return found;
}

/** The field as put reports it: `[3].schedule.cron`. */
function nth(error: unknown, index: number): unknown {
  const { code, message, field, remedy } = reportOf(error);
  if (code === "INTERNAL") return error;
  const at = field === undefined ? `[${index}]` : `[${index}].${field}`;
  const text = field === undefined ? `${at}: ${message}` : `[${index}].${message}`;
  return new Failure({ code, message: text, field: at, remedy }, error);
}

function describe(
  { canonical, humanized, warnings, next, exhausted, outcome, preview }: Validation,
  { owner, id, queue }: TaskInput,
  out: Output,
): string {
  const head = facts(
    [
      ["task", `${owner ?? "system"}/${id} in queue ${queue}`],
      ["schedule", canonical],
      ["means", humanized],
      ["put", `would be ${outcome}`],
      ...warnings.map((warning) => ["warning", warningText(warning)] as const),
    ],
    out.paint,
  );
  const rows = next.length > 0 ? `\n${table(columnsOf(next), next, { paint: out.paint })}` : "";
  const end = next.length > 0 ? "Nothing follows." : "It never fires again.";
  const changes = outcome === "updated" ? `\n${previewText("changes", preview)}` : "";
  return `${head}${rows}${exhausted ? `\n${end}\n` : ""}${changes}`;
}

type Slot = Validation["next"][number];

function columnsOf(next: readonly Slot[]): Column<Slot>[] {
  const now = Date.now();
  const due: Column<Slot> = {
    title: "DUE",
    value: (slot) => `${localIso(slot.due)} (+${duration(slot.due - slot.nominal)})`,
  };
  return [
    { title: "UTC", value: ({ nominal }) => utcIso(nominal) },
    { title: "LOCAL", value: ({ nominal }) => localIso(nominal) },
    { title: "", value: ({ nominal }) => relative(nominal, now) },
    ...(next.some(({ nominal, due }) => nominal !== due) ? [due] : []),
  ];
}
