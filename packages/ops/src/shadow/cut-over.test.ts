import { defineTask, type TaskInput } from "@carillon/sdk";
import { TAKE } from "@carillon/store/internal";
import { type TestKit, testKit } from "@carillon/testing";
import { type Job, Queue, Worker } from "bullmq";
import * as bullmq5 from "bullmq-5";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { sharedRedis } from "../../../../test/helpers.js";
import { cutOver, goBack } from "../index.js";

const QUEUE = "bells";
const START = Date.parse("2026-01-01T00:00:00Z");
const MINUTE = 60_000;
const ring = defineTask("ring", { queue: QUEUE, payload: z.looseObject({}), handler: () => {} });

const redis = sharedRedis();
let kit: TestKit;
let theirs: Theirs;
let redisOfTheirs: ReturnType<TestKit["store"]["connect"]>;
beforeEach(async () => {
  kit = await testKit({ types: [ring], redis, start: START });
  redisOfTheirs = kit.store.connect("patient");
});
afterEach(async () => {
  await theirs.close();
  redisOfTheirs.disconnect();
  await kit.close();
});

let serial = 0;

/** BullMQ with a worker that takes its jobs when told to. */
class Theirs {
  readonly fired: number[] = [];
  readonly queue: Queue;
  readonly #worker: Worker;
  readonly prefix = `old${++serial}`;

  constructor(bullmq: { Queue: typeof Queue; Worker: typeof Worker }) {
    const options = { connection: { host: "127.0.0.1", port: redis.port }, prefix: this.prefix };
    this.queue = new bullmq.Queue(QUEUE, options);
    this.#worker = new bullmq.Worker(QUEUE, null as never, { ...options, autorun: false });
  }

