import { HttpError } from "@carillon/sdk/http";
import { eventually } from "@carillon/testing";
import { describe, expect, it } from "vitest";
import { backoffStrategy, type JobBackoff } from "../../src/worker/backoff.js";
import { Bench, typed } from "./bench.js";

const bench = Bench.use("backoff");

describe("the waits between the attempts of one run", () => {
  it.each<[JobBackoff["kind"], number[]]>([
    ["fixed", [100, 100, 100, 100]],
    ["linear", [100, 200, 300, 350]],
    ["exponential", [100, 200, 350, 350]],
  ])("%s", (kind, waits) => {
    const backoff = { type: "carillon", kind, delay: 100, max: 350 };
    const job = { opts: { backoff } } as never;
    expect([1, 2, 3, 4].map((n) => backoffStrategy(n, "carillon", undefined, job))).toEqual(waits);
  });

  it("are as long as a receiver asks for, but not longer than the longest", () => {
    const backoff = { type: "carillon", kind: "fixed", delay: 100, max: 350 };
    const job = { opts: { backoff } } as never;
    const waits = [undefined, 50, 200, 9_000].map((asked) =>
      backoffStrategy(1, "carillon", new HttpError("HTTP_STATUS", "h answered 429.", 429, asked), job),
    );
    expect(waits).toEqual([100, 100, 200, 350]);
  });

  it("equal the delays of BullMQ's jobs", async () => {
    const at: number[] = [];
    const type = typed(() => {
      at.push(performance.now());
      throw new Error("again");
    });
    await bench.work([type]);
    const run = await bench.run("t", "type", { retry: { attempts: 3, backoff: "linear", delay: "50ms" } });
    await eventually(async () =>
      expect(await bench.record(run)).toMatchObject({ outcome: "failed", attempts: 3 }),
    );
    const [first = 0, second = 0, third = 0] = at;
    expect(second - first).toBeGreaterThanOrEqual(49);
    expect(third - second).toBeGreaterThanOrEqual(99);
  });
});
