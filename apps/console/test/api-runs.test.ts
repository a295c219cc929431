import { defineTask, type Run, type TaskInput, Worker } from "@carillon/sdk";
import { eventually } from "@carillon/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { SILENT } from "../../../test/helpers.js";
import { type Console, startConsole, VIEWER } from "./harness.js";

const schedule = { at: "2100-01-01T00:00:00Z" };
const report = defineTask("report", {
  queue: "reports",
  payload: z.object({ waits: z.boolean() }).partial(),
  async handler({ waits }, { log, signal }) {
    log("page 1");
    if (waits)
      await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    return { pages: 3 };
  },
});

const mails = defineTask("mails", {
  queue: "reports",
  payload: z.object({}),
  generate: () => ["a", "b", "c"].map((to) => ({ to })),
  process: ({ to }) => {
    if (to === "b") throw new Error("no such address");
  },
});

let console_: Console;
let worker: Worker;
beforeAll(async () => {
  console_ = await startConsole();
  worker = new Worker({
    connection: console_.redis.url,
    namespace: "console-test",
    types: [report, mails],
    logger: SILENT,
  });
  await worker.start();
  const put = (id: string, more: Partial<TaskInput> = {}) =>
    console_.client.put({ id, type: "report", queue: "reports", schedule, ...more });
  await put("good");
  await put("long", { payload: { waits: true }, overlap: "allow" });
  // A queue without workers.
  await put("idle", { queue: "idle" });
});
afterAll(async () => {
  // A failed test may have left a run that waits until it is cancelled.
  await worker.stop({ within: 1_000 });
  await console_.stop();
});

const api: Console["api"] = (...asked) => console_.api(...asked);

async function trigger(id: string): Promise<string> {
  const triggered = await console_.client.trigger(id, { overlap: "allow" });
  return "run" in triggered ? triggered.run : "";
}

async function reached(run: string, state: Run["state"]): Promise<string> {
  return eventually(async () => (await console_.client.runs.get(run)).state === state && run);
}

describe("a run", () => {
  test("is found by its id, plain or encoded", async () => {
    const run = await reached(await trigger("good"), "final");
    const { status, body } = await api("GET", `/runs/${run}`);
    expect([status, body]).toEqual([200, JSON.parse(JSON.stringify(await console_.client.runs.get(run)))]);
    expect(body).toMatchObject({
      id: run,
      outcome: "succeeded",
      result: { pages: 3 },
      attemptList: [{ attempt: 1, pid: process.pid }],
      output: [{ attempt: 1, text: "log page 1\n", cut: false }],
    });
    expect((await api("GET", `/runs/${encodeURIComponent(run)}`)).body).toEqual(body);
  });

  test("of a fan-out has items, and its failed ones are retried", async () => {
    await console_.client.put({ id: "mails", type: "mails", queue: "reports", schedule });
    const run = await reached(await trigger("mails"), "final");
    const viewer = { authorization: `Bearer ${VIEWER}` };
    const items = await api(
      "GET",
      `/runs/${run}/items?limit=1&status=completed,failed&cursor=1`,
      undefined,
      viewer,
    );
    expect([items.status, items.body]).toMatchObject([
      200,
      {
        items: [{ index: 1, status: "failed", data: { to: "b" }, attempts: 1, maxAttempts: 1 }],
        cursor: "2",
      },
    ]);
    const wrong = await api("GET", `/runs/${run}/items?status=broken`);
    expect([wrong.status, wrong.body.error?.code]).toEqual([400, "INVALID_OPTION"]);
    expect((await api("POST", `/runs/${run}/retry-items`, undefined, viewer)).status).toBe(403);
    const retried = await api("POST", `/runs/${run}/retry-items`);
    expect(retried.status).toBe(202);
    const { run: again } = retried.body as { run: string };
    await reached(again, "final");
    expect((await api("GET", `/runs/${again}/items`)).body.items).toMatchObject([{ index: 1 }]);
    const done = await reached(await trigger("good"), "final");
    const none = await api("POST", `/runs/${done}/retry-items`);
    expect((await api("POST", `/runs/${done}/replay`, undefined, viewer)).status).toBe(403);
    const replayed = await api("POST", `/runs/${done}/replay`);
    expect(replayed).toMatchObject({ status: 202, body: { outcome: "enqueued" } });
    expect((await api("POST", "/runs/none@x.1/replay")).body.error?.code).toBe("RUN_NOT_FOUND");
    expect([none.status, none.body.error?.code]).toEqual([409, "CONFLICT"]);
  });

  test("is listed while it runs, with the workers", async () => {
    const run = await reached(await trigger("long"), "running");
    const { id } = worker;
    const listed = await api("GET", "/runs/running?queue=reports&limit=5");
    expect(listed).toMatchObject({ status: 200, body: { runs: [{ id: run, worker: id }] } });
    expect(await api("GET", "/workers")).toMatchObject({
      status: 200,
      body: { workers: [{ id, types: ["report", "mails"], state: "ready" }] },
    });
    expect(await api("GET", "/runs/running?limit=0")).toMatchObject({ status: 400 });
    await console_.client.runs.cancel(run);
    await reached(run, "final");
  });

  test("is cancelled while it runs", async () => {
    const run = await reached(await trigger("long"), "running");
    const cancelled = await api("POST", `/runs/${encodeURIComponent(run)}/cancel`, {});
    expect([cancelled.status, cancelled.body]).toEqual([200, { changed: true }]);
    await reached(run, "final");
    expect((await api("GET", `/runs/${run}`)).body).toMatchObject({
      outcome: "cancelled",
      cancel: { by: "admin" },
    });
    const again = await api("POST", `/runs/${run}/cancel`);
    expect([again.status, again.body.error?.code]).toEqual([409, "CONFLICT"]);
  });

  test("is cancelled before it starts, once", async () => {
    const run = await trigger("idle");
    expect((await api("POST", `/runs/${run}/cancel`)).body).toEqual({ changed: true });
    expect((await api("POST", `/runs/${run}/cancel`, {})).body).toEqual({ changed: false });
  });

  test.each(["good@x.1", "good", "*", "good%40x", "a%2Fb@c.d", "%00@a.b", "x".repeat(300), ".."])(
    "%s is none",
    async (id) => {
      for (const [method, path] of [
        ["GET", `/runs/${id}`],
        ["POST", `/runs/${id}/cancel`],
      ] as const) {
        const { status, body } = await api(method, path);
        expect(status).toBe(404);
        expect(body.error?.code).toBeOneOf(["RUN_NOT_FOUND", "INVALID_OPTION"]);
      }
    },
  );

  test("cannot be cancelled by a viewer, who may look at it", async () => {
    const run = await trigger("idle");
    const viewer = { authorization: `Bearer ${VIEWER}` };
    expect((await api("POST", `/runs/${run}/cancel`, {}, viewer)).status).toBe(403);
    const { status, body } = await api("GET", `/runs/${run}`, undefined, viewer);
    expect([status, body["cancel"]]).toEqual([200, undefined]);
  });
});

