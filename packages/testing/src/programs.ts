import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";

/** The first file of this name on PATH. */
export function onPath(name: string): string | undefined {
  const folders = (process.env["PATH"] ?? "").split(delimiter).filter(Boolean);
  return folders.map((folder) => join(folder, name)).find((file) => existsSync(file));
}

/** Runs a program. Never throws. */
export function run(
  command: string,
  args: readonly string[],
  options: { timeout?: number; env?: Record<string, string> } = {},
): Promise<{ code: number; output: string }> {
  const env = { ...process.env, ...options.env };
  return new Promise((resolve) => {
    execFile(command, args, { ...options, env, maxBuffer: 64 * 1024 * 1024 }, (error, stdout, stderr) => {
      const code = error === null ? 0 : Number(error.code) || 127;
      resolve({ code, output: `${stdout}${stderr}` || String(error?.message ?? "") });
    });
  });
}
