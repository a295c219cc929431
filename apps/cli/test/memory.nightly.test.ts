import { expect, it } from "vitest";
import { harness } from "./harness.js";
import { carillonProcess } from "./helpers.js";

const stage = harness("memory");
/** A heap this small is slow on a busy machine, and speed is not tested here. */
const PATIENCE = 180_000;

it(
  "put --batch holds one chunk at a time: 40 MB of lines in a heap of 64 MB",
  async () => {
    const task = (n: number) => ({
      id: `t${n}`,
      type: "noop",
      queue: "bar",
      schedule: { every: "1h" },
      payload: { pad: "x".repeat(3_000) },
    });
    // Repeats the same thousand tasks, because the test is about the client's memory, not the server's.
    const thousand = Array.from({ length: 1_000 }, (_, n) => `${JSON.stringify(task(n))}\n`).join("");
    const { code, stdout, stderr } = await carillonProcess(["put", "--batch"], {
      // Node 24 needs 40 MB for itself and a chunk.
      env: { ...stage.env, NODE_OPTIONS: "--max-old-space-size=64" },
      input: Array.from({ length: 13 }, () => thousand),
    });
    expect(code, stderr).toBe(0);
    expect(stdout).toContain("13000 tasks: 1000 created, 0 updated, 12000 unchanged");
  },
  PATIENCE,
);

it(
  "next --batch buffers neither input nor output: 30 MB each in a heap of 40 MB",
  async () => {
    // 1,000 bytes to read and 1,000 to write.
    const from = "2026-01-01T00:00:00Z";
    const line = `${JSON.stringify({ expr: "10s", from, count: 40, id: "x".repeat(920) })}\n`;
    const input = Array.from({ length: 30 }, () => line.repeat(1_000));
    const env = { NODE_OPTIONS: "--max-old-space-size=40" };
    const { code, stdout } = await carillonProcess(["next", "--batch"], { env, input });
    expect(code).toBe(0);
    expect(stdout.split("\n")).toHaveLength(30_001);
  },
  PATIENCE,
);
