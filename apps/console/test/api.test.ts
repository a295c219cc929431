import type { Run, Task, TaskInput } from "@carillon/sdk";
import { internalsOf, storeOf } from "@carillon/sdk/internal";
import { eventually } from "@carillon/testing";
import { afterEach, describe, expect, test, vi } from "vitest";
import { ADMIN, type Console, ownConsole } from "./harness.js";

const full = {
  id: "nightly",
  owner: "tenant-a",
  type: "disk.report",
  queue: "reports",
  schedule: { cron: "0 3 * * *", timezone: "Europe/Berlin" },
  payload: { disk: "/var", deep: { list: [1, null, "x"] } },
  tags: ["ops", "disk"],
  priority: 7,
  overlap: "allow",
  catchUp: "all",
  description: "Every night",
} satisfies TaskInput;

const NIGHTLY = "/tasks/reports/tenant-a/nightly";

const minimal = (id: string, more: Partial<TaskInput> = {}): TaskInput => ({
  id,
  type: "t",
  queue: "q",
  schedule: { every: "1h" },
  ...more,
});

const console_ = ownConsole();
afterEach(async () => {
  const { tasks } = await console_.client.list({ deliveries: true, limit: 1_000 });
  await Promise.all(tasks.map((task) => console_.client.delete(task)));
});

const api: Console["api"] = (...asked) => console_.api(...asked);
const listed = async (query = "") => (await api("GET", `/tasks${query}`)).body["tasks"] as Task[];

