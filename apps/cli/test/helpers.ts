import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

export const MAIN = fileURLToPath(new URL("../dist/main.js", import.meta.url));

export interface Ended {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** The built program, with an environment of its own: no REDIS_URL unless given. */
export function spawnCarillon(args: readonly string[], env: Record<string, string> = {}): ChildProcess {
  const { REDIS_URL: _, CARILLON_NAMESPACE: __, ...rest } = process.env;
  return spawn(process.execPath, [MAIN, ...args], { env: { ...rest, ...env }, stdio: "pipe" });
}

export interface RunOptions {
  env?: Record<string, string>;
  input?: string | Iterable<string | Uint8Array>;
}

export async function carillon(
  args: readonly string[],
  { env, input = "" }: RunOptions = {},
): Promise<Ended> {
  const child = spawnCarillon(args, env);
  let stdout = "";
  let stderr = "";
  child.stdout?.setEncoding("utf8").on("data", (text) => {
    stdout += text;
  });
  child.stderr?.setEncoding("utf8").on("data", (text) => {
    stderr += text;
  });
  const ended = once(child, "close");
  child.stdin?.on("error", () => {}); // it need not read everything
  for (const part of typeof input === "string" ? [input] : input) {
    if (child.stdin?.write(part)) continue;
    await Promise.race([once(child.stdin as never, "drain").catch(() => ended), ended]);
  }
  child.stdin?.end();
  const [code] = await ended;
  return { code, stdout, stderr };
}

export function jsonLines<T = Record<string, unknown>>(text: string): T[] {
  return text
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line) as T);
}
