import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { internalsOf } from "@carillon/store/internal";
import { eventually } from "@carillon/testing";
import { FlowProducer, type Job, raw2NextJobData, UnrecoverableError, Worker } from "bullmq";
import { Redis } from "ioredis";
import { unpack } from "msgpackr";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sharedRedis } from "../../../test/helpers.js";
import { bullChildren, bullKeys, bullMeta } from "../src/bull/bull-keys.js";
import { bullTakeLua, bullTurnKeys } from "../src/bull/bull-turn.js";
import { bullAddLua, bullPromoteLua, bullScript, JobPacker, jobOptions } from "../src/bull/bullmq.js";
import { loadBull } from "../src/bull/load.js";
import { PatientWorker } from "../src/bull/patient-worker.js";
import { bullPrefix } from "../src/keys.js";
import { luaText } from "../src/script/script.js";
import { Bench, QUEUE, START } from "./bench.js";

const loaded = await loadBull();

/**
 * Internals of BullMQ that packages/store/src/bull relies on; none of them is promised. If a new version makes one of
 * these fail: read the diff of that script or method, adapt the folder, and only then change the pin here.
 */
const REVIEW: Record<string, { sha1: string; review: string }> = {
  addStandardJob: {
    sha1: "5ab432e88830d573e2fa33392ffbd4ad25a9b100",
    review:
      "its KEYS and packed arguments, that it checks before it writes, that it returns the id or a negative number",
  },
  addPrioritizedJob: {
    sha1: "299880da0f75f0b376ee8e87d20eae62f964ac5e",
    review: "as addStandardJob, and that its keys are all in BULL_KEYS",
  },
  moveToFinished: {
    sha1: "69666e69dd5621df59067a03de685e55a486560d",
    review:
      "all that it does with a job that completes, has no parent, children or deduplication id, and stays: lib/bull-end.lua does the same",
  },
  moveToActive: {
    sha1: "d96ca626f1ea141b44a856b312fc636d99aa9ea9",
    review:
      "its KEYS and arguments; that it answers a job as a list or no list, a rate limit and a time; that RPOPLPUSH is its first look for a job; what it reads of meta, delayed jobs and sets of the marker; that HMSET, HINCRBY and HGETALL are of the job that it takes, in this order; and the cuts in bull-turn.ts",
  },
  removeJob: {
    sha1: "574af105e7df948fdf7e5410f3190a87f037d7f3",
    review: "that it refuses a locked job with 0, answers 1, and reads no key but those under its prefix",
  },
  promote: {
    sha1: "1d740f19fe984343737df70206877be7cbab6913",
    review: "its KEYS, and that it leaves a job that is not delayed and answers -3",
  },
  pause: {
    sha1: "8c25f7be363de2a28428dae13ddc20ffb3f6e7aa",
    review:
      "its KEYS and arguments, that a pause is the field `paused` of meta, and that a resume answers how many jobs it left aside",
  },
};

