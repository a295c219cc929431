import { Client, defineTask, readEnvironment, type TaskRef, Worker } from "@carillon/sdk";
import { eventually } from "@carillon/testing";
import { expect } from "vitest";
import { z } from "zod";
import { SILENT } from "../helpers.js";
import { type Ended, PATIENCE, Program } from "../seeds/harness.js";

type Variables = Record<string, string>;

/** Environment variables about Redis of each program, its only configuration. */
export interface Environments {
  node: Variables;
  app: Variables;
}

const EVERY = 400;
const BELL: TaskRef = { id: "bell", queue: "bells" };
export const TASK = {
  ...BELL,
  type: "ring",
  schedule: { every: `${EVERY}ms` },
  overlap: "allow",
  catchUp: "all",
  payload: { tune: "prelude" },
  // A failover may lose the end of a run, which then counts as a crash.
  crash: { delay: "1ms" },
};
const TOKEN = "a-token-for-this-test";

/** A whole installation on one Redis: node, console and CLI as processes, a client, a worker. */
export class Site {
  readonly client: Client;
  readonly worker: Worker;
  readonly #env: Environments;
  readonly #node: Program;
  readonly #console: Program;
  /** Nominal times of the bell that the worker handled. */
  readonly #rung: number[] = [];

  private constructor(env: Environments) {
    this.#env = env;
    this.#node = new Program("apps/scheduler/bin/carillon-scheduler.js", [], {
      CARILLON_PORT: "0",
      ...env.node,
    });
    this.#console = openConsole(env.app);
    const ring = defineTask("ring", {
      queue: "bells",
      payload: z.object({ tune: z.string() }),
      handler: async (_payload, { occurrence }) => {
        this.#rung.push(occurrence.nominal);
      },
    });
    this.client = new Client(readEnvironment(env.app));
    this.worker = new Worker({
      ...readEnvironment(env.app),
      types: [ring],
      concurrency: 5,
      lockDuration: 3_000,
      stalledInterval: 500,
      logger: SILENT,
    });
    this.worker.on("error", () => {});
  }

  static async open(env: Environments): Promise<Site> {
    const site = new Site(env);
    try {
      await Promise.all([
        site.#node.running(),
        site.#console.says({ msg: "listening" }),
        site.worker.start(),
      ]);
    } catch (error) {
      await site.close();
      throw error;
    }
    return site;
  }

  /** The life of a task, through every interface; `midway` runs while it rings. */
  async story(midway: () => Promise<void> = async () => {}): Promise<void> {
    expect(await this.cli(["put"], JSON.stringify(TASK))).toMatchObject({ outcome: "created" });
    await this.#ringsOnce();
    await midway();
    await this.#ringsOnce();
    await this.client.pause(BELL);
    await this.#nothingLostNothingTwice();
    const [last] = await this.client.runs.list(BELL, { limit: 1 });
    const when = new Date(last?.nominal ?? 0).toISOString();
    expect(await this.cli(["explain", "bell", when])).toMatchObject({ verdict: "enqueued" });
    expect(await this.console("/api/v1/tasks/bells/system/bell")).toMatchObject({ state: "paused" });
    // The board looks for new queues from time to time.
    await eventually(async () => {
      const board = await this.console("/queues/api/queues?activeQueue=bells");
      expect(board).toMatchObject({ queues: [{ name: "bells" }] });
    }, PATIENCE);
    await this.cli(["rm", "bell"]);
    expect(await this.client.list()).toMatchObject({ tasks: [] });
  }

  /** Waits for three more occurrences after now, by the clock of the jobs. */
  async #ringsOnce(): Promise<void> {
    const seen = Math.max(0, ...this.#rung);
    await eventually(() => expect(Math.max(...this.#rung)).toBeGreaterThan(seen + 2 * EVERY), PATIENCE);
  }

  /** By Redis: each nominal time has exactly one run, and none is missing. */
  async #nothingLostNothingTwice(): Promise<void> {
    const runs = await eventually(async () => {
      const all = await this.client.runs.list(BELL, { limit: 1_000 });
      expect(all.filter(({ state }) => state !== "final")).toEqual([]);
      return all;
    }, PATIENCE);
    const nominals = runs.map(({ nominal }) => nominal).sort((a, b) => a - b);
    const first = nominals[0] ?? 0;
    expect(nominals).toEqual(nominals.map((_, index) => first + index * EVERY));
    expect(await this.client.runs.skips(BELL)).toEqual([]);
    expect(nominals.filter((nominal) => !this.#rung.includes(nominal))).toEqual([]);
  }

  /** Output of a command that must succeed. */
  async cli(args: readonly string[], input = "", env = this.#env.app): Promise<unknown> {
    const { code, stdout, stderr } = await this.tryCli(args, input, env);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    return stdout === "" ? undefined : JSON.parse(stdout);
  }

  async tryCli(args: readonly string[], input = "", env = this.#env.app): Promise<Ended> {
    return new Program("apps/cli/bin/carillon.js", ["--json", ...args], env).toItsEnd(input);
  }

  async console(path: string, console = this.#console): Promise<unknown> {
    const { url } = await console.says({ msg: "listening" });
    return eventually(async () => {
      const answer = await fetch(`${url}${path}`, {
        headers: { authorization: `Bearer ${TOKEN}` },
        signal: AbortSignal.timeout(60_000),
      });
      expect(answer.status).toBe(200);
      return (await answer.json()) as object;
    }, PATIENCE);
  }

  async close(): Promise<void> {
    await this.worker.stop({ within: 2_000 }).catch(() => {});
    await this.client.close();
    await Promise.all([this.#node.kill(), this.#console.kill()]);
  }
}

export function openConsole(env: Variables): Program {
  return new Program("apps/console/bin/carillon-console.js", [], {
    CARILLON_CONSOLE_PORT: "0",
    CARILLON_TOKEN: TOKEN,
    ...env,
  });
}
