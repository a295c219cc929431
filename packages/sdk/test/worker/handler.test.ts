import { type Context, type Json, PermanentError } from "@carillon/sdk";
import { storeOf } from "@carillon/store/internal";
import { eventually } from "@carillon/testing";
import { Worker as BullWorker } from "bullmq";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { gate } from "../../../../test/helpers.js";
import { Bench, next, QUEUE, typed } from "./bench.js";

const bench = Bench.use("handler");

describe("the results of a handler", () => {
  it("include partial() and nothingToDo()", async () => {
    const say: ((context: Context) => unknown)[] = [
      ({ partial }) => partial({ upTo: 7 }),
      ({ nothingToDo }) => nothingToDo(),
    ];
    const worker = await bench.work([typed((context) => say.shift()?.(context))]);
    let end = next(worker, "settled");
    const first = await bench.run("t", "type");
    expect(await end).toMatchObject({ run: first, outcome: "partial" });
    expect(await bench.record(first)).toMatchObject({ outcome: "partial", result: { upTo: 7 } });
    const { lastStart } = await bench.stats("t");

    end = next(worker, "settled");
    const second = await bench.again("t");
    expect(await end).toMatchObject({ run: second, outcome: "nothing-to-do" });
    expect(await bench.record(second)).not.toHaveProperty("result");
    expect(await bench.stats("t")).toMatchObject({ lastStart, lastChecked: expect.any(String) });
  });

  it("include PermanentError, which stops further attempts", async () => {
    let calls = 0;
    const worker = await bench.work([
      typed(() => {
        calls += 1;
        throw new PermanentError("no such customer", { cause: 7 });
      }),
    ]);
    const end = next(worker, "settled");
    const run = await bench.run("t", "type", { retry: { attempts: 5, delay: "1ms" } });
    expect(await end).toMatchObject({
      outcome: "failed",
      error: expect.stringContaining("no such customer"),
    });
    const jobs = bench.queue();
    await eventually(async () => expect(await (await jobs.getJob(run))?.isFailed()).toBe(true));
    expect(calls).toBe(1);
  });

  it.each([
    ["an error whose message is no text", () => Object.assign(new Error("no"), { message: { code: 7 } })],
    ["an object that has no text", () => Object.create(null)],
    ["BullMQ's rate limit", () => BullWorker.RateLimitError()],
  ])("throws %s: attempts are used up, then run and job fail", async (_what, make) => {
    let calls = 0;
    await bench.work([
      typed(() => {
        calls += 1;
        throw make();
      }),
    ]);
    const run = await bench.run("t", "type", { retry: { attempts: 2, delay: "1ms" } });
    const jobs = bench.queue();
    await eventually(async () => expect(await (await jobs.getJob(run))?.isFailed()).toBe(true));
    expect(await bench.record(run)).toMatchObject({ outcome: "failed", attempts: 2 });
    expect(calls).toBe(2);
    expect(await bench.stats("t")).toMatchObject({ failed: "1", attempts: "2", crashes: "0" });
  });

  it("include checkpoints for later attempts and runs", async () => {
    const seen: (Json | undefined)[] = [];
    await bench.work([
      typed(async ({ checkpoint, saveCheckpoint, attempt }) => {
        seen.push(checkpoint);
        await saveCheckpoint({ upTo: seen.length });
        if (attempt === 1 && seen.length === 1) throw new Error("once");
      }),
    ]);
    const succeeded = (run: string) =>
      eventually(async () => expect(await bench.record(run)).toMatchObject({ outcome: "succeeded" }));
    await succeeded(await bench.run("t", "type", { retry: { attempts: 2, delay: "1ms" } }));
    await succeeded(await bench.again("t"));
    expect(seen).toEqual([undefined, { upTo: 1 }, { upTo: 2 }]);
  });

  it.each<[string, unknown, string]>([
    ["PAYLOAD_TOO_LARGE", "x".repeat(64 * 1024), "checkpoint"],
    ["INVALID_PAYLOAD", { at: new Date() }, "checkpoint.at"],
    ["INVALID_PAYLOAD", undefined, "checkpoint"],
  ])("a checkpoint that cannot be kept is refused: %s", async (code, value, field) => {
    const refused = gate<unknown>();
    await bench.work([typed(({ saveCheckpoint }) => saveCheckpoint(value as Json).catch(refused.resolve))]);
    await bench.run("t", "type");
    const error = (await refused.promise) as Error;
    expect(error).toMatchObject({ code, field, remedy: expect.any(String) });
    expect(error.message).not.toContain("payload");
  });

  it("include runNextAt(), whose last call counts at the end of the run", async () => {
    const refused: unknown[] = [];
    const at = Date.now() + 3_600_000;
    const worker = await bench.work([
      typed(({ runNextAt }) => {
        for (const time of ["tomorrow", "2030-01-01T00:00:00", Number.NaN, new Date(Number.NaN)]) {
          try {
            runNextAt(time);
          } catch (error) {
            refused.push(error);
          }
        }
        runNextAt("2030-01-01T00:00:00+01:00");
        runNextAt(new Date(at));
      }),
    ]);
    const end = next(worker, "settled");
    await bench.run("t", "type", { schedule: { every: "30d" } });
    await end;
    const bad = { code: "INVALID_OPTION", field: "runNextAt" };
    expect(refused).toMatchObject([bad, bad, bad, bad]);
    const stored = await storeOf(bench.client).tasks.get({ queue: QUEUE, owner: "system", id: "t" });
    expect(stored).toMatchObject({ pending: [{ trigger: "self", at }] });
  });

  it("are not changed by a listener that throws", async () => {
    const worker = await bench.work([typed(() => "done")]);
    worker.on("started", () => {
      throw new Error("listener");
    });
    const end = next(worker, "settled");
    await bench.run("t", "type");
    expect(await end).toMatchObject({ outcome: "succeeded" });
  });
});

