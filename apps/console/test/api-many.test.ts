import { type AnswerTo, operatorOf } from "@carillon/ops";
import type { TaskInput } from "@carillon/sdk";
import type { ConditionName } from "@carillon/sdk/conditions";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type Console, OPERATOR, startConsole, VIEWER } from "./harness.js";

type Upcoming = AnswerTo<"occurrences.upcoming">["upcoming"][number];

let console_: Console;
beforeAll(async () => {
  console_ = await startConsole();
});
afterAll(() => console_.stop());
afterEach(async () => {
  const { tasks } = await console_.client.list({ limit: 1_000 });
  await Promise.all(tasks.map((task) => console_.client.delete(task)));
  await operatorOf(console_.client).types.allow({ types: [] });
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

  test("are paused and resumed", async () => {
    const paused = await api("POST", "/tasks/pause", { tag: "ops", note: "down" });
    expect([paused.status, paused.body]).toMatchObject([200, { count: 2 }]);
    expect(await named("paused")).toBe("ab");
    expect((await console_.client.get("a")).paused).toMatchObject({ note: "down", by: "admin" });
    expect((await api("POST", "/tasks/pause", { queue: "q" })).body).toMatchObject({ count: 0 });
    expect((await api("POST", "/tasks/resume", { owner: "acme", missed: "catch-up" })).body).toMatchObject({
      count: 1,
    });
    expect((await api("POST", "/tasks/resume", { tag: "ops" })).body).toMatchObject({ count: 1 });
    expect(await named("paused")).toBe("");
  });

  test("are resumed by the note of their pause, after a dry run", async () => {
    await api("POST", "/tasks/q/system/a/pause", { note: "retired" });
    await api("POST", "/tasks/pause", { tag: "ops", note: "INC-43" });
    const { body } = await api("POST", "/tasks/resume", { tag: "ops", dryRun: true });
    expect(body).toMatchObject({
      count: 2,
      sample: [
        { id: "b", paused: { note: "INC-43" } },
        { id: "a", paused: { by: "admin", note: "retired" } },
      ],
    });
    expect((await api("POST", "/tasks/resume", { tag: "ops", note: "INC-43" })).body).toMatchObject({
      count: 1,
    });
    expect(await named("paused")).toBe("a");
    expect((await api("POST", "/tasks/delete", { tag: "ops", dryRun: true })).body).toMatchObject({
      count: 2,
    });
    expect(await named()).toBe("abc");
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

  test("are planned before they are resumed", async () => {
    await api("POST", "/tasks/pause", { tag: "ops" });
    const { status, body } = await api("POST", "/tasks/resume-plan", { tag: "ops" });
    expect([status, body]).toMatchObject([200, { tasks: 2, owed: { tasks: 0, count: 0, exact: true } }]);
    const wrong = await api("POST", "/tasks/resume-plan", { tag: "ops", missed: "all" });
    expect([wrong.status, wrong.body.error?.field]).toEqual([400, "missed"]);
    expect(await named("paused")).toBe("ab");
    const viewer = { authorization: `Bearer ${VIEWER}` };
    const plan = await api("POST", "/tasks/resume-plan", { tag: "ops" }, viewer);
    expect([plan.status, plan.body]).toMatchObject([200, { tasks: 2 }]);
    for (const more of [{}, { dryRun: true }]) {
      expect((await api("POST", "/tasks/resume", { tag: "ops", ...more }, viewer)).status).toBe(403);
    }
    const resumed = await api("POST", "/tasks/resume", { tag: "ops", missed: "all", perMinute: 10 });
    expect(resumed.body).toMatchObject({ count: 2, refused: { count: 0 } });
    expect(await named("paused")).toBe("");
  });

  test("one task is moved to another queue", async () => {
    const moved = await api("POST", "/tasks/q/system/a/move", { to: "other" });
    expect([moved.status, moved.body]).toEqual([
      200,
      { task: { queue: "other", owner: "system", id: "a" }, changed: true },
    ]);
    expect((await api("GET", "/tasks/other/system/a")).body).toMatchObject({
      state: "scheduled",
      tags: ["ops"],
    });
    expect((await api("GET", "/tasks/q/system/a")).status).toBe(404);
    const operator = { authorization: `Bearer ${OPERATOR}` };
    expect((await api("POST", "/tasks/other/system/a/move", { to: "q" }, operator)).status).toBe(403);
    for (const [body, field] of [
      [{}, "to"],
      [{ to: "a b" }, "to"],
      [{ to: "q", wait: "x" }, "wait"],
    ] as const) {
      const refused = await api("POST", "/tasks/other/system/a/move", body);
      expect([refused.status, refused.body.error?.field]).toEqual([400, field]);
    }
  });

  test("are deleted", async () => {
    expect((await api("POST", "/tasks/delete", { owner: "acme", queue: "other" })).body).toMatchObject({
      count: 1,
    });
    expect(await named()).toBe("ab");
    expect((await api("POST", "/tasks/delete", { tag: "none" })).body).toMatchObject({ count: 0 });
    expect((await api("POST", "/tasks/delete", { tag: "ops" })).body).toMatchObject({ count: 2 });
  });

  test("are selected by name, or as in a list, tagged and triggered", async () => {
    const tasks = ["a", { queue: "other", owner: "acme", id: "c" }, "none"];
    const refused = { count: 1, sample: [{ task: "none", code: "TASK_NOT_FOUND" }] };
    const triggered = await api("POST", "/tasks/trigger", { tasks });
    expect([triggered.status, triggered.body]).toMatchObject([200, { count: 2, refused }]);
    expect((await api("POST", "/tasks/trigger", { tasks, dryRun: true })).body).toMatchObject({
      count: 2,
      refused,
    });
    const again = (await api("POST", "/tasks/trigger", { tasks: ["a"], overlap: "skip" })).body;
    expect(again).toMatchObject({
      count: 0,
      refused: { sample: [{ task: { id: "a" }, code: "SKIPPED_OVERLAP" }] },
    });
    const tagged = await api("POST", "/tasks/tag", {
      state: "scheduled",
      tag: "ops",
      add: ["x"],
      remove: ["ops"],
    });
    expect(tagged.body).toMatchObject({ count: 2, sample: [{ id: "b" }, { id: "a" }] });
    expect((await console_.client.list({ tag: "x" })).tasks).toHaveLength(2);
    expect((await api("POST", "/tasks/pause", { outcome: ["failed", "lost"] })).body).toMatchObject({
      count: 0,
    });
    const operator = { authorization: `Bearer ${OPERATOR}` };
    expect((await api("POST", "/tasks/tag", { tag: "x", add: ["y"] }, operator)).status).toBe(403);
    const cancelled = await api("POST", "/runs/cancel", { owner: "acme" }, operator);
    expect(cancelled.body).toMatchObject({
      count: 1,
      tasks: 1,
      sample: [{ task: { id: "c" }, state: "queued" }],
    });
  });

  test.each<[string, unknown, string, string | undefined]>([
    ["trigger", { tag: "ops", overlap: "maybe" }, "INVALID_OPTION", "overlap"],
    ["trigger", { tasks: [{ id: "a", name: "b" }] }, "INVALID_OPTION", "name"],
    ["pause", { tag: "ops", state: "x" }, "INVALID_OPTION", "state"],
    ["pause", undefined, "INVALID_OPTION", undefined],
    ["resume", { missed: "skip" }, "INVALID_OPTION", undefined],
    ["delete", {}, "INVALID_OPTION", undefined],
    ["delete", { tags: "ops" }, "INVALID_OPTION", "tags"],
    ["delete", { tag: ["ops"] }, "INVALID_OPTION", "tag"],
    ["delete", { tag: "*" }, "INVALID_NAME", "tag"],
    ["delete", { queue: "" }, "INVALID_NAME", "queue"],
    ["delete", { owner: null }, "INVALID_OPTION", "owner"],
    ["delete", { tag: "ops", note: "x" }, "INVALID_OPTION", "note"],
    ["pause", { tag: "ops", note: 1 }, "INVALID_OPTION", "note"],
    ["pause", { tag: "ops", note: "x".repeat(501) }, "INVALID_OPTION", "note"],
    ["resume", { tag: "ops", missed: "then" }, "INVALID_OPTION", "missed"],
    ["resume", { tag: "ops", note: "x".repeat(501) }, "INVALID_OPTION", "note"],
    ["resume", { tag: "ops", pausedBy: 1 }, "INVALID_OPTION", "pausedBy"],
    ["pause", { tag: "ops", pausedBy: "ann" }, "INVALID_OPTION", "pausedBy"],
  ])("%s %j is refused without any effect", async (verb, body, code, field) => {
    const answer = await api("POST", `/tasks/${verb}`, body);
    expect([answer.status, answer.body.error?.code, answer.body.error?.field]).toEqual([400, code, field]);
    expect([await named(), await named("paused")]).toEqual(["abc", ""]);
  });

  test.each(["pause", "resume", "trigger", "tag", "delete"])("%s is not for viewers", async (verb) => {
    const viewer = { authorization: `Bearer ${VIEWER}` };
    const { status } = await api("POST", `/tasks/${verb}`, { tag: "ops" }, viewer);
    expect(status).toBe(403);
    expect([await named(), await named("paused")]).toEqual(["abc", ""]);
  });

  test("a queue may have any of these names", async () => {
    for (const queue of ["pause", "resume", "trigger", "tag", "delete"]) {
      expect(
        (await api("PUT", `/tasks/${queue}/system/x`, { type: "t", schedule: { every: "1h" } })).status,
      ).toBe(201);
    }
  });
});

describe("upcoming occurrences", () => {
  beforeEach(async () => {
    await console_.client.putMany([
      task("later", { schedule: { at: SOON + 1_000 } }),
      task("first", { schedule: { at: SOON }, queue: "other" }),
      task("often", { queue: "often", schedule: { every: "10m" } }),
    ]);
  });
  const upcoming = async (path: string) => (await api("GET", path)).body["upcoming"] as Upcoming[];
  const ids = (found: Upcoming[]) => found.map((one) => one.task.id);

  test("upcoming lists each task once, earliest first", async () => {
    const found = await upcoming("/upcoming");
    expect(ids(found)).toEqual(["often", "first", "later"]);
    expect(found[1]).toEqual({
      task: { queue: "other", owner: "system", id: "first" },
      nominal: SOON,
      due: SOON,
    });
    expect(ids(await upcoming("/upcoming?limit=1"))).toEqual(["often"]);
    expect(ids(await upcoming("/upcoming?queue=q"))).toEqual(["later"]);
  });

  test("upcoming within a duration lists each occurrence within a duration", async () => {
    expect(ids(await upcoming("/upcoming?within=3h&queue=other"))).toEqual(["first"]);
    const often = await upcoming("/upcoming?within=1h&queue=often");
    expect(often).toHaveLength(6);
    expect(await upcoming("/upcoming?within=1h&queue=often&limit=2")).toEqual(often.slice(0, 2));
    expect(await upcoming("/upcoming?within=1s&queue=q")).toEqual([]);
  });

  test.each([
    ["/upcoming?limit=0", "limit"],
    ["/upcoming?limit=1001", "limit"],
    ["/upcoming?queue=a%20b", "queue"],
    ["/upcoming?within=", "within"],
    ["/upcoming?within=100y", "within"],
    ["/upcoming?within=1h&within=2h", "within"],
    ["/upcoming?within=1h&limit=100001", "limit"],
  ])("%s is refused", async (path, field) => {
    const { status, body } = await api("GET", path);
    expect([status, body.error?.field]).toEqual([400, field]);
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

  test("of many tasks are counted, started, listed and cancelled together", async () => {
    await console_.client.put(task("b", { owner: "acme", tags: ["x"] }));
    const dry = await api("POST", "/backfills", { queue: "q", from, to, dryRun: true });
    expect([dry.status, dry.body]).toMatchObject([
      200,
      { count: 2, total: 6, sample: [{ id: "b", total: 3 }, {}] },
    ]);
    const asked = { tasks: ["a", "acme/b"], from, to, perMinute: 6, overlap: "queue-all" };
    const begun = await api("POST", "/backfills", asked);
    expect([begun.status, begun.body]).toMatchObject([202, { count: 2, total: 6, refused: { count: 0 } }]);
    const { batch } = begun.body as { batch: string };
    const list = async (query: string) => (await api("GET", `/backfills?${query}`)).body["backfills"];
    expect(await list(`batch=${batch}`)).toMatchObject([
      { every: 20_000, by: "admin" },
      { overlap: "queue-all" },
    ]);
    expect(await list(`batch=${batch}&owner=acme`)).toMatchObject([{ task: { id: "b" } }]);
    expect((await api("POST", `/backfills/${batch}/cancel`)).body).toEqual({ changed: true });
    expect(await list("state=running")).toEqual([]);
  });

  test("are only counted by a dry run", async () => {
    const iso = { from: new Date(from).toISOString(), to: new Date(to).toISOString() };
    const counted = await api("POST", BACKFILLS, { ...iso, dryRun: true });
    expect([counted.status, counted.body, counted.headers.get("location")]).toEqual([
      200,
      { total: 3 },
      null,
    ]);
    const nothing = await api("POST", BACKFILLS, { from: from + 1, to: from + 2 });
    expect([nothing.status, nothing.body]).toEqual([200, { total: 0 }]);
  });

  test.each<[unknown, string]>([
    [{}, "from"],
    [{ from }, "to"],
    [{ from: null, to }, "from"],
    [{ from: "yesterday", to }, "from"],
    [{ from: "2026-01-01T00:00:00", to }, "from"],
    [{ from: 1.5, to }, "from"],
    [{ from: to, to: from }, "from"],
    [{ from, to: SOON + 1e9 }, "to"],
    [{ from: 0, to }, "to"],
    [{ from, to, overlap: "always" }, "overlap"],
    [{ from, to, every: "0s" }, "every"],
    [{ from, to, dryRun: "yes" }, "dryRun"],
    [{ from, to, by: "x".repeat(501) }, "by"],
    [{ from, to, until: to }, "until"],
  ])("of %j are refused", async (body, field) => {
    const answer = await api("POST", BACKFILLS, body);
    expect([answer.status, answer.body.error?.field]).toEqual([400, field]);
  });

  test("that do not exist are refused", async () => {
    const missing = await api("POST", "/tasks/q/system/none/backfills", { from, to });
    expect([missing.status, missing.body.error?.code]).toEqual([404, "TASK_NOT_FOUND"]);
    for (const [method, verb] of [
      ["GET", ""],
      ["POST", "/cancel"],
    ] as const) {
      const { status, body } = await api(method, `/backfills/0123456789abcdef${verb}`);
      expect([status, body.error?.code]).toEqual([404, "BACKFILL_NOT_FOUND"]);
    }
  });

  test("can be read by viewers, not started", async () => {
    const viewer = { authorization: `Bearer ${VIEWER}` };
    expect((await api("POST", "/backfills", { queue: "q", from, to, perMinute: 1 }, viewer)).status).toBe(
      403,
    );
    expect((await api("GET", "/backfills", undefined, viewer)).status).toBe(200);
    expect((await api("POST", BACKFILLS, { from, to, dryRun: true }, viewer)).status).toBe(403);
    const { id } = await operatorOf(console_.client).backfills.start({ id: "a", from, to });
    expect((await api("POST", `/backfills/${id}/cancel`, undefined, viewer)).status).toBe(403);
    expect((await api("GET", `/backfills/${id}`, undefined, viewer)).body["state"]).toBe("running");
  });
});

describe("task types", () => {
  test("are unrestricted until some are allowed", async () => {
    expect((await api("GET", "/types")).body).toEqual({ types: [] });
    const put = await api("PUT", "/types", { types: ["report", "t", "t"] });
    expect([put.status, put.body]).toEqual([200, { types: ["report", "t"] }]);
    expect((await api("GET", "/types")).body).toEqual({ types: ["report", "t"] });
    expect((await api("POST", "/tasks", task("a"))).status).toBe(201);
    const unknown = task("b", { type: "other" });
    const [refused, asked] = await Promise.all([
      api("POST", "/tasks", unknown),
      api("POST", "/tasks/validate", { task: unknown }),
    ]);
    expect([refused.status, refused.body.error?.code]).toEqual([400, "UNKNOWN_TASK_TYPE"]);
    expect([asked.status, asked.body]).toEqual([refused.status, refused.body]);
    // A schedule without a task has no type.
    expect((await api("POST", "/tasks/validate", { schedule: { every: "1h" } })).status).toBe(200);
    expect((await api("PUT", "/types", { types: [] })).body).toEqual({ types: [] });
  });

  test.each<[unknown, string, string]>([
    [{}, "INVALID_OPTION", "types"],
    [{ types: [1] }, "INVALID_OPTION", "types[0]"],
    [{ types: [], only: true }, "INVALID_OPTION", "only"],
  ])("%j is refused", async (body, code, field) => {
    const answer = await api("PUT", "/types", body);
    expect([answer.status, answer.body.error?.code, answer.body.error?.field]).toEqual([400, code, field]);
    expect((await api("GET", "/types")).body).toEqual({ types: [] });
  });

  test("cannot be allowed by a viewer", async () => {
    const viewer = { authorization: `Bearer ${VIEWER}` };
    expect((await api("PUT", "/types", { types: ["x"] }, viewer)).status).toBe(403);
    expect((await api("GET", "/types", undefined, viewer)).body).toEqual({ types: [] });
  });
});

test("default policies are set, listed and removed, but not by a viewer", async () => {
  const set = (policies: unknown, headers?: Record<string, string>) =>
    api("PUT", "/defaults/type:t", { policies }, headers);
  expect((await set({ timeLimit: "5m" })).body).toEqual({ changed: true });
  expect((await set({ timeLimit: "5m" })).body).toEqual({ changed: false });
  expect((await api("GET", "/defaults")).body).toEqual({ defaults: { "type:t": { timeLimit: "5m" } } });
  expect((await set({ timeLimit: "soon" })).body).toMatchObject({ error: { code: "INVALID_DURATION" } });
  expect((await set([])).status).toBe(400);
  expect((await set(null, { authorization: `Bearer ${VIEWER}` })).status).toBe(403);
  expect((await set(null)).body).toEqual({ changed: true });
  expect((await api("GET", "/defaults")).body).toEqual({ defaults: {} });
});

test("quotas are set, listed, obeyed and removed, and not by an operator", async () => {
  const set = (quota: object, headers?: Record<string, string>) =>
    api("PUT", "/quotas/owner:small", quota, headers);
  expect((await set({ tasks: 0, interval: "1m" })).body).toEqual({ changed: true });
  expect((await api("GET", "/quotas")).body).toEqual({
    quotas: [{ scope: "owner:small", tasks: 0, interval: 60_000 }],
  });
  const put = await api("PUT", "/tasks/q/small/x", { type: "t", schedule: { every: "1h" } });
  expect([put.status, put.body.error?.code]).toEqual([409, "QUOTA_TASKS"]);
  expect((await set({ tasks: -1 })).body.error).toMatchObject({ code: "INVALID_OPTION", field: "tasks" });
  expect((await set({ jobs: 1 })).body.error).toMatchObject({ field: "jobs" });
  expect((await set({}, { authorization: `Bearer ${OPERATOR}` })).status).toBe(403);
  expect((await set({})).body).toEqual({ changed: true });
  expect((await api("GET", "/quotas")).body).toEqual({ quotas: [] });
});

test("the doctor reports faults, also to viewers, and changes nothing", async () => {
  const viewer = { authorization: `Bearer ${VIEWER}` };
  const { status, body } = await api("GET", "/doctor", undefined, viewer);
  expect([status, body["state"]]).toEqual([200, "errors"]);
  // No node is running here.
  expect(body["findings"]).toContainEqual(expect.objectContaining({ code: "NO_NODE", severity: "error" }));
  expect((await api("POST", "/doctor", {})).status).toBe(405);
});

test.each([
  ["GET", "/tasks/pause", "POST"],
  ["GET", "/tasks/delete", "POST"],
  ["DELETE", "/runs/a@b.c", "GET, HEAD"],
  ["GET", "/runs/a@b.c/cancel", "POST"],
  ["POST", "/backfills/x", "GET, HEAD"],
  ["POST", "/types", "GET, HEAD, PUT"],
  ["POST", "/upcoming", "GET, HEAD"],
])("%s %s gets the allowed methods %s", async (method, path, allow) => {
  const { status, headers } = await api(method, path);
  expect([status, headers.get("allow")]).toEqual([405, allow]);
});

test("validate shows the due time if a jitter changes it", async () => {
  const schedule = { every: "1h", jitter: "10m" };
  const { body } = await api("POST", "/tasks/validate", { schedule, id: "a", count: 1 });
  const [next] = body["next"] as { nominal: number; due: number }[];
  const put = await api("POST", "/tasks", task("a", { schedule }));
  expect(put.body["nextExecution"]).toBe(next?.due);
  expect(next?.due).toBeGreaterThan(next?.nominal ?? 0);
});
