import { defineTask, type Run, Worker } from "@carillon/sdk";
import { eventually } from "@carillon/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { SILENT } from "../../../test/helpers.js";
import { ownConsole } from "./harness.js";

const report = defineTask("report", {
  queue: "reports",
  payload: z.object({ fails: z.boolean() }),
  handler({ fails }) {
    if (fails) throw new Error("no paper");
    return { pages: 3 };
  },
});

const console_ = ownConsole();
let worker: Worker;
/** Newest first. */
let runs: Run[];

beforeAll(async () => {
  worker = new Worker({
    connection: console_.redis.url,
    namespace: "console-test",
    types: [report],
    logger: SILENT,
  });
  await worker.start();
  const path = (id: string, owner = "system") => `/tasks/reports/${owner}/${id}`;
  const schedule = { at: "2100-01-01T00:00:00Z" };
  for (const [at, fails] of [
    [path("good"), false],
    [path("bad"), true],
    [path("good", "acme"), false],
  ] as const) {
    const before = (await journal()).length;
    await console_.api("PUT", at, { type: "report", schedule, payload: { fails } });
    expect((await console_.api("POST", `${at}/trigger`)).status).toBe(202);
    runs = await eventually(async () => {
      const found = await journal();
      return found.length > before && found;
    });
  }
});
afterAll(async () => {
  await worker.stop();
});

async function journal(query = ""): Promise<Run[]> {
  const { body } = await console_.api("GET", `/runs/journal${query}`);
  return body["runs"] as Run[];
}

const named = (found: Run[]) => found.map(({ task }) => `${task.owner}/${task.id}`);

test("the journal lists runs, newest first", async () => {
  const { status, body } = await console_.api("GET", "/runs/journal");
  expect([status, body]).toEqual([200, { runs }]);
  expect(named(runs)).toEqual(["acme/good", "system/bad", "system/good"]);
  expect(runs[1]).toMatchObject({
    task: { queue: "reports", owner: "system", id: "bad" },
    state: "final",
    outcome: "failed",
    error: expect.stringContaining("no paper"),
    trigger: "manual",
    finished: expect.any(Number),
  });
});

test("the journal filters by outcome, node and time", async () => {
  expect(named(await journal("?outcome=failed"))).toEqual(["system/bad"]);
  expect(await journal("?outcome=lost")).toEqual([]);
  expect(named(await journal("?outcome=failed,lost"))).toEqual(["system/bad"]);
  const all = ["acme/good", "system/bad", "system/good"];
  expect(named(await journal("?outcome=failed&outcome=succeeded"))).toEqual(all);
  expect(await journal(`?node=${runs[0]?.node}`)).toHaveLength(3);
  expect(await journal("?node=another")).toEqual([]);
  const [last, middle, first] = runs.map(({ finished }) => finished ?? 0);
  expect(named(await journal(`?from=${middle}`))).toEqual(["acme/good", "system/bad"]);
  expect(named(await journal(`?from=${first}&to=${middle}`))).toEqual(["system/bad", "system/good"]);
  expect(await journal(`?from=${Number(last) + 1}`)).toEqual([]);
  const turned = await console_.api("GET", `/runs/journal?from=${middle}&to=${first}`);
  expect(turned.status).toBe(400);
  expect(turned.body["error"]).toMatchObject({ code: "INVALID_OPTION", field: "from" });
});

test("the journal has pages", async () => {
  const first = (await console_.api("GET", "/runs/journal?limit=2")).body;
  expect(named(first["runs"] as Run[])).toEqual(["acme/good", "system/bad"]);
  const second = (await console_.api("GET", `/runs/journal?limit=2&cursor=${first["cursor"]}`)).body;
  expect(named(second["runs"] as Run[])).toEqual(["system/good"]);
  expect(second).not.toHaveProperty("cursor");
});

test("the statistics of all tasks, and of some", async () => {
  const stats = async (query = "") => {
    const { status, body } = await console_.api("GET", `/runs/stats${query}`);
    expect(status).toBe(200);
    return body as { tasks: { task: Run["task"] }[]; cursor?: string };
  };
  const all = await stats();
  expect(all).toEqual(JSON.parse(JSON.stringify(await console_.ops.runs.statsMany())));
  expect(named(all.tasks as Run[])).toEqual(["acme/good", "system/bad", "system/good"]);
  expect(all.tasks[1]).toMatchObject({ lastOutcome: "failed", consecutiveFailures: 1, successRate: 0 });
  expect(named((await stats("?outcome=failed,crashed&sort=next")).tasks as Run[])).toEqual(["system/bad"]);
  expect((await stats("?owner=acme")).tasks).toEqual([all.tasks[0]]);
  const first = await stats("?limit=2");
  expect([...first.tasks, ...(await stats(`?limit=2&cursor=${first.cursor}`)).tasks]).toEqual(all.tasks);
  const { body } = await console_.api("GET", "/tasks?outcome=succeeded&sort=next");
  expect(body["tasks"]).toMatchObject([{ owner: "acme" }, { owner: "system", id: "good" }]);
});

test("a run is found by its id, plain or encoded", async () => {
  const { id } = runs[2] as Run;
  const { status, body } = await console_.api("GET", `/runs/${id}`);
  expect([status, body]).toEqual([200, JSON.parse(JSON.stringify(await console_.client.runs.get(id)))]);
  expect(body).toMatchObject({ id, result: { pages: 3 }, attemptList: [{ attempt: 1, pid: process.pid }] });
  expect((await console_.api("GET", `/runs/${encodeURIComponent(id)}`)).body).toEqual(body);
});

test.each(["good@x.1", "good", "*", "good%40x", "a%2Fb@c.d", "%00@a.b", "x".repeat(300), ".."])(
  "%s is no run",
  async (id) => {
    for (const [method, path] of [
      ["GET", `/runs/${id}`],
      ["POST", `/runs/${id}/cancel`],
    ] as const) {
      const { status, body } = await console_.api(method, path);
      expect(status).toBe(404);
      expect(body.error?.code).toBeOneOf(["RUN_NOT_FOUND", "INVALID_OPTION"]);
    }
  },
);

test("explain takes a time in each form", async () => {
  const { id, nominal } = runs[2] as Run;
  const explain = async (time: unknown) =>
    (await console_.api("GET", `/tasks/reports/system/good/explain?time=${time}`)).body;
  const body = await explain(nominal);
  expect(body).toMatchObject({ time: nominal, verdict: "enqueued", run: { id, outcome: "succeeded" } });
  const same = { ...body, now: expect.any(Number) };
  expect(await explain(new Date(nominal).toISOString())).toEqual(same);
  const east = new Date(nominal + 3_600_000).toISOString().replace("Z", "%2B01:00");
  expect(await explain(east)).toEqual(same);
  expect((await explain("now")).time).not.toBe(0);
});
