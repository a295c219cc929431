import { internalsOf, OUTCOMES, storeOf } from "@carillon/sdk/internal";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Console, OPERATOR, ownConsole } from "./harness.js";

const QUEUES = "/queues/api/queues";
const ALERTS = "carillon-alerts";

const console_ = ownConsole();
beforeEach(() =>
  console_.client.putMany(
    ["q", "r", ALERTS].map((queue) => ({ id: `of-${queue}`, queue, type: "t", schedule: { every: "1h" } })),
  ),
);
afterEach(async () => {
  for (const queue of (await console_.ops.names.list({ of: "queue" })).names)
    await console_.ops.queues.delete({ queue });
});

const api: Console["api"] = (...asked) => console_.api(...asked);
/** The paused queues, each with the name of the person who paused it. */
const paused = async () =>
  Object.fromEntries(
    (await console_.ops.queues.list()).queues.flatMap(({ name, paused }) =>
      paused ? [[name, paused.by]] : [],
    ),
  );

describe("the API's queues", () => {
  test("list tasks, jobs, workers, pauses and outcomes", async () => {
    const { outcomes } = internalsOf(storeOf(console_.client)).keys.queue("q");
    await internalsOf(storeOf(console_.client)).link.ask((client) => client.hset(outcomes, "failed", 2));
    await api("POST", "/queues/q/pause", { note: "deploy" });
    await console_.client.trigger("of-q");
    const none = Object.fromEntries(OUTCOMES.map((outcome) => [outcome, 0]));
    const idle = { tasks: 1, workers: 0, waiting: 0, active: 0, outcomes: none };
    expect((await api("GET", "/queues")).body).toEqual({
      queues: [
        { name: ALERTS, ...idle },
        {
          name: "q",
          tasks: 1,
          workers: 0,
          waiting: 1,
          active: 0,
          oldestWaitingMs: expect.any(Number),
          paused: { at: expect.any(Number), note: "deploy", by: "admin" },
          outcomes: { ...none, failed: 2 },
        },
        { name: "r", ...idle },
      ],
    });
  });
});

describe("Bull Board", () => {
  beforeEach(() => console_.board.refresh());
  const operate = async (path: string) => {
    const headers = { authorization: `Bearer ${OPERATOR}` };
    const answer = await console_.ask(`${QUEUES}${path}`, { method: "PUT", headers });
    return { status: answer.status, body: await answer.json() };
  };

  test("pauses all queues except that of alerts, with its role as author, and resumes all", async () => {
    expect((await operate("/pause")).status).toBe(200);
    expect(await paused()).toEqual({ q: "operator", r: "operator" });
    expect((await operate("/resume")).status).toBe(200);
    expect(await paused()).toEqual({});
  });

  test("pauses one queue, but not that of alerts", async () => {
    expect((await operate("/q/pause")).status).toBe(200);
    expect(await paused()).toEqual({ q: "operator" });
    expect((await operate("/q/resume")).status).toBe(200);
    const { status, body } = await operate(`/${ALERTS}/pause`);
    expect([status, body]).toEqual([
      403,
      expect.objectContaining({ error: expect.objectContaining({ code: "FORBIDDEN", field: "queue" }) }),
    ]);
    expect(await paused()).toEqual({});
  });

  test("pauses the others if one was deleted a moment ago", async () => {
    const refresh = console_.board.refresh.bind(console_.board);
    console_.board.refresh = async () => {};
    await console_.client.delete("of-q");
    expect((await operate("/pause")).status).toBe(200);
    expect(await paused()).toEqual({ r: "operator" });
    console_.board.refresh = refresh;
  });
});
