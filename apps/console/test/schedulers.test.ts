import { bullPrefix, type TaskInput } from "@carillon/sdk";
import { internalsOf, storeOf } from "@carillon/sdk/internal";
import { eventually } from "@carillon/testing";
import { Queue } from "bullmq";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { attempt, ownRedis } from "../../../test/helpers.js";
import { type Answer, ownConsole } from "./harness.js";

const full: TaskInput = {
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
  subject: "disk",
  submitter: "ann",
  group: "g",
};

const own = ownRedis({ appendonly: true });
const console_ = ownConsole({}, own);
beforeEach(async () => {
  const { tasks } = await console_.client.list({ limit: 1_000 });
  await Promise.all(tasks.map((task) => console_.client.delete(task)));
});

async function put(...tasks: TaskInput[]): Promise<void> {
  await console_.client.putMany(tasks);
  await console_.board.refresh();
}

const minimal = (id: string, more: Partial<TaskInput> = {}): TaskInput => ({
  id,
  type: "t",
  queue: "q",
  schedule: { every: "1h" },
  ...more,
});

/** The address that Bull Board's page uses. */
const at = (queue: string, id: string, action = "") =>
  `/queues/api/queues/${encodeURIComponent(queue)}/job-schedulers/${encodeURIComponent(id)}${action}`;

const schedulers = async (query = ""): Promise<NonNullable<Answer["schedulers"]>> =>
  (await console_.admin("GET", `/queues/api/job-schedulers${query}`)).body.schedulers ?? [];

