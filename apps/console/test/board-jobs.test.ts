import { Queue } from "bullmq";
import { afterAll, beforeAll, expect, test } from "vitest";
import { coded } from "../src/errors.js";
import { type Console, startConsole } from "./harness.js";

let console_: Console;
/** What BullMQ has in a queue beside its jobs. */
let keys: string[];
beforeAll(async () => {
  console_ = await startConsole();
  await console_.client.put({ id: "a", type: "t", queue: "q", schedule: { every: "1h" } });
  await console_.client.trigger("a");
  await console_.board.refresh();
  const queue = new Queue("q", { connection: { url: console_.redis.url }, skipMetasUpdate: true });
  keys = Object.keys(queue.keys).filter(Boolean);
  await queue.close();
});
afterAll(() => console_.stop());

const add = (jobId: unknown) =>
  console_.admin("POST", "/queues/api/queues/q/add", { name: "t", data: {}, options: { jobId } });

test("a job cannot be added under a word of BullMQ's, which would brick the queue", async () => {
  expect(keys).toContain("active");
  for (const id of [...keys, "a:b", "12", 12]) {
    const { status, body } = await add(id);
    expect([id, status, body.error?.code]).toEqual([id, 400, "INVALID_OPTION"]);
  }
  const { body } = await console_.admin("GET", "/queues/api/queues");
  expect(body.queues).toMatchObject([{ name: "q", counts: { waiting: 1 } }]);
  expect((await add("mine")).status).toBe(200);
});

test("BullMQ's own keys are no jobs: they can be neither read nor removed as such", async () => {
  for (const key of keys) {
    const read = await console_.admin("GET", `/queues/api/queues/q/${key}`);
    const removed = await console_.admin("PUT", `/queues/api/queues/q/${key}/clean`);
    expect([key, read.status, removed.status]).toEqual([key, 404, 404]);
  }
  expect(console_.log()).not.toContain("a request failed");
});

test("what BullMQ refuses is no trouble with Redis, whatever the job's name", async () => {
  await console_.client.put({ id: "connector-sync", type: "t", queue: "q", schedule: { every: "1h" } });
  const triggered = await console_.client.trigger("connector-sync");
  const run = triggered.outcome === "enqueued" ? triggered.run : "";
  const { status, body } = await console_.admin("PUT", `/queues/api/queues/q/${run}/promote`);
  expect([status, body.error?.code]).toEqual([500, "INTERNAL"]);
  expect(body.error?.message).toContain("is not in the delayed state");
  const locked = new Error(`Job ${run} could not be removed because it is locked by another worker`);
  expect(coded(locked).code).toBe("INTERNAL");
});

test.each([undefined, ["password"]])(
  "data that is nested too deeply is a 400, where %o is hidden",
  async (redact) => {
    const other = await startConsole({ redact });
    await other.client.put({ id: "a", type: "t", queue: "q", schedule: { every: "1h" } });
    const triggered = await other.client.trigger("a");
    const run = triggered.outcome === "enqueued" ? triggered.run : "";
    await other.board.refresh();
    const deep = (levels: number) => `${"[".repeat(levels)}${"]".repeat(levels)}`;
    const task = (levels: number) => `{"type":"t","schedule":{"every":"1h"},"payload":${deep(levels)}}`;
    const answers: Array<[number, string | undefined]> = [];
    for (const levels of [64, 65, 40_000]) {
      for (const { status, body } of [
        await other.api("PUT", "/tasks/q/system/a", task(levels)),
        await other.admin(
          "POST",
          "/queues/api/queues/q/add",
          `{"name":"t","data":{"payload":${deep(levels)}}}`,
        ),
        await other.admin(
          "PATCH",
          `/queues/api/queues/q/${run}/update-data`,
          `{"jobData":{"payload":${deep(levels)}}}`,
        ),
      ]) {
        answers.push([status, body.error?.code]);
      }
    }
    await other.stop();
    const refused = [400, "INVALID_PAYLOAD"];
    expect(answers).toEqual([
      ...[0, 1, 2].map(() => [200, undefined]),
      ...Array.from({ length: 6 }, () => refused),
    ]);
  },
);
