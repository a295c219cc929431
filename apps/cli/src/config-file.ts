import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { SetConfig, SetFile } from "@carillon/ops";
import { EXIT, exitCodeOf } from "./exit-codes.js";
import { Failure, misuse, reportOf } from "./failure.js";
import { parseJson, readAll } from "./input.js";
import type { Io } from "./io.js";
import { typescriptLoader } from "./typescript.js";

const NAMES = ["ts", "js", "mjs", "json", "jsonl"].map((end) => `carillon.config.${end}`);
const code = "INVALID_OPTION";

interface ConfigFile {
  readonly path: string;
  /** Unchecked but for being an object: the operation checks it. */
  readonly config: SetFile;
}

/**
 * @param given default: the first file of the working directory that has one of the names
 * @throws `INVALID_OPTION` if there is none, or it cannot be loaded
 */
export async function readConfig(io: Io, given: string | undefined): Promise<ConfigFile> {
  const path = given ?? NAMES.find((name) => existsSync(name));
  if (path === undefined)
    throw misuse("config", `there is no ${NAMES.join(", ")} here.`, "Write one, or give --config FILE.");
  const config = /\.jsonl?$/.test(path) ? await readText(io, path) : await importFile(path);
  if (typeof config !== "object" || config === null || Array.isArray(config))
    throw misuse(
      "config",
      `${path} is not an object.`,
      "Give { set, tasks }: in code as the default export.",
    );
  return { path, config: config as SetFile };
}

/** The same, as an operation takes it. @param env of its environments, the one that counts */
export async function readSet(
  io: Io,
  given: string | undefined,
  env: string | undefined,
): Promise<{ path: string; input: SetConfig }> {
  const { path, config } = await readConfig(io, given);
  const { resolveConfig } = await import("./load.js");
  return { path, input: await inFile(path, () => resolveConfig(config, env)) };
}

async function readText(io: Io, path: string): Promise<unknown> {
  const text = await readAll(io, path, "Split the set.");
  return inFile(path, () =>
    path.endsWith("l") ? parseLines(text) : parseJson(text, "Give { set, tasks }.", { code }),
  );
}

function parseLines(text: string): unknown {
  const hint = "Give the set on the first line, and one task on each other.";
  const [head, ...tasks] = text
    .split("\n")
    .flatMap((line, i) => (line.trim() === "" ? [] : [parseJson(line, hint, { code, line: i + 1 })]));
  return typeof head === "object" && head !== null ? { ...head, tasks } : head;
}

async function importFile(path: string): Promise<unknown> {
  const file = resolve(path);
  const loader = typescriptLoader(file, "config");
  try {
    if (loader) await import(loader);
    return ((await import(pathToFileURL(file).href)) as { default?: unknown }).default;
  } catch (error) {
    const { message } = error as Error;
    const missing = /^Cannot find package '([^']+)'/.exec(message)?.[1];
    if (missing)
      throw misuse(
        "config",
        `${path} imports ${missing}, which is not installed.`,
        `Run \`npm install ${missing}\`.`,
      );
    throw misuse("config", `${path} cannot be loaded: ${message}.`, "Correct it.");
  }
}

/** Names the file in errors about its content. */
export async function inFile<T>(path: string, act: () => T | Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    const { message, field, ...report } = reportOf(error);
    if (exitCodeOf(report.code) !== EXIT.usage) throw error;
    // `[3].schedule`: the operation counts the tasks.
    const inTasks = (text: string) => text.replace(/^\[(?=\d+\])/, "tasks[");
    throw new Failure(
      { ...report, message: `${path}: ${inTasks(message)}`, field: field && inTasks(field) },
      error,
    );
  }
}