describe("the list", () => {
  test("shows our tasks in the form of Bull Board", async () => {
    await put(full);
    const task = await console_.client.get({ owner: "tenant-a", id: "nightly" });
    const [shown] = await schedulers();
    expect(shown).toMatchObject({
      id: "tenant-a/nightly",
      queueName: "reports",
      name: "disk.report",
      pattern: "0 3 * * *",
      tz: "Europe/Berlin",
      next: task.nextExecution,
      template: {
        data: full.payload,
        opts: { state: "scheduled", tags: ["disk", "ops"], description: "Every night" },
      },
    });
    expect(shown).not.toHaveProperty("lastRun");
  });

  test("marks paused and finished tasks, which have no next run", async () => {
    await put(minimal("held"), minimal("over", { schedule: { at: "2020-01-01T00:00:00Z" } }));
    await console_.client.pause("held", { by: "ann", note: "upstream is down" });
    const [held, over] = await schedulers();
    expect(held).toMatchObject({
      name: "t · paused by ann: upstream is down",
      pattern: "every 1h, counted from the Unix epoch",
      template: { opts: { state: "paused", paused: { by: "ann", note: "upstream is down" } } },
    });
    expect(over).toMatchObject({ name: "t · finished", pattern: expect.stringContaining("2020") });
    expect([held, over].map((one) => one && "next" in one)).toEqual([false, false]);
  });

  test("shows the last outcome and the failures in a row", async () => {
    await put(minimal("a"));
    const { runs } = storeOf(console_.client);
    const name = { queue: "q", owner: "system", id: "a" };
    const end = async (outcome: "failed" | "succeeded") => {
      const { run = "" } = (await console_.client.trigger(name, { overlap: "allow" })) as { run?: string };
      const started = await runs.start(name, run, attempt());
      const fence = started.word === "OK" ? started.fence : 0;
      const error = outcome === "failed" ? "Error: no paper\n    at print" : undefined;
      await runs.settle(name, run, { fence, outcome, error });
    };
    const shown = async () => (await schedulers())[0]?.["name"];
    await end("failed");
    expect(await shown()).toBe("t · last run failed: Error: no paper");
    await end("failed");
    expect(await shown()).toBe("t · last run failed: Error: no paper · 2 failures in a row");
    await end("succeeded");
    expect(await shown()).toBe("t · last run succeeded");
  });

  test.each(["en-US", "de-DE"])("asks before it deletes a task (%s)", async (language) => {
    const texts = await console_.admin("GET", `/queues/static/locales/${language}/messages.json`);
    const { SCHEDULERS } = texts.body as unknown as {
      SCHEDULERS: { TITLE: string; CONFIRM: Record<string, string> };
    };
    expect(SCHEDULERS.CONFIRM["REMOVE"]).toMatch(/^Delete task "{{id}}" with its run records/);
    expect(SCHEDULERS.CONFIRM["RUN"]).toContain("{{id}}");
    expect(SCHEDULERS.TITLE).toBeTruthy();
    expect((await console_.admin("GET", "/queues/static/locales/xx/messages.json")).status).toBe(404);
  });

  test("filters and counts by queue", async () => {
    await put(minimal("a"), minimal("b"), minimal("c", { queue: "other" }));
    expect((await schedulers("?queueName=q")).map(({ id }) => id)).toEqual(["system/a", "system/b"]);
    const { queues } = (await console_.admin("GET", "/queues/api/queues")).body;
    expect(queues?.map(({ name, jobSchedulerCount }) => [name, jobSchedulerCount])).toEqual([
      ["other", 1],
      ["q", 2],
    ]);
  });

  test("is bounded, and says how many tasks are missing", async () => {
    await put(...Array.from({ length: 501 }, (_, i) => minimal(`t${i}`, { queue: "many" })));
    expect(await schedulers("?queueName=many")).toHaveLength(500);
    const queues = async () => (await console_.admin("GET", "/queues/api/queues")).body.queues;
    expect(await queues()).toMatchObject([
      { jobSchedulerCount: 501, description: "Schedulers shows the first 500 of 501 tasks." },
    ]);
    await console_.client.delete("t0");
    const [all] = (await queues()) ?? [];
    expect([all?.["jobSchedulerCount"], all?.["description"]]).toEqual([500, undefined]);
  });

  test("skips a stored schedule that cannot be read", async () => {
    const ids = ["end", "start", "at", "any"];
    await put(minimal("a"), ...ids.map((id) => minimal(id)));
    const { keys, link } = internalsOf(storeOf(console_.client));
    for (const [id, schedule] of [
      ["end", { every: "1h", end: "nonsense" }],
      ["start", { every: "1h", start: "nonsense" }],
      ["at", { at: 1e300 }],
      ["any", { any: [{ cron: "nonsense" }] }],
    ] as const) {
      const key = keys.queue("q").task(`system/${id}`);
      await link.ask((redis) => redis.hset(key, "schedule", JSON.stringify(schedule)));
    }
    const shown = await schedulers();
    expect(shown.map(({ id, pattern }) => [id, pattern])).toEqual([
      ["system/a", "every 1h, counted from the Unix epoch"],
      ...["any", "at", "end", "start"].map((id) => [`system/${id}`, "a schedule that cannot be read"]),
    ]);
    await Promise.all(ids.map((id) => console_.client.delete(id)));
  });

  test("skips a task that is deleted meanwhile", async () => {
    await put(minimal("a"), minimal("b"));
    const { client } = console_;
    const { list } = client;
    vi.spyOn(client, "list").mockImplementationOnce(async (options) => {
      const page = await list.call(client, options);
      await client.delete("a");
      return page;
    });
    const { status, body } = await console_.admin("GET", "/queues/api/job-schedulers");
    expect([status, body.schedulers?.map(({ id }) => id)]).toEqual([200, ["system/a", "system/b"]]);
    expect((await schedulers()).map(({ id }) => id)).toEqual(["system/b"]);
  });

  test("counts the occurrences that a schedule has enqueued", async () => {
    await put(minimal("a"));
    expect(await schedulers()).toMatchObject([{ iterationCount: 0 }]);
    const store = storeOf(console_.client);
    await internalsOf(store).link.ask((client) =>
      client.hset(internalsOf(store).keys.queue("q").task("system/a"), "fired", 3),
    );
    expect(await schedulers()).toMatchObject([{ iterationCount: 3 }]);
  });

  test("links the last run to its job while it exists", async () => {
    await put(minimal("a"));
    const triggered = await console_.client.trigger("a");
    const run = triggered.outcome === "enqueued" ? triggered : undefined;
    expect(await schedulers()).toMatchObject([{ lastRun: run?.enqueued, lastRunJobId: run?.run }]);
    const queue = new Queue("q", {
      connection: { host: console_.redis.host, port: console_.redis.port },
      prefix: bullPrefix("console-test", "q"),
    });
    await queue.obliterate({ force: true });
    await queue.close();
    const [after] = await schedulers();
    expect(after?.["lastRun"]).toBe(run?.enqueued);
    expect(after).not.toHaveProperty("lastRunJobId");
  });
});

describe("run now", () => {
  test("enqueues a manual occurrence and leaves the schedule alone, paused or not", async () => {
    await put(full);
    await console_.client.pause({ owner: "tenant-a", id: "nightly" });
    const before = await console_.client.get({ owner: "tenant-a", id: "nightly" });
    const { status, body } = await console_.admin("PUT", at("reports", "tenant-a/nightly", "/run"));
    expect(status).toBe(200);
    expect(body.job).toMatchObject({
      name: "disk.report",
      data: { payload: full.payload, occurrence: { trigger: "manual", owner: "tenant-a", task: "nightly" } },
    });
    const after = await console_.client.get({ owner: "tenant-a", id: "nightly" });
    expect([after.state, after.due]).toEqual(["paused", before.due]);
    const runs = await console_.client.runs.list({ owner: "tenant-a", id: "nightly" });
    expect(runs.map(({ id, state, trigger, by }) => ({ id, state, trigger, by }))).toEqual([
      { id: body.job?.id, state: "queued", trigger: "manual", by: "admin" },
    ]);
  });

  test("obeys the overlap policy, and reports it", async () => {
    await put(minimal("a", { overlap: "skip" }));
    const run = () => console_.admin("PUT", at("q", "system/a", "/run"));
    expect((await run()).status).toBe(200);
    const { status, body } = await run();
    expect(status).toBe(409);
    expect(body.error).toMatchObject({
      code: "SKIPPED_OVERLAP",
      message: expect.stringContaining("system/a has not ended"),
    });
    expect(await console_.client.runs.list("a")).toHaveLength(1);
  });

  test("has no job while an earlier run is open, and reports that", async () => {
    await put(minimal("a", { overlap: "queue-one" }));
    const run = () => console_.admin("PUT", at("q", "system/a", "/run"));
    expect((await run()).status).toBe(200);
    const { status, body } = await run();
    expect([status, body.error?.code]).toEqual([409, "CONFLICT"]);
    expect(body.error?.message).toContain("starts after it");
  });
});

