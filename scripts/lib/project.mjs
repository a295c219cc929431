import { chmodSync, mkdirSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/** Folder for data that commands keep between runs: locks, reports. Safe to delete. */
export const state = join(root, ".carillon");

export function stateDir(...parts) {
  privateDir(state);
  const dir = join(state, ...parts);
  mkdirSync(dir, { recursive: true });
  return dir;
}

/** Makes a folder that only its owner can enter: our Redis stores payloads in it. */
export function privateDir(dir) {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  if (statSync(dir).mode & 0o077) chmodSync(dir, 0o700);
}

/** Settings with which the tools send no telemetry and ask nothing. */
export const quietTools = {
  TURBO_TELEMETRY_DISABLED: "1",
  TURBO_NO_UPDATE_NOTIFIER: "1",
  DO_NOT_TRACK: "1",
  npm_config_update_notifier: "false",
};

/** Prints a message of ours, one line. */
export function say(text) {
  console.log(`carillon: ${text}`);
}

/** A problem that the reader can solve: printed without a stack. */
export class Trouble extends Error {}

/** Runs a command's main function. Its result is the exit code; `Trouble` and unknown options are printed as one message. */
export async function main(run) {
  try {
    process.exitCode = await run();
  } catch (error) {
    const isInput =
      error instanceof Trouble ||
      error?.name === "CarillonError" ||
      error?.code?.startsWith?.("ERR_PARSE_ARGS");
    console.error(isInput ? `carillon: ${error.message}` : error);
    process.exitCode = 1;
  }
}
