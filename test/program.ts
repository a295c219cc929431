import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { Json } from "@carillon/sdk";
import { eventually } from "@carillon/testing";

/** Patience for other processes or a restarting Redis: a busy machine is slow, not wrong. */
export const PATIENCE = { intervalMs: 25 };

const fileOf = (path: string) => fileURLToPath(new URL(path, new URL("../", import.meta.url)));

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** One line of a program's output, as JSON. */
export type Line = Record<string, Json | undefined>;

/** A built program in its own process. Its environment holds no Carillon variables but the given ones. */
export class Program {
  readonly child: ChildProcess;
  /** The JSON lines that it printed. */
  readonly said: Line[] = [];
  readonly ended: Promise<Ended>;
  #stdout = "";
  #stderr = "";
  #over = false;

  constructor(file: string, args: readonly string[], env: Record<string, string>) {
    const clean = Object.entries(process.env).filter(
      ([name]) => !/^(CARILLON_|REDIS_|NODE_OPTIONS|VITEST)/.test(name),
    );
    this.child = spawn(process.execPath, [fileOf(file), ...args], {
      env: { ...Object.fromEntries(clean), ...env },
      stdio: "pipe",
    });
    this.child.stdin?.on("error", () => {}); // a program may end without reading its input
    this.child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      this.#stdout += text;
    });
    this.child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.#stderr += text;
    });
    createInterface({ input: this.child.stdout as NonNullable<typeof this.child.stdout> }).on(
      "line",
      (text) => {
        const line = lineOf(text);
        if (line) this.said.push(line);
      },
    );
    this.ended = once(this.child, "close").then(([code, signal]) => {
      this.#over = true;
      return {
        code: code as number | null,
        signal: signal as NodeJS.Signals | null,
        stdout: this.#stdout,
        stderr: this.#stderr,
      };
    });
  }

  async toItsEnd(input = ""): Promise<Ended> {
    this.child.stdin?.end(input);
    return this.ended;
  }

  tell(line: string): void {
    this.child.stdin?.write(`${line}\n`);
  }

  /** Waits for the first line that contains these fields. */
  async says(part: Line): Promise<Line> {
    const matches = (line: Line) => Object.entries(part).every(([key, value]) => line[key] === value);
    const SILENT = () =>
      new Error(`It never said ${JSON.stringify(part)}, but:\n${this.#stdout}\n${this.#stderr}`);
    const line = await eventually(() => {
      const found = this.said.find(matches);
      if (found || this.#over) return found ?? "over";
      throw SILENT();
    }, PATIENCE);
    if (line !== "over") return line;
    throw SILENT();
  }

  /** Waits until a node runs: its timer is set, and it can write. */
  async running(): Promise<this> {
    await this.says({ msg: "node is running" });
    return this;
  }

  signal(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }

  async kill(): Promise<void> {
    this.child.kill("SIGKILL");
    await this.ended;
  }
}

function lineOf(text: string): Line | undefined {
  try {
    const line: unknown = JSON.parse(text);
    return typeof line === "object" && line !== null && !Array.isArray(line) ? (line as Line) : undefined;
  } catch {
    return undefined; // printed for people
  }
}