  async work(): Promise<void> {
    for (;;) {
      const job = (await this.#worker.getNextJob("t", { block: false })) as Job | undefined;
      if (!job) return;
      this.fired.push(Number(job.id?.split(":").at(-1)));
      await job.moveToCompleted("", "t", false);
    }
  }

  async close(): Promise<void> {
    await this.#worker.close();
    await this.queue.close();
  }
}

const VERSIONS = { 6: { Queue, Worker }, 5: bullmq5 as never } as const;
async function begin(
  version: keyof typeof VERSIONS = 6,
  task: Partial<TaskInput> = {},
  repeat: object = { pattern: "* * * * *" },
) {
  theirs = new Theirs(VERSIONS[version]);
  await theirs.queue.upsertJobScheduler("t", repeat, { name: "ring", data: { n: 1 }, opts: { attempts: 3 } });
  const schedule = { cron: "* * * * *" };
  await kit.client.put({
    id: "t",
    type: "ring",
    queue: QUEUE,
    schedule,
    mode: "shadow",
    catchUp: "all",
    overlap: "allow",
    ...task,
  });
}
const old = (from = redisOfTheirs) => ({
  redis: from,
  prefix: theirs.prefix,
  queue: QUEUE,
  id: "t",
});

async function minutes(n: number): Promise<void> {
  for (let i = 0; i < n; i++) {
    await kit.advance("1m");
    await theirs.work();
  }
}

const ours = async () => (await kit.client.runs.list("t", { limit: 100 })).map(({ nominal }) => nominal);
const since = (times: readonly number[]) =>
  times.map((time) => (time - START) / MINUTE).sort((a, b) => a - b);
/** Each minute until now, from one side or the other. */
async function expectEachOnce(): Promise<void> {
  const n = Math.floor((kit.now - START) / MINUTE);
  expect(since([...theirs.fired, ...(await ours())])).toEqual(Array.from({ length: n }, (_, i) => i + 1));
}

describe.each([5, 6] as const)("BullMQ %i", (version) => {
  it("is taken over, gives back, and is taken over again: no time is missed, none fires twice", async () => {
    await begin(version);
    await minutes(3);
    await kit.advance("30s");
    expect(await cutOver(kit.client, "t", old(), { dryRun: true })).toMatchObject({
      next: START + 4 * MINUTE,
      done: false,
    });
    const taken = await cutOver(kit.client, "t", old());
    expect(taken).toMatchObject({ next: START + 4 * MINUTE, definition: { pattern: "* * * * *", ic: "4" } });
    expect(await kit.client.get("t")).toMatchObject({ state: "scheduled" });
    expect(await kit.client.get("t")).not.toHaveProperty("mode");
    expect(await theirs.queue.getJobSchedulersCount()).toBe(0);
    await minutes(3);
    expect(since(theirs.fired)).toEqual([1, 2, 3]);
    expect(since(await ours())).toEqual([4, 5, 6]);

    expect(await goBack(kit.client, "t", old(), { dryRun: true })).toMatchObject({
      next: START + 7 * MINUTE,
    });
    await goBack(kit.client, "t", old());
    expect(await kit.client.get("t")).toMatchObject({ state: "scheduled", mode: "shadow" });
    const [scheduler] = await theirs.queue.getJobSchedulers();
    expect(scheduler).toMatchObject({ key: "t", next: START + 7 * MINUTE, pattern: "* * * * *" });
    expect(scheduler?.template).toMatchObject({ data: { n: 1 }, opts: { attempts: 3 } });
    await minutes(3);
    expect(since(theirs.fired)).toEqual([1, 2, 3, 7, 8, 9]);

    await cutOver(kit.client, "t", old());
    await minutes(2);
    await expectEachOnce();
  });
});

it("keeps what is left of a limit on both sides", async () => {
  await begin(6, { schedule: { cron: "* * * * *", maxRuns: 6 } }, { pattern: "* * * * *", limit: 6 });
  await minutes(2);
  await cutOver(kit.client, "t", old());
  await minutes(2);
  await goBack(kit.client, "t", old());
  await minutes(4);
  expect(since(theirs.fired)).toEqual([1, 2, 5, 6]);
  expect(since(await ours())).toEqual([3, 4]);
});

describe("interrupted, and repeated", () => {
  /** A step that fails before it has an effect, or whose answer is lost. */
  const scripts = (when: "before" | "after") => {
    const real = redisOfTheirs;
    const broken = async (...args: Parameters<typeof real.eval>) => {
      if (when === "after") await real.eval(...args);
      throw new Error("interrupted");
    };
    return new Proxy(real, { get: (target, key) => (key === "eval" ? broken : Reflect.get(target, key)) });
  };
  const once = (method: "pause" | "resume", when: "before" | "after") => {
    const { tasks } = kit.store;
    const real = tasks[method].bind(tasks) as (...args: unknown[]) => Promise<never>;
    tasks[method] = async (...args: unknown[]) => {
      tasks[method] = real;
      if (when === "after") await real(...args);
      throw new Error("interrupted");
    };
  };

  it.each([
    ["pause", "before"],
    ["pause", "after"],
    ["script", "before"],
    ["script", "after"],
    ["resume", "before"],
    ["resume", "after"],
  ] as const)("at the %s, %s its effect: late at most", async (step, when) => {
    await begin();
    await minutes(2);
    for (const change of [cutOver, goBack]) {
      if (step !== "script") once(step, when);
      const place = step === "script" ? old(scripts(when)) : old();
      await expect(change(kit.client, "t", place)).rejects.toThrow("interrupted");
      await minutes(3);
      await change(kit.client, "t", old(), { seams: { wait: () => kit.advance("1ms") } });
      await minutes(3);
    }
    await expectEachOnce();
    expect((await ours()).length).toBeGreaterThan(2);
  });
});

describe("a scheduler that fires during the cut-over", () => {
  /** It fires after it was found, before the script arrives. */
  const late = () => {
    const real = redisOfTheirs;
    let fires = true;
    const slow = async (...args: Parameters<typeof real.eval>) => {
      if (fires) await minutes(1);
      fires = false;
      return real.eval(...args);
    };
    return new Proxy(real, { get: (target, key) => (key === "eval" ? slow : Reflect.get(target, key)) });
  };

  it("is taken over at the time after", async () => {
    await begin();
    await minutes(2);
    expect(await cutOver(kit.client, "t", old(late()))).toMatchObject({ next: START + 4 * MINUTE });
    await minutes(2);
    await expectEachOnce();
  });

  it("waits for a job that is due: the shadow has decided its time", async () => {
    await begin();
    await minutes(2);
    await kit.advance("1m");
    const done = await cutOver(kit.client, "t", old(), { seams: { wait: () => theirs.work() } });
    expect(done).toMatchObject({ next: START + 4 * MINUTE });
    await minutes(2);
    await expectEachOnce();
  });

  it("would fire twice if the script did not check", async () => {
    await begin();
    await minutes(2);
    const script = TAKE.replace(/^if score ~= next.*\n/m, "");
    expect(script).not.toBe(TAKE);
    await cutOver(kit.client, "t", old(late()), { seams: { script } });
    await minutes(2);
    await expect(expectEachOnce()).rejects.toThrow();
  });

  it("does not lose to a script that arrives late", async () => {
    await begin();
    await minutes(2);
    const real = redisOfTheirs;
    const sent: Parameters<typeof real.eval>[] = [];
    const heard = async (...args: Parameters<typeof real.eval>) => {
      sent.push(args);
      return real.eval(...args);
    };
    const place = old(
      new Proxy(real, { get: (target, key) => (key === "eval" ? heard : Reflect.get(target, key)) }),
    );
    await cutOver(kit.client, "t", place);
    await goBack(kit.client, "t", place);
    // The first one again, at the same next time.
    await real.eval(...(sent[0] as Parameters<typeof real.eval>));
    expect(await theirs.queue.getJobSchedulersCount()).toBe(1);
    await cutOver(kit.client, "t", place);
    for (const args of sent.slice(1, 3)) await real.eval(...args);
    expect(await theirs.queue.getJobSchedulersCount()).toBe(0);
    await minutes(2);
    await expectEachOnce();
  });
});

it("does not fire twice if a request to give back arrives when the call was repeated", async () => {
  await begin();
  await minutes(2);
  await cutOver(kit.client, "t", old());
  let withheld: Parameters<typeof redisOfTheirs.eval> | undefined;
  const lossy = async (...args: Parameters<typeof redisOfTheirs.eval>) => {
    if (!String(args[0]).includes("THERE")) return redisOfTheirs.eval(...args);
    withheld = args;
    throw new Error("lost");
  };
  const place = old(
    new Proxy(redisOfTheirs, { get: (target, key) => (key === "eval" ? lossy : Reflect.get(target, key)) }),
  );
  await expect(goBack(kit.client, "t", place)).rejects.toThrow("lost");
  await minutes(2);
  const wait = async () => {
    await kit.advance("1ms");
    if (withheld) await redisOfTheirs.eval(...withheld);
    await theirs.work();
  };
  await goBack(kit.client, "t", old(), { seams: { wait } });
  await minutes(2);
  await expectEachOnce();
});

it("refuses other times, a live task, and what is not there", async () => {
  await begin(6, { schedule: { cron: "30 * * * *" } });
  await expect(cutOver(kit.client, "t", old())).rejects.toThrow(
    "fires next at 2026-01-01T00:01:00.000Z, and t at 2026-01-01T00:30:00.000Z",
  );
  await kit.client.put({ id: "live", type: "ring", queue: QUEUE, schedule: { cron: "* * * * *" } });
  await expect(cutOver(kit.client, "live", old())).rejects.toMatchObject({ code: "CONFLICT" });
  await expect(cutOver(kit.client, "t", { ...old(), id: "none" })).rejects.toMatchObject({
    code: "CONFLICT",
  });
  expect(await kit.client.get("t")).toMatchObject({ state: "scheduled", mode: "shadow" });
  expect(await theirs.queue.getJobSchedulersCount()).toBe(1);
});
