import { type Context, defineTask } from "@carillon/sdk";
import { eventually, type TestKit } from "@carillon/testing";
import { describe, expect, test } from "vitest";
import { enqueued } from "../helpers.js";
import { anything, PATIENCE, Stand } from "./harness.js";

const stand = Stand.use();
const bell = { type: "ring", queue: "bells", schedule: { every: "1h" } };

describe("A16 a worker told to stop lets the running job end well", () => {
  test("SIGTERM lets the running job succeed, and takes no other", async () => {
    const client = stand.client();
    const queue = stand.queue("bells");
    const worker = stand.program("test/seeds/worker.mjs");
    await worker.says({ working: true });
    const runs: string[] = [];
    for (const n of [1, 2]) {
      await client.put({ ...bell, id: `t${n}`, payload: { n } });
      const triggered = await client.trigger(`t${n}`);
      if (triggered.outcome === "enqueued") runs.push(triggered.run);
      if (n === 1) await worker.says({ begun: 1 });
    }
    const [first, second] = runs as [string, string];

    worker.signal("SIGTERM");
    await worker.says({ stopping: true });
    expect(await client.runs.get(first)).toMatchObject({ state: "running" });
    expect(worker.child.exitCode).toBeNull();

    worker.tell("go on");
    expect(await worker.ended).toMatchObject({ code: 0, signal: null });
    expect(worker.said).toContainEqual({ done: 1, aborted: false });
    expect(worker.said).not.toContainEqual({ begun: 2 });
    expect(await client.runs.get(first)).toMatchObject({
      state: "final",
      outcome: "succeeded",
      result: { rung: 1 },
      attempts: 1,
    });
    expect(await queue.getJobState(first)).toBe("completed");
    expect(await client.runs.stats("t1")).toMatchObject({ successes: 1, failures: 0, crashes: 0 });

    // The other job is left to the next worker.
    expect(await client.runs.get(second)).toMatchObject({ state: "queued" });
    expect(await queue.getJobState(second)).toBe("waiting");
    const next = stand.program("test/seeds/worker.mjs");
    await next.says({ begun: 2 });
    next.tell("go on");
    await eventually(
      async () => expect(await client.runs.get(second)).toMatchObject({ outcome: "succeeded" }),
      PATIENCE,
    );
  });

  test("a stopped node hands over to another", async () => {
    const client = stand.client();
    const [first, second] = [
      stand.node({ CARILLON_NODE_ID: "first" }),
      stand.node({ CARILLON_NODE_ID: "second" }),
    ];
    await Promise.all([first.running(), second.running()]);
    await client.put({ ...bell, id: "t", schedule: { every: "200ms" }, overlap: "allow", catchUp: "all" });
    const nominals = async () =>
      (await client.runs.list("t", { limit: 1_000 })).map(({ nominal }) => nominal).sort((a, b) => a - b);
    await eventually(async () => expect((await nominals()).length).toBeGreaterThan(3), PATIENCE);
    first.signal("SIGTERM");
    expect(await first.ended).toMatchObject({ code: 0, signal: null });
    const before = (await nominals()).length;
    await eventually(async () => expect((await nominals()).length).toBeGreaterThan(before + 3), PATIENCE);
    const times = await nominals();
    expect(times).toEqual(times.map((_, n) => (times[0] as number) + n * 200));
  });
});

describe("D18 what a cancel means for the rest of its run", () => {
  /** A scheduled run with retries, inside and after it, that is cancelled at 01:10. */
  async function cancelled(handler: (context: Context) => unknown) {
    const type = defineTask("ring", {
      queue: "bells",
      payload: anything,
      handler: async (_, c) => void (await handler(c)),
    });
    const kit = await stand.kit({ types: [type] });
    const more = {
      retry: { attempts: 3 },
      rerun: { delay: "1s" },
      timeLimitGrace: "10s",
      payload: {},
    } as const;
    await kit.client.put(type, { id: "t", schedule: { at: "2026-01-01T00:01:00Z" }, ...more });
    return kit;
  }
  const cancels = (kit: TestKit) =>
    kit.at("01:10", async () => kit.client.runs.cancel((await kit.client.runs.list("t"))[0]?.id ?? ""));
  const only = async (kit: TestKit) => {
    const runs = await kit.client.runs.list("t");
    expect(runs).toHaveLength(1);
    expect((await kit.client.get("t")).pending).toEqual([]);
    return runs[0];
  };

  test("a handler that throws is not tried again, by neither retry", async () => {
    const kit: TestKit = await cancelled(({ signal }) =>
      kit.sleep("1h", { signal }).catch(() => Promise.reject(new Error("no"))),
    );
    cancels(kit);
    await kit.advanceTo("30:00");
    expect(await only(kit)).toMatchObject({ outcome: "cancelled", attempts: 1 });
  });

  test("a handler that ignores it has its grace, then the run ends", async () => {
    const kit: TestKit = await cancelled(() => kit.sleep("1h"));
    cancels(kit);
    await kit.advanceTo("01:15");
    expect(await only(kit)).toMatchObject({ state: "terminating" });
    await kit.advanceTo("01:30");
    expect(await only(kit)).toMatchObject({ outcome: "cancelled", attempts: 1 });
  });

  test("a run that ends before its worker has heard of it is cancelled all the same", async () => {
    const kit: TestKit = await cancelled(({ occurrence }) => kit.client.runs.cancel(occurrence.run));
    await kit.advanceTo("30:00");
    expect(await only(kit)).toMatchObject({ outcome: "cancelled", attempts: 1 });
  });
});

describe("D18 an operator's cancel from another process ends a running job", () => {
  test("carillon cancel: the signal, then the end in its grace; cancelled, and no retry", async () => {
    const client = stand.client();
    const worker = stand.program("test/seeds/worker.mjs");
    await worker.says({ working: true });
    await client.put({ ...bell, id: "t", payload: { n: 1 }, retry: { attempts: 3 }, rerun: { delay: "1s" } });
    const run = enqueued(await client.trigger("t")).run;
    await worker.says({ begun: 1 });

    expect(await stand.carillon(["cancel", run])).toMatchObject({ code: 0 });
    await eventually(
      async () => expect(await client.runs.get(run)).toMatchObject({ state: "terminating" }),
      PATIENCE,
    );
    await worker.says({ signalled: 1 });
    // The handler has its grace: it ends by itself.
    worker.tell("go on");
    await worker.says({ done: 1, aborted: true });
    const ended = await eventually(async () => {
      const read = await client.runs.get(run);
      return read.state === "final" && read;
    }, PATIENCE);
    expect(ended).toMatchObject({ outcome: "cancelled", attempts: 1 });
    // The job ends right after its run.
    await eventually(
      async () => expect(await stand.queue("bells").getJobState(run)).not.toMatch(/wait|delayed|active/),
      PATIENCE,
    );
    expect(await client.runs.list("t")).toHaveLength(1);
    expect((await client.get("t")).pending).toEqual([]);
  });
});