describe("the output of a handler", () => {
  beforeEach(() => {
    for (const method of ["log", "error"] as const) vi.spyOn(console, method).mockImplementation(() => {});
  });
  afterEach(() => void vi.restoreAllMocks());

  it("contains each log line once, even if the worker's logger prints", async () => {
    const logged: string[] = [];
    const info = (_details: object, message: string) => {
      logged.push(message);
      console.log(message);
    };
    const logger = { debug() {}, info, warn() {}, error() {} };
    const worker = await bench.work([typed(({ log }) => log("once"))], { logger });
    const end = next(worker, "settled");
    const run = await bench.run("t", "type");
    await end;
    expect(logged).toEqual(["worker is running", "once"]);
    expect(await bench.output(run)).toMatchObject([{ text: "log once\n" }]);
  });

  it("keeps the newest lines in the job's own log, and the beginning of a long one", async () => {
    await bench.work([
      typed(async ({ log, occurrence }) => {
        log("x".repeat(2 ** 20));
        for (let n = 1; n < 1_000; n++) log(`line ${n}`);
        const jobs = bench.queue();
        const told = () => jobs.getJobLogs(occurrence.run, 0, -1);
        const cut = await eventually(async () => {
          const { logs } = await told();
          return logs.length === 1_000 && logs;
        });
        log("one more");
        const moved = await eventually(async () => {
          const { logs } = await told();
          return logs.at(-1) === "one more" && logs;
        });
        return [cut[0]?.length as number, cut[1] as string, moved.length, moved[0] as string];
      }),
    ]);
    const run = await bench.run("t", "type");
    await eventually(async () =>
      expect(await bench.record(run)).toMatchObject({ result: [16 * 1024 + 1, "line 1", 1_000, "line 1"] }),
    );
  });

  it("is saved while the handler runs", async () => {
    const finish = gate();
    await bench.work([
      typed(async () => {
        console.log("so far");
        await finish.promise;
      }),
    ]);
    const run = await bench.run("t", "type");
    await eventually(async () => expect(await bench.output(run)).toMatchObject([{ text: "out so far\n" }]));
    finish.resolve();
  });

  it("is kept to the end for an attempt that lost its job, too", async () => {
    const worker = await bench.work(
      [
        typed(async ({ signal, log, occurrence }) => {
          await bench.admin.del(`${bench.jobKey(occurrence.run)}:lock`);
          await new Promise((resolve) => signal.addEventListener("abort", resolve));
          log("rolled back");
        }),
      ],
      { lockDuration: 1_000 },
    );
    worker.on("error", () => {});
    const fenced = next(worker, "fenced");
    const run = await bench.run("t", "type");
    await fenced;
    expect(await bench.output(run)).toEqual([{ attempt: 1, text: "log rolled back\n", cut: false }]);
  });

  it("is not captured if switched off, except the log", async () => {
    const worker = await bench.work(
      [
        typed(({ log }) => {
          console.log("printed");
          log("logged");
        }),
      ],
      { captureOutput: false, maxOutput: 100 },
    );
    const end = next(worker, "settled");
    const run = await bench.run("t", "type");
    await end;
    expect(await bench.output(run)).toMatchObject([{ text: "log logged\n" }]);
    await expect(bench.work([typed(() => {})], { maxOutput: -1 })).rejects.toMatchObject({
      field: "maxOutput",
    });
  });
});

it("a long error takes the same small room in the record, the job and BullMQ's events, however often it is thrown", async () => {
  const ATTEMPTS = 40;
  const type = typed(({ attempt }) => {
    throw new Error(`attempt ${attempt}: INSERT ${"v".repeat(200_000)}`);
  }, "long");
  const worker = await bench.work([type]);
  const run = await bench.run("t", "long", { retry: { attempts: ATTEMPTS, backoff: "fixed", delay: "1ms" } });
  await eventually(async () =>
    expect(await bench.record(run)).toMatchObject({ outcome: "failed", attempts: ATTEMPTS }),
  );
  await worker.stop();
  const job = await bench.admin.hgetall(bench.jobKey(run));
  expect(job["failedReason"]).toHaveLength(8_192);
  const stacks = JSON.parse(job["stacktrace"] ?? "[]") as string[];
  expect(stacks).toHaveLength(ATTEMPTS);
  expect(job["stacktrace"]?.length).toBeLessThan(100_000);
  expect(stacks.at(-1)).toMatch(/^Error: attempt 40: INSERT v+…$/);
  for (const [, fields] of await bench.admin.xrange(bench.jobKey("events"), "-", "+"))
    expect(fields.join("").length).toBeLessThan(20_000);
  expect((await bench.record(run))?.error?.length).toBeLessThanOrEqual(16_384);
});
