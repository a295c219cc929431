import { Queue } from "bullmq";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, it } from "vitest";
import { harness, task } from "./harness.js";

const bench = harness("shadow", { shared: true });
const { cli, json, refusal } = bench;
const [MINUTE, DAY] = [60_000, 86_400_000];

let queue: Queue;
beforeAll(() => {
  queue = new Queue("bar", { connection: { host: "127.0.0.1", port: bench.redis.port }, prefix: "old" });
});
afterAll(async () => queue.close());

it("takes over from BullMQ, and gives back", async () => {
  const pattern = "0 0 1 1 *";
  await queue.upsertJobScheduler("a", { pattern, tz: "UTC" }, { name: "noop" });
  await bench.client.put(task("a", { schedule: { cron: pattern }, mode: "shadow" }));
  expect((await cli(["list"])).stdout).toMatch(/shadow/);
  expect((await cli(["show", "a"])).stdout).toMatch(/mode +shadow/);

  expect(await refusal(["cutover", "a"])).toMatchObject({ exit: 5, code: "CONFLICT" });
  const args = ["cutover", "a", "--prefix", "old"];
  expect((await cli(args)).stdout).toMatch(
    /^system\/a would fire from \d{4}-01-01T00:00:00Z on\nold: {.*"pattern":"0 0 1 1 \*".*}\n--yes does it\n$/,
  );
  expect(await queue.getJobSchedulersCount()).toBe(1);
  expect(await json([...args, "--yes", "--bullmq", bench.redis.url])).toMatchObject({
    done: true,
    definition: { pattern },
  });
  expect([await queue.getJobSchedulersCount(), await queue.getDelayedCount()]).toEqual([0, 0]);
  expect((await cli(args)).stdout).toMatch(/^system\/a fires from .* on\n$/);
  expect(await bench.client.get("a")).not.toHaveProperty("mode");

  expect((await cli([...args, "--back"])).stdout).toMatch(/^the job scheduler would fire from /);
  expect((await cli([...args, "--back", "--yes"])).stdout).toMatch(/^the job scheduler fires from /);
  expect([await queue.getJobSchedulersCount(), await queue.getDelayedCount()]).toEqual([1, 1]);
  expect(await bench.client.get("a")).toMatchObject({ mode: "shadow" });
});

it("marks what BullMQ fired, and reports what differs", async () => {
  await bench.client.put(task("b", { mode: "shadow", tags: ["moved"] }));
  const report = ["shadow", "report", "b", "--exit-code"];
  expect(await cli(report)).toMatchObject({
    code: 10,
    stdout: expect.stringContaining("nothing was observed"),
  });
  const now = await bench.client.serverTime();
  const redis = new Redis(bench.redis.url);
  for (const id of ["b", "unknown"])
    for (const ago of [DAY, MINUTE])
      await redis.xadd(
        "old:bar:events",
        "*",
        "event",
        "active",
        "jobId",
        `repeat:${id}:${now - ago}`,
        "prev",
        "waiting",
      );
  redis.disconnect();
  const watched = await cli(["shadow", "watch", "-q", "bar", "--prefix", "old", "--once"]);
  expect(watched).toMatchObject({
    code: 0,
    stdout: "marked 2 in bar\n",
    stderr: expect.stringContaining("no task unknown in queue bar"),
  });
  expect((await cli(["observe", "b", "--at", "2h"])).stdout).toBe("observed b\n");
  // They are from before the task.
  expect(await json(["shadow", "report", "--tag", "moved"])).toMatchObject({
    reports: [{ task: { id: "b" }, different: 0 }],
  });
  expect(await refusal(["shadow", "report", "b", "--tag", "moved"])).toMatchObject({ exit: 2, field: "tag" });
});

it("is ended and begun by a resume", async () => {
  await bench.client.put(task("c", { mode: "shadow", enabled: false }));
  await cli(["resume", "c", "--mode", "live"]);
  expect(await bench.client.get("c")).not.toHaveProperty("mode");
  expect(await refusal(["resume", "--tag", "moved", "--all", "--mode", "live"])).toMatchObject({
    field: "mode",
  });
});

it("finds job schedulers whose next job is gone", async () => {
  await queue.upsertJobScheduler("dead", { pattern: "0 0 1 1 *" }, { name: "noop" });
  const [job] = (await queue.getDelayed()).filter(({ id }) => id?.startsWith("repeat:dead:"));
  const redis = new Redis(bench.redis.url);
  await redis.del(`old:bar:${job?.id}`);
  redis.disconnect();
  const { dead } = JSON.parse(
    (await cli(["doctor", "--json", "--bullmq", bench.redis.url, "--prefix", "old"])).stdout,
  );
  expect(dead).toEqual([{ queue: "bar", id: "dead", next: expect.any(Number) }]);
});
