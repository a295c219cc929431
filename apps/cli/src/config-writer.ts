import { writeFile } from "node:fs/promises";
import { misuse } from "./failure.js";

type Writer = (head: object, tasks: readonly object[]) => string;

const code = (head: object, tasks: readonly object[]) =>
  // Only a key can begin a line so.
  JSON.stringify({ ...head, tasks }, undefined, 2).replace(/^( *)"([A-Za-z_]\w*)":/gm, "$1$2:");
const plain: Writer = (head, tasks) => `export default ${code(head, tasks)};\n`;

const WRITERS: Readonly<Record<string, Writer | undefined>> = {
  ts: (head, tasks) =>
    `import { defineConfig } from "@carillon/ops";\n\nexport default defineConfig(${code(head, tasks)});\n`,
  js: plain,
  mjs: plain,
  json: (head, tasks) => `${JSON.stringify({ ...head, tasks }, undefined, 2)}\n`,
  jsonl: (head, tasks) => [head, ...tasks].map((one) => `${JSON.stringify(one)}\n`).join(""),
};

/** Fails before any work if the file's ending is none of ours. @throws `INVALID_OPTION` */
export function configWriter(file: string, force: boolean | undefined) {
  const write = WRITERS[/\.(\w+)$/.exec(file)?.[1] ?? ""];
  if (!write) throw misuse("out", `${file} has another ending.`, "Give .ts, .js, .mjs, .json or .jsonl.");
  /** @throws `INVALID_OPTION` if the file exists, or cannot be written */
  return (head: object, tasks: readonly Fields[]): Promise<void> => {
    const defaults = commonOf(tasks);
    const some = Object.keys(defaults).length > 0;
    const own = tasks.map((task) => without(task, defaults));
    return writeNew(file, write({ ...head, ...(some && { defaults }) }, own), force);
  };
}

/** A task, as far as a file of a set is concerned. */
interface Fields {
  readonly schedule: object;
}

/** Fields that say what a task is: they stand with it. */
const OWN = new Set(["id", "schedule", "payload", "description"]);

/** Fields that all tasks have, and the zone of all cron expressions: the `defaults` of the set. */
function commonOf(tasks: readonly Fields[]): object {
  const [first = {}, ...others] = tasks;
  if (others.length === 0) return {};
  const same = ([name, value]: [string, unknown]) =>
    !OWN.has(name) &&
    others.every((one) => JSON.stringify(one[name as keyof Fields]) === JSON.stringify(value));
  const zones = new Set(tasks.flatMap(({ schedule }) => zoneOf(schedule)));
  const [timezone] = zones.size === 1 ? zones : [];
  return { ...Object.fromEntries(Object.entries(first).filter(same)), ...(timezone && { timezone }) };
}

/** The zone in which a default would be read; `undefined` in the list: it has none of its own, or several. */
function zoneOf(schedule: { cron?: string; timezone?: string; any?: unknown; calendar?: string }) {
  if (schedule.cron !== undefined) return [schedule.timezone];
  return schedule.any === undefined && schedule.calendar === undefined ? [] : [undefined];
}

function without({ schedule, ...task }: Fields, defaults: { timezone?: string }): object {
  const { timezone, ...rest } = schedule as { cron?: string; timezone?: string };
  const short = defaults.timezone !== undefined && rest.cron !== undefined ? rest : schedule;
  const own = Object.entries(task).filter(([name]) => !(name in defaults));
  return { ...Object.fromEntries(own), schedule: short };
}

/** @throws `INVALID_OPTION` */
export async function writeNew(file: string, text: string, force: boolean | undefined): Promise<void> {
  await writeFile(file, text, { flag: force ? "w" : "wx" }).catch((error: Error) => {
    throw misuse("out", `${file} cannot be written: ${error.message}.`, "Check the path, or give --force.");
  });
}
