import { operatorOf } from "@carillon/ops";
import { bullPrefix } from "@carillon/sdk";
import { eventually } from "@carillon/testing";
import { Worker as BullWorker } from "bullmq";
import { describe, expect, it } from "vitest";
import { PATIENCE, Stand } from "./harness.js";

const stand = Stand.use();

describe("E2 a child job that takes its process down harms no other", () => {
  it("99 succeed if child 7 exits the process", async () => {
    const client = stand.client();
    const task = { id: "t", type: "fan-out", queue: "bells", schedule: { every: "365d" } };
    await client.put({ ...task, crash: { delay: "1ms" } });
    const { run } = (await client.trigger("t")) as { run: string };
    const lives = [];
    const over = async () => (await client.runs.get(run)).state === "final";
    // Restarts the worker whenever it ends, as a process manager does.
    while (!(await over())) {
      const life = stand.program("test/seeds/dying-worker.mjs", { MODE: "seven" });
      lives.push(life);
      await Promise.race([life.ended, eventually(over, { intervalMs: 50 })]);
    }
    const record = await client.runs.get(run);
    expect(record).toMatchObject({
      outcome: "failed",
      result: { total: 100, succeeded: 99, failed: 1, failures: [{ index: 7 }] },
    });
    const said = lives.flatMap((life) => life.said).filter(({ item }) => item !== undefined);
    expect(new Set(said.map(({ item }) => item)).size).toBe(100);
    const { items } = await operatorOf(client).runs.items({ id: run, status: "failed" });
    expect(items).toMatchObject([
      { index: 7, attempts: lives.length - 1, error: expect.stringContaining("died") },
    ]);
    // The item ended its process each time; no other item was held responsible.
    const deaths = said.filter(({ item }) => item === 7);
    expect(deaths).toHaveLength(lives.length - 1);
    expect(deaths.length).toBeGreaterThanOrEqual(1);
    expect(await client.runs.stats("t")).toMatchObject({ runs: 1, failures: 1, open: 0 });
  });

  it("a job in BullMQ's sandbox of a plain worker harms no other", async () => {
    const client = stand.client();
    await stand.node({ CARILLON_UNSAFE_REDIS: "warn" }).running();
    const worker = new BullWorker("bells", new URL("exiting-processor.mjs", import.meta.url), {
      connection: { url: stand.redis.url, maxRetriesPerRequest: null },
      prefix: bullPrefix(stand.namespace, "bells"),
      concurrency: 4,
    });
    stand.later(() => worker.close());
    const ids = Array.from({ length: 10 }, (_, n) => `t${n}`);
    const schedule = { every: "500ms", anchor: "finish", maxRuns: 2 } as const;
    await client.putMany(ids.map((id) => ({ id, type: "any", queue: "bells", schedule })));
    await eventually(async () => {
      for (const id of ids) {
        const { runs } = await client.runs.journal({ task: id });
        expect(runs.map(({ outcome }) => outcome)).toContain(id === "t7" ? "failed" : "succeeded");
      }
    }, PATIENCE);
    for (const id of ids.filter((one) => one !== "t7"))
      expect(await client.runs.stats(id)).toMatchObject({ failures: 0 });
    expect((await client.get("t7")).lastStatus?.error).toContain("Unexpected exit code");
  });
});