describe("the calls of the API", () => {
  test("puts a task: created, unchanged, updated", async () => {
    const created = await api("POST", "/tasks", full);
    const task = await console_.client.get({ queue: "reports", owner: "tenant-a", id: "nightly" });
    expect([created.status, created.headers.get("location")]).toEqual([201, `/api/v1${NIGHTLY}`]);
    expect(created.body).toEqual({
      task: { queue: "reports", owner: "tenant-a", id: "nightly" },
      outcome: "created",
      state: "scheduled",
      nextExecution: task.nextExecution,
      humanized: "at 03:00, every day (Europe/Berlin)",
      warnings: [
        { code: "NO_NODE", message: expect.any(String), remedy: expect.any(String) },
        { code: "NO_WORKER", message: expect.any(String), remedy: expect.any(String) },
      ],
    });
    const again = await api("POST", "/tasks", full);
    expect([again.status, again.body["outcome"]]).toEqual([200, "unchanged"]);
    const changed = await api("POST", "/tasks", { ...full, priority: 8 });
    expect([changed.status, changed.body["outcome"]]).toEqual([200, "updated"]);
  });

  test("list", async () => {
    await api("POST", "/tasks", full);
    await api("POST", "/tasks", minimal("a"));
    const { status, body } = await api("GET", "/tasks");
    expect(status).toBe(200);
    expect(body["tasks"]).toEqual(JSON.parse(JSON.stringify((await console_.client.list()).tasks)));
    expect(body).not.toHaveProperty("cursor");
  });

  test("lists by filters, and counts their results", async () => {
    await api("POST", "/tasks", full);
    await api("POST", "/tasks", minimal("a", { enabled: false }));
    const ids = async (query: string) => (await listed(query)).map(({ id }) => id);
    expect(await ids("?search=DISK")).toEqual(["nightly"]);
    expect(await ids("?neverRan=true&state=paused")).toEqual(["a"]);
    expect(await ids("?failing=true")).toEqual([]);
    expect(await ids("?failing=false&overdue=false&neverRan=false")).toEqual(["a", "nightly"]);
    expect(await ids("?sort=last")).toEqual([]);
    const counts = (await api("GET", "/tasks/counts?owner=tenant-a")).body;
    expect(counts).toMatchObject({ all: 1, states: { scheduled: 1 }, failing: 0, overdue: 0, neverRan: 1 });
    expect((await api("GET", "/tasks/counts")).body).toMatchObject({ all: 2, states: { paused: 1 } });
  });

  test("streams events", async () => {
    const leaves = new AbortController();
    const response = await fetch(`${console_.url}/api/v1/events`, {
      headers: { authorization: `Bearer ${ADMIN}`, "last-event-id": "elsewhere-1" },
      signal: leaves.signal,
    });
    expect([response.status, response.headers.get("content-type")]).toEqual([
      200,
      "text/event-stream; charset=utf-8",
    ]);
    let text = "";
    const reading = (async () => {
      for await (const part of response.body ?? []) text += Buffer.from(part as Uint8Array).toString();
    })().catch(() => {});
    // The server does not know events before its start.
    await eventually(() => /^id: \w+-\S+\nevent: reset\ndata: \{"kind":"reset"\}$/m.test(text));
    await api("POST", "/tasks", full);
    await eventually(() => /\nevent: changed\ndata: .*"change":"put".*"id":"nightly"/.test(text));
    leaves.abort();
    await reading;
    expect((await console_.ask("/api/v1/events")).status).toBe(401);
  });

  test("update", async () => {
    await api("POST", "/tasks", full);
    const schedule = { every: "10m" };
    const { status, body } = await api("PUT", NIGHTLY, { type: "disk.report", schedule });
    expect([status, body["outcome"]]).toEqual([200, "updated"]);
    const task = (await api("GET", NIGHTLY)).body;
    // A put replaces the whole definition: missing fields get their defaults.
    expect(task).toMatchObject({
      schedule,
      payload: {},
      priority: 0,
      humanized: expect.stringMatching(/^every 10m/),
      displayState: "SCHEDULED",
    });
    expect(task["nextExecution"]).toBeTypeOf("number");
  });

  test("puts a task only in a given revision", async () => {
    await api("PUT", NIGHTLY, full);
    const { revision } = (await api("GET", NIGHTLY)).body as { revision: string };
    const on = (condition: string, priority: number) =>
      api("PUT", `${NIGHTLY}?ifRevision=${condition}`, { ...full, priority });
    expect((await on(revision, 1)).body).toMatchObject({ outcome: "updated" });
    for (const condition of [revision, "absent"]) {
      const late = await on(condition, 2);
      expect([late.status, late.body.error]).toMatchObject([409, { code: "CONFLICT", field: "ifRevision" }]);
    }
    const again = await api("POST", "/tasks?ifRevision=absent", { ...full, priority: 3 });
    expect([again.status, again.body.error?.field]).toEqual([409, "ifRevision"]);
    const wrong = await on("x", 2);
    expect([wrong.status, wrong.body.error?.code]).toEqual([400, "INVALID_OPTION"]);
    expect((await api("GET", NIGHTLY)).body).toMatchObject({ priority: 1 });
    await api("DELETE", NIGHTLY);
    expect((await on("absent", 4)).status).toBe(201);
  });

  test("remove", async () => {
    await api("POST", "/tasks", full);
    const gone = await api("DELETE", NIGHTLY);
    expect([gone.status, gone.body]).toEqual([204, {}]);
    const after = await api("GET", NIGHTLY);
    expect([after.status, after.body.error?.code]).toEqual([404, "TASK_NOT_FOUND"]);
    expect((await api("DELETE", NIGHTLY)).status).toBe(404);
  });

  test("validates a task and shows its times, and stores nothing", async () => {
    const { status, body } = await api("POST", "/tasks/validate", {
      task: { ...full, schedule: { ...full.schedule, cron: " 0  3 * * *" } },
      from: Date.parse("2026-03-28T00:00:00Z"),
      count: 2,
    });
    expect(status).toBe(200);
    expect(body).toEqual({
      schedule: full.schedule,
      canonical: "0 3 * * *",
      humanized: "at 03:00, every day (Europe/Berlin)",
      warnings: [
        { code: "NO_NODE", message: expect.any(String), remedy: expect.any(String) },
        { code: "NO_WORKER", message: expect.any(String), remedy: expect.any(String) },
      ],
      timezone: "Europe/Berlin",
      next: [
        { nominal: Date.parse("2026-03-28T02:00:00Z"), notes: [] },
        {
          nominal: Date.parse("2026-03-29T01:00:00Z"),
          notes: [{ code: "DAY_LENGTH", text: "this day has 23 h" }],
        },
      ],
      excluded: [],
      exhausted: false,
      outcome: "created",
      preview: { after: expect.objectContaining({ schedule: full.schedule }), times: expect.anything() },
    });
    expect(await listed()).toEqual([]);
    expect((await console_.ops.names.list({ of: "queue" })).names).toEqual([]);
  });
});