/** Methods of BullMQ's worker that PatientWorker and TurnWorker override or call. */
const MEMBERS: Record<string, { sha1: string; review: string }> = {
  run: {
    sha1: "14d854f6dafc4d8cac53bfb659fb449ea0a648de",
    review: "that it starts the check for stalled jobs and the locks, then `mainLoop`, and waits for that",
  },
  whenCurrentJobsFinished: {
    sha1: "ceed1231fe5023b21965a0341a1215ea09301140",
    review: "that it ends the wait for a job, and waits for `mainLoopRunning`",
  },
  pause: { sha1: "e0bbb7fecd6ecebda6a4891cefdc7973b77d0923", review: "that it sets `paused` at once" },
  resume: { sha1: "fb38b93a4ca0a2a18949f96f475af5c62fd0c79d", review: "that it calls `run` if no loop runs" },
  processJob: {
    sha1: "28dc4360f57383f8f4c4435aa4afb611cf74d5d1",
    review:
      "that it keeps the job's lock, fails a deferred failure without a handler, calls `callProcessJob`, and ends the job by `handleCompleted` or `handleFailed`; that `fetchNextCallback` decides whether it takes another",
  },
  callProcessJob: {
    sha1: "a6967fab0c07f6d3b0856f889536c64a71a7b117",
    review: "that processJob asks it for what a job's handler returns",
  },
  nextJobFromJobData: {
    sha1: "f60ec63b5e36007b3021cfdc0bd96408eda2184f",
    review: "that it makes the job, and keeps BullMQ's own schedules going",
  },
  createJob: {
    sha1: "e395fcafc16b7a674087b3ad98ef2219a5763fad",
    review: "that it takes what raw2NextJobData makes of a job",
  },
  waitForJob: {
    sha1: "743ffc83ac8147367d8ae691aaff969fe4f1a8fd",
    review: "that it never rejects, ends with `close`, and returns when to ask for a job: 0 at once",
  },
  waitForRateLimit: {
    sha1: "b47cf71cd73d4f577f2a6fadd2d4f87a4ca8d58b",
    review: "that it waits until `limitUntil`, and ends with `close`",
  },
  isRateLimited: {
    sha1: "5e5042894af85440692ea124c7b8a77ae58be608",
    review: "that it compares `limitUntil` with the time",
  },
  updateDelays: {
    sha1: "797feff1e4892e80e55b86baa36bbc219a99ea47",
    review: "that it sets `limitUntil` and `blockUntil`",
  },
  handleCompleted: {
    sha1: "7c39649e296b88008cd83be5ef27faad8eaf38be",
    review: "that it writes the end of a job, and rejects if Redis refuses",
  },
  handleFailed: {
    sha1: "38785786d35e23e53114e5988b058bb6f198f5a0",
    review:
      "as handleCompleted; that it adds to job.stacktrace, and only fetches the next job for MOVED errors",
  },
  close: {
    sha1: "cb5bb1e77abd75a3967717f2392bac3ea8408905",
    review: "that abandon() stops what it would stop last",
  },
};

