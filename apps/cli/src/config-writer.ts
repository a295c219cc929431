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
  return (head: object, tasks: readonly object[]): Promise<void> => writeNew(file, write(head, tasks), force);
}

/** @throws `INVALID_OPTION` */
export async function writeNew(file: string, text: string, force: boolean | undefined): Promise<void> {
  await writeFile(file, text, { flag: force ? "w" : "wx" }).catch((error: Error) => {
    throw misuse("out", `${file} cannot be written: ${error.message}.`, "Check the path, or give --force.");
  });
}
