import { type Context, defineTask, type Json, PermanentError } from "@carillon/sdk";
import type { TestKit } from "@carillon/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { explained } from "../../packages/ops/test/in-words.js";
import { anything, Stand } from "../seeds/harness.js";

const stand = Stand.use();

const START = Date.parse("2026-01-01T00:00:00Z");
const MINUTE = 60_000;
const NO = () => Promise.reject(new Error("out of paper"));

/** Information about a task's last run: the last final one that did something. */
describe("the last run of a task", () => {
  let kit: TestKit;
  /** Behaviour of the n-th call, from 1. */
  let act: (call: number, context: Context) => unknown;
  let calls: number;
  const work = defineTask("work", {
    queue: "bells",
    payload: anything,
    handler: async (_payload, context) => {
      calls += 1;
      return (await act(calls, context)) as Json;
    },
  });
  beforeEach(async () => {
    calls = 0;
    kit = await stand.kit({ types: [work], concurrency: 50, start: START });
  });

  const minutes = (time: number | undefined) => (time === undefined ? undefined : (time - START) / MINUTE);
  async function last() {
    const { lastStart, lastFinish, lastOutcome, lastRun } = await kit.client.runs.stats("t");
    const run = lastRun === undefined ? undefined : await kit.client.runs.get(lastRun);
    expect(run?.outcome).toBe(lastOutcome);
    expect(run?.finished).toBe(lastFinish);
    return { started: minutes(lastStart), finished: minutes(lastFinish), outcome: lastOutcome };
  }
  const status = async () => (await kit.client.list()).tasks[0]?.lastStatus;

  it("is not a run that was cancelled before it started", async () => {
    act = NO;
    await kit.client.put(work, { id: "t", schedule: { every: "10m" }, payload: {} });
    await kit.advance("11m");
    const failed = await status();
    expect(failed).toMatchObject({ outcome: "failed", error: expect.stringContaining("out of paper") });

    await kit.worker.pause();
    await kit.advance("10m");
    await kit.client.pause("t", { cancelQueued: true });
    await kit.advance("1m");
    await kit.expect("t").outcomes(["failed", "cancelled"]);
    expect(await status()).toEqual(failed);
    expect(await last()).toEqual({ started: 10, finished: 10, outcome: "failed" });
  });

  it("is a run that was cancelled while it ran", async () => {
    act = () => kit.sleep("5m");
    await kit.client.put(work, { id: "t", schedule: { every: "10m" }, timeLimitGrace: "1m", payload: {} });
    kit.at("11:00", async () => {
      const [run] = await kit.client.runs.list("t");
      await kit.client.runs.cancel(run?.id as string);
    });
    await kit.advance("16m");
    expect(await last()).toMatchObject({ started: 10, outcome: "cancelled" });
    expect(await status()).toMatchObject({ outcome: "cancelled" });
  });

  it("keeps its outcome after a run that was dropped or had nothing to do", async () => {
    act = (call, { nothingToDo }) => (call === 1 ? "done" : nothingToDo());
    await kit.client.put(work, { id: "t", schedule: { every: "10m" }, minGap: "15m", payload: {} });
    await kit.advance("31m");
    await kit.expect("t").outcomes(["succeeded", "dropped", "nothing-to-do"]);
    expect(await last()).toEqual({ started: 10, finished: 10, outcome: "succeeded" });
  });

  it("has no error if an attempt failed and the next one succeeded", async () => {
    act = (call) => (call === 1 ? NO() : "done");
    const retry = { attempts: 2, delay: "1s" };
    await kit.client.put(work, { id: "t", schedule: { every: "10m" }, retry, payload: {} });
    await kit.advance("11m");
    const [run] = await kit.client.runs.list("t");
    expect(run).toMatchObject({ outcome: "succeeded", error: expect.stringContaining("out of paper") });
    expect(await status()).toMatchObject({ outcome: "succeeded", result: "done" });
    expect(await status()).not.toHaveProperty("error");
    const { events } = await explained(kit.client, "t", START + 10 * MINUTE);
    expect(events.at(-1)).toMatchObject({ outcome: "succeeded", text: "it ended: succeeded" });
  });

  it("is absent while it is retried from outside", async () => {
    act = (call) => (call === 1 ? Promise.reject(new PermanentError("out of paper")) : kit.sleep("5m"));
    await kit.client.put(work, { id: "t", schedule: { every: "1h" }, payload: {} });
    await kit.advance("61m");
    const [run] = await kit.client.runs.list("t");
    await (await stand.queue("bells").getJob(run?.id as string))?.retry();
    await kit.advance("1m");
    expect((await kit.client.runs.list("t"))[0]).toMatchObject({ state: "running" });
    expect(await status()).toBeUndefined();
    await kit.advance("10m");
    expect(await status()).toMatchObject({ run: run?.id, outcome: "succeeded" });
  });

  describe("of concurrent runs, in whatever order they end", () => {
    /** Runs the task once a second, from second 1. True: that run has nothing to do. */
    async function runs(of: readonly (readonly [lasts: string, nothing: boolean])[]): Promise<void> {
      act = async (call, { nothingToDo }) => {
        const [lasts, nothing] = of[call - 1] as readonly [string, boolean];
        await kit.sleep(lasts);
        return nothing ? nothingToDo() : "done";
      };
      const schedule = { every: "1s", maxRuns: of.length } as const;
      await kit.client.put(work, { id: "t", schedule, overlap: "allow", payload: {} });
      await kit.advance("2m");
      const ended = (await kit.client.runs.list("t", { limit: 100 })).sort((a, b) => a.nominal - b.nominal);
      expect(ended.map(({ outcome }) => outcome === "nothing-to-do")).toEqual(
        of.map(([, nothing]) => nothing),
      );
    }
    const many = Array.from({ length: 30 }, (_, i) => [`${40 - i}s`, true] as const);

    it.each<[string, Parameters<typeof runs>[0], started: number | undefined]>([
      [
        "two had nothing to do, the first ends first",
        [
          ["10ms", false],
          ["1500ms", true],
          ["1500ms", true],
        ],
        1,
      ],
      [
        "two had nothing to do, the first ends last",
        [
          ["10ms", false],
          ["5s", true],
          ["1500ms", true],
        ],
        1,
      ],
      [
        "only the second of three did something",
        [
          ["5s", true],
          ["5s", false],
          ["5s", true],
        ],
        2,
      ],
      [
        "the first that ends did something",
        [
          ["5s", true],
          ["10ms", false],
          ["5s", true],
        ],
        2,
      ],
      [
        "the last one did something",
        [
          ["5s", true],
          ["5s", true],
          ["5s", false],
        ],
        3,
      ],
      [
        "none did anything",
        [
          ["5s", true],
          ["5s", true],
          ["1s", true],
        ],
        undefined,
      ],
      ["very many had nothing to do", [["10ms", false], ...many], 1],
    ])("%s", async (_what, of, started) => {
      await runs(of);
      expect((await last()).started).toBe(started && started / 60);
    });
  });
});
