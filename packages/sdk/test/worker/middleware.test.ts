import { AsyncLocalStorage } from "node:async_hooks";
import { defineTask, type Middleware, type WorkerEvents } from "@carillon/sdk";
import type { Logger } from "@carillon/store";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { SILENT } from "../../../../test/helpers.js";
import { Bench, next, nothing, QUEUE, typed } from "./bench.js";

const bench = Bench.use("middleware");

class Declined extends Error {
  override name = "Declined";
}

/** A middleware that notes each attempt and how it ended. */
function notes(): { seen: string[]; middleware: Middleware } {
  const seen: string[] = [];
  const middleware: Middleware = async ({ type, attempt, occurrence }, run) => {
    const what = `${type} ${occurrence.task} ${attempt}`;
    try {
      const value = await run();
      seen.push(`${what}: ${JSON.stringify(value)}`);
      return value;
    } catch (error) {
      seen.push(`${what}: ${(error as Error).constructor.name}, ${(error as Error).cause}`);
      throw error;
    }
  };
  return { seen, middleware };
}

describe("middleware of a worker", () => {
  it("runs around each attempt, with its context, and sees the error that the handler threw", async () => {
    const { seen, middleware } = notes();
    const failing = typed(({ attempt }) => {
      if (attempt === 1) throw new Declined("no funds", { cause: "card" });
      return { paid: true };
    });
    const worker = await bench.work([failing], { middleware: [middleware] });
    const ends: WorkerEvents["settled"][0][] = [];
    worker.on("settled", (end) => ends.push(end));
    const over = new Promise((resolve) => {
      worker.on("settled", ({ outcome }) => outcome !== "retrying" && resolve(outcome));
    });
    await bench.run("t", "type", { retry: { attempts: 2, delay: "1ms" } });
    expect(await over).toBe("succeeded");
    expect(seen).toEqual(["type t 1: Declined, card", 'type t 2: {"paid":true}']);
    expect(ends[0]).toMatchObject({
      outcome: "retrying",
      error: expect.stringMatching(/^Declined: no funds/),
    });
    expect(ends[0]?.thrown).toBeInstanceOf(Declined);
    expect(ends[1]).not.toHaveProperty("thrown");
  });

  it("is nested in its order, inside the handler's async context, and may change the result", async () => {
    const tenant = new AsyncLocalStorage<string>();
    const order: string[] = [];
    const outer: Middleware = async ({ occurrence }, run) => {
      order.push("outer");
      return { wrapped: await tenant.run(occurrence.task, run) };
    };
    const inner: Middleware = (_context, run) => {
      order.push("inner");
      return run();
    };
    const worker = await bench.work([typed(() => tenant.getStore())], { middleware: [outer, inner] });
    const end = next(worker, "settled");
    const run = await bench.run("acme", "type");
    await end;
    expect(order).toEqual(["outer", "inner"]);
    expect(await bench.record(run)).toMatchObject({ result: { wrapped: "acme" } });
  });

  it("runs around generate and each item of a fan-out", async () => {
    const { seen, middleware } = notes();
    const many = defineTask("many", {
      queue: QUEUE,
      payload: nothing,
      generate: () => [1, 2],
      process: (n: number) => {
        if (n === 2) throw new Declined("two");
        return n;
      },
    });
    const worker = await bench.work([many], { middleware: [middleware] });
    const end = next(worker, "settled");
    await bench.run("t", "many");
    expect((await end).outcome).toBe("failed");
    expect(seen[0]).toBe("many t 1: [1,2]");
    expect(seen.slice(1).toSorted()).toEqual(["many t 1: 1", "many t 1: Declined, undefined"]);
  });

  it("sees a payload that does not fit, and a type without a handler", async () => {
    const { seen, middleware } = notes();
    const strict = defineTask("strict", {
      queue: QUEUE,
      // A rule that JSON Schema cannot say, so that the put is not refused.
      payload: z.object({}).refine(() => false, { path: ["to"] }),
      handler: () => {},
    });
    const worker = await bench.work([strict], { middleware: [middleware] });
    for (const name of ["strict", "unknown"]) {
      const end = next(worker, "settled");
      await bench.run(name, name);
      expect((await end).outcome).toBe("failed");
    }
    expect(seen).toEqual([
      expect.stringMatching(/^strict strict 1: (Carillon|Permanent)Error/),
      "unknown unknown 1: PermanentError, undefined",
    ]);
  });

  it("fails the attempt if it throws, or calls next twice", async () => {
    let calls = 0;
    const twice: Middleware = async (_context, run) => [await run(), await run()];
    const worker = await bench.work([typed(() => void calls++)], { middleware: [twice] });
    const end = next(worker, "settled");
    await bench.run("t", "type");
    expect(await end).toMatchObject({
      outcome: "failed",
      error: expect.stringContaining("called next twice"),
    });
    expect(calls).toBe(1);
  });

  it("is checked when the worker is made", async () => {
    const work = (middleware: unknown) =>
      bench.work([typed(() => {})], { middleware: middleware as Middleware[] });
    await expect(work([5])).rejects.toThrow("middleware[0]: not a function.");
    await expect(work(5)).rejects.toThrow("middleware: ");
  });
});

it("what a handler threw is not logged, because it may hold anything", async () => {
  const details: object[] = [];
  const warn: Logger["warn"] = (about) => void details.push(about);
  const error: Logger["error"] = warn;
  const leaky = typed(() => {
    throw Object.assign(new Error("refused"), { request: { authorization: "secret" } });
  });
  const worker = await bench.work([leaky], { logger: { ...SILENT, warn, error } });
  const end = next(worker, "settled");
  await bench.run("t", "type");
  expect((await end).thrown).toHaveProperty("request.authorization", "secret");
  expect(details.length).toBeGreaterThan(0);
  for (const about of details) expect(about).not.toHaveProperty("thrown");
});
