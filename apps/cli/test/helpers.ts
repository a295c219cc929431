import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import type { Io } from "../src/io.js";
import { run } from "../src/program.js";

export const MAIN = fileURLToPath(new URL("../bin/carillon.js", import.meta.url));

export interface Ended {
  code: number | null;
  stdout: string;
  stderr: string;
}

export interface RunOptions {
  /** Variables of the environment. None of Redis or Carillon is set unless given here. */
  env?: Record<string, string>;
  input?: string | Iterable<string | Uint8Array>;
  store?: Io["store"];
}

function environment(env: Record<string, string> = {}): NodeJS.ProcessEnv {
  const clean = Object.entries(process.env).filter(
    ([name]) => !/^(CARILLON_|REDIS_|FORCE_COLOR$|NO_COLOR$)/.test(name),
  );
  return { ...Object.fromEntries(clean), ...env };
}

/** Runs one command line in this process. */
export async function carillon(
  args: readonly string[],
  { env, input = "", store }: RunOptions = {},
): Promise<Ended> {
  const stdin = Readable.from(bytesOf(typeof input === "string" ? [input] : input), { objectMode: false });
  const stdout = new Sink();
  const ended = await carillonOn({ stdin, stdout, ...(store && { store }) }, args, env);
  return { ...ended, stdout: stdout.text };
}

/** Runs one command line in this process, with the given streams. */
export async function carillonOn(
  streams: Pick<Io, "stdin" | "stdout" | "store">,
  args: readonly string[],
  env?: Record<string, string>,
): Promise<Omit<Ended, "stdout">> {
  const stderr = new Sink();
  const code = await run(args, { ...streams, stderr, env: environment(env) });
  return { code, stderr: stderr.text };
}

function* bytesOf(parts: Iterable<string | Uint8Array>): Generator<Uint8Array> {
  for (const part of parts) if (part.length > 0) yield Buffer.from(part as string);
}

export class Sink extends Writable {
  readonly #chunks: Buffer[] = [];

  get text(): string {
    return Buffer.concat(this.#chunks).toString();
  }

  override _write(chunk: Buffer, _: unknown, done: () => void): void {
    this.#chunks.push(chunk);
    done();
  }
}

/** Starts the built program, for tests of what only a process has, such as signals. */
export function spawnCarillon(args: readonly string[], env?: Record<string, string>): ChildProcess {
  return spawn(process.execPath, [MAIN, ...args], { env: environment(env), stdio: "pipe" });
}

/** Runs the built program to its end. */
export async function carillonProcess(
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
  child.stdin?.on("error", () => {}); // a program may end without reading its input
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
