import { operatorOf } from "@carillon/ops";
import type { Run, Task, TaskInput } from "@carillon/sdk";
import { internalsOf, storeOf } from "@carillon/sdk/internal";
import { eventually } from "@carillon/testing";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { nodeInfo } from "../../../test/helpers.js";
import { ADMIN, type Console, startConsole } from "./harness.js";

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

let console_: Console;
beforeAll(async () => {
  console_ = await startConsole();
});
afterAll(() => console_.stop());
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

  test("lists ticks, and strips of them", async () => {
    await api("POST", "/tasks", full);
    const [from, to] = ["2100-01-01T00:00:00Z", "2100-01-02T12:00:00Z"];
    const { status, body } = await api("GET", `${NIGHTLY}/ticks?from=${from}&to=${to}`);
    const nominal = Date.parse("2100-01-01T02:00:00Z");
    expect([status, body["ticks"]]).toMatchObject([
      200,
      [{ nominal, due: nominal, state: "planned" }, { nominal: nominal + 86_400_000 }],
    ]);
    await console_.client.trigger({ queue: "reports", owner: "tenant-a", id: "nightly" });
    const strips = await api("GET", "/ticks?tasks=reports/tenant-a/nightly&tasks=reports/system/none");
    expect(strips.body["tasks"]).toMatchObject([
      { task: { id: "nightly" }, ticks: [{ state: "enqueued", trigger: "manual", runState: "queued" }] },
      { task: { id: "none" }, ticks: [] },
    ]);
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
    expect((await operatorOf(console_.client).names.list({ of: "queue" })).names).toEqual([]);
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

  test("are listed by queue, owner, tag and state", async () => {
    await api("POST", "/tasks", full);
    await api("POST", "/tasks", minimal("a"));
    await api("POST", "/tasks", minimal("b", { owner: "tenant-a", enabled: false }));
    await api("POST", "/tasks", minimal("c", { schedule: { at: 0 } }));
    const ids = async (query: string) => (await listed(query)).map(({ id }) => id);
    expect(await ids("?queue=q")).toEqual(["a", "c", "b"]);
    expect(await ids("?owner=tenant-a")).toEqual(["b", "nightly"]);
    expect(await ids("?queue=q&owner=tenant-a")).toEqual(["b"]);
    expect(await ids("?tag=disk")).toEqual(["nightly"]);
    expect(await ids("?state=paused")).toEqual(["b"]);
    expect(await ids("?state=finished")).toEqual(["c"]);
    await api("POST", "/tasks", minimal("alert-1", { queue: "carillon-alerts" }));
    expect(await ids("?owner=system")).toEqual(["a", "c"]);
    expect(await ids("?owner=system&deliveries=true")).toEqual(["alert-1", "a", "c"]);
  });

  test("are listed in pages", async () => {
    for (const id of ["a", "b", "c"]) await api("POST", "/tasks", minimal(id));
    const first = (await api("GET", "/tasks?limit=2")).body;
    expect((first["tasks"] as Task[]).map(({ id }) => id)).toEqual(["a", "b"]);
    const second = (await api("GET", `/tasks?limit=2&cursor=${first["cursor"]}`)).body;
    expect((second["tasks"] as Task[]).map(({ id }) => id)).toEqual(["c"]);
    expect(second).not.toHaveProperty("cursor");
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

  test("have warnings about probable mistakes", async () => {
    const { body } = await api("POST", "/tasks", minimal("a", { schedule: { at: 0 } }));
    expect(body).toMatchObject({ state: "finished", warnings: [{ code: "NO_NEXT" }] });
    expect(body).not.toHaveProperty("nextExecution");
  });
});

describe("validate", () => {
  test("a schedule alone", async () => {
    const { body } = await api("POST", "/tasks/validate", { schedule: { every: "10s" }, from: 1, count: 3 });
    expect(body).toMatchObject({ schedule: { every: "10s" }, timezone: "UTC", exhausted: false });
    expect(body["next"]).toEqual([10_000, 20_000, 30_000].map((nominal) => ({ nominal, notes: [] })));
  });

  test("spreads H by owner and id, as the task does", async () => {
    const schedule = { cron: "H H * * *" };
    const nextOf = async (question: object) => {
      const { body } = await api("POST", "/tasks/validate", { ...question, count: 1 });
      return (body["next"] as { nominal: number }[])[0]?.nominal;
    };
    const alone = await nextOf({ schedule, id: "spread" });
    expect(alone).toBe(await nextOf({ task: minimal("spread", { schedule }) }));
    expect(alone).toBe((await api("POST", "/tasks", minimal("spread", { schedule }))).body["nextExecution"]);
    expect(alone).not.toBe(await nextOf({ schedule }));
    const owned = await nextOf({ schedule, id: "spread", owner: "acme" });
    expect(owned).not.toBe(alone);
    expect(owned).toBe(await nextOf({ task: minimal("spread", { schedule, owner: "acme" }) }));
    const beside = await api("POST", "/tasks/validate", { task: minimal("spread"), owner: "acme" });
    expect([beside.status, beside.body.error?.field]).toEqual([400, "owner"]);
  });

  test("takes shared calendars into account", async () => {
    await api("PUT", "/calendars/holidays", { entries: ["2026-12-25"] });
    const schedule = { cron: "0 9 * * *", except: [{ named: "holidays" }] };
    const from = Date.parse("2026-12-24T12:00:00Z");
    const { body } = await api("POST", "/tasks/validate", { schedule, from, count: 1 });
    expect(body["next"]).toMatchObject([{ nominal: Date.parse("2026-12-26T09:00:00Z") }]);
    expect(body["excluded"]).toEqual([{ nominal: Date.parse("2026-12-25T09:00:00Z"), by: "holidays" }]);
    await api("DELETE", "/calendars/holidays");
    const without = await api("POST", "/tasks/validate", { schedule });
    expect([without.status, without.body.error?.code]).toEqual([400, "INVALID_SCHEDULE"]);
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

  test("reports that no time is left", async () => {
    const over = (await api("POST", "/tasks/validate", { schedule: { at: 0 } })).body;
    expect(over).toMatchObject({ next: [], exhausted: true, warnings: [{ code: "NO_NEXT" }] });
    const twice = (await api("POST", "/tasks/validate", { schedule: { every: "1m", maxRuns: 2 } })).body;
    expect(twice["next"]).toHaveLength(2);
    expect(twice["exhausted"]).toBe(true);
    const schedule = { every: "1m", maxRuns: 7 };
    const seven = (await api("POST", "/tasks/validate", { schedule, count: 10 })).body;
    expect([(seven["next"] as unknown[]).length, seven["exhausted"]]).toEqual([7, true]);
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
  test("pause and resume say whether anything changed", async () => {
    await api("POST", "/tasks", full);
    const paused = await api("POST", `${NIGHTLY}/pause`, { note: "upstream is down" });
    expect([paused.status, paused.body]).toEqual([200, { changed: true }]);
    expect((await api("POST", `${NIGHTLY}/pause`)).body).toEqual({ changed: false });
    expect((await api("GET", NIGHTLY)).body).toMatchObject({
      state: "paused",
      paused: { by: "admin", note: "upstream is down", at: expect.any(Number) },
    });
    expect((await api("POST", `${NIGHTLY}/resume`, { missed: "catch-up" })).body).toEqual({ changed: true });
    expect((await api("POST", `${NIGHTLY}/resume`)).body).toEqual({ changed: false });
    expect((await api("GET", NIGHTLY)).body["state"]).toBe("scheduled");
  });

  test("times during a pause are owed only if the resume says so, for one task or many", async () => {
    const schedule = { every: "500ms" };
    const ids = ["a", "b", "c", "d"];
    for (const id of ids) await api("POST", "/tasks", minimal(id, { schedule }));
    await api("POST", "/tasks/pause", { queue: "q" });
    const fellDue = Math.max(...(await listed()).map(({ nominal = 0 }) => nominal));
    await eventually(async () => (await storeOf(console_.client).serverTime()) > fellDue);
    await api("POST", "/tasks/q/system/a/resume", { missed: "catch-up" });
    await api("POST", "/tasks/q/system/b/resume");
    await api("POST", "/tasks/resume", { tag: "none", missed: "catch-up" });
    await api("PUT", "/tasks/q/system/c", minimal("c", { schedule, tags: ["owed"] }));
    await api("POST", "/tasks/resume", { tag: "owed", missed: "catch-up" });
    await api("POST", "/tasks/resume", { queue: "q" });
    const owed = async (id: string) => ((await console_.client.get(id)).nominal ?? 0) <= fellDue;
    expect(await Promise.all(ids.map(owed))).toEqual([true, false, true, false]);
  });

  test("pause cancels queued runs if asked to", async () => {
    await api("POST", "/tasks", minimal("a"));
    const { run } = (await api("POST", "/tasks/q/system/a/trigger")).body as { run: string };
    await api("POST", "/tasks/q/system/a/pause", { cancelQueued: false });
    expect(await console_.client.runs.get(run)).not.toHaveProperty("cancel");
    await api("POST", "/tasks/q/system/a/pause", { cancelQueued: true });
    expect((await console_.client.runs.get(run)).cancel).toMatchObject({ by: "admin" });
  });

  test("a finished task cannot be paused", async () => {
    await api("POST", "/tasks", minimal("a", { schedule: { at: 0 } }));
    const { status, body } = await api("POST", "/tasks/q/system/a/pause");
    expect([status, body.error?.code]).toEqual([409, "CONFLICT"]);
  });

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

  test("triggers with one key make one run", async () => {
    await api("POST", "/tasks", minimal("a", { overlap: "allow" }));
    const first = await api("POST", "/tasks/q/system/a/trigger", { key: "delivery-7" });
    expect(first).toMatchObject({ status: 202, body: { outcome: "enqueued", repeated: false } });
    const second = await api("POST", "/tasks/q/system/a/trigger", { key: "delivery-7" });
    expect(second).toMatchObject({ status: 202, body: { ...first.body, repeated: true } });
    const many = await api("POST", "/tasks/trigger", { queue: "q", key: "delivery-7" });
    expect(many).toMatchObject({ status: 200, body: { count: 0 } });
    const wrong = await api("POST", "/tasks/q/system/a/trigger", { key: "a b" });
    expect(wrong).toMatchObject({ status: 400, body: { error: { code: "INVALID_NAME", field: "key" } } });
  });

  test("a trigger may have a payload of its own", async () => {
    await api("POST", "/tasks", minimal("a", { payload: { day: 1 } }));
    const { status, body } = await api("POST", "/tasks/q/system/a/trigger", { payload: { day: 2 } });
    expect(status).toBe(202);
    const run = await api("GET", `/runs/${encodeURIComponent(String(body["run"]))}`);
    expect(run.body).toMatchObject({ trigger: "manual", by: "admin", payload: { day: 2 } });
    expect((await api("GET", "/tasks/q/system/a")).body["payload"]).toEqual({ day: 1 });
  });

  test("a trigger can wait for the run before it", async () => {
    await api("POST", "/tasks", minimal("a", { overlap: "queue-one" }));
    expect((await api("POST", "/tasks/q/system/a/trigger")).body["outcome"]).toBe("enqueued");
    const second = await api("POST", "/tasks/q/system/a/trigger");
    expect(second).toMatchObject({
      status: 202,
      body: {
        outcome: "queued",
        key: expect.any(String),
        warnings: [{ code: "NO_NODE" }, { code: "NO_WORKER" }],
      },
    });
  });

  test("the skips have their reasons", async () => {
    const put = await api("POST", "/tasks", minimal("a", { schedule: { every: "500ms" } }));
    const due = put.body["nextExecution"] as number;
    expect((await api("GET", "/tasks/q/system/a/skips")).body).toEqual({ skips: [] });
    await eventually(async () => (await storeOf(console_.client).serverTime()) > due);
    await api("PUT", "/tasks/q/system/a", minimal("a"));
    const { body } = await api("GET", "/tasks/q/system/a/skips");
    expect(body["skips"]).toMatchObject([{ reason: "superseded", from: expect.any(Number) }]);
  });

  test.each(["POST /pause", "POST /resume", "POST /trigger", "GET /runs", "GET /skips"])(
    "%s of a task that is not there",
    async (asked) => {
      const [method = "", verb] = asked.split(" ");
      const { status, body } = await api(method, `/tasks/q/system/none${verb}`);
      expect([status, body.error?.code]).toEqual([404, "TASK_NOT_FOUND"]);
    },
  );
});

describe("the namespace", () => {
  test("lists its nodes", async () => {
    const now = await storeOf(console_.client).serverTime();
    const node = nodeInfo("n1", { beat: now });
    await storeOf(console_.client).registry.beat(node);
    const view = { ...node, alive: true, state: "ready" };
    expect((await api("GET", "/nodes")).body).toEqual({ nodes: [view] });
    expect((await api("GET", "/status")).body).toMatchObject({ nodes: { alive: 1, ready: 1 }, behind: 0 });
    await storeOf(console_.client).registry.removeNode("n1");
    expect((await api("GET", "/status")).body).toMatchObject({
      state: "stopped",
      reasons: [{ code: "NO_NODE" }],
    });
  });

  test("lists, puts and lifts freezes", async () => {
    const added = await api("POST", "/freezes", { owner: "acme", note: "INC-43" });
    expect(added).toMatchObject({ status: 201, body: { owner: "acme", active: true } });
    expect(added.body["holds"]).toMatchObject({ tasks: 0, warnings: [{ code: "MATCHES_NOTHING" }] });
    const counted = await api("POST", "/freezes", { owner: "acme", dryRun: true });
    expect(counted).toMatchObject({ status: 200, body: { holds: { tasks: 0 } } });
    const id = String(added.body["id"]);
    expect((await api("GET", "/freezes")).body["freezes"]).toMatchObject([{ id, note: "INC-43" }]);
    const refused = async (body: object) => (await api("POST", "/freezes", body)).status;
    expect([await refused({}), await refused({ all: 1 }), await refused({ al: true })]).toEqual([
      400, 400, 400,
    ]);
    expect((await api("DELETE", `/freezes/${id}`)).status).toBe(204);
    expect((await api("DELETE", `/freezes/${id}`)).status).toBe(404);
  });

  test("lists alerts and silences", async () => {
    expect((await api("GET", "/alerts?kind=failed&limit=5")).body).toMatchObject({ alerts: [] });
    expect((await api("GET", "/alerts?kind=loud")).status).toBe(400);
    expect((await api("GET", "/alerts/undelivered")).body).toEqual({ alerts: [], deliveries: [] });
    const silence = { kind: "slow", owner: "acme", until: "2100-01-01T00:00:00Z", note: "INC-43" };
    const added = await api("POST", "/silences", silence);
    expect(added).toMatchObject({ status: 201, body: { owner: "acme", by: "admin", note: "INC-43" } });
    const counted = await api("POST", "/silences", { ...silence, dryRun: true });
    expect(counted).toMatchObject({ status: 200, body: { holds: { tasks: 0 } } });
    const id = String(added.body["id"]);
    expect((await api("GET", "/silences")).body["silences"]).toMatchObject([{ id, kind: "slow" }]);
    const refused = async (body: object) => (await api("POST", "/silences", body)).status;
    expect(await refused({ all: true })).toBe(400);
    expect(await refused({ all: true, until: "2020-01-01T00:00:00Z" })).toBe(400);
    expect((await api("DELETE", `/silences/${id}`)).status).toBe(204);
    expect((await api("DELETE", `/silences/${id}`)).body.error?.code).toBe("SILENCE_NOT_FOUND");
    const secret = "https://hooks.example.com/secret";
    const sent = await api("POST", "/alerts/test", { target: secret });
    expect(sent).toMatchObject({ status: 202, body: { run: expect.stringMatching(/^test-/) } });
    expect((await api("POST", "/alerts/test", { target: "ftp://x" })).body.error).toMatchObject({
      field: "target",
    });
    const undelivered = (await api("GET", "/alerts/undelivered")).body;
    expect(undelivered["deliveries"]).toMatchObject([
      { to: "hooks.example.com", state: "waiting", kinds: ["test"] },
    ]);
    expect(JSON.stringify(undelivered)).not.toContain("secret");
    await operatorOf(console_.client).queues.delete({ queue: "carillon-alerts" });
  });

  test("puts, lists and deletes shared calendars", async () => {
    const put = await api("PUT", "/calendars/holidays", { entries: ["2026-12-25", "*-05-01"] });
    expect([put.status, put.body]).toMatchObject([
      201,
      { name: "holidays", outcome: "created", replanned: 0 },
    ]);
    const schedule = { cron: "0 9 * * *", except: [{ named: "holidays" }] };
    await api("POST", "/tasks", minimal("a", { schedule }));
    expect((await api("GET", "/calendars")).body["calendars"]).toMatchObject([
      { name: "holidays", entries: 2, tasks: 1, by: "admin" },
    ]);
    const again = await api("PUT", "/calendars/holidays", { entries: ["2026-12-26"] });
    expect([again.status, again.body]).toMatchObject([200, { outcome: "updated", replanned: 1 }]);
    expect((await api("GET", "/calendars/holidays")).body["entries"]).toEqual(["2026-12-26"]);
    const used = await api("DELETE", "/calendars/holidays");
    expect([used.status, used.body.error?.code]).toEqual([409, "CALENDAR_IN_USE"]);
    await api("DELETE", "/tasks/q/system/a");
    expect((await api("DELETE", "/calendars/holidays")).status).toBe(204);
    for (const method of ["GET", "DELETE"]) {
      const gone = await api(method, "/calendars/holidays");
      expect([gone.status, gone.body.error?.code]).toEqual([404, "CALENDAR_NOT_FOUND"]);
    }
  });

  test.each([
    [{}, "INVALID_OPTION", "entries"],
    [{ entries: "2026-12-25" }, "INVALID_OPTION", "entries"],
    [{ entries: ["2026-12-25", 1] }, "INVALID_OPTION", "entries[1]"],
    [{ entries: ["2026-02-30"] }, "INVALID_SCHEDULE", "entries[0]"],
    [{ entries: [], by: 1 }, "INVALID_OPTION", "by"],
  ])("a calendar of %j is refused", async (calendar, code, field) => {
    const { status, body } = await api("PUT", "/calendars/bad", calendar);
    expect([status, body.error?.code, body.error?.field]).toEqual([400, code, field]);
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
