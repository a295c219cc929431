import { operatorOf } from "@carillon/ops";
import { Client, defineTask, type TaskInput } from "@carillon/sdk";
import { storeOf } from "@carillon/sdk/internal";
import { freePort } from "@carillon/testing";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { z } from "zod";

const TYPE = defineTask("report", {
  queue: "reports",
  payload: z.object({ tenant: z.string() }),
  handler: () => {},
});
const TASK: TaskInput = { id: "t", type: "report", queue: "reports", schedule: { every: "1h" } };
const PAYLOAD = { tenant: "acme" };

let client: Client;
beforeAll(async () => {
  client = new Client({ connection: `redis://127.0.0.1:${await freePort()}`, connectTimeout: 200 });
});
afterAll(() => client.close());

/** Faults of the caller, which must not be reported as an unavailable Redis. For operations: apps/console/test/each-operation. */
const faults: [what: string, code: string, act: (client: Client) => Promise<unknown>][] = [
  ["put a task", "INVALID_TASK", (c) => c.put({ ...TASK, catchup: "all" } as never)],
  ["put options", "INVALID_OPTION", (c) => c.put(TASK, { ifRevisoin: "x" } as never)],
  ["putMany", "INVALID_TASK", (c) => c.putMany([TASK, TASK])],
  ["update's change", "INVALID_OPTION", (c) => c.update("t", "x" as never)],
  ["update's name", "INVALID_NAME", (c) => c.update("a:b", (task) => task)],
  ["validate count", "INVALID_OPTION", (c) => c.validate(TASK, { count: -1 })],
  ["validate from", "INVALID_OPTION", (c) => c.validate(TASK, { from: Number.NaN })],
  ["get", "INVALID_NAME", (c) => c.get("a:b")],
  ["list limit", "INVALID_OPTION", (c) => c.list({ limit: 0 })],
  ["list limt", "INVALID_OPTION", (c) => c.list({ limt: 1 } as never)],
  ["list cursor", "INVALID_OPTION", (c) => c.list({ cursor: 5 as never })],
  ["list queue", "INVALID_NAME", (c) => c.list({ queue: "a b" })],
  ["count", "INVALID_NAME", (c) => c.count({ queue: "a b" })],
  ["delete", "INVALID_NAME", (c) => c.delete("a:b")],
  ["pause note", "INVALID_OPTION", (c) => c.pause("t", { note: 5 as never })],
  ["pause by", "INVALID_OPTION", (c) => c.pause("t", { by: 5 as never })],
  ["resume missed", "INVALID_OPTION", (c) => c.resume("t", { missed: "then" as never })],
  ["resume by", "INVALID_OPTION", (c) => c.resume("t", { by: 5 as never })],
  ["trigger overlap", "INVALID_OPTION", (c) => c.trigger("t", { overlap: "x" as never })],
  [
    "enqueue at and delay",
    "INVALID_OPTION",
    (c) => c.enqueue(TYPE, PAYLOAD, { at: "2030-01-01T00:00:00Z", delay: 1 }),
  ],
  ["enqueue at", "INVALID_OPTION", (c) => c.enqueue(TYPE, PAYLOAD, { at: "soon" })],
  ["enqueue delay", "INVALID_OPTION", (c) => c.enqueue(TYPE, PAYLOAD, { delay: "5 mins" })],
  ["enqueue payload", "INVALID_PAYLOAD", (c) => c.enqueue(TYPE, { tenant: 5 } as never)],
  ["enqueue id", "INVALID_NAME", (c) => c.enqueue(TYPE, PAYLOAD, { id: "a:b" })],
  ["enqueue priority", "INVALID_TASK", (c) => c.enqueue(TYPE, PAYLOAD, { priority: -1 })],
  ["runs", "INVALID_OPTION", (c) => c.runs.list("t", { limit: 0 })],
  ["run", "RUN_NOT_FOUND", (c) => c.runs.get("x")],
  ["cancel", "INVALID_OPTION", (c) => c.runs.cancel("t@0.a", { by: 5 as never })],
  ["journal from", "INVALID_OPTION", (c) => c.runs.journal({ task: "t", from: "soon" })],
  ["journal from and to", "INVALID_OPTION", (c) => c.runs.journal({ task: "t", from: 2, to: 1 })],
  ["journal outcome", "INVALID_OPTION", (c) => c.runs.journal({ task: "t", outcome: "fine" as never })],
  ["journal cursor", "INVALID_OPTION", (c) => c.runs.journal({ task: "t", cursor: "nonsense" })],
  ["stats", "INVALID_NAME", (c) => c.runs.stats("a:b")],
  ["skips", "INVALID_NAME", (c) => c.runs.skips("a:b")],
];

it.each(faults)("a bad argument is reported also when Redis is down: %s", async (_what, code, act) => {
  await expect(act(client)).rejects.toMatchObject({ code });
});

it("a put of a type that only workers know waits for Redis once", async () => {
  const { registry } = storeOf(client);
  const rules = vi.spyOn(registry, "rules");
  await expect(client.put(TASK)).rejects.toMatchObject({ code: "REDIS_UNAVAILABLE" });
  await expect(client.putMany([TASK])).rejects.toThrow(/^Redis cannot be reached/);
  expect(rules).not.toHaveBeenCalled();
});

it("good arguments report that Redis is down", async () => {
  const upcoming = operatorOf(client).occurrences.upcoming({ within: "1h" });
  await expect(upcoming).rejects.toMatchObject({ code: "REDIS_UNAVAILABLE" });
});
