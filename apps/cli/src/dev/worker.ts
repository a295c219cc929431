import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import type { AnyTaskType, Logger, TaskInput, Worker } from "@carillon/sdk";
import { line } from "./line.js";

/** Time in ms that runs get to end when the file changes, or all stops; then they are handed back. */
const WITHIN = 2_000;

const say = (...about: Parameters<typeof line>) => void process.stdout.write(line(...about));
const file = process.argv[2] as string;
let worker: Worker | undefined;
let ending = false;

/** The events of runs are printed elsewhere. */
const about = (level: string) => (details: object, message: string) => {
  const { run, error } = details as { run?: string; error?: unknown };
  if (run === undefined) say(level, "", [message, error].filter(Boolean).join(": "));
};
const logger: Logger = { debug() {}, info() {}, warn: about("warning"), error: about("error") };

async function end(): Promise<void> {
  if (ending) return;
  ending = true;
  await worker?.stop({ within: WITHIN });
  process.exit();
}
for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => void end());
// `carillon dev` was killed.
process.stdin.resume().once("close", () => process.exit());

// The project's own SDK, as its handlers use it.
const path = createRequire(file).resolve("@carillon/sdk");
const sdk = (await import(pathToFileURL(path).href)) as typeof import("@carillon/sdk");
const exported = Object.values((await import(pathToFileURL(file).href)) as object).flat();
const types = exported.filter(isTaskType);
const tasks = exported.filter(isTask);
if (types.length === 0) {
  say("error", "", `${file} exports no task type: export what defineTask returns, with its handler.`);
  process.exit(1);
}
const settings = sdk.readEnvironment();
worker = new sdk.Worker({ ...settings, types, logger });
worker.on("settled", ({ outcome, task, error }) => {
  if (outcome === "retrying" && error) say("attempt", task, `failed: ${error}`);
});
await worker.start();
say("working", "", types.map(({ type }) => type).join(", "));
const client = new sdk.Client(settings);
for (const { task, warnings } of await client.putMany(tasks))
  for (const { message, remedy } of warnings) say("warning", task.id, `${message} ${remedy}`);
await client.close();

function isTaskType(value: unknown): value is AnyTaskType {
  const type = Object(value) as Partial<Record<string, unknown>>;
  return typeof type["type"] === "string" && Boolean(type["handler"] ?? type["process"]);
}

function isTask(value: unknown): value is TaskInput {
  const task = Object(value) as Partial<Record<string, unknown>>;
  return typeof task["type"] === "string" && typeof task["id"] === "string" && "schedule" in task;
}
