import { fileURLToPath } from "node:url";
import { eventually } from "@carillon/testing";
import { type Line, Program } from "../../../test/program.js";

export const MAIN = fileURLToPath(new URL("../bin/carillon-scheduler.js", import.meta.url));

type Entry = Line & { level: number; msg: string };

/** One spawned `carillon-scheduler`, its log read line by line. */
export class Node extends Program {
  /** Its exit code and signal. */
  readonly exit = this.ended.then(({ code, signal }) => [code, signal]);

  /** Listens on any free port. */
  constructor(env: Record<string, string>) {
    super("apps/scheduler/bin/carillon-scheduler.js", [], { CARILLON_PORT: "0", ...env });
    running.add(this);
    void this.ended.then(() => running.delete(this));
  }

  get log(): Entry[] {
    return this.said as Entry[];
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
  await Promise.all([...running].map((node) => node.kill()));
}
