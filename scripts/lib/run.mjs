import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { constants } from "node:os";
import { delimiter, join } from "node:path";
import { quietTools, root } from "./project.mjs";

/** The first file of this name on PATH. */
export function onPath(name) {
  const folders = (process.env.PATH ?? "").split(delimiter).filter(Boolean);
  return folders.map((folder) => join(folder, name)).find((file) => existsSync(file));
}

/** @typedef {{ code: number, output: string }} Result */

/** @typedef {[name: string, run: () => Result | Promise<Result>]} Step of a command with several */

/**
 * @typedef {object} RunOptions
 * @property {Record<string, string | undefined>} [env] further variables; undefined removes one
 * @property {string} [cwd] default: the repository
 * @property {boolean} [capture] keep the output instead of printing it
 * @property {number} [timeoutMs] default: none
 */

/**
 * Runs a program and returns its exit code, with its output when `capture` is set. Never throws.
 *
 * @param {string} command
 * @param {string[]} args
 * @param {RunOptions} [options]
 * @returns {Promise<Result>}
 */
export function run(command, args, { env = {}, cwd = root, capture = false, timeoutMs } = {}) {
  return new Promise((resolve) => {
    const child = spawn(command, args, {
      cwd,
      env: { ...process.env, ...quietTools, ...env },
      stdio: capture ? ["ignore", "pipe", "pipe"] : ["ignore", "inherit", "inherit"],
    });
    // Not spawn's own `timeout`, whose timer keeps this process alive if the program cannot be started.
    const limit = timeoutMs && setTimeout(() => child.kill(), timeoutMs);
    const finish = (result) => {
      clearTimeout(limit);
      resolve(result);
    };
    let output = "";
    child.stdout?.on("data", (chunk) => {
      output += chunk;
    });
    child.stderr?.on("data", (chunk) => {
      output += chunk;
    });
    child.once("error", (error) => finish({ code: 127, output: error.message }));
    child.once("close", (code, signal) => finish({ code: exitCode(code, signal), output }));
  });
}

/**
 * Runs a program of a dependency by its file, so that nothing depends on PATH or a shell.
 * @param {string} file
 * @param {string[]} args
 * @param {RunOptions} [options]
 */
export function runTool(file, args, options) {
  return run(process.execPath, [join(root, "node_modules", file), ...args], options);
}

/** Exit code in a shell's convention. */
export function exitCode(code, signal) {
  return code ?? 128 + (constants.signals[signal] ?? 0);
}
