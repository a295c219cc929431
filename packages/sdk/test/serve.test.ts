import { createContext, runInContext } from "node:vm";
import { type Context, defineTask, httpRequest, implement, type TaskType } from "@carillon/sdk";
import { PermanentError, type ServeOptions, serve } from "@carillon/sdk/serve";
import { build } from "esbuild";
import { afterEach, describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { signBody, signWith } from "../src/http/signature.js";
import { contextOf, KEY } from "./http/bench.js";

const report = defineTask("report", {
  queue: "reports",
  payload: z.object({ tenant: z.string(), day: z.coerce.date() }),
});
const delivery = {
  type: "report",
  payload: { tenant: "acme", day: "2026-01-01" },
  occurrence: contextOf().occurrence,
  fence: 7,
  attempt: 2,
  checkpoint: { page: 3 },
  timeLeft: 60_000,
};
const bodyOf = (more: object = {}) => JSON.stringify({ ...delivery, ...more });
const signed = (body: string, key: string | string[] = KEY) => signWith("deliver:", body, key);

/** A request as `deliver` sends it. */
const request = (body = bodyOf(), signature: string | undefined = signed(body), init: RequestInit = {}) =>
  new Request("https://app.test/api", {
    method: "POST",
    headers: signature === undefined ? {} : { "Carillon-Signature": signature },
    body,
    ...init,
  });

type Do = TaskType<typeof report.payload>["handler"];
const served = (handler: Do = () => {}, more: Partial<ServeOptions> = {}) =>
  serve({ types: [implement(report, handler)], signingKey: KEY, ...more });

async function ask(answer: ReturnType<typeof serve>, asked = request()) {
  const response = await answer(asked);
  const body = (await response.json()) as { error?: unknown; result?: unknown; log: string[] };
  return { status: response.status, ...body };
}

afterEach(() => void vi.useRealTimers());

describe("serve", () => {
  it("runs the handler with the payload parsed, and answers what it returned, logged and asked for", async () => {
    let seen: Context | undefined;
    const answer = served(async (payload, context) => {
      seen = context;
      expect(payload).toEqual({ tenant: "acme", day: new Date("2026-01-01") });
      context.log("half", { of: 2 });
      context.log("cyclic", { context: globalThis });
      await context.saveCheckpoint({ page: 4 });
      context.runNextAt(1_767_300_000_000);
      return context.partial({ pages: 4 });
    });
    expect(await ask(answer)).toEqual({
      status: 200,
      outcome: "partial",
      result: { pages: 4 },
      log: ['half {"of":2}', "cyclic (details that are not JSON)"],
      checkpoint: { page: 4 },
      nextAt: 1_767_300_000_000,
    });
    const { occurrence, fence, attempt, checkpoint } = delivery;
    expect(seen).toMatchObject({ type: "report", occurrence, fence, attempt, checkpoint });
    expect(seen?.idempotencyKey).toBe(occurrence.key);
    expect(seen?.timeLeft()).toBeLessThanOrEqual(60_000);
  });

  it.each<[number, string, () => Request, Partial<ServeOptions>?]>([
    [401, "no valid signature", () => request(bodyOf(), "")],
    [401, "no valid signature", () => request(bodyOf(), "t=1,v1=00")],
    [401, "no valid signature", () => request(bodyOf(), signed(bodyOf(), "another key of sixteen"))],
    [401, "no valid signature", () => request(bodyOf({ fence: 8 }), signed(bodyOf()))],
    // Tasks of `http.request` choose their bodies: with the same key, they could pose as deliveries.
    [401, "no valid signature", () => request(bodyOf(), signBody(bodyOf(), KEY))],
    [404, "no handler for task type other; here are report", () => request(bodyOf({ type: "other" }))],
    [400, "payload.tenant", () => request(bodyOf({ payload: { day: 0 } }))],
    [413, "more than 524288 bytes", () => request("x".repeat(600_000))],
    [500, "signingKey: no key", () => request(), { signingKey: undefined }],
    [500, "signingKey: no key", () => request(), { signingKey: () => "short" }],
    [500, "KV is down", () => request(), { once: () => Promise.reject(new Error("KV is down")) }],
  ])(
    "answers %i to a bad request, and does not run the handler: %s",
    async (status, message, asked, more) => {
      const handler = vi.fn();
      const { error, ...got } = await ask(served(handler, more), asked());
      expect(got).toEqual({ status, log: [] });
      expect(error).toEqual({ name: expect.any(String), message: expect.stringContaining(message) });
      expect(handler).not.toHaveBeenCalled();
    },
  );

  it("takes only POST", async () => {
    const response = await served()(new Request("https://app.test/api"));
    expect([response.status, response.headers.get("allow")]).toEqual([405, "POST"]);
  });

  it("takes a signature of one of its keys, for five minutes", async () => {
    vi.useFakeTimers({ toFake: ["Date"], now: 1_767_258_000_000 });
    const both = [KEY, "the next key of sixteen"];
    const status = async (key: string | string[], signingKey: ServeOptions["signingKey"], at = 0) => {
      vi.setSystemTime(1_767_258_000_000);
      const asked = request(bodyOf(), signed(bodyOf(), key));
      vi.setSystemTime(1_767_258_000_000 + at);
      return (await ask(served(undefined, { signingKey }), asked)).status;
    };
    expect(await status(both, KEY)).toBe(200);
    expect(await status(KEY, () => both)).toBe(200);
    expect(await status(KEY, KEY, 300_000)).toBe(200);
    expect(await status(KEY, KEY, 300_001)).toBe(401);
    expect(await status(KEY, KEY, -300_001)).toBe(401);
  });

  it("refuses a replay for as long as its signature is valid, also under another of its signatures", async () => {
    vi.useFakeTimers({ toFake: ["Date"], now: 1_767_258_000_000 });
    const keys = [KEY, "the next key of sixteen"];
    const answer = served(undefined, { signingKey: keys });
    const [time, first, second] = signed(bodyOf(), keys).split(",");
    expect((await ask(answer, request(bodyOf(), `${time},${first}`))).status).toBe(200);
    vi.setSystemTime(1_767_258_000_000 + 299_000);
    expect((await ask(answer, request(bodyOf(), `${time},${second}`))).status).toBe(409);
    expect((await ask(answer, request(bodyOf({ fence: 8 })))).status).toBe(200);
    // Forgets what is too old to be replayed.
    vi.setSystemTime(1_767_258_000_000 + 601_000);
    expect((await ask(answer, request())).status).toBe(200);
  });

  it("asks a memory that instances share, with an id for each attempt", async () => {
    const once = vi.fn(() => false);
    expect((await ask(served(undefined, { once }))).status).toBe(409);
    expect(once.mock.calls).toEqual([[`${delivery.occurrence.run} 7`, 600_000]]);
  });

  it("answers 500 with class, message and stack of what the handler threw", async () => {
    class Declined extends Error {
      override name = "Declined";
    }
    const answer = served((_, { log }) => {
      log("asked the bank");
      throw new Declined("no funds");
    });
    expect(await ask(answer)).toEqual({
      status: 500,
      error: {
        name: "Declined",
        message: "no funds",
        stack: expect.stringContaining("no funds\n"),
        permanent: false,
      },
      log: ["asked the bank"],
    });
  });

  it.each<[string, Do]>([
    ["useless", () => Promise.reject(new PermanentError("useless"))],
    ["The handler's result is not JSON: TypeError", () => 1n as never],
    ["JSON cannot hold a function", () => (() => {}) as never],
    ["JSON cannot hold a ReadableStream", () => new Response("much").body as never],
  ])("says that a retry cannot help: %s", async (message, handler) => {
    const { status, error } = await ask(served(handler));
    expect(status).toBe(500);
    expect(error).toMatchObject({
      name: "PermanentError",
      message: expect.stringContaining(message),
      permanent: true,
    });
  });

  it("shortens what the sender would not read, and keeps the rest", async () => {
    const long = "x".repeat(600_000);
    const { result, log } = await ask(
      served((_, context) => {
        context.log(long);
        context.log("more");
        return long;
      }),
    );
    expect(result).toEqual({ cut: true, length: 600_002 });
    expect(log).toEqual(["x".repeat(65_536)]);
  });

  it("aborts the handler when its sender is gone", async () => {
    const sender = new AbortController();
    const answer = served(async (_, { signal }) => {
      sender.abort();
      signal.throwIfAborted();
    });
    const asked = request(bodyOf(), signed(bodyOf()), { signal: sender.signal });
    expect(await ask(answer, asked)).toMatchObject({ status: 500, error: { name: "AbortError" } });
  });

  it("refuses types without a handler, with items, or twice, and options that it does not know", () => {
    const fanOut = implement(report, { generate: () => [], process: () => {} });
    const type = implement(report, () => {});
    const wrong = (more: object) => () => serve({ types: [type], signingKey: KEY, ...more });
    const fault = (field: string) => expect.objectContaining({ code: "INVALID_OPTION", field });
    expect(wrong({ types: [report] })).toThrow(fault("types[0]"));
    expect(wrong({ types: [fanOut] })).toThrow(fault("types[0]"));
    expect(wrong({ types: [type, type] })).toThrow(fault("types[1]"));
    expect(wrong({ types: httpRequest() })).toThrow(fault("types"));
    expect(wrong({ key: KEY })).toThrow(fault("key"));
  });

  it("runs where nothing of Node.js is", async () => {
    const { outputFiles } = await build({
      stdin: {
        contents: `import { defineTask, serve } from "@carillon/sdk/serve";
          const handler = (_, { fence }) => ({ fence, node: typeof process + typeof Buffer });
          globalThis.answer = serve({ types: [defineTask("report", { queue: "q", handler })], signingKey: "${KEY}" });`,
        resolveDir: import.meta.dirname,
      },
      bundle: true,
      write: false,
      // Resolves no module of Node.js.
      platform: "browser",
      format: "iife",
      minify: true,
      conditions: ["carillon-source"],
    });
    const web = {
      Request,
      Response,
      Headers,
      AbortSignal,
      TextEncoder,
      TextDecoder,
      URL,
      crypto,
      Uint8Array,
    };
    const realm = createContext({ ...web });
    runInContext(outputFiles[0]?.text ?? "", realm);
    const body = bodyOf({ payload: {} });
    expect(await ask(realm.answer as ReturnType<typeof serve>, request(body))).toEqual({
      status: 200,
      result: { fence: 7, node: "undefinedundefined" },
      log: [],
    });
  });
});
