import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { eventually } from "@carillon/testing";
import { afterEach } from "vitest";
import { type Bench, QUEUE } from "./bench.js";

const SCRIPT = fileURLToPath(new URL("./worker-process.mjs", import.meta.url));

/** Patience for other processes. */
export const patience = { intervalMs: 25 };

type Line = Record<string, unknown>;
export type Mode = "work" | "hang" | "seven" | "stop" | "loud";

/** A worker in its own process; uses the built package, as an application does. */
class Life {
  readonly said: Line[] = [];
  readonly child: ChildProcess;
  readonly ended: Promise<unknown>;

  constructor(env: Record<string, string>) {
    const child = spawn(process.execPath, [SCRIPT], {
      env: { ...process.env, ...env },
      stdio: ["pipe", "pipe", "inherit"],
    });
    createInterface({ input: child.stdout }).on("line", (line) => this.said.push(JSON.parse(line) as Line));
    child.stdin.on("error", () => {}); // the process may be dead already
    this.child = child;
    this.ended = once(child, "exit");
  }

  says(part: Line): Promise<Line> {
    return eventually(
      () => this.said.find((line) => Object.keys(part).every((key) => line[key] === part[key])) ?? false,
      patience,
    );
  }

  /** Sends a line to a handler that waits for one. */
  tell(word: string): void {
    this.child.stdin?.write(`${word}\n`);
  }

  /** Stops it gracefully, handlers included. */
  stop(): void {
    this.child.kill("SIGTERM");
  }

  freeze(): void {
    this.child.kill("SIGSTOP");
  }

  thaw(): void {
    this.child.kill("SIGCONT");
  }

  async kill(): Promise<void> {
    this.child.kill("SIGKILL");
    await this.ended;
  }
}

/** The worker processes of a test, which end with it. */
export class Lives {
  readonly #bench: Bench;
  readonly #all: Life[] = [];

  private constructor(bench: Bench) {
    this.#bench = bench;
  }

  static use(bench: Bench): Lives {
    const lives = new Lives(bench);
    afterEach(async () => {
      for (const life of lives.#all.splice(0)) await life.kill();
    });
    return lives;
  }

  /**
   * @param lock ms; on a busy machine a worker may lose a short lock, and repeat an item
   * @param diesAt failpoint of the store at whose first pass the process ends
   * @param url of Redis, or of a proxy in front of it
   */
  start(mode: Mode, lock = 1_000, diesAt = "", url = this.#bench.redis.url): Life {
    const { namespace } = this.#bench;
    const about = {
      REDIS_URL: url,
      NAMESPACE: namespace,
      QUEUE,
      MODE: mode,
      LOCK: String(lock),
      DIES_AT: diesAt,
    };
    const life = new Life(about);
    this.#all.push(life);
    return life;
  }
}
