import type { Client, JobData } from "@carillon/sdk";
import { eventually, type FaultProxy } from "@carillon/testing";
import { describe, expect, test } from "vitest";
import { COMMIT, PATIENCE, Stand } from "./harness.js";

const stand = Stand.use({ appendonly: true });
const STEP = 100;

interface Scene {
  readonly wire: FaultProxy;
  readonly client: Client;
}

const killRedis = async () => {
  await stand.redis.kill();
  await stand.redis.start();
};

/** Failures of Redis or of the connection during a claim. */
const ACCIDENTS: [what: string, catchUp: "one" | "all", befall: (scene: Scene) => Promise<void>][] = [
  [
    "the connection is cut before Redis got it",
    "all",
    async ({ wire }) => {
      await wire.withhold("question", COMMIT);
      wire.cut();
    },
  ],
  [
    "the connection is cut before the answer came",
    "all",
    async (scene) => {
      await doneWithoutAnswer(scene);
      scene.wire.cut();
    },
  ],
  [
    "Redis is killed before it got it",
    "one",
    async ({ wire }) => {
      await wire.withhold("question", COMMIT);
      await killRedis();
    },
  ],
  [
    "Redis is killed when it had done it, before the answer came",
    "one",
    async (scene) => {
      await doneWithoutAnswer(scene);
      await killRedis();
    },
  ],
  [
    "Redis freezes until the node gives up its connection and asks again on another",
    "one",
    async ({ wire }) => {
      await wire.withhold("question", COMMIT);
      stand.later(() => stand.redis.continue());
      stand.redis.pause();
      wire.release();
      // The first command on the new connection has arrived; the frozen server executes the commit late.
      await wire.asked("hello");
      stand.redis.continue();
    },
  ],
];

async function doneWithoutAnswer({ wire, client }: Scene): Promise<void> {
  const before = (await client.runs.list("t", { limit: 1_000 })).length;
  await wire.withhold("answer", COMMIT);
  await eventually(async () => (await client.runs.list("t", { limit: 1_000 })).length > before, PATIENCE);
}

describe("B1 enqueue and advance are one step", () => {
  test.each(ACCIDENTS)(
    "in mid-claim %s: no duplicate, no silent miss (catch-up %s)",
    async (_what, catchUp, befall) => {
      const wire = await stand.wire();
      await stand.node({ REDIS_URL: wire.url }).running();
      const client = stand.client();
      const start = Math.ceil((await stand.time()) / STEP) * STEP + 3_000;
      const end = start + 1_500;
      const schedule = { every: `${STEP}ms`, start: iso(start), end: iso(end) };
      await client.put({ id: "t", type: "ring", queue: "bells", schedule, overlap: "allow", catchUp });
      await eventually(async () => (await client.runs.list("t")).length >= 3, PATIENCE);

      await befall({ wire, client });
      await eventually(async () => (await client.get("t")).state === "finished", PATIENCE);

      const jobs: { data: JobData }[] = await stand.queue("bells").getJobs();
      const enqueued = jobs.map(({ data }) => data.occurrence.nominal);
      const skipped = (await client.runs.skips("t")).flatMap(({ from, to }) => range(from, to));
      // Each time has exactly one job, or one entry that says why there is none.
      expect([...enqueued, ...skipped].sort((a, b) => a - b)).toEqual(range(start, end));
      if (catchUp === "all") expect(skipped).toEqual([]);
      const runs = await client.runs.list("t", { limit: 1_000 });
      expect(runs.map(({ nominal }) => nominal).sort()).toEqual([...enqueued].sort());
      for (const { data } of jobs)
        expect(data.occurrence.enqueued).toBeGreaterThanOrEqual(data.occurrence.due);
    },
  );
});

function range(from: number, to: number): number[] {
  return Array.from({ length: (to - from) / STEP + 1 }, (_, n) => from + n * STEP);
}

function iso(time: number): string {
  return new Date(time).toISOString();
}
