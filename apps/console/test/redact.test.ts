import { Redactor } from "@carillon/ops/internal";
import { bullPrefix } from "@carillon/sdk";
import { internalsOf, storeOf } from "@carillon/sdk/internal";
import { type Job, Queue } from "bullmq";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { enqueued } from "../../../test/helpers.js";
import { ADMIN, OPERATOR, ownConsole, VIEWER } from "./harness.js";

const hidden = "[redacted]";

describe("a redactor", () => {
  const show = (fields: string[], answer: unknown) =>
    JSON.parse(JSON.stringify(answer, new Redactor(fields).replacer)) as unknown;

  const cases: Array<[string[], unknown, unknown]> = [
    [[], { password: "x" }, { password: "x" }],
    [["password"], { user: "u", password: "x" }, { user: "u", password: hidden }],
    [["PassWord"], { pASSword: "x" }, { pASSword: hidden }],
    // Names match as whole words.
    [["pass"], { password: "x", bypass: "y" }, { password: "x", bypass: "y" }],
    [
      ["password"],
      { a: { b: [{ password: "x" }, [{ password: "y" }]] } },
      { a: { b: [{ password: hidden }, [{ password: hidden }]] } },
    ],
    // Redacts the value whatever its type.
    [
      ["card"],
      { card: { number: 1 }, list: [{ card: ["x"] }, { card: null }] },
      { card: hidden, list: [{ card: hidden }, { card: hidden }] },
    ],
    [
      ["headers.authorization"],
      { headers: { Authorization: "x" }, authorization: "y" },
      { headers: { Authorization: hidden }, authorization: "y" },
    ],
    [
      ["users.token"],
      { deep: { users: [{ token: "x", id: 1 }] }, token: "y" },
      { deep: { users: [{ token: hidden, id: 1 }] }, token: "y" },
    ],
    [["payload.token"], { token: "x", a: { token: "y" } }, { token: hidden, a: { token: "y" } }],
    [["a.b"], { "a.b": "x" }, { "a.b": hidden }],
    [["payload"], { token: "x" }, hidden],
    [["password"], "password", "password"],
    [
      ["password"],
      JSON.parse('{"__proto__":{"password":"x"}}'),
      JSON.parse(`{"__proto__":{"password":"${hidden}"}}`),
    ],
  ];
  test.each(cases)("of %j shows %j as %j", (fields, payload, shown) => {
    expect(JSON.stringify(show(fields, { payload, tasks: [{ payload }] }))).toBe(
      JSON.stringify({ payload: shown, tasks: [{ payload: shown }] }),
    );
  });

  test.each(["payload", "data", "result", "returnValue", "checkpoint", "progress"])(
    "looks into %s",
    (holder) => {
      const value = (password: string) => ({ [holder]: { password }, more: [{ [holder]: [{ password }] }] });
      expect(show(["password"], value("x"))).toEqual(value(hidden));
    },
  );

  test("hides values nested too deeply", () => {
    const nested = (levels: number) => JSON.parse(`${"[".repeat(levels)}"x"${"]".repeat(levels)}`) as unknown;
    expect(show(["password"], { data: nested(499) })).toEqual({ data: nested(499) });
    for (const levels of [500, 3_000, 50_000]) {
      const text = JSON.stringify(show(["password"], { data: nested(levels), id: "a" }));
      const shown = `${"[".repeat(500)}"${hidden}"${"]".repeat(500)}`;
      expect(text).toBe(`{"data":${shown},"id":"a"}`);
    }
  });

  test("leaves other fields alone", () => {
    const answer = { id: "a", schedule: { every: "1h" }, token: "t" };
    expect(show(["id", "every", "token"], answer)).toEqual(answer);
  });

  test("refuses to store its own placeholder", () => {
    const redactor = new Redactor(["token", "users.name"]);
    const fields = [
      { token: hidden },
      { a: [{ Token: hidden }] },
      { users: [{ name: "x" }, { name: hidden }] },
      { token: "new", other: hidden, name: hidden },
      { token: ["[redacted]"] },
      null,
      undefined,
      hidden,
    ].map((payload) => {
      try {
        redactor.refuseShown(payload, "payload");
        return undefined;
      } catch (error) {
        return (error as { field: string }).field;
      }
    });
    expect(fields).toEqual([
      "payload.token",
      "payload.a.Token",
      "payload.users.name",
      undefined,
      "payload.token",
      undefined,
      undefined,
      undefined,
    ]);
    expect(() => new Redactor([]).refuseShown({ token: hidden }, "payload")).not.toThrow();
  });

  const stored = {
    token: "x",
    a: { Token: "y" },
    users: [
      { name: "ann", n: 1 },
      { name: "bob", n: 2 },
    ],
  };
  const left = "[redacted] is the placeholder of a hidden value";
  test.each<[string, unknown, unknown]>([
    ["all of them", { ...stored }, stored],
    ["another field", { token: hidden, b: 1 }, { token: "x", b: 1 }],
    ["a new value", { token: "z", a: { Token: hidden } }, { token: "z", a: { Token: "y" } }],
    ["one that is not stored", { b: { token: hidden } }, left],
    [
      "a field next to it in a list",
      {
        users: [
          { name: hidden, n: 3 },
          { name: hidden, n: 2 },
        ],
      },
      {
        users: [
          { name: "ann", n: 3 },
          { name: "bob", n: 2 },
        ],
      },
    ],
    [
      "another order",
      {
        users: [
          { name: hidden, n: 2 },
          { name: hidden, n: 1 },
        ],
      },
      { users: [stored.users[1], stored.users[0]] },
    ],
    ["one less", { users: [{ name: hidden, n: 2 }] }, { users: [stored.users[1]] }],
    ["one less, which was edited", { users: [{ name: hidden, n: 4 }] }, left],
    [
      "two that were edited",
      {
        users: [
          { name: hidden, n: 3 },
          { name: hidden, n: 4 },
        ],
      },
      left,
    ],
    ["one more like another", { users: [...[1, 2, 3].map((n) => ({ name: hidden, n }))] }, left],
    ["another shape", { users: { name: hidden } }, left],
    ["no object", null, null],
  ])("restores stored values: %s", (_, payload, whole) => {
    const redactor = new Redactor(["token", "users.name"]);
    const restored = () => redactor.restored(payload, stored);
    if (whole === left) expect(restored).toThrow(left);
    else expect(restored()).toEqual(whole);
  });
});