describe("a task's statistics", () => {
  test("are counted", async () => {
    const run = await reached(await trigger("good"), "final");
    const { status, body } = await api("GET", "/tasks/reports/system/good/stats");
    expect([status, body]).toEqual([
      200,
      JSON.parse(JSON.stringify(await console_.client.runs.stats("good"))),
    ]);
    expect(body).toMatchObject({ lastRun: run, lastOutcome: "succeeded", failures: 0 });
    expect(body["runs"]).toBeGreaterThan(0);
  });

  test("the last run is in the task too", async () => {
    const run = await reached(await trigger("good"), "final");
    expect((await api("GET", "/tasks/reports/system/good")).body["lastStatus"]).toMatchObject({
      run,
      outcome: "succeeded",
      result: { pages: 3 },
    });
    const { started } = await console_.client.runs.get(run);
    expect(started).toBeTypeOf("number");
    await console_.board.refresh();
    const { body } = await console_.admin("GET", "/queues/api/job-schedulers?queueName=reports");
    expect(body.schedulers?.find(({ id }) => id === "system/good")).toMatchObject({ lastRun: started });
  });
});

describe("explain", () => {
  const EXPLAIN = "/tasks/reports/system/good/explain";

  test("describes the fate of an occurrence", async () => {
    const run = await reached(await trigger("good"), "final");
    const { nominal } = await console_.client.runs.get(run);
    const { status, body } = await api("GET", `${EXPLAIN}?time=${nominal}`);
    expect([status, body]).toMatchObject([
      200,
      { task: { id: "good" }, time: nominal, verdict: "enqueued", run: { id: run, outcome: "succeeded" } },
    ]);
    expect((body["events"] as { code: string }[]).map(({ code }) => code)).toEqual([
      "enqueued",
      "attempt",
      "ended",
    ]);
    const same = { ...body, now: expect.any(Number) };
    const iso = new Date(nominal).toISOString();
    expect((await api("GET", `${EXPLAIN}?time=${iso}`)).body).toEqual(same);
    const east = new Date(nominal + 3_600_000).toISOString().replace("Z", "%2B01:00");
    expect((await api("GET", `${EXPLAIN}?time=${east}`)).body).toEqual(same);
  });

  test("names the nearest times if the schedule has none", async () => {
    const { body } = await api("GET", `${EXPLAIN}?time=2030-01-01T00:00:00Z`);
    expect(body).toMatchObject({ verdict: "no-occurrence", nearest: { after: Date.parse(schedule.at) } });
  });

  test.each(["", "?time=now"])("%j explains what is due or waits now, or comes next", async (query) => {
    const { status, body } = await api("GET", `${EXPLAIN}${query}`);
    expect(status).toBe(200);
    expect(body.time).not.toBe(0);
    expect(body.verdict).not.toBe("no-occurrence");
  });

  test.each([
    ["?time=", "time"],
    ["?time=09:00", "time"],
    ["?time=2026-01-01", "time"],
    ["?time=2026-01-01T00:00:00", "time"],
    ["?time=2026-13-01T00:00:00Z", "time"],
    // A plus that is not encoded means a space.
    ["?time=2026-01-01T00:00:00+01:00", "time"],
    ["?time=-1", "time"],
    ["?time=1&time=2", "time"],
    ["?time=1&zone=UTC", "zone"],
  ])("%j is refused", async (query, field) => {
    const { status, body } = await api("GET", `${EXPLAIN}${query}`);
    expect([status, body.error?.code, body.error?.field]).toEqual([400, "INVALID_OPTION", field]);
  });
});

test.each(["/stats", "/explain?time=1"])("GET %s of an unknown task is a 404", async (path) => {
  const { status, body } = await api("GET", `/tasks/reports/system/none${path}`);
  expect([status, body.error?.code]).toEqual([404, "TASK_NOT_FOUND"]);
});
