import { describe, expect, it } from "vitest";
import { alertWebhook, httpRequest } from "../../src/http/index.js";
import { validatePayload } from "../../src/task-type.js";
import { failure } from "./bench.js";

const type = httpRequest();
const URL = "https://example.com/a";
const check = (payload: unknown) => validatePayload(type, payload);

describe("the payload of http.request", () => {
  it("needs a URL, and has defaults", async () => {
    expect(await check({ url: URL })).toEqual({ method: "GET", url: URL, headers: {}, expectStatus: "2xx" });
  });

  it("takes all of its fields", async () => {
    const payload = {
      method: "POST",
      url: URL,
      headers: { Authorization: "Bearer abc", "X-A": "", "user-agent": "me" },
      body: { a: [1, null, "€"] },
      expectStatus: ["2xx", 404],
      timeout: "1h",
    };
    expect(await check(payload)).toEqual(payload);
    for (const body of ["text", "", 0, false, null, []]) {
      expect(await check({ ...payload, body })).toMatchObject({ body });
    }
    const most = [
      { "X-A": "a".repeat(8_189) },
      Object.fromEntries(
        Array(64)
          .fill("a")
          .map((a, i) => [a + i, a]),
      ),
    ];
    for (const headers of most) expect(await check({ ...payload, headers })).toMatchObject({ headers });
  });

  const nested = (depth: number): unknown => (depth === 0 ? 1 : [nested(depth - 1)]);
  it.each<[string, object, string]>([
    ["no URL", {}, "payload.url"],
    ["a URL that is none", { url: "example.com" }, "payload.url"],
    ["an ftp URL", { url: "ftp://example.com/" }, "payload.url"],
    ["a file URL", { url: "file:///etc/passwd" }, "payload.url"],
    ["a data URL", { url: "data:,a" }, "payload.url"],
    ["a URL with a user", { url: "https://user@example.com/" }, "payload.url"],
    ["a URL with a password", { url: "https://:secret@example.com/" }, "payload.url"],
    ["a long URL", { url: `${URL}${"a".repeat(2_048)}` }, "payload.url"],
    ["an unknown field", { url: URL, follow: true }, "payload"],
    ["CONNECT", { url: URL, method: "CONNECT" }, "payload.method"],
    ["TRACE", { url: URL, method: "TRACE" }, "payload.method"],
    ["a method of two lines", { url: URL, method: "GET / HTTP/1.1\r\nX: y" }, "payload.method"],
    ["headers in a list", { url: URL, headers: ["a"] }, "payload.headers"],
    ["headers that are null", { url: URL, headers: null }, "payload.headers"],
    ["a body with GET", { url: URL, body: "a" }, "payload.body"],
    ["a body with HEAD", { url: URL, method: "HEAD", body: "a" }, "payload.body"],
    ["a large body", { url: URL, method: "POST", body: "a".repeat(262_143) }, "payload.body"],
    ["a deep body", { url: URL, method: "POST", body: nested(65) }, "payload.body"],
    ["a very deep body", { url: URL, method: "POST", body: nested(5_000) }, "payload.body"],
    ["a body that is not JSON", { url: URL, method: "POST", body: new Date() }, "payload.body"],
    [
      "a prototype in the body",
      { url: URL, method: "POST", body: JSON.parse('{"__proto__":1}') },
      "payload.body",
    ],
    ["no such status", { url: URL, expectStatus: 99 }, "payload.expectStatus"],
    ["an early status", { url: URL, expectStatus: "1xx" }, "payload.expectStatus"],
    ["a range of our own", { url: URL, expectStatus: "200-299" }, "payload.expectStatus"],
    ["a timeout without a unit", { url: URL, timeout: "10" }, "payload.timeout"],
    ["a timeout of a fraction", { url: URL, timeout: 1.5 }, "payload.timeout"],
    ["a timeout of too many milliseconds", { url: URL, timeout: 3_600_001 }, "payload.timeout"],
    ["a timeout of zero", { url: URL, timeout: "0s" }, "payload.timeout"],
    ["a timeout of more than an hour", { url: URL, timeout: "61m" }, "payload.timeout"],
  ])("refuses %s", async (_, payload, field) => {
    const error = await failure(check(payload));
    expect(error).toMatchObject({ code: "INVALID_PAYLOAD", field });
    expect(error.message).not.toMatch(/secret|\.\./);
  });

  const secret = "Bearer s3cr3t";
  it.each<[string, Record<string, unknown>]>([
    ...[
      "Host",
      "host",
      "Content-Length",
      "Transfer-Encoding",
      "Connection",
      "Keep-Alive",
      "TE",
      "Trailer",
      "Upgrade",
      "Expect",
      "Proxy-Authorization",
      "proxy-connection",
      "HTTP2-Settings",
      "Accept-Encoding",
      "Idempotency-Key",
      "Carillon-Signature",
      "carillon-run",
      "Carillon-Anything",
      "",
      "a b",
      "a:",
      "a\r\nb",
      "é",
      "(a)",
      "__proto__",
    ].map((name): [string, Record<string, unknown>] => [
      JSON.stringify(name),
      JSON.parse(`{${JSON.stringify(name)}:"${secret}"}`),
    ]),
    ["CR LF in a value", { "X-A": `${secret}\r\nHost: evil` }],
    ["LF in a value", { "X-A": `${secret}\nb` }],
    ["NUL in a value", { "X-A": `${secret}\0` }],
    ["a value that is not ASCII", { "X-A": `${secret} €` }],
    ["a value that is a number", { "X-A": 1 }],
    ["a value that is a list", { "X-A": [secret] }],
    ["a name twice", { "X-A": secret, "x-a": secret }],
    ["a name twice, small first", { "x-a": secret, "X-A": secret }],
    ["65 headers", Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`x-${i}`, secret]))],
    ["more than 8 KiB", { "X-A": `${secret}${"a".repeat(8_190 - secret.length)}` }],
  ])("refuses the header %s, and does not repeat its value", async (_, headers) => {
    const error = await failure(check({ url: URL, headers }));
    expect(error).toMatchObject({ code: "INVALID_PAYLOAD", field: "payload.headers" });
    expect(error.message).not.toMatch(/s3cr3t|[\r\n]/);
  });
});