describe("a console that hides fields", () => {
  const SECRET = "s3cret-0f-a-payload";
  const payload = { user: "ann", password: SECRET, steps: [{ headers: { Authorization: SECRET } }] };
  const shown = { user: "ann", password: hidden, steps: [{ headers: { Authorization: hidden } }] };
  const task = { id: "a", type: "t", queue: "q", schedule: { every: "1h" } } as const;

  const console_ = ownConsole({ redact: ["password", "headers.authorization"] });
  let queue: Queue;
  let run: string;
  beforeAll(async () => {
    await console_.client.put({ ...task, payload: { ...payload, n: 1 }, overlap: "allow" });
    await console_.client.put({ ...task, payload, overlap: "allow" });
    run = enqueued(await console_.client.trigger("a")).run;
    queue = new Queue("q", {
      connection: { url: console_.redis.url },
      prefix: bullPrefix("console-test", "q"),
    });
    await (await queue.getJob(run))?.updateProgress({ password: SECRET });
    await console_.board.refresh();
  });
  afterAll(async () => {
    await queue.close();
  });

  const stored = async () => (await console_.client.get("a")).payload;
  const job = async () => ((await queue.getJob(run)) as Job<{ payload: unknown }>).data.payload;

  test("shows them on no route", async () => {
    // Stored as a worker would store it.
    const { keys, link } = internalsOf(storeOf(console_.client));
    const record = keys.queue("q").run(run);
    await link.ask((redis) => redis.hset(record, "result", JSON.stringify({ password: SECRET })));
    await link.ask((redis) => redis.hset(record, "checkpoint", JSON.stringify({ password: SECRET })));
    for (const token of [ADMIN, OPERATOR, VIEWER]) {
      let held = 0;
      for (const path of [
        "/api/v1/tasks",
        "/api/v1/tasks/q/system/a",
        "/api/v1/tasks/q/system/a/runs",
        "/api/v1/tasks/q/system/a/revisions",
        "/api/v1/changes",
        "/api/v1/tasks/q/system/a/stats",
        `/api/v1/tasks/q/system/a/explain?time=${Date.now()}`,
        `/api/v1/runs/${run}`,
        "/api/v1/runs/stats",
        "/api/v1/runs/journal",
        "/queues/api/queues?activeQueue=q",
        "/queues/api/job-schedulers",
        `/queues/api/queues/q/${run}`,
        `/queues/api/queues/q/${run}/flow?root=node`,
      ]) {
        const answer = await console_.ask(path, { headers: { authorization: `Bearer ${token}` } });
        const text = await answer.text();
        expect([path, answer.status, text.includes(SECRET)]).toEqual([path, 200, false]);
        if (text.includes(hidden)) held++;
      }
      expect(held).toBeGreaterThanOrEqual(9);
    }
    const { body } = await console_.api("GET", "/tasks/q/system/a");
    expect(body["payload"]).toEqual(shown);
    const { body: board } = await console_.admin("GET", "/queues/api/job-schedulers");
    expect(board.schedulers).toMatchObject([{ template: { data: shown } }]);
    const { body: one } = await console_.admin("GET", `/queues/api/queues/q/${run}`);
    expect(one.job?.data).toMatchObject({ payload: shown, occurrence: { task: "a" } });
    const now = await console_.admin("PUT", "/queues/api/queues/q/job-schedulers/system%2Fa/run");
    expect([now.status, now.body.job?.data.payload]).toEqual([200, shown]);
  });

  test("keeps hidden values that an edit leaves as they are shown", async () => {
    const { body: read } = await console_.api("GET", "/tasks/q/system/a");
    const edit = {
      ...task,
      payload: { ...shown, user: "bob" },
      schedule: { cron: "0 3 * * *" },
      overlap: "allow",
    };
    const checked = await console_.api("POST", "/tasks/validate", { task: edit });
    expect([checked.status, checked.body["humanized"]]).toEqual([200, expect.stringContaining("03:00")]);
    const put = await console_.api("PUT", `/tasks/q/system/a?ifRevision=${String(read["revision"])}`, edit);
    expect([put.status, put.body]).toMatchObject([200, { outcome: "updated" }]);
    expect(await stored()).toEqual({ ...payload, user: "bob" });
    // Someone else read the same revision.
    const late = await console_.api("PUT", `/tasks/q/system/a?ifRevision=${String(read["revision"])}`, {
      ...edit,
      priority: 1,
    });
    expect([late.status, late.body.error?.field]).toEqual([409, "ifRevision"]);
    const again = await console_.api("POST", "/tasks", { ...task, payload: shown, overlap: "allow" });
    expect([again.status, await stored()]).toEqual([200, payload]);
    const asked = await console_.api("POST", "/tasks/q/system/a/trigger", {
      payload: { ...shown, user: "eve" },
      overlap: "allow",
    });
    expect(asked.status).toBe(202);
    const own = (await queue.getJob(String(asked.body["run"]))) as Job<{ payload: unknown }>;
    expect(own.data.payload).toEqual({ ...payload, user: "eve" });
  });

  test("never overwrites a hidden value with its placeholder", async () => {
    const refusal = { code: "INVALID_PAYLOAD", field: "payload.card.password", remedy: expect.any(String) };
    const edit = { ...task, payload: { ...shown, card: { password: hidden } } };
    for (const { status, body } of [
      await console_.api("PUT", "/tasks/q/system/a", edit),
      await console_.api("POST", "/tasks", edit),
      await console_.api("POST", "/tasks/validate", { task: edit }),
      await console_.api("POST", "/tasks/q/system/a/trigger", { payload: edit.payload }),
    ]) {
      expect([status, body.error]).toEqual([400, expect.objectContaining(refusal)]);
    }
    const other = await console_.api("POST", "/tasks", { ...task, id: "copy", payload: shown });
    expect([other.status, other.body.error?.field]).toEqual([400, "payload.password"]);
    const copy = { name: "t", data: shown, options: {} };
    const added = await console_.admin("POST", "/queues/api/queues/q/add", copy);
    expect([added.status, added.body.error?.code, added.body.error?.field]).toEqual([
      400,
      "INVALID_PAYLOAD",
      "data.password",
    ]);
    const path = `/queues/api/queues/q/${run}/update-data`;
    const { status, body } = await console_.admin("PATCH", path, { jobData: { payload: shown } });
    expect([status, body.error?.code, body.error?.field]).toEqual([
      400,
      "INVALID_PAYLOAD",
      "data.payload.password",
    ]);
    expect([await stored(), await job()]).toEqual([payload, payload]);
  });

  test("hides them in the payload of a trigger", async () => {
    const sent = { payload: { user: "bob", password: SECRET } };
    const { status, body } = await console_.api("POST", "/tasks/q/system/a/trigger", sent);
    expect(status).toBe(202);
    const read = await console_.api("GET", `/runs/${encodeURIComponent(String(body["run"]))}`);
    expect(read.body["payload"]).toEqual({ user: "bob", password: hidden });
  });

  test("still lets an admin edit another value, and a job's data", async () => {
    const path = `/queues/api/queues/q/${run}/update-data`;
    const other = { ...payload, password: "another" };
    expect((await console_.admin("PATCH", path, { jobData: { payload: other } })).status).toBe(200);
    expect(await job()).toEqual(other);
    expect((await console_.api("PUT", "/tasks/q/system/a", { ...task, payload: other })).status).toBe(200);
    expect(await stored()).toEqual(other);
  });
});