describe("remove", () => {
  test("deletes the task and no other, not even of the same name", async () => {
    await put(
      minimal("a"),
      minimal("b"),
      minimal("a", { owner: "other" }),
      minimal("a", { queue: "second" }),
    );
    expect((await console_.admin("PUT", at("q", "system/a", "/remove"))).status).toBe(204);
    const { tasks } = await console_.client.list({ limit: 1_000 });
    expect(tasks.map(({ queue, owner, id }) => `${queue}/${owner}/${id}`)).toEqual([
      "q/other/a",
      "q/system/b",
      "second/system/a",
    ]);
  });
});

test("an edit is refused, and names the page of the task", async () => {
  await put(minimal("a"));
  const before = await console_.client.get("a");
  const { status, body } = await console_.admin("PATCH", at("q", "system/a"), { every: 60_000 });
  expect([status, body.error]).toMatchObject([
    403,
    { code: "FORBIDDEN", remedy: "Open the console's page /tasks/q/system/a/edit." },
  ]);
  expect(await console_.client.get("a")).toEqual(before);
});

describe("unknown tasks and queues", () => {
  test.each([
    ["PUT", "/run"],
    ["PUT", "/remove"],
  ] as const)("%s …%s of an unknown task is 404, in an unknown queue too", async (method, action) => {
    await put(minimal("a"));
    for (const id of ["system/b", "other/a", "b"]) {
      const answer = await console_.admin(method, at("q", id, action));
      expect([answer.status, answer.body.error?.code]).toEqual([404, "TASK_NOT_FOUND"]);
    }
    expect((await console_.admin(method, at("nowhere", "system/a", action))).status).toBe(404);
    expect(await console_.client.list()).toMatchObject({ tasks: [{ id: "a" }] });
  });

  test.each(["a/b/c", "sy:tem/a", "{x}/a", "system/", "x".repeat(200)])(
    "the id %s is refused",
    async (id) => {
      await put(minimal("a"));
      const answer = await console_.admin("PUT", at("q", id, "/remove"));
      expect([answer.status, answer.body.error?.code]).toEqual([400, "INVALID_NAME"]);
    },
  );

  test("a body that is not JSON is a coded 400", async () => {
    await put(minimal("a"));
    const headers = { authorization: "Bearer the-token-of-an-admin", "content-type": "application/json" };
    const answer = await console_.ask(at("q", "system/a"), { method: "PATCH", headers, body: "{" });
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({ error: { code: "INVALID_OPTION" } });
  });
});

describe("queues", () => {
  const names = async () =>
    (await console_.admin("GET", "/queues/api/queues")).body.queues?.map(({ name }) => name);

  test("appear and disappear with their tasks, without a restart", async () => {
    await put(minimal("a"));
    expect(await names()).toEqual(["q"]);
    await put(minimal("b", { queue: "second" }));
    expect(await names()).toEqual(["q", "second"]);
    await console_.client.delete("b");
    await console_.board.refresh();
    expect(await names()).toEqual(["q"]);
  });

  test("reading a queue writes nothing into Redis", async () => {
    await console_.client.put(minimal("a", { queue: "untouched" }));
    const keys = async () =>
      (await internalsOf(storeOf(console_.client)).link.ask((redis) => redis.keys("*"))).sort();
    const before = await keys();
    await console_.board.refresh();
    expect(await schedulers()).toHaveLength(1);
    await console_.admin("GET", "/queues/api/queues?activeQueue=untouched");
    await console_.admin("GET", "/queues/api/redis/stats");
    expect(await keys()).toEqual(before);
  });
});

test("an outage of Redis gives errors, and needs no restart", async () => {
  await put(minimal("a"));
  console_.board.start();
  await eventually(async () => (await console_.ask("/ready")).status === 200);
  await console_.redis.kill();
  const answer = await eventually(async () => {
    const got = await console_.admin("GET", "/queues/api/queues");
    return got.status === 503 && got;
  });
  expect(answer.body.error).toMatchObject({ code: "REDIS_UNAVAILABLE", remedy: expect.any(String) });
  expect((await console_.ask("/health")).status).toBe(200);
  // The board has a connection of its own, which may find the outage first.
  await eventually(async () => (await console_.ask("/ready")).status === 503);
  const page = await console_.ask("/queues/", { headers: { authorization: "Bearer the-token-of-an-admin" } });
  expect(page.status).toBe(200);
  await console_.redis.start();
  await eventually(async () => (await console_.ask("/ready")).status === 200);
  expect((await schedulers()).map(({ id }) => id)).toEqual(["system/a"]);
});
