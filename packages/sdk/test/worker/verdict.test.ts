import { type Json, PermanentError } from "@carillon/sdk";
import { loadBull } from "@carillon/store/internal";
import { Worker } from "bullmq";
import { describe, expect, it } from "vitest";
import { Ending } from "../../src/worker/ending.js";
import { isPermanent, StuckError, TimeLimitError } from "../../src/worker/errors.js";
import type { Ended, Interrupt } from "../../src/worker/time-box.js";
import { verdictOf } from "../../src/worker/verdict.js";

await loadBull();

const limit = new TimeLimitError(30_000);
const error = new Error("no paper");
const returned = (value?: Json | Ending): Ended<Json | undefined | Ending> => ({ how: "returned", value });
const threw = (thrown: unknown): Ended<never> => ({ how: "threw", error: thrown });
const stuck: Ended<never> = { how: "stuck", error: new StuckError(limit, 10_000) };

function verdict(ended: Ended<Json | undefined | Ending>, received: Interrupt[] = [], last = true) {
  const signal = AbortSignal.abort(limit);
  const { run, job } = verdictOf(ended, { received: new Set(received), signal }, last);
  return { outcome: run && (run.outcome ?? "retrying"), result: run?.result, text: run?.error, job };
}

describe("the verdict on an attempt", () => {
  const partial = new Ending("partial", { upTo: 7 });
  const nothing = new Ending("nothing-to-do", undefined);
  it.each<[string, Ended<Json | undefined | Ending>, Interrupt[], boolean, string | undefined, string]>([
    ["returned", returned(), [], true, "succeeded", "complete"],
    ["returned partial()", returned(partial), [], true, "partial", "complete"],
    ["returned nothingToDo()", returned(nothing), [], true, "nothing-to-do", "complete"],
    ["threw, no attempt left", threw(error), [], true, "failed", "fail"],
    ["threw, one is left", threw(error), [], false, "retrying", "fail"],
    ["threw for good", threw(new PermanentError("no")), [], false, "failed", "fail"],
    ["returned after its time", returned(), ["timed-out"], true, "partial", "complete"],
    ["found nothing after its time", returned(nothing), ["timed-out"], true, "nothing-to-do", "complete"],
    ["threw after its time", threw(limit), ["timed-out"], true, "timed-out", "fail"],
    ["threw after its time, one is left", threw(limit), ["timed-out"], false, "retrying", "fail"],
    ["did not stop after its time", stuck, ["timed-out"], false, "timed-out", "fail"],
    ["returned, cancelled", returned({ done: 1 }), ["cancelled"], false, "cancelled", "complete"],
    ["threw, cancelled", threw(error), ["cancelled"], false, "cancelled", "fail"],
    ["did not stop, cancelled", stuck, ["cancelled"], false, "cancelled", "fail"],
    ["cancelled and out of time", returned(), ["cancelled", "timed-out"], false, "cancelled", "complete"],
    ["returned, lock lost", returned(), ["lost"], true, undefined, "fail"],
    ["threw, lock lost", threw(error), ["lost", "cancelled"], true, undefined, "fail"],
    ["returned, stopping", returned(), ["stopping"], true, "succeeded", "complete"],
    ["threw, stopping", threw(error), ["stopping"], true, "retrying", "hand back"],
    ["threw for good, stopping", threw(new PermanentError("no")), ["stopping"], true, "failed", "fail"],
    ["threw, stopping and out of time", threw(limit), ["stopping", "timed-out"], true, "timed-out", "fail"],
  ])("%s", (_name, ended, received, last, outcome, job) => {
    expect(verdict(ended, received, last)).toMatchObject({ outcome, job: { end: job } });
  });

  it("keeps a result, also with partial()", () => {
    expect(verdict(returned({ pages: 3 }))).toMatchObject({
      result: { pages: 3 },
      job: { value: { pages: 3 } },
    });
    expect(verdict(returned(partial))).toMatchObject({ result: { upTo: 7 }, job: { value: { upTo: 7 } } });
    expect(verdict(returned({ pages: 3 }), ["cancelled"])).toMatchObject({ job: { value: undefined } });
  });

  it("names the causes of an error in the first line of its text", () => {
    const refused = Object.assign(new AggregateError([], ""), { code: "ECONNREFUSED" });
    const textOf = (cause: unknown) => verdict(threw(new TypeError("fetch failed", { cause }))).text ?? "";
    expect(textOf(refused)).toMatch(/^TypeError: fetch failed \(cause: ECONNREFUSED\)\n +at /);
    const chain = new Error("no pool", {
      cause: new Error("no host\n  of this name", { cause: "fetch failed" }),
    });
    expect(textOf(chain).split("\n")[0]).toBe("TypeError: fetch failed (cause: no pool; cause: no host)");
    const endless: { message: string; cause?: unknown } = { message: "again" };
    endless.cause = endless;
    expect(textOf(endless).split("\n")[0]).toBe("TypeError: fetch failed (cause: again)");
    const hostile = new Proxy(
      {},
      {
        get: () => {
          throw new Error("no");
        },
      },
    );
    expect(textOf(hostile).split("\n")[0]).toBe("TypeError: fetch failed");
  });

  it("does not retry a hard end, and names the reason", () => {
    const { job, text } = verdict(stuck, ["timed-out"], false);
    expect(isPermanent((job as { error: Error }).error)).toBe(true);
    expect(text).toContain("The time limit of 30s is over. The handler did not stop within 10s.");
  });

  it("names the parts of an AggregateError, and shows an object that was thrown", () => {
    const first = (thrown: unknown) => verdict(threw(thrown)).text?.split("\n")[0];
    const parts = [1, 2, 3, 4, 5, 6, 7].map((n) => new Error(`no ${n}\nmore`));
    const text = "two of five failed (errors: no 1; no 2; no 3; no 4; no 5 and 2 more)";
    expect(first(new AggregateError(parts, "two of five failed"))).toBe(`AggregateError: ${text}`);
    // Its job says it too: Bull Board shows no more than that.
    expect(verdict(threw(new AggregateError(parts, "two of five failed")))).toMatchObject({
      job: { error: { message: text } },
    });
    const cause = new AggregateError(parts.slice(0, 2), "all down");
    expect(first(new Error("no", { cause }))).toBe("Error: no (cause: all down (errors: no 1; no 2))");
    expect(first({ code: 42, why: "x".repeat(5_000) })).toMatch(
      /^Error: { code: 42, why: 'x{1000}'\.\.\. 4000 more/,
    );
    expect(first(["a"])).toBe("Error: [ 'a' ]");
    expect(first("text")).toBe("Error: text");
    expect(first(undefined)).toBe("Error: undefined");
    expect(first(new Error("no", { cause: { code: { of: 7 } } }))).toBe("Error: no (cause: { of: 7 })");
  });

  it("cuts an error's message and stack, and keeps its name and whether it is permanent", () => {
    for (const Kind of [TypeError, PermanentError]) {
      const thrown = new Kind(`INSERT ${"v".repeat(2_000_000)}`);
      const { job, text = "" } = verdict(threw(thrown)) as { job: { error: Error }; text: string };
      const { error } = job;
      expect([error.message.length, error.name]).toEqual([8_192, thrown.name]);
      expect(error.message).toMatch(/^INSERT v+…$/);
      expect(error.stack?.length).toBeLessThanOrEqual(16_384);
      expect(error instanceof PermanentError).toBe(Kind === PermanentError);
      expect(text.length).toBeLessThanOrEqual(16_384);
      expect(text).toMatch(new RegExp(`^${thrown.stack?.split(" ")[0]} INSERT v`));
      expect(text).toContain("\n    at ");
    }
  });

  it("reports an error caused by the time limit with its reason", () => {
    const { text } = verdict(threw(new Error("This operation was aborted")), ["timed-out"]);
    expect(text).toMatch(
      /^TimeLimitError: The time limit of 30s is over.\nError: This operation was aborted/,
    );
    expect(verdict(threw(limit), ["timed-out"]).text).toMatch(/^TimeLimitError: [^\n]*\n {4}at /);
  });

  it("passes an error to BullMQ that it does not take for its own", () => {
    const moved = Object.assign(new Error("odd"), { name: "DelayedError" });
    for (const thrown of [undefined, null, "text", 7, moved]) {
      const { job } = verdict(threw(thrown));
      expect(job).toMatchObject({ end: "fail", error: expect.any(Error) });
      expect((job as { error: Error }).error.name).toBe("Error");
    }
  });

  it("treats BullMQ's rate limit of a handler as a failure", () => {
    const { job, outcome } = verdict(threw(Worker.RateLimitError()), [], false);
    expect(outcome).toBe("retrying");
    expect((job as { error: Error }).error.message).toBe("The handler asked BullMQ for a rate limit.");
  });

  it("accepts UnrecoverableError of another copy of BullMQ", () => {
    const foreign = Object.assign(new Error("no such customer"), { name: "UnrecoverableError" });
    const { job, outcome, text } = verdict(threw(foreign), [], false);
    expect(outcome).toBe("failed");
    expect(isPermanent((job as { error: Error }).error)).toBe(true);
    expect(text).toBe(foreign.stack);
  });

  it("converts unreadable values, and errors without text, to errors", () => {
    const untold = Object.assign(new Error("odd"), { message: { code: 7 } });
    const odd = Object.assign(new Error("odd"), { stack: { frames: [] } });
    const trap = Object.defineProperty(new Error("odd"), "name", {
      get() {
        throw new Error("trap");
      },
    });
    for (const thrown of [Object.create(null), untold, odd, trap]) {
      const { job, outcome, text } = verdict(threw(thrown));
      expect(outcome).toBe("failed");
      expect(text).toEqual(expect.any(String));
      expect((job as { error: Error }).error.message).toEqual(expect.any(String));
    }
  });
});
