import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect } from "vitest";

/** Runs each bench with a small load. Its figures must be within a wide band, because machines differ and are busy. */
export const BANDS: Record<string, Record<string, [least: number, most: number]>> = {
  burst: {
    "occurrences a second, as a share of addBulk's": [0.01, 10],
    "Redis CPU of an occurrence, times addBulk's": [0.2, 20],
  },
  scale: { "bytes of a task": [200, 700], "claim, times as long as among 1,000": [0.1, 10] },
  capacity: {
    "memory of tasks, runs and jobs together, relative to the formula": [0.5, 1.5],
    "slots that are as Redis computes them": [100, 100],
    "connections that are as on the page": [4, 4],
  },
  idle: {},
  trips: { "round trips of a claim": [1, 20] },
  resume: { "backlog drained, as a share of addBulk's rate": [0.001, 10] },
  sustained: { "highest rate, times Job Schedulers', empty": [0.4, 40] },
  life: { "drain: recorded": [1, 1], "occurrences doubled": [0, 0], "occurrences missed": [0, 20] },
  cluster: {
    "share of the occurrences that came, least of all rounds": [1, 1],
    "busiest master's share of the CPU of all, times an even share": [1, 3],
  },
  console: { "list, p99 ms": [0.1, 5_000], "search, p99 ms": [0.1, 5_000], "ticks, p99 ms": [0.1, 5_000] },
  plan: { "plan of 5,000 tasks, s": [0.001, 60] },
};

interface Report {
  bench: string;
  targets: { metric: string; value: number; target: string; pass: boolean }[];
}

export async function staysWithinItsBands(bench: string): Promise<void> {
  const file = fileURLToPath(new URL(`../../scripts/bench/${bench}.mjs`, import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [file, "--smoke", "--json"]);
  const report = JSON.parse(stdout.trimEnd().split("\n").at(-1) as string) as Report;
  expect(report.bench).toBe(bench);
  expect(report.targets.length).toBeGreaterThan(0);
  for (const [metric, [least, most]] of Object.entries(BANDS[bench] ?? {})) {
    const found = report.targets.find((one) => one.metric === metric);
    expect(found?.value, metric).toBeGreaterThanOrEqual(least);
    expect(found?.value, metric).toBeLessThanOrEqual(most);
  }
}
