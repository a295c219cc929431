import type { TaskInput } from "@carillon/sdk";
import type { ConditionName } from "@carillon/sdk/conditions";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Console, ownConsole } from "./harness.js";

const console_ = ownConsole();
afterEach(async () => {
  const { tasks } = await console_.client.list({ limit: 1_000 });
  await Promise.all(tasks.map((task) => console_.client.delete(task)));
});

const api: Console["api"] = (...asked) => console_.api(...asked);
const HOUR = 3_600_000;
const SOON = Math.floor(Date.now() / HOUR) * HOUR + 2 * HOUR;

const task = (id: string, more: Partial<TaskInput> = {}): TaskInput => ({
  id,
  type: "t",
  queue: "q",
  schedule: { every: "1h" },
  ...more,
});

async function named(state?: "scheduled" | "paused"): Promise<string> {
  const { tasks } = await console_.client.list({ state });
  return tasks
    .map(({ id }) => id)
    .sort()
    .join("");
}

describe("many tasks at once", () => {
  beforeEach(async () => {
    await console_.client.putMany([
      task("a", { tags: ["ops"] }),
      task("b", { tags: ["ops"], owner: "acme" }),
      task("c", { queue: "other", owner: "acme" }),
    ]);
  });

  test("each condition selects as in the list, and is refused next to names", async () => {
    await api("POST", "/tasks/q/system/a/pause", {});
    const values: Record<ConditionName, unknown> = {
      queue: "q",
      owner: "acme",
      tag: "ops",
      set: "billing",
      state: "paused",
      outcome: ["failed", "lost"],
      failing: true,
      overdue: true,
      neverRan: true,
      search: "ACME/",
      deliveries: true,
    };
    const calls = {
      pause: {},
      resume: {},
      trigger: {},
      delete: {},
      tag: { add: ["x"] },
      backfills: { from: SOON - 3 * HOUR, to: SOON - 2 * HOUR },
    };
    for (const [call, more] of Object.entries(calls)) {
      const path = call === "backfills" ? "/backfills" : `/tasks/${call}`;
      const dry = { ...more, dryRun: true };
      for (const [name, value] of Object.entries(values)) {
        const both = await api("POST", path, { tasks: ["a"], [name]: value, ...dry });
        expect([call, name, both.status, both.body.error?.field]).toEqual([call, name, 400, name]);
        if (name === "state" || name === "deliveries") continue;
        const state = { pause: "&state=scheduled", resume: "&state=paused" }[call] ?? "";
        const listed = await api("GET", `/tasks?${name}=${String(value)}${state}`);
        const { status, body } = await api("POST", path, { [name]: value, ...dry });
        expect([call, name, status, body.count]).toEqual([
          call,
          name,
          200,
          (listed.body.tasks as unknown[]).length,
        ]);
      }
    }
    expect(await named("paused")).toBe("a");
  });

  test("a queue may have any of these names", async () => {
    for (const queue of ["pause", "resume", "trigger", "tag", "delete"]) {
      expect(
        (await api("PUT", `/tasks/${queue}/system/x`, { type: "t", schedule: { every: "1h" } })).status,
      ).toBe(201);
    }
  });
});

describe("backfills", () => {
  const [to, from] = [SOON - 3 * HOUR, SOON - 5 * HOUR];
  const BACKFILLS = "/tasks/q/system/a/backfills";
  beforeEach(() => console_.client.put(task("a")));

  test("are started, read and cancelled", async () => {
    const asked = { from, to, overlap: "queue-all", every: "10s" };
    const put = await api("POST", BACKFILLS, asked);
    const { id } = put.body as { id: string };
    expect([put.status, put.body, put.headers.get("location")]).toEqual([
      202,
      { id: expect.any(String), total: 3 },
      `/api/v1/backfills/${id}`,
    ]);
    const { body } = await api("GET", `/backfills/${id}`);
    expect(body).toMatchObject({
      id,
      from,
      to,
      total: 3,
      enqueued: 0,
      skipped: 0,
      every: 10_000,
      overlap: "queue-all",
      by: "admin",
      task: { queue: "q", owner: "system", id: "a" },
      state: "running",
    });
    expect((await api("POST", `/backfills/${id}/cancel`)).body).toEqual({ changed: true });
    expect((await api("POST", `/backfills/${id}/cancel`)).body).toEqual({ changed: false });
    expect((await api("GET", `/backfills/${id}`)).body["state"]).toBe("cancelled");
  });
});

test("validate shows the due time if a jitter changes it", async () => {
  const schedule = { every: "1h", jitter: "10m" };
  const { body } = await api("POST", "/tasks/validate", { schedule, id: "a", count: 1 });
  const [next] = body["next"] as { nominal: number; due: number }[];
  const put = await api("POST", "/tasks", task("a", { schedule }));
  expect(put.body["nextExecution"]).toBe(next?.due);
  expect(next?.due).toBeGreaterThan(next?.nominal ?? 0);
});
