import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, writeFile } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { eventually, freePort } from "@carillon/testing";
import { stringify } from "yaml";
import { guardProcess, releaseProcess, scratchDir } from "../../packages/testing/src/scratch.js";

/**
 * Path of Prometheus: `CARILLON_PROMETHEUS`, else `prometheus` on PATH, installed first if apt-get may do that.
 * Undefined: there is none.
 */
export function prometheusBinary(): string | undefined {
  const named = process.env["CARILLON_PROMETHEUS"];
  if (named) return named;
  const found = onPath("prometheus");
  if (found || !onPath("apt-get")) return found;
  const script = "apt-get update -q; apt-get install -y --no-install-recommends prometheus";
  const shell = process.getuid?.() === 0 ? ["sh"] : ["sudo", "-n", "sh"];
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  spawnSync(shell[0] as string, [...shell.slice(1), "-c", script], { env, stdio: "ignore" });
  return onPath("prometheus");
}

function onPath(name: string): string | undefined {
  const folders = (process.env["PATH"] ?? "").split(delimiter).filter(Boolean);
  return folders.map((folder) => join(folder, name)).find((file) => existsSync(file));
}

interface ActiveAlert {
  readonly state: "pending" | "firing";
  readonly labels: Readonly<Record<string, string>>;
}

/** A real Prometheus that scrapes and evaluates twice a second. */
export class Prometheus {
  readonly #child: ChildProcess;
  readonly #url: string;

  private constructor(child: ChildProcess, url: string) {
    this.#child = child;
    this.#url = url;
  }

  /**
   * @param ports of its targets on 127.0.0.1
   * @param every interval of its scrapes, which end after the same time
   */
  static async start(
    binary: string,
    rules: string,
    ports: readonly number[],
    every = "500ms",
  ): Promise<Prometheus> {
    const dir = await mkdtemp(join(scratchDir(), "prometheus-"));
    const port = await freePort();
    const config = {
      global: { scrape_interval: every, scrape_timeout: every, evaluation_interval: "500ms" },
      rule_files: ["rules.yml"],
      scrape_configs: [
        { job_name: "carillon", static_configs: [{ targets: ports.map((one) => `127.0.0.1:${one}`) }] },
      ],
    };
    await writeFile(join(dir, "prometheus.yml"), stringify(config));
    await writeFile(join(dir, "rules.yml"), rules);
    const options = {
      "config.file": join(dir, "prometheus.yml"),
      "storage.tsdb.path": join(dir, "data"),
      "web.listen-address": `127.0.0.1:${port}`,
      "log.level": "error",
    };
    const args = Object.entries(options).map(([name, value]) => `--${name}=${value}`);
    const child = spawn(binary, args, { stdio: ["ignore", "ignore", "inherit"] });
    if (child.pid !== undefined) guardProcess(child.pid);
    const prometheus = new Prometheus(child, `http://127.0.0.1:${port}`);
    await eventually(async () => {
      if (child.exitCode !== null) throw new Error(`Prometheus ended with ${child.exitCode}.`);
      return (await fetch(`${prometheus.#url}/-/ready`)).ok;
    });
    return prometheus;
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode === null) {
      const exit = once(this.#child, "exit");
      this.#child.kill("SIGKILL");
      await exit;
    }
    if (this.#child.pid !== undefined) releaseProcess(this.#child.pid);
  }

  /**
   * Evaluates an expression.
   * @throws if it is not valid
   */
  async query(
    expression: string,
  ): Promise<readonly { metric: Record<string, string>; value: [number, string] }[]> {
    const { result } = await this.#get(`query?query=${encodeURIComponent(expression)}`);
    return result;
  }

  /** Labels of each alert that fires. */
  async firing(): Promise<readonly ActiveAlert["labels"][]> {
    const { alerts } = (await this.#get("alerts")) as { alerts: ActiveAlert[] };
    return alerts.filter(({ state }) => state === "firing").map(({ labels }) => labels);
  }

  // biome-ignore lint/suspicious/noExplicitAny: answers of Prometheus
  async #get(path: string): Promise<any> {
    const response = await fetch(`${this.#url}/api/v1/${path}`);
    const { data, error } = (await response.json()) as { data: unknown; error?: string };
    if (error !== undefined) throw new Error(`Prometheus: ${error}: ${path}`);
    return data;
  }
}