describe("the internals of BullMQ", () => {
  const redis = sharedRedis();
  let client: Redis;
  const bench = Bench.use(() => redis.url);
  beforeAll(async () => {
    client = new Redis(redis.url);
  });
  afterAll(async () => {
    client.disconnect();
  });

  const packer = () => new JobPacker("{ns:q}:q:");
  const options = (priority: number) => jobOptions({ priority }, START);

  it("have the pinned version, exactly", () => {
    const require = createRequire(import.meta.url);
    const installed = JSON.parse(readFileSync(require.resolve("bullmq/package.json"), "utf8")) as {
      version: string;
    };
    const own = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")) as {
      dependencies: { bullmq: string };
    };
    expect(own.dependencies.bullmq).toMatch(/^\d+\.\d+\.\d+$/);
    expect(installed.version).toBe(own.dependencies.bullmq);
  });

  it.each(Object.entries(REVIEW))("have the reviewed text of %s", (name, { sha1, review }) => {
    const found = createHash("sha1").update(bullScript(name)).digest("hex");
    expect(found, `BullMQ changed ${name}. Review in its diff: ${review}. Then pin ${found}.`).toBe(sha1);
  });

  it.each(Object.entries(MEMBERS))("have the reviewed %s of the worker", (name, { sha1, review }) => {
    const text = String((Worker.prototype as unknown as Record<string, unknown>)[name]);
    const found = createHash("sha1").update(text).digest("hex");
    expect(found, `BullMQ changed ${name}. Review in its diff: ${review}. Then pin ${found}.`).toBe(sha1);
  });

  it("keep a worker's process alive where `abandon` expects it", async () => {
    const worker = new PatientWorker(QUEUE, null, {
      connection: bench.connect(),
      prefix: bullPrefix(bench.store.namespace, QUEUE),
    });
    await worker.waitUntilReady();
    await worker.startStalledCheckTimer();
    const members = worker as unknown as Record<string, unknown>;
    // Set after the first check.
    await eventually(() => expect(members.stalledCheckStopper).toBeInstanceOf(Function));
    expect(members.lockManager).toMatchObject({ close: expect.any(Function) });
    expect(members.backend).toMatchObject({ close: expect.any(Function) });
    await worker.abandon();
    await worker.close(true);
  });

  it("have the members of a worker that TurnWorker uses", () => {
    const worker = new Worker(QUEUE, async () => {}, {
      connection: bench.connect(),
      prefix: bullPrefix(bench.store.namespace, QUEUE),
      autorun: false,
    }) as unknown as Record<string, unknown>;
    expect(worker).toMatchObject({
      waiting: null,
      blockUntil: 0,
      limitUntil: 0,
      running: false,
    });
    expect(worker["lockManager"]).toMatchObject({
      trackJob: expect.any(Function),
      untrackJob: expect.any(Function),
    });
    return (worker as unknown as Worker).close(true);
  });

  it("get the keys and arguments of a take as from BullMQ itself", async () => {
    const prefix = bullPrefix(bench.store.namespace, QUEUE);
    const options = { connection: bench.connect(), prefix, autorun: false, name: "me" };
    const worker = new Worker(QUEUE, async () => {}, options);
    await worker.waitUntilReady();
    const sent: { name: string; args: unknown[]; answer: unknown }[] = [];
    const { backend } = worker as unknown as {
      backend: { execCommand(client: unknown, name: string, args: unknown[]): Promise<unknown> };
    };
    const exec = backend.execCommand;
    backend.execCommand = async (redis, name, args) => {
      const answer = await exec.call(backend, redis, name, args);
      sent.push({ name, args, answer });
      return answer;
    };
    await bench.queue().add("noop", { a: 1 }, { jobId: "j@1" });
    await worker.getNextJob("a-token", { block: false });
    await worker.close();
    const [taken] = sent as [(typeof sent)[0]];
    expect(taken.name).toBe("moveToActive");

    const all = bullTurnKeys(`${prefix}:${QUEUE}:`);
    const list = /local bullTakeKeys = \{(.*)\}/.exec(bullTakeLua(loaded))?.[1] as string;
    const handed = list.split(", ").map((key) => all[Number(/K\.bull\[(\d+)\]/.exec(key)?.[1]) - 1]);
    expect(handed).toEqual(taken.args.slice(0, 11));
    const bull = `${prefix}:${QUEUE}:`;
    expect(taken.args.slice(11, -1)).toEqual([bull, expect.any(Number)]);
    const lock = { token: "a-token", lockDuration: 30_000, name: "me" };
    expect(unpack(taken.args.at(-1) as Buffer)).toMatchObject(lock);
    const [data] = raw2NextJobData(taken.answer as unknown[]);
    expect(data).toMatchObject({
      name: "noop",
      data: '{"a":1}',
      attemptsMade: 0,
      stalledCounter: 0,
      processedBy: "me",
    });
  });

  it("are reported by name if a script is absent", () => {
    expect(() => bullScript("addJobOfAnotherKind")).toThrow(/addJobOfAnotherKind.*another version/);
  });

  it.each([
    ["standard", 0],
    ["prioritized", 3],
  ])("the keys of a %s add are in the order that the composite hands over", (kind, priority) => {
    const packed = packer().template("noop", options(priority));
    expect(packed.prioritized).toBe(kind === "prioritized");
    const all = bullKeys("{ns:q}:q:");
    const name = kind === "standard" ? "bullStandardKeys" : "bullPrioritizedKeys";
    const handed = new RegExp(`${name} = \\{(.*?)\\}`).exec(bullAddLua())?.[1] ?? "";
    const order = [...handed.matchAll(/K\[(\d+)\]/g)].map(([, at]) => all[Number(at) - 1]);
    expect(order).toEqual(packed.keys);
    // Redis Cluster learns of these keys and the job's own only.
    for (const key of packed.keys) expect(all).toContain(key);
  });

  it.each([0, 3])("the packed arguments are where the scripts read them (priority %d)", (priority) => {
    const packed = packer().template("noop", options(priority));
    // Parent key, dependencies, parent, repeat key, deduplication and defer follow, all unset.
    expect(packed.args).toEqual(["{ns:q}:q:", "id", "noop", String(START)]);
    expect(packed.opts).toEqual({
      attempts: 0,
      removeOnComplete: false,
      removeOnFail: false,
      timestamp: START,
      ...(priority ? { priority } : {}),
    });
  });

  it.each([0, 7])(
    "a claimed job equals one that Queue.add made, field by field (priority %d)",
    async (priority) => {
      await bench.put({ id: "t", priority, payload: { a: "ü", n: [1, null] } });
      await bench.clock.advance(10_000);
      await bench.claim("t", "a");
      const queue = bench.queue();
      const [claimed] = await bench.jobs();
      const { data } = claimed as Job;
      const other = `{${bench.store.namespace}:other}`;
      const added = await (await otherQueue(other)).add("noop", data, {
        ...jobOptions({ priority }, bench.clock.now),
        jobId: claimed?.id as string,
      });
      const mine = `${bullPrefix(bench.store.namespace, QUEUE)}:${QUEUE}:`;
      const theirs = `${other}:other:`;
      const { data: text, opts, ...rest } = await client.hgetall(mine + claimed?.id);
      const { data: theirText, opts: theirOpts, ...theirRest } = await client.hgetall(theirs + added.id);
      expect(rest).toEqual(theirRest);
      expect(JSON.parse(text as string)).toEqual(JSON.parse(theirText as string));
      const { jobId: _, ...optsWithoutId } = JSON.parse(theirOpts as string) as Record<string, unknown>;
      expect(JSON.parse(opts as string)).toEqual(optsWithoutId);
      // Keys of the queue around it that the add has written.
      for (const key of ["wait", "prioritized", "marker", "id", "pc"]) {
        const [here, there] = await Promise.all([dumped(mine + key), dumped(theirs + key)]);
        expect([key, here]).toEqual([key, there]);
      }
      const events = async (prefix: string) =>
        (await client.xrange(`${prefix}events`, "-", "+")).map(([, fields]) => fields);
      expect(await events(mine)).toEqual(await events(theirs));
      expect(await client.hget(`${mine}meta`, "opts.maxLenEvents")).toBe(
        await client.hget(`${theirs}meta`, "opts.maxLenEvents"),
      );
      expect(await queue.getJobCounts()).toMatchObject(priority ? { prioritized: 1 } : { waiting: 1 });
    },
  );

  async function otherQueue(prefix: string) {
    const { Queue } = await import("bullmq");
    const queue = new Queue("other", { connection: bench.connect(), prefix });
    await queue.waitUntilReady();
    return queue;
  }
  const dumped = async (key: string) => (await client.dumpBuffer(key))?.toString("base64");

  it("a job is not added again under an id that exists", async () => {
    // Protects run ids, which are unique anyway.
    const queue = bench.queue();
    await queue.add("noop", {}, { jobId: "t@1.a" });
    await queue.add("noop", {}, { jobId: "t@1.a" });
    expect(await queue.getJobCounts()).toMatchObject({ waiting: 1 });
  });

  describe("finishedOn tells whether a job is over", () => {
    const finishedOn = (id: string) =>
      client.hget(`${bullPrefix(bench.store.namespace, QUEUE)}:${QUEUE}:${id}`, "finishedOn");

    it("is set when the job completes, absent when it is retried, and set again", async () => {
      const queue = bench.queue();
      const { id } = (await queue.add("noop", {})) as { id: string };
      expect(await finishedOn(id)).toBeNull();
      await bench.workAll(async () => {
        expect(await finishedOn(id)).toBeNull();
      });
      expect(Number(await finishedOn(id))).toBeGreaterThan(0);
      await (await queue.getJob(id))?.retry("completed");
      expect(await finishedOn(id)).toBeNull();
      await bench.workAll();
      expect(Number(await finishedOn(id))).toBeGreaterThan(0);
    });

    it("is set when the job fails for good, not while an attempt is left", async () => {
      const queue = bench.queue();
      const { id } = (await queue.add("noop", {}, { attempts: 2 })) as { id: string };
      const seen: (string | null)[] = [];
      await bench.workAll(async () => {
        seen.push(await finishedOn(id));
        throw new Error("again");
      });
      expect(seen).toEqual([null, null]);
      expect(Number(await finishedOn(id))).toBeGreaterThan(0);
      await queue.retryJobs({ state: "failed" });
      expect(await finishedOn(id)).toBeNull();
      expect((await queue.getJob(id))?.attemptsMade).toBe(2);
    });

    it("is set when the job stalls too often, with the reason that the reconciler expects", async () => {
      const queue = bench.queue();
      const { id } = (await queue.add("noop", {})) as { id: string };
      const worker = new Worker(QUEUE, null, {
        connection: bench.connect(),
        prefix: bullPrefix(bench.store.namespace, QUEUE),
        maxStalledCount: 0,
        stalledInterval: 50,
      });
      // Taken by a worker that dies at once: nobody renews the lock.
      await worker.getNextJob("a-token");
      await client.del(`${bullPrefix(bench.store.namespace, QUEUE)}:${QUEUE}:${id}:lock`);
      const failing = new Promise<void>((resolve) => worker.once("failed", () => resolve()));
      const stalled = new Promise<void>((resolve) => worker.once("stalled", () => resolve()));
      await worker.startStalledCheckTimer();
      await Promise.race([failing, stalled]);
      // BullMQ hands the job to a worker once more, which fails it without running it.
      await bench.workAll(async () => {
        throw new Error("It was run.");
      });
      const job = await queue.getJob(id);
      expect(Number(job?.finishedOn)).toBeGreaterThan(0);
      expect(job?.failedReason).toContain("stalled more than");
      await worker.close();
    });
  });

  it("attemptsMade grows when a job ends, not when it starts or is retried from outside", async () => {
    const queue = bench.queue();
    const { id } = (await queue.add("noop", {})) as { id: string };
    const made: number[] = [];
    const fail = async (job: Job) => {
      made.push(job.attemptsMade);
      throw new UnrecoverableError("no");
    };
    await bench.workAll(fail);
    await (await queue.getJob(id))?.retry("failed");
    await bench.workAll(fail);
    expect(made).toEqual([0, 1]);
  });

  it("removeJob leaves a job that a worker holds, and removes any other", async () => {
    const queue = bench.queue();
    const { id } = (await queue.add("noop", {})) as { id: string };
    const prefix = `${bullPrefix(bench.store.namespace, QUEUE)}:${QUEUE}:`;
    const remove = () =>
      client.eval(bullScript("removeJob"), 2, prefix + id, `${prefix}repeat`, id, "0", prefix);
    await bench.workAll(async () => {
      expect(await remove()).toBe(0);
    });
    expect(await remove()).toBe(1);
    expect(await queue.getJob(id)).toBeUndefined();
  });

  it.each([0, 3])("a promoted job equals one that Job.promote promoted (priority %d)", async (priority) => {
    const queue = bench.queue();
    const prefix = `${bullPrefix(bench.store.namespace, QUEUE)}:${QUEUE}:`;
    const promote = (id: string) =>
      client.eval(`${bullPromoteLua()}\nreturn bullPromote(ARGV[1], ARGV[2])`, 0, prefix, id);
    const delayed = { ...options(priority), delay: 60_000 };
    const theirs = (await queue.add("noop", {}, delayed)) as Job;
    const ours = (await queue.add("noop", {}, delayed)) as Job;
    await theirs.promote();
    expect(await promote(ours.id as string)).toBe(0);
    expect(await promote(ours.id as string)).toBe(-3);
    const [one, other] = await Promise.all([theirs, ours].map(({ id }) => client.hgetall(prefix + id)));
    expect(other).toEqual(one);
    const taken: unknown[] = [];
    await bench.workAll(async ({ id }) => void taken.push(id));
    expect(taken).toEqual([theirs.id, ours.id]);
  });

  describe("lib/bull.lua reads what BullMQ writes", () => {
    /** Calls a function of the library for this queue. */
    const lua = (body: string, ...args: string[]) =>
      client.eval(
        `${luaText("lib/keys")}\n${luaText("lib/bull")}\n${body}`,
        1,
        internalsOf(bench.store).keys.queue(QUEUE).tasks,
        ...args,
      );
    const asked = (call: string, id: string) =>
      lua(`return ${call}`, internalsOf(bench.store).keys.queue(QUEUE).job(id), id);
    const jobState = (id: string) => asked("jobState(ARGV[1])", id);

    it("reads a job that is active, is held, and completes", async () => {
      const { id } = (await bench.queue().add("noop", {})) as { id: string };
      expect(await jobState(id)).toBe("live");
      expect(await jobState("other")).toBe("missing");
      expect(await asked("isHeld(ARGV[1])", id)).toBeNull();
      await bench.workAll(async (job) => {
        expect(await asked("isHeld(ARGV[1])", id)).toBe(1);
        const token = String(job.token);
        const key = internalsOf(bench.store).keys.queue(QUEUE).job(id);
        expect(await lua("return isHeldWith(ARGV[1], ARGV[2])", key, token)).toBe(1);
        expect(await lua("return isHeldWith(ARGV[1], ARGV[2])", key, "another")).toBeNull();
        const stamps = "local stamps = stampsOf(ARGV[1]) return { stamps.started, stamps.attempts }";
        expect(await lua(stamps, key)).toEqual([expect.stringMatching(/^\d{13}$/), "1"]);
      });
      expect(await jobState(id)).toBe("done");
      expect(await asked("{ jobOutcome(ARGV[1], ARGV[2]) }", id)).toEqual(["succeeded"]);
      expect(await asked('jobsEnded("completed", { ARGV[2], "other" })', id)).toEqual([
        expect.any(String),
        null,
      ]);
    });

    it("reads a job that fails, is retried, and has its attempts reset", async () => {
      const queue = bench.queue();
      const { id } = (await queue.add("noop", {})) as { id: string };
      const fail = () =>
        bench.workAll(async () => {
          throw new Error("no");
        });
      expect(await asked("{ traceOf(ARGV[1]), attemptsMade(ARGV[1]) }", id)).toEqual([0]);
      await fail();
      expect(await asked("{ jobOutcome(ARGV[1], ARGV[2]) }", id)).toEqual(["failed", "no"]);
      expect(await asked('jobsEnded("failed", { ARGV[2] })', id)).toEqual([expect.any(String)]);
      const [trace, made] = (await asked("{ traceOf(ARGV[1]), attemptsMade(ARGV[1]) }", id)) as [
        number,
        string,
      ];
      expect([trace > 0, made]).toEqual([true, "1"]);
      await (await queue.getJob(id))?.retry("failed", { resetAttemptsMade: true });
      expect(await jobState(id)).toBe("live");
      expect(await asked("{ traceOf(ARGV[1]), attemptsMade(ARGV[1]) }", id)).toEqual([trace]);
    });

    it("reads waiting jobs, by priority too, and a queue's settings", async () => {
      const queue = bench.queue();
      const meta = bullMeta(internalsOf(bench.store).keys.queue(QUEUE).bull);
      const oldest = () =>
        lua(
          'return bullOldestSince({ wait = bullKey("wait"), paused = bullKey("paused"), prioritized = bullKey("prioritized") })',
        );
      expect(await oldest()).toBeNull();
      const first = await queue.add("noop", {}, { priority: 7 });
      await queue.add("noop", {}, { priority: 3, timestamp: first.timestamp + 1_000 });
      await queue.add("noop", {}, { timestamp: first.timestamp + 2_000 });
      expect(await oldest()).toBe(first.timestamp);
      for (const [call, wanted] of [
        ["return bullHasSettings(ARGV[1])", null],
        ["return bullIsPaused(ARGV[1])", null],
      ] as const)
        expect(await lua(call, meta)).toBe(wanted);
      await queue.pause();
      expect(await lua("return bullIsPaused(ARGV[1])", meta)).toBe(1);
      expect(await lua("return bullHasSettings(ARGV[1])", meta)).toBe(1);
    });

    it("finds a job's place among those that wait: the oldest is near", async () => {
      const queue = bench.queue();
      await queue.addBulk(
        Array.from({ length: 50 }, (_, i) => ({ name: "noop", data: {}, opts: { jobId: `j@${i}` } })),
      );
      const passes = async (id: string) => lua("fits(ARGV[1]) return passed", id);
      expect(await passes("j@0")).toBeLessThan(5);
      expect(await passes("j@49")).toBeGreaterThan(90);
    });
  });

  it("a job's children are where a fan-out expects them", async () => {
    const prefix = bullPrefix(bench.store.namespace, QUEUE);
    const flows = new FlowProducer({ connection: bench.connect(), prefix });
    const child = (jobId: string) => ({
      name: jobId,
      queueName: QUEUE,
      data: {},
      opts: { jobId, ignoreDependencyOnFailure: true },
    });
    const flow = { name: "all", queueName: QUEUE, data: {}, opts: { jobId: "all@1" } };
    await flows.add({ ...flow, children: ["a@1", "b@1", "c@1"].map(child) });
    const { bull, job } = internalsOf(bench.store).keys.queue(QUEUE);
    const { left, succeeded, failed } = bullChildren(job("all@1"));
    expect((await client.smembers(left)).sort()).toEqual(["a@1", "b@1", "c@1"].map((id) => bull + id));
    await bench.workAll(async ({ name }) => {
      if (name === "b@1") throw new Error("no");
    });
    expect((await client.hkeys(succeeded)).sort()).toEqual(["a@1", "c@1"].map((id) => bull + id));
    expect(await client.hkeys(failed)).toEqual([`${bull}b@1`]);
    await flows.close();
  });
});
