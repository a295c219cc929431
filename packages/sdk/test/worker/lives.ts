import { afterEach } from "vitest";
import { PATIENCE, Program } from "../../../../test/program.js";
import { type Bench, QUEUE } from "./bench.js";

/** Patience for other processes. */
export const patience = PATIENCE;

export type Mode = "work" | "hang" | "seven" | "stop" | "loud";

/** A worker in its own process; uses the built package, as an application does. */
class Life extends Program {
  constructor(env: Record<string, string>) {
    super("packages/sdk/test/worker/worker-process.mjs", [], env);
  }

  /** Stops it gracefully, handlers included. */
  stop(): void {
    this.signal("SIGTERM");
  }

  freeze(): void {
    this.signal("SIGSTOP");
  }

  thaw(): void {
    this.signal("SIGCONT");
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
