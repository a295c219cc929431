import { parseTask, type TaskInput } from "@carillon/core";
import { internalsOf } from "@carillon/store/internal";
import type { Redis } from "ioredis";
import { expect, it } from "vitest";
import { onEveryEngine } from "../../../test/helpers.js";
import { Bench, ENTERED, QUEUE, START } from "./bench.js";

/** Schedule, payload, policies and description are each longer than 64 bytes. */
const TASK = {
  id: "t",
  schedule: { cron: "0 9 * * 1-5", timezone: "Europe/Paris", except: [{ cron: "* * 25 12 *" }] },
  payload: { customer: "cus_9s6XKzkNRiz8i3", to: ["accounts@example.com"], subject: "Übersicht für März" },
  timeLimit: "5m",
  retry: { attempts: 3, delay: "1m", backoff: "exponential", max: "10m" },
  description: "Was im letzten Monat verkauft wurde, nach Ländern und Geschäften.",
} satisfies Partial<TaskInput>;

onEveryEngine("the hash of a task with long values", (connection) => {
  const bench = Bench.use(connection);
  const client = () => internalsOf(bench.store).link.client as Redis;
  const key = () => internalsOf(bench.store).keys.queue(QUEUE).task("system/t");
  /** Stores the task without splitting long values. */
  async function storedWhole(): Promise<void> {
    const { fields } = await bench.stored("t");
    for (const field of await client().hkeys(key()))
      if (field.includes(":")) await client().hdel(key(), field);
    await client().hset(key(), Object.fromEntries(fields));
  }

  it("stays in Redis' small encoding, and is read as it was put", async () => {
    await bench.put(TASK);
    const { definition, payloadJson, scheduleJson } = await bench.stored("t");
    expect(definition).toMatchObject(TASK);
    expect([JSON.parse(payloadJson), JSON.parse(scheduleJson)]).toEqual([TASK.payload, TASK.schedule]);
    expect(await bench.encoding(key())).toBe("listpack");
    await bench.clock.advance(3 * 86_400_000);
    await bench.claim("t", "a");
    expect(await bench.encoding(key())).toBe("listpack");
    const jobs = await bench.queue().getJobs(["wait"]);
    expect(jobs.map(({ data }) => data.payload)).toEqual([TASK.payload]);
  });

  it("is not changed by the same definition", async () => {
    const { due } = await bench.put(TASK);
    const before = await bench.stored("t");
    const unchanged = { outcome: "unchanged", state: "scheduled", due };
    expect(await bench.put(TASK)).toMatchObject(unchanged);
    const { generation, fields } = await bench.stored("t");
    expect([generation, fields]).toEqual([before.generation, before.fields]);
  });

  it("keeps nothing of a longer value after an edit", async () => {
    await bench.put(TASK);
    expect(await bench.put({ ...TASK, payload: {} })).toMatchObject({ outcome: "updated" });
    expect((await bench.stored("t")).definition.payload).toEqual({});
    const payload = { text: "x".repeat(1_000) };
    expect(await bench.put({ ...TASK, payload })).toMatchObject({ outcome: "updated" });
    expect((await bench.stored("t")).definition).toMatchObject({ ...TASK, payload });
    expect((await client().hkeys(key())).filter((field) => field.includes(":"))).toEqual([]);
    await bench.put({ id: "t" });
    const { definition } = await bench.stored("t");
    expect(definition).toEqual(
      parseTask({ id: "t", type: "noop", queue: QUEUE, schedule: { every: "10s" } }).definition,
    );
  });

  it("is edited as usual if an older version stored it in one piece", async () => {
    await bench.put(TASK);
    const { due } = await bench.stored("t");
    await storedWhole();
    expect(await bench.put({ ...TASK, priority: 3 })).toMatchObject({ outcome: "updated", due });
    expect((await bench.stored("t")).definition).toMatchObject({ ...TASK, priority: 3 });
  });

  it("has the same form if the task is enqueued at once", async () => {
    const parsed = parseTask({ type: "noop", queue: QUEUE, ...TASK, schedule: { at: START } });
    await bench.store.claims.enqueueNow(parsed, { key: "k", token: "a", node: "test" }, ENTERED);
    expect(await bench.encoding(key())).toBe("listpack");
    expect((await bench.stored("t")).definition.payload).toEqual(TASK.payload);
  });
});
