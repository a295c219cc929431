import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { eventually } from "@carillon/testing";

export const MAIN = fileURLToPath(new URL("../dist/main.js", import.meta.url));

export type Entry = Record<string, unknown> & { level: number; msg: string };

/** One spawned `carillon-scheduler`, its log read line by line. */
export class Node {
  readonly log: Entry[] = [];
  readonly ended: Promise<[code: number | null, signal: string | null]>;
  readonly #child: ChildProcess;

  /** Sets no Carillon variables but the given ones, and listens on any free port. */
  constructor(env: Record<string, string>) {
    const clean = Object.entries(process.env).filter(([name]) => !/^(CARILLON_|REDIS_)/.test(name));
    this.#child = spawn(process.execPath, [MAIN], {
      env: { ...Object.fromEntries(clean), CARILLON_PORT: "0", ...env },
      stdio: ["ignore", "pipe", "inherit"],
    });
    running.add(this);
    this.ended = once(this.#child, "close") as Promise<[number | null, string | null]>;
    void this.ended.then(() => running.delete(this));
    const lines = createInterface({ input: this.#child.stdout as never });
    // Every line must be JSON, as promised to log collectors.
    lines.on("line", (line) => this.log.push(JSON.parse(line) as Entry));
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  async logged(msg: string | RegExp): Promise<Entry> {
    const matches = (entry: Entry) => (typeof msg === "string" ? entry.msg === msg : msg.test(entry.msg));
    return eventually(() => this.log.find(matches) ?? false);
  }

  async get(path: string, method = "GET"): Promise<{ status: number; text: string }> {
    const { port } = await this.logged("listening");
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { method });
    return { status: response.status, text: await response.text() };
  }

  async ready(wanted: 200 | 503): Promise<{ ready: boolean; why?: string }> {
    const answer = await eventually(async () => {
      const { status, text } = await this.get("/ready");
      return status === wanted && text;
    });
    return JSON.parse(answer as string);
  }

  /** The value of one metric, labels as in the exposition: `name{a="b"}`. */
  async metric(name: string): Promise<number | undefined> {
    const { text } = await this.get("/metrics");
    const line = text.split("\n").find((candidate) => candidate.startsWith(`${name} `));
    return line === undefined ? undefined : Number(line.slice(name.length + 1));
  }
}

const running = new Set<Node>();

/** Kills nodes that a failed test left running; for `afterEach`. */
export async function killNodes(): Promise<void> {
  const left = [...running];
  for (const node of left) node.kill("SIGKILL");
  await Promise.all(left.map((node) => node.ended));
}
