import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const ORPHAN = new URL("./orphan.js", import.meta.url).href;

export interface Line {
  readonly from: Managed;
  readonly msg: string;
  readonly level: number;
  readonly [field: string]: unknown;
}

/** A child process of the demo, and its output. */
export class Managed {
  readonly name: string;
  readonly kind: "replica" | "worker" | "console";
  child: ChildProcess | undefined;
  restarts = 0;
  /** The last exit code, while it is down. */
  exit: string | undefined;
  readonly #script: string;
  readonly #env: Record<string, string>;
  readonly #heard: (line: Line) => void;
  #stopping = false;

  constructor(
    name: string,
    kind: Managed["kind"],
    script: string,
    env: Record<string, string>,
    heard: (line: Line) => void,
  ) {
    this.name = name;
    this.kind = kind;
    this.#script = fileURLToPath(new URL(script, import.meta.url));
    this.#env = env;
    this.#heard = heard;
  }

  get alive(): boolean {
    return this.child !== undefined && this.child.exitCode === null && this.child.signalCode === null;
  }

  start(): void {
    this.exit = undefined;
    const child = spawn(process.execPath, ["--import", ORPHAN, this.#script], {
      env: { ...process.env, ...this.#env },
      stdio: ["ignore", "pipe", "pipe"],
      // Ctrl-C reaches only the supervisor, which stops the others in order.
      detached: true,
    });
    this.child = child;
    createInterface({ input: child.stdout as NodeJS.ReadableStream }).on("line", (text) => this.#hear(text));
    createInterface({ input: child.stderr as NodeJS.ReadableStream }).on("line", (text) => this.#hear(text));
    child.on("exit", (code, signal) => {
      this.exit = signal ?? String(code);
      if (this.#stopping) return;
      this.#heard({ from: this, level: 50, msg: `ended (${this.exit}); starting again in 3 s` });
      setTimeout(() => {
        if (this.#stopping) return;
        this.restarts += 1;
        this.start();
      }, 3_000);
    });
  }

  #hear(text: string): void {
    try {
      const parsed: unknown = JSON.parse(text);
      if (typeof parsed === "object" && parsed !== null) {
        const fields = parsed as Record<string, unknown>;
        this.#heard({
          ...fields,
          from: this,
          msg: String(fields.msg ?? ""),
          level: Number(fields.level ?? 30),
        });
        return;
      }
    } catch {
      // Not a log line, but for example a warning of Node.
    }
    if (text.trim()) this.#heard({ from: this, level: 40, msg: text });
  }

  /** Kills it like a crash, without a clean stop. */
  kill(): void {
    this.child?.kill("SIGKILL");
  }

  /** SIGTERM, then SIGKILL after `patience` ms. */
  async stop(patience: number): Promise<void> {
    this.#stopping = true;
    const { child } = this;
    if (!child || !this.alive) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(() => child.kill("SIGKILL"), patience);
      child.once("exit", () => {
        clearTimeout(timer);
        resolve();
      });
      child.kill("SIGTERM");
    });
  }
}