describe("the options of http.request", () => {
  it("make a task type", () => {
    expect(type).toMatchObject({ type: "http.request", queue: "http" });
    expect(httpRequest({ queue: "calls" }).queue).toBe("calls");
    expect(JSON.stringify(httpRequest({ signingKey: "a key that nobody shall see" }))).not.toContain(
      "nobody",
    );
  });

  it.each<[object, string, string | undefined]>([
    [{ alow: ["localhost"] }, "INVALID_OPTION", "alow"],
    [{ toString: 1 }, "INVALID_OPTION", "toString"],
    [{ allow: ["*"] }, "INVALID_OPTION", "allow[0]"],
    [{ maxResponseBytes: -1 }, "INVALID_OPTION", "maxResponseBytes"],
    [{ maxResponseBytes: 1_048_577 }, "INVALID_OPTION", "maxResponseBytes"],
    [{ permanentStatuses: "all" }, "INVALID_OPTION", "permanentStatuses"],
    [{ userAgent: "a\r\nb" }, "INVALID_OPTION", "userAgent"],
    [{ timeout: "2h" }, "INVALID_OPTION", "timeout"],
    [{ signingKey: "short" }, "INVALID_OPTION", "signingKey"],
    [{ signingKey: [] }, "INVALID_OPTION", "signingKey"],
    [{ signingKey: undefined }, "INVALID_OPTION", "signingKey"],
    [{ queue: "a b" }, "INVALID_NAME", "queue"],
  ])("refuses %j", (options, code, field) => {
    expect(() => httpRequest(options)).toThrow(expect.objectContaining({ code, field }));
  });

  it("may have the documented limits", () => {
    const most = { maxResponseBytes: 1_048_576, timeout: "1h", signingKey: "sixteen letters." };
    expect(httpRequest(most).type).toBe("http.request");
  });

  it.each([{}, { signingKey: undefined }])("must have a signing key for alerts' webhooks: %j", (options) => {
    const refused = expect.objectContaining({ code: "INVALID_OPTION", field: "signingKey" });
    expect(() => alertWebhook(options as never)).toThrow(refused);
  });
});
