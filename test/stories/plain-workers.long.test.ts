import { compileSchedule, type OverlapPolicy, type Run } from "@carillon/core";
import { internalsOf } from "@carillon/store/internal";
import { type TestKit, testKit } from "@carillon/testing";
import { afterEach, describe, expect, it } from "vitest";

const QUEUE = "bells";
const SCHEDULE = { every: "10s" };

/** An application whose workers know nothing of Carillon. Jobs take 25 s and are due every 10 s. */
describe("a plain BullMQ worker, jobs longer than their interval", () => {
  let kit: TestKit;
  afterEach(async () => {
    await kit.close();
  });

  async function watch(overlap: OverlapPolicy, options: { maxQueued?: number } = {}): Promise<Run[]> {
    kit = await testKit({ queues: [QUEUE], worker: false });
    await kit.bullWorker(QUEUE, async () => kit.sleep("25s"), { concurrency: 10 });
    await kit.client.put({ id: "t", type: "noop", queue: QUEUE, schedule: SCHEDULE, overlap, ...options });
    await kit.advance("5m");
    const runs = await kit.client.runs.list("t", { limit: 1_000 });
    await promisesHold(overlap);
    return runs.sort((a, b) => a.enqueued - b.enqueued);
  }

  /** Checks run records, skips and task: each time decided once, none missing, no two runs at once. */
  async function promisesHold(overlap: OverlapPolicy): Promise<void> {
    const [runs, skips, stored] = await Promise.all([
      kit.client.runs.list("t", { limit: 1_000 }),
      kit.client.runs.skips("t"),
      kit.store.tasks.get({ queue: QUEUE, owner: "system", id: "t" }),
    ]);
    const decided = [...runs, ...(stored?.pending ?? [])].map(({ nominal }) => nominal);
    for (const { from, to } of skips) for (let at = from; at <= to; at += 10_000) decided.push(at);
    const schedule = compileSchedule(SCHEDULE);
    const due: number[] = [];
    const start = Date.parse("2026-01-01T00:00:00Z");
    for (let at = schedule.next(start); at !== undefined && at <= kit.now; at = schedule.next(at))
      due.push(at);
    expect(decided.sort((a, b) => a - b)).toEqual(due);
    for (const run of runs) expect(run.enqueued).toBeGreaterThanOrEqual(run.due);
    if (overlap === "allow") return;
    // BullMQ knows when a job ended; the record of a plain worker's run is written later.
    const ends = await internalsOf(kit.store).link.ask((client) =>
      Promise.all(
        runs.map(({ id }) => client.hget(internalsOf(kit.store).keys.queue(QUEUE).job(id), "finishedOn")),
      ),
    );
    const spans = runs.map(
      ({ enqueued }, i) => [enqueued, Number(ends[i] ?? Number.POSITIVE_INFINITY)] as const,
    );
    for (const [i, [from, to]] of spans.entries()) {
      for (const [other, end] of spans.slice(i + 1)) expect(from >= end || other >= to).toBe(true);
    }
  }

  const seconds = (runs: readonly Run[]) => runs.map(({ nominal }) => (nominal % 3_600_000) / 1_000);

  it("skip: an occurrence that is due during a run is skipped", async () => {
    expect(seconds(await watch("skip"))).toEqual([10, 40, 70, 100, 130, 160, 190, 220, 250, 280]);
  });

  it("allow: every occurrence is enqueued in time", async () => {
    expect(await watch("allow")).toHaveLength(30);
  });

  it("queue-one: the first occurrence waits, the others are skipped", async () => {
    const runs = await watch("queue-one");
    expect(seconds(runs).slice(0, 4)).toEqual([10, 20, 40, 60]);
    // The next run starts within a second of the end, which nothing reported.
    const [first, second] = runs as [Run, Run];
    expect((second.enqueued - first.enqueued) / 1_000).toBeLessThanOrEqual(26.5);
  });

  it("queue-all: all wait in order, up to the limit", async () => {
    const runs = await watch("queue-all", { maxQueued: 3 });
    expect(seconds(runs).slice(0, 5)).toEqual([10, 20, 30, 40, 50]);
  });

  it("cancel-running: the newest waits for the end of a run that cannot be cancelled", async () => {
    const runs = await watch("cancel-running");
    expect(seconds(runs).slice(0, 3)).toEqual([10, 30, 50]);
    expect(runs[0]).toMatchObject({ outcome: "succeeded", cancel: { by: expect.any(String) } });
  });
});