describe("tasks", () => {
  test("a PUT to a new path creates a task", async () => {
    const { status, body } = await api("PUT", NIGHTLY, { type: "t", schedule: { every: "1h" } });
    expect([status, body["task"]]).toEqual([201, { queue: "reports", owner: "tenant-a", id: "nightly" }]);
  });

  test.each([
    ["queue", "other"],
    ["owner", "system"],
    ["id", "daily"],
    ["id", null],
  ])("a body with another %s than the path is refused: %j", async (field, value) => {
    const { status, body } = await api("PUT", NIGHTLY, { ...full, [field]: value });
    expect([status, body.error?.code, body.error?.field]).toEqual([400, "INVALID_NAME", field]);
    expect(await listed()).toEqual([]);
  });

  test("of a newer version are left alone", async () => {
    await api("POST", "/tasks", full);
    const { keys, link } = internalsOf(storeOf(console_.client));
    const key = keys.queue("reports").task("tenant-a/nightly");
    await link.client.hset(key, "v", "99");
    const { status, body } = await api("POST", "/tasks", { ...full, priority: 8 });
    expect([status, body.error?.code]).toEqual([409, "UNSUPPORTED_FORMAT"]);
    await link.client.hset(key, "v", "1");
  });
});

describe("validate", () => {
  test("a schedule alone", async () => {
    const { body } = await api("POST", "/tasks/validate", { schedule: { every: "10s" }, from: 1, count: 3 });
    expect(body).toMatchObject({ schedule: { every: "10s" }, timezone: "UTC", exhausted: false });
    expect(body["next"]).toEqual([10_000, 20_000, 30_000].map((nominal) => ({ nominal, notes: [] })));
  });

  test("reads shared calendars only after a change", async () => {
    const { calendars } = storeOf(console_.client);
    const schedule = { cron: "0 9 * * *", except: [{ named: "holidays" }] };
    await api("PUT", "/calendars/holidays", { entries: ["2026-12-25"] });
    await api("POST", "/tasks/validate", { schedule });
    const read = vi.spyOn(calendars, "list");
    expect((await api("POST", "/tasks/validate", { schedule })).status).toBe(200);
    expect((await api("POST", "/tasks/validate", { schedule: { every: "1h" } })).status).toBe(200);
    expect(read).not.toHaveBeenCalled();
    read.mockRestore();
    await api("DELETE", "/calendars/holidays");
  });

  test.each<[string, string, unknown]>([
    ["a name", "INVALID_NAME", minimal("a b")],
    ["a missing type", "INVALID_NAME", { id: "a", queue: "q", schedule: { every: "1h" } }],
    ["an unknown field", "INVALID_TASK", { ...minimal("a"), shedule: 1 }],
    ["cron", "INVALID_SCHEDULE", minimal("a", { schedule: { cron: "/5 * * * *" } })],
    ["a zone", "INVALID_TIMEZONE", minimal("a", { schedule: { cron: "0 3 * * *", timezone: "Mars/Base" } })],
    ["a duration", "INVALID_DURATION", minimal("a", { schedule: { every: "10" } })],
    ["a date that never comes", "NEVER_FIRES", minimal("a", { schedule: { cron: "0 0 31 2 *" } })],
    ["a payload's keys", "INVALID_PAYLOAD", minimal("a", { payload: JSON.parse('{"__proto__":{}}') })],
    ["a payload's size", "PAYLOAD_TOO_LARGE", minimal("a", { payload: "x".repeat(300_000) })],
    ["no object", "INVALID_TASK", []],
  ])("answers as a put does: %s", async (_, code, task) => {
    const [asked, put] = await Promise.all([
      api("POST", "/tasks/validate", { task }),
      api("POST", "/tasks", task),
    ]);
    expect([put.status, put.body.error?.code]).toEqual([code === "PAYLOAD_TOO_LARGE" ? 413 : 400, code]);
    expect([asked.status, asked.body]).toEqual([put.status, put.body]);
  });
});

