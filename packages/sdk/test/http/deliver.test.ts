import type { RequestListener } from "node:http";
import { Client, defineTask, implement, type TaskType, Worker } from "@carillon/sdk";
import { PermanentError, serve } from "@carillon/sdk/serve";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { SILENT, sharedRedis } from "../../../../test/helpers.js";
import { deliver, httpRequest } from "../../src/http/index.js";
import { contextOf, failure, KEY, perform, Target } from "./bench.js";

const report = defineTask("report", { queue: "reports", payload: z.object({ day: z.coerce.date() }) });
const payload = { day: "2026-01-01" };

describe("a task type that is delivered", () => {
  async function to(open: Promise<Target>, options: Partial<Parameters<typeof deliver>[1]> = {}) {
    const target = (await open).ofTest();
    return { target, type: deliver(report, { url: target.url, signingKey: KEY, ...options }) };
  }
  type Do = TaskType<typeof report.payload>["handler"];
  const served = (handler: Do, signingKey: string | string[] = KEY) =>
    to(Target.serving(serve({ types: [implement(report, handler)], signingKey })));
  const answering = (answer: RequestListener) => to(Target.open(answer));

  it("runs in its app as it would here: payload, fence, key, log, checkpoint, next time, ending", async () => {
    const { type } = await served(async ({ day }, context) => {
      const { occurrence, idempotencyKey, fence, attempt, checkpoint } = context;
      context.log("half");
      await context.saveCheckpoint({ page: 4 });
      context.runNextAt(1_767_300_000_000);
      return context.nothingToDo({
        year: day.getFullYear(),
        occurrence: { ...occurrence },
        idempotencyKey,
        fence,
        attempt,
        checkpoint: checkpoint ?? null,
      });
    });
    const asked: unknown[] = [];
    const context = contextOf({
      checkpoint: { page: 3 },
      saveCheckpoint: async (value) => void asked.push(value),
      runNextAt: (time) => void asked.push(time),
      nothingToDo: (result) => ({ outcome: "nothing-to-do", result }) as never,
    });
    const { occurrence, idempotencyKey, fence, attempt, checkpoint } = context;
    expect(await perform(type, payload, context)).toEqual({
      outcome: "nothing-to-do",
      result: { year: 2026, occurrence, idempotencyKey, fence, attempt, checkpoint },
    });
    expect(asked).toEqual([{ page: 4 }, 1_767_300_000_000]);
    expect(context.lines).toEqual([["half", undefined]]);
  });

  it.each<[string, Do, boolean]>([
    ["TypeError: no funds", () => Promise.reject(new TypeError("no funds")), false],
    ["PermanentError: closed", () => Promise.reject(new PermanentError("closed")), true],
  ])("fails with what its handler threw: %s", async (text, handler, permanent) => {
    const { type } = await served(handler);
    const error = await failure(perform(type, payload));
    expect(`${error.name}: ${error.message}`).toBe(text);
    expect(error.stack).toContain("deliver.test.ts");
    expect(error instanceof PermanentError).toBe(permanent);
  });

  it("fails for good if its app has no such type; another key may come with a rotation", async () => {
    const other = defineTask("other", { queue: "q", handler: () => {} });
    const { type } = await to(Target.serving(serve({ types: [other], signingKey: KEY })));
    const unknown = await failure(perform(type, payload));
    expect(unknown).toBeInstanceOf(PermanentError);
    expect(unknown.message).toBe("no handler for task type report; here are other.");
    const refused = await failure(perform((await served(() => {}, "another key of sixteen")).type, payload));
    expect(refused).not.toBeInstanceOf(PermanentError);
    expect(refused.message).toMatch(/^no valid signature\./);
  });

  it.each<[string, boolean, RequestListener]>([
    ["answered 200, but not as serve does", false, (_, response) => response.end('{"ok":true}')],
    ["answered 204, but not as serve does", false, (_, response) => response.writeHead(204).end()],
    ["answered 502.", false, (_, response) => response.writeHead(502).end("Bad Gateway")],
    ["answered 500.", false, (_, response) => response.writeHead(500).end('{"log":[]}')],
    ["answered 404.", true, (_, response) => response.writeHead(404).end("no route")],
  ])("does not take another's answer for its app's: %s", async (message, permanent, answer) => {
    const { type } = await answering(answer);
    const error = await failure(perform(type, payload));
    expect(error).toMatchObject({ code: "HTTP_STATUS", message: expect.stringContaining(message) });
    expect(error instanceof PermanentError).toBe(permanent);
  });

  it("checks the payload here, but leaves it as it is stored", async () => {
    const { target, type } = await served(({ day }) => day.getFullYear());
    await perform(type, payload);
    expect(JSON.parse(target.received[0]?.body ?? "")).toMatchObject({ payload });
    expect((await failure(perform(type, { day: "some" }))).message).toContain("Invalid");
    expect(target.received).toHaveLength(1);
  });

  it("ends at the worker's limit: its app is told how long it has, and hears of an abort", async () => {
    const limit = new AbortController();
    let heard: Promise<unknown> | undefined;
    const { target, type } = await served(async (_, { signal }) => {
      heard = new Promise((resolve) => signal.addEventListener("abort", resolve));
      limit.abort();
      await heard;
    });
    const context = contextOf({ signal: limit.signal, timeLeft: () => 1_500.5 });
    expect(await failure(perform(type, payload, context))).toMatchObject({ code: "HTTP_ABORTED" });
    await heard;
    expect(JSON.parse(target.received[0]?.body ?? "").timeLeft).toBe(1_501);
  });

  it("refuses a missing key, a wrong URL and options that it does not know", () => {
    const wrong = (more: object) => () =>
      deliver(report, { url: "http://localhost", signingKey: KEY, ...more });
    const fault = (field: string) => expect.objectContaining({ code: "INVALID_OPTION", field });
    expect(wrong({ signingKey: undefined })).toThrow(fault("signingKey"));
    expect(() => deliver(report, { url: "http://localhost" })).toThrow(fault("signingKey"));
    expect(wrong({ url: undefined })).toThrow(fault("url"));
    expect(wrong({ url: "ftp://localhost" })).toThrow(fault("url"));
    expect(wrong({ key: KEY })).toThrow(fault("key"));
  });

  describe("by a worker", () => {
    const redis = sharedRedis();

    it("is retried, with another fence and the same key, and recorded like other runs", async () => {
      const seen: { idempotencyKey: string; fence: number }[] = [];
      const { type } = await served(async (_, { idempotencyKey, fence, attempt, log }) => {
        seen.push({ idempotencyKey, fence });
        log(`attempt ${attempt}`);
        if (attempt === 1) throw new TypeError("no funds");
        return { attempt };
      });
      const worker = new Worker({ connection: redis.url, types: [type], logger: SILENT });
      const client = new Client({ connection: redis.url });
      await worker.start();
      const retry = { attempts: 2, delay: 1 } as const;
      await client.put(type, { id: "t", payload, schedule: { every: "1d" }, retry });
      const errors: (string | undefined)[] = [];
      const ended = new Promise((resolve) => {
        worker.on("settled", ({ outcome, error }) => {
          errors.push(error?.split("\n")[0]);
          if (outcome !== "retrying") resolve(outcome);
        });
      });
      const { run } = (await client.trigger("t")) as { run: string };
      expect(await ended).toBe("succeeded");
      const [first, second] = seen;
      expect(second?.idempotencyKey).toBe(first?.idempotencyKey);
      expect(second?.fence).toBeGreaterThan(first?.fence as number);
      const found = await client.runs.get(run);
      expect(found).toMatchObject({ outcome: "succeeded", result: { attempt: 2 }, attempts: 2 });
      expect(errors).toEqual(["TypeError: no funds", undefined]);
      expect(found?.output?.map(({ text }) => text)).toEqual(["log attempt 1\n", "log attempt 2\n"]);
      await worker.stop();
      await client.close();
    });
  });

  it("is not what a stored request with the same key can pose as", async () => {
    const { target } = await served(() => {});
    const body = JSON.stringify({
      type: "report",
      payload,
      occurrence: contextOf().occurrence,
      timeLeft: 1_000,
    });
    const request = httpRequest({ allow: [target.host], signingKey: KEY });
    const error = await failure(perform(request, { method: "POST", url: target.url, body }));
    expect(error.message).toContain("answered 401.");
  });
});
