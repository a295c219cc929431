import type { ServerResponse } from "node:http";
import { PermanentError } from "@carillon/sdk";
import { describe, expect, it, vi } from "vitest";
import { alertWebhook, type HttpRequestOptions, httpRequest, verifySignature } from "../../src/http/index.js";
import { resultOf } from "../../src/http/result.js";
import { contextOf, failure, KEY, perform, Target } from "./bench.js";
import { cert } from "./certificate.js";

const delivery = (url: string, alert: { [name: string]: string | number | { [name: string]: string } }) => ({
  to: { format: "json", url },
  namespace: "n",
  alerts: [alert],
});

describe("http.request", () => {
  async function open(answer?: Parameters<typeof Target.open>[0], options: HttpRequestOptions = {}) {
    const target = (await Target.open(answer)).ofTest();
    return { target, type: httpRequest({ allow: [target.host], ...options }) };
  }
  const answering = (status: number, options?: HttpRequestOptions) =>
    open((_, response) => response.writeHead(status).end("why"), options);

  it("sends the task's request, signed, with its origin", async () => {
    const { target, type } = await open(undefined, { signingKey: KEY });
    const context = contextOf();
    const payload = {
      method: "POST",
      url: `${target.url}hook`,
      headers: { Authorization: "Bearer s3cr3t" },
      body: { a: 1 },
    };
    const result = await perform(type, payload, context);
    expect(result).toEqual({
      status: 200,
      durationMs: expect.any(Number),
      headers: { "content-length": "4", date: expect.any(String) },
      body: "done",
    });
    const [got] = target.received;
    expect(got).toMatchObject({ method: "POST", url: "/hook", body: '{"a":1}' });
    expect(got?.headers).toMatchObject({
      authorization: "Bearer s3cr3t",
      "content-type": "application/json",
      "user-agent": "Carillon",
      "idempotency-key": "http/acme/ping@1767258000000",
      "carillon-task": "acme/ping",
      "carillon-run": "ping@mjv0wsg0.1f0c",
      "carillon-fence": "7",
    });
    expect(verifySignature('{"a":1}', got?.headers["carillon-signature"], KEY)).toBe(true);
    const { host } = target;
    expect(context.lines).toEqual([
      ["answered", { method: "POST", host, status: 200, durationMs: result.durationMs }],
    ]);
  });

  it("sends text unchanged, and prefers the task's own headers", async () => {
    const { target, type } = await open(undefined, { userAgent: "bells/1" });
    const put = (rest: object) => perform(type, { method: "PUT", url: target.url, ...rest });
    await put({ body: "a=b" });
    await put({
      body: "a=b",
      headers: { "content-type": "application/x-www-form-urlencoded", "USER-AGENT": "me" },
    });
    await put({});
    await put({ body: null });
    const [text, form, none, nothing] = target.received;
    expect(text).toMatchObject({
      body: "a=b",
      headers: { "content-type": "text/plain; charset=utf-8", "user-agent": "bells/1" },
    });
    expect(text?.headers["carillon-signature"]).toBeUndefined();
    expect(form?.headers).toMatchObject({
      "content-type": "application/x-www-form-urlencoded",
      "user-agent": "me",
    });
    expect(none).toMatchObject({ body: "", headers: { "content-length": "0" } });
    expect(none?.headers["content-type"]).toBeUndefined();
    expect(nothing?.body).toBe("null");
  });

  it("signs with a function's key, or not at all", async () => {
    const { target, type } = await open(undefined, {
      signingKey: ({ owner }, { pathname }) => (pathname === "/signed" ? `${owner} ${KEY}` : undefined),
    });
    await perform(type, { url: `${target.url}signed` });
    await perform(type, { url: `${target.url}unsigned` });
    const [signed, unsigned] = target.received.map(({ headers }) => headers["carillon-signature"]);
    expect(verifySignature("", signed, `acme ${KEY}`)).toBe(true);
    expect(unsigned).toBeUndefined();
  });

  it("sends nothing if the function's key can be guessed", async () => {
    const { target, type } = await open(undefined, { signingKey: () => "secret" });
    expect(await failure(perform(type, { url: target.url }))).toMatchObject({
      code: "INVALID_OPTION",
      message: expect.stringMatching(/^signingKey: /),
    });
    expect(target.connections).toBe(0);
  });

  it("trusts the authority that the operator names", async () => {
    const target = (await Target.open(undefined, true)).ofTest();
    const resolve = async () => [{ address: "127.0.0.1", family: 4 }];
    const type = httpRequest({ allow: [target.host], resolve, ca: cert });
    expect(await perform(type, { url: `https://tls.test:${target.port}/` })).toMatchObject({ body: "done" });
  });

  it("sends nothing to an address that is not allowed, and does not try again", async () => {
    const { target } = await open();
    const error = await failure(perform(httpRequest(), { url: target.url }));
    expect(error).toBeInstanceOf(PermanentError);
    expect(error).toMatchObject({
      code: "FORBIDDEN",
      message: expect.stringMatching(/"127\.0\.0\.1" is a loopback address; nothing was sent\./),
    });
    expect(target.connections).toBe(0);
  });

  it.each([
    [200, undefined],
    [204, undefined],
    [299, undefined],
    [404, 404],
    [302, "3xx"],
    [503, ["2xx", 503]],
    [200, [200, "5xx"]],
  ])("accepts status %i if %j is expected", async (status, expectStatus) => {
    const { target, type } = await answering(status);
    const payload = { url: target.url, ...(expectStatus === undefined ? {} : { expectStatus }) };
    expect((await perform(type, payload)).status).toBe(status);
  });

  it.each([
    ...[302, 303, 307, 408, 409, 425, 429, 500, 502, 503, 504].map((status) => [status, false] as const),
    ...[301, 308, 400, 401, 403, 404, 405, 410, 422, 451].map((status) => [status, true] as const),
  ])("fails with status %i; permanently: %s", async (status, permanent) => {
    const { target, type } = await answering(status);
    const error = await failure(perform(type, { url: target.url }));
    expect(error.code).toBe("HTTP_STATUS");
    expect(error.message).toMatch(new RegExp(`^${target.host} answered ${status}\\.`));
    expect(error.message.includes("Redirects are not followed")).toBe(status < 400);
    expect(error instanceof PermanentError).toBe(permanent);
  });

  it("fails permanently for statuses of the operator's list", async () => {
    const { target, type } = await answering(503, { permanentStatuses: ["5xx"] });
    expect(await failure(perform(type, { url: target.url }))).toBeInstanceOf(PermanentError);
    const other = await answering(404, { permanentStatuses: [] });
    expect(await failure(perform(other.type, { url: other.target.url }))).not.toBeInstanceOf(PermanentError);
  });

  it.each([
    ["seconds", "90", 90_000],
    ["a date of the receiver's clock", "Thu, 01 Jan 2026 00:01:30 GMT", 90_000],
    ["a past date", "Thu, 01 Jan 2026 00:00:00 GMT", undefined],
    ["anything else", "soon", undefined],
  ])("learns from Retry-After how long to wait: %s", async (_, given, retryAfter) => {
    const headers = { "Retry-After": given, Date: "Thu, 01 Jan 2026 00:00:00 GMT" };
    const { target, type } = await open((_, response) => response.writeHead(429, headers).end());
    expect(await failure(perform(type, { url: target.url }))).toMatchObject({ status: 429, retryAfter });
  });

  it("fails on 200 if 201 is expected", async () => {
    const { target, type } = await open();
    expect(await failure(perform(type, { url: target.url, expectStatus: 201 }))).toMatchObject({
      status: 200,
    });
  });

  it("retries after a timeout: the task's own, or else the type's", async () => {
    const { target, type } = await open(() => {}, { timeout: "40ms" });
    for (const [payload, ms] of [
      [{ url: target.url, timeout: "30ms" }, 30],
      [{ url: target.url }, 40],
    ] as const) {
      const error = await failure(perform(type, payload));
      expect(error).toMatchObject({
        code: "HTTP_TIMEOUT",
        message: expect.stringContaining(`within ${ms} ms`),
      });
      expect(error).not.toBeInstanceOf(PermanentError);
    }
  });

  it("has 30 s by default", async () => {
    let arrive = () => {};
    const arrived = new Promise<void>((resolve) => {
      arrive = resolve;
    });
    const { target, type } = await open(() => arrive());
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    try {
      const error = failure(perform(type, { url: target.url }));
      await arrived;
      vi.advanceTimersByTime(30_000);
      expect(await error).toMatchObject({
        code: "HTTP_TIMEOUT",
        message: expect.stringContaining(" 30000 ms"),
      });
    } finally {
      vi.useRealTimers();
    }
  });

  it("does not count a redirected alert as delivered", async () => {
    const { target } = await answering(302);
    const type = alertWebhook({ allow: [target.host], signingKey: KEY });
    const alert = { kind: "failed", task: { queue: "bells", owner: "acme", id: "t" }, at: 1 };
    expect(await failure(perform(type, delivery(target.url, alert)))).toMatchObject({ code: "HTTP_STATUS" });
    expect(target.received).toHaveLength(1);
  });

  it("sends a receiver that does not answer one alert at a time, until it answers", async () => {
    const held: ServerResponse[] = [];
    const [target, other] = [
      await Target.open((_, response) => void held.push(response)),
      await Target.open(),
    ];
    for (const one of [target, other]) one.ofTest();
    const allow = [target.host, other.host];
    const type = alertWebhook({ allow, signingKey: KEY, timeout: "10s" });
    const send = ({ url }: Target) => perform(type, delivery(url, { kind: "failed", at: 1 }));
    const first = failure(send(target));
    await vi.waitFor(() => expect(held).toHaveLength(1));
    held[0]?.socket?.destroy();
    expect(await first).toMatchObject({ code: "HTTP_UNREACHABLE" });
    const probe = send(target);
    await vi.waitFor(() => expect(held).toHaveLength(2));
    const refused = [failure(send(target)), failure(send(target))];
    for (const error of await Promise.all(refused)) {
      expect(error.message).toBe(`${target.host} does not answer: an earlier request is still under way.`);
      expect(error).not.toBeInstanceOf(PermanentError);
    }
    // Other receivers are not concerned.
    expect(await send(other)).toMatchObject({ status: 200 });
    held[1]?.end();
    expect(await probe).toMatchObject({ status: 200 });
    const both = [send(target), send(target)];
    await vi.waitFor(() => expect(held).toHaveLength(4));
    for (const response of held) response.end();
    expect(await Promise.all(both)).toMatchObject([{ status: 200 }, { status: 200 }]);
  });

  it("obeys the signal", async () => {
    const end = new AbortController();
    const { target, type } = await open(() => end.abort());
    const error = await failure(perform(type, { url: target.url }, contextOf({ signal: end.signal })));
    expect(error.code).toBe("HTTP_ABORTED");
    expect(error).not.toBeInstanceOf(PermanentError);
  });

  it("keeps the request out of errors and logs", async () => {
    const secret = "s3cr3t";
    const { target, type } = await open(
      (request, response) =>
        response.writeHead(500, { "X-Echo": secret }).end(JSON.stringify(request.headers)),
      { signingKey: `${secret} and some more` },
    );
    const payload = (url: string) => ({
      method: "POST",
      url: `${url}${secret}?token=${secret}`,
      headers: { Authorization: `Bearer ${secret}` },
      body: secret,
    });
    const { host } = target;
    const context = contextOf();
    const silent = await open(() => {});
    const errors = [
      await failure(perform(type, payload(target.url), context)),
      await failure(perform(httpRequest(), payload(target.url), context)),
      await failure(perform(type, payload(`http://127.0.0.1:1/`), context)),
      await failure(
        perform(httpRequest({ allow: ["127.0.0.1"], timeout: "20ms" }), payload(silent.target.url), context),
      ),
    ];
    expect(errors.map(({ code }) => code)).toEqual(["HTTP_STATUS", "FORBIDDEN", "FORBIDDEN", "HTTP_TIMEOUT"]);
    for (const error of errors) {
      const said = [error.message, error.stack, JSON.stringify(error), String(error.cause)].join();
      expect(said).toContain("127.0.0.1");
      expect(said).not.toContain(secret);
    }
    expect(JSON.stringify(context.lines)).toContain(host);
    expect(JSON.stringify(context.lines)).not.toContain(secret);
  });

  describe("the result", () => {
    it("has a few headers, and marks where the body was cut", async () => {
      const { target, type } = await open(
        (_, response) =>
          response
            .writeHead(200, { "Set-Cookie": "a=b", ETag: "e".repeat(600), "X-Other": "c" })
            .end("0123456789"),
        { maxResponseBytes: 4 },
      );
      const result = await perform(type, { url: target.url });
      expect(result).toMatchObject({ body: "0123", cut: true });
      expect(Object.keys(result.headers).sort()).toEqual(["date", "etag"]);
      expect(result.headers.etag).toHaveLength(512);
    });

    it.each([
      ["ASCII", "a".repeat(60_000), 15_000],
      ["what JSON escapes", "\u0001".repeat(60_000), 2_500],
      ["what JSON escapes, first", "\u0001".repeat(3_000) + "a".repeat(50_000), 2_500],
    ])("fits into the run's record: %s", async (_, body, least) => {
      const { target, type } = await open((_request, response) => response.end(body));
      const result = await perform(type, { url: target.url });
      expect(result.cut).toBe(true);
      expect(JSON.stringify(result).length).toBeLessThanOrEqual(16_000);
      expect(result.body.length).toBeGreaterThan(least);
      expect(body.startsWith(result.body)).toBe(true);
    });

    it("cuts no character in two", () => {
      for (let extra = 0; extra < 100; extra++) {
        const body = "😀".repeat(5_000) + "\u0001".repeat(10_000 + extra);
        const result = resultOf({ status: 200, headers: {}, durationMs: 1, cut: false, body });
        expect(result.cut).toBe(true);
        expect(result.body).not.toMatch(/[\uD800-\uDBFF]$/);
      }
    });
  });
});