describe("verbs", () => {
  test("trigger enqueues a run under the task's overlap policy, or a given one", async () => {
    await api("POST", "/tasks", minimal("a"));
    const first = await api("POST", "/tasks/q/system/a/trigger");
    expect([first.status, first.body["outcome"]]).toEqual([202, "enqueued"]);
    const second = await api("POST", "/tasks/q/system/a/trigger", {});
    expect([second.status, second.body.error?.code]).toEqual([409, "SKIPPED_OVERLAP"]);
    const third = await api("POST", "/tasks/q/system/a/trigger", { overlap: "allow" });
    expect(third.status).toBe(202);
    const runs = (await api("GET", "/tasks/q/system/a/runs")).body["runs"] as Run[];
    expect(runs.map(({ id }) => id)).toEqual([third.body["run"], first.body["run"]]);
    expect(runs[0]).toMatchObject({ state: "queued", trigger: "manual", enqueued: third.body["enqueued"] });
    const page = (await api("GET", "/tasks/q/system/a/runs?limit=1&offset=1")).body["runs"] as Run[];
    expect(page.map(({ id }) => id)).toEqual([first.body["run"]]);
  });
});

describe("headers that make a write conditional", () => {
  const put = (headers: Record<string, string>, type: string, query = "") =>
    api("PUT", `/tasks/q/system/cond${query}`, { type, schedule: { every: "1h" }, payload: {} }, headers);

  test("If-None-Match: * and If-Match with the ETag of a task are conditions of its put", async () => {
    expect((await put({ "if-none-match": "*" }, "a")).status).toBe(201);
    const refused = await put({ "if-none-match": "*" }, "b");
    expect([refused.status, refused.body.error?.code]).toEqual([412, "CONFLICT"]);
    const etag = String((await api("GET", "/tasks/q/system/cond")).headers.get("etag"));
    expect((await put({ "if-match": etag }, "b")).status).toBe(200);
    expect((await put({ "if-match": etag }, "c")).status).toBe(412);
    expect((await api("GET", "/tasks/q/system/cond")).body).toMatchObject({ type: "b" });
  });

  test("Idempotency-Key makes one run of two triggers", async () => {
    await put({}, "a");
    const trigger = () => api("POST", "/tasks/q/system/cond/trigger", {}, { "idempotency-key": '"order-7"' });
    const [first, second] = [await trigger(), await trigger()];
    expect([first.status, second.status]).toEqual([202, 202]);
    expect(second.body).toMatchObject({ run: first.body["run"], repeated: true });
  });

  test.each([
    ["POST", "/tasks/q/system/cond/pause", "If-Match", '"x"'],
    ["DELETE", "/tasks/q/system/cond", "If-Match", '"x"'],
    ["POST", "/tasks/q/system/cond/pause", "Idempotency-Key", "x"],
    ["PUT", "/tasks/q/system/cond", "If-Match", 'W/"x"'],
    ["PUT", "/tasks/q/system/cond?ifRevision=absent", "If-None-Match", "*"],
    ["PUT", "/tasks/q/system/cond", "If-Unmodified-Since", "Thu, 26 Nov 2026 10:00:00 GMT"],
  ])("%s %s refuses %s: %s", async (method, path, name, value) => {
    const before = (await api("GET", "/tasks/q/system/cond")).body;
    const refused = await api(method, path, method === "PUT" ? minimal("cond") : undefined, {
      [name]: value,
    });
    expect(refused.status).toBe(400);
    expect(refused.body.error).toMatchObject({ code: "INVALID_OPTION", field: name });
    expect((await api("GET", "/tasks/q/system/cond")).body).toEqual(before);
  });
});
