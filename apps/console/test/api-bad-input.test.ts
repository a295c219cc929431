import { request } from "node:http";
import { CarillonError } from "@carillon/sdk";
import { ERROR_CODES, storeOf } from "@carillon/sdk/internal";
import { eventually } from "@carillon/testing";
import { beforeAll, describe, expect, test, vi } from "vitest";
import { ownRedis } from "../../../test/helpers.js";
import { ADMIN, type Console, ownConsole } from "./harness.js";

const task = { id: "a", type: "t", queue: "q", schedule: { every: "1h" } };

const own = ownRedis({ appendonly: true });
const console_ = ownConsole({}, own);
beforeAll(async () => {
  await console_.client.put(task);
});

const api: Console["api"] = (...asked) => console_.api(...asked);

/** Sends the path unchanged; `fetch` would normalise it. */
function raw(method: string, path: string): Promise<number | undefined> {
  const { hostname, port } = new URL(console_.url);
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${ADMIN}` };
    const sent = request({ hostname, port, method, path, headers }, (answer) => {
      answer.resume();
      resolve(answer.statusCode);
    });
    sent.on("error", reject).end();
  });
}

test("only an unexpected error is a 500", () => {
  const unexpected = ERROR_CODES.filter((code) => new CarillonError(code, "").statusCode === 500);
  expect(unexpected).toEqual(["INTERNAL"]);
});

test("an unexpected error is logged with its cause", async () => {
  vi.spyOn(storeOf(console_.client).tasks, "list").mockRejectedValueOnce(
    new TypeError("nobody expected this"),
  );
  const { status, body } = await api("GET", "/tasks");
  expect([status, body.error?.code]).toEqual([500, "INTERNAL"]);
  const line =
    console_
      .log()
      .split("\n")
      .find((one) => one.includes("a request failed")) ?? "{}";
  expect(JSON.parse(line)).toMatchObject({
    err: { message: "nobody expected this", stack: expect.any(String) },
  });
});

describe("bodies", () => {
  test.each([
    "text/plain",
    "application/x-www-form-urlencoded",
    "multipart/form-data",
    "application/jsonx",
    "application/json; charset=latin1",
  ])("of type %s are refused", async (type) => {
    for (const [method, path] of [
      ["POST", "/tasks"],
      ["PUT", "/tasks/q/system/a"],
      ["POST", "/tasks/q/system/a/pause"],
    ] as const) {
      const { status, body } = await api(method, path, task, { "content-type": type });
      expect([status, body.error?.code, body.error?.field]).toEqual([415, "INVALID_OPTION", "Content-Type"]);
    }
    expect((await console_.client.get("a")).state).toBe("scheduled");
  });

  test("of no type are refused", async () => {
    const answer = await console_.ask("/api/v1/tasks", {
      method: "POST",
      headers: { authorization: `Bearer ${ADMIN}` },
      body: new Blob([JSON.stringify(task)]),
    });
    expect(answer.status).toBe(415);
    // A chunked request does not state its length.
    const chunked = await console_.ask("/api/v1/tasks/q/system/a/pause", {
      method: "POST",
      headers: { authorization: `Bearer ${ADMIN}` },
      body: new Blob(['{"cancelQueued":true}']).stream(),
      duplex: "half",
    } as RequestInit);
    expect(chunked.status).toBe(415);
    expect((await console_.client.get("a")).state).toBe("scheduled");
  });

  test("that are compressed are refused", async () => {
    const { status, body } = await api("POST", "/tasks", "x", { "content-encoding": "gzip" });
    expect([status, body.error?.field]).toEqual([415, "Content-Encoding"]);
  });

  test("that are not UTF-8 are refused", async () => {
    const body = Buffer.concat([
      Buffer.from('{"payload":{"x":"'),
      Buffer.from([0xff, 0xfe]),
      Buffer.from('"}}'),
    ]);
    const headers = { authorization: `Bearer ${ADMIN}`, "content-type": "application/json" };
    const url = `${console_.url}/api/v1/tasks/q/system/utf8`;
    const answer = await fetch(url, { method: "PUT", headers, body });
    const { error } = (await answer.json()) as { error: { field: string } };
    expect([answer.status, error.field]).toEqual([415, "body"]);
  });

  test("of more than 512 KiB are refused, chunked or not", async () => {
    const { status, body } = await api("POST", "/tasks", { ...task, payload: "x".repeat(512 * 1024) });
    expect([status, body.error?.code, body.error?.field]).toEqual([413, "PAYLOAD_TOO_LARGE", "body"]);
    const chunked = await console_.ask("/api/v1/tasks", {
      method: "POST",
      headers: { authorization: `Bearer ${ADMIN}`, "content-type": "application/json" },
      body: new Blob([`{"payload":"${"x".repeat(512 * 1024)}"}`]).stream(),
      duplex: "half",
    } as RequestInit);
    expect(chunked.status).toBe(413);
  });

  test("just below that meet the payload's own limit", async () => {
    const payload = "x".repeat(300_000);
    for (const [path, sent] of [
      ["/tasks", { ...task, payload }],
      ["/tasks/q/system/a/trigger", { payload }],
    ] as const) {
      const { status, body } = await api("POST", path, sent);
      expect([status, body.error?.code, body.error?.field]).toEqual([413, "PAYLOAD_TOO_LARGE", "payload"]);
    }
  });

  test.each(["{", '{"id":"a"', "null", "1", '"text"', "{'id':1}", "[1,]"])(
    "that are not JSON objects are refused: %s",
    async (text) => {
      for (const path of ["/tasks", "/tasks/validate", "/tasks/q/system/a/trigger"]) {
        const { status, body } = await api("POST", path, text);
        expect([status, body.error?.code, body.error?.field]).toEqual([400, "INVALID_OPTION", "body"]);
      }
    },
  );

  test.each([[[task]], [[]], [undefined]])("without a task are refused: %j", async (body) => {
    for (const [method, path] of [
      ["POST", "/tasks"],
      ["PUT", "/tasks/q/system/a"],
    ] as const) {
      const answer = await api(method, path, body);
      expect(answer.status).toBe(400);
      expect(answer.body.error?.code).toBeOneOf(["INVALID_TASK", "INVALID_NAME"]);
    }
  });

  test("nested very deeply are refused, at any place", async () => {
    const deep = `${"[".repeat(100_000)}${"]".repeat(100_000)}`;
    for (const body of [
      deep,
      `{"id":${deep},"type":"t","queue":"q","schedule":{"every":"1h"}}`,
      `{"id":"a","type":"t","queue":"q","schedule":{"every":"1h"},"payload":${deep}}`,
      `{"id":"a","type":"t","queue":"q","schedule":{"every":${deep}}}`,
      `{"id":"a","type":"t","queue":"q","schedule":{"any":${deep}}}`,
      `{"id":"a","type":"t","queue":"q","schedule":${deep}}`,
      `{"id":"a","type":"t","queue":"q","schedule":{"every":"1h"},"tags":${deep}}`,
      `{"id":"a","type":"t","queue":"q","schedule":{"every":"1h"},"other":${deep}}`,
    ]) {
      for (const [path, text] of [
        ["/tasks", body],
        ["/tasks/validate", `{"task":${body}}`],
      ] as const) {
        const answer = await api("POST", path, text);
        expect([body.slice(0, 60), answer.status]).toEqual([body.slice(0, 60), 400]);
      }
    }
  });
});

test("a task with __proto__ is refused", async () => {
  const text = JSON.stringify(task).replace("{", '{"__proto__":{"state":"paused"},');
  expect((await api("POST", "/tasks", text)).status).toBe(400);
});

describe("parameters", () => {
  test.each([
    ["/tasks?ower=a", "ower"],
    ["/tasks?__proto__=a", "__proto__"],
    ["/tasks?queue[]=a", "queue[]"],
    ["/tasks?queue=a&queue=b", "queue"],
    ["/tasks?queue=", "queue"],
    ["/tasks?limit=", "limit"],
    ["/tasks?cursor=x", "cursor"],
    ["/tasks?neverRan=true&failing=true", "neverRan"],
    ["/runs/journal?outcome=failed,fine", "outcome"],
    ["/runs/journal?outcome=failed&outcome=fine", "outcome"],
    ["/runs/journal?task=a%2Fb%2Fc", "id"],
  ])("%s is refused", async (path, field) => {
    const { status, body } = await api("GET", path);
    expect([status, body.error?.field]).toEqual([400, field]);
    expect(body.error?.code).toBeOneOf(["INVALID_OPTION", "INVALID_NAME"]);
  });

  test.each([
    ["POST", "/tasks?dry=1", task],
    ["DELETE", "/tasks/q/system/a?force=1", undefined],
    ["POST", "/tasks/q/system/a/pause?note=x", undefined],
  ])("of a write are refused too: %s %s", async (method, path, body) => {
    expect((await api(method, path, body)).status).toBe(400);
    expect((await console_.client.get("a")).state).toBe("scheduled");
  });

  test("a DELETE takes no body", async () => {
    const { status } = await api("DELETE", "/tasks/q/system/a", { force: true });
    expect(status).toBe(400);
    expect((await console_.client.get("a")).state).toBe("scheduled");
  });
});

describe("names in paths", () => {
  test.each([
    "a%20b",
    "a%2Fb",
    "a:b",
    "a@b",
    "%7Ba%7D",
    "ä",
    "%00",
    "a%0Ab",
    "*",
    "x".repeat(129),
    "a%252Fb",
  ])("%s is not a name", async (odd) => {
    for (const path of [`/tasks/${odd}/system/a`, `/tasks/q/${odd}/a`, `/tasks/q/system/${odd}`]) {
      for (const method of ["GET", "DELETE"]) {
        const { status, body } = await api(method, path);
        expect([status, body.error?.code]).toEqual([400, "INVALID_NAME"]);
      }
      expect((await api("PUT", path, { type: "t", schedule: { every: "1h" } })).status).toBe(400);
      expect((await api("POST", `${path}/trigger`)).status).toBe(400);
    }
  });

  test.each(["%", "%zz", "%ff", "%c3%28"])("%s cannot be read", async (broken) => {
    expect((await api("GET", `/tasks/q/system/${broken}`)).status).toBe(400);
  });

  test.each(["a.b", "A-_9", ".hidden", "-x", "0", "__proto__", "constructor", "pause", "x".repeat(128)])(
    "%s is one like any other",
    async (id) => {
      const path = `/tasks/${id}/${id}/${id}`;
      expect((await api("PUT", path, { type: "t", schedule: { every: "1h" } })).status).toBe(201);
      expect((await api("GET", path)).body).toMatchObject({ queue: id, owner: id, id });
      expect((await api("DELETE", path)).status).toBe(204);
    },
  );

  test("of dots only are refused in an address, but not in a body", async () => {
    await console_.client.put({ ...task, id: ".." });
    expect(await raw("GET", "/api/v1/tasks/q/system/..")).toBe(404);
    expect(await raw("DELETE", "/api/v1/tasks/../system/a")).toBe(404);
    expect(await raw("DELETE", "/api/v1/tasks/q/system/%2e%2e")).toBe(404);
    expect((await console_.client.get("a")).id).toBe("a");
    const named = { tasks: [{ queue: "q", owner: "system", id: ".." }] };
    expect((await api("POST", "/tasks/delete", named)).body).toMatchObject({ count: 1 });
  });
});

describe("paths and methods", () => {
  test.each([
    "",
    "/",
    "/nothing",
    "/tasks/",
    "/Tasks",
    "/tasks/q",
    "/tasks/q/system",
    "/tasks/q/system/a/",
    "/validate/x",
  ])("there is nothing at %j", async (path) => {
    const { status, body } = await api("GET", path);
    expect([status, body]).toEqual([404, { error: expect.objectContaining({ field: "path" }) }]);
  });

  test.each([
    ["DELETE", "/tasks", "GET, HEAD, POST"],
    ["POST", "/tasks/q/system/a", "GET, HEAD, PUT, DELETE"],
    ["GET", "/tasks/q/system/a/pause", "POST"],
    ["HEAD", "/tasks/q/system/a/trigger", "POST"],
    ["POST", "/tasks/q/system/a/runs", "GET, HEAD"],
    ["GET", "/tasks/validate", "POST"],
    ["PUT", "/runs/journal", "GET, HEAD"],
    ["PATCH", "/calendars/x", "GET, HEAD, PUT, DELETE"],
    ["GET", "/queues/q", "DELETE"],
    ["OPTIONS", "/tasks", "GET, HEAD, POST"],
  ])("%s %s gets the allowed methods %s", async (method, path, allow) => {
    const { status, headers } = await api(method, path);
    expect([status, headers.get("allow")]).toEqual([405, allow]);
  });

  test("HEAD is GET without a body", async () => {
    const { status, headers, body } = await api("HEAD", "/tasks/q/system/a");
    expect([status, headers.get("content-type"), body]).toEqual([200, "application/json; charset=utf-8", {}]);
  });
});

test("the API answers 503 while Redis is away, and recovers", async () => {
  await console_.redis.kill();
  const { status, body } = await api("GET", "/tasks");
  expect([status, body.error?.code]).toEqual([503, "REDIS_UNAVAILABLE"]);
  await console_.redis.start();
  await eventually(async () => (await api("GET", "/tasks")).status === 200);
});
