import type { Turn } from "@carillon/store";
import { internalsOf } from "@carillon/store/internal";
import { eventually } from "@carillon/testing";
import { FlowProducer, type Job, type Queue, Worker } from "bullmq";
import { expect, it, vi } from "vitest";
import { LANE, onEveryEngine } from "../../../test/helpers.js";
import { TurnWorker } from "../src/bull/turn-worker.js";
import { bullPrefix } from "../src/keys.js";
import { begunOf } from "../src/run/run-scripts.js";
import type { TurnAnswer, TurnEnd, TurnLane } from "../src/run/turns.js";
import { Bench, QUEUE } from "./bench.js";

/** A worker of the queue, by kind, with its concurrency. */
interface Crew {
  readonly bench: Bench;
  readonly queue: Queue;
  /** Works until it has been idle, and stops. */
  work(concurrency: number): Promise<void>;
}

type Scenario = [name: string, act: (crew: Crew) => Promise<void>];

type Taken = TurnAnswer["jobs"][0];

const RUNS = 12;

const lanesOf = (bench: Bench) => bench.store.runs.lanes(QUEUE, LANE) as [TurnLane, ...TurnLane[]];

/** The end of a run that a turn has started. */
function endOf(bench: Bench, [run, token, , start]: Taken): TurnEnd {
  return {
    name: bench.name("p0"),
    run,
    token,
    fence: Number(start?.[1]),
    outcome: "succeeded",
    made: 1,
    result: { a: 1 },
  };
}

async function add(bench: Bench, count = RUNS, priority = 0): Promise<void> {
  const id = `p${priority}`;
  await bench.put({ id, overlap: "allow", priority, retry: { attempts: 2, delay: "1ms" } });
  for (let n = 0; n < count; n++) await bench.trigger(id, `n${n}`);
}

const scenarios: Scenario[] = [
  [
    "one at a time",
    async ({ bench, work }) => {
      await add(bench);
      await work(1);
    },
  ],
  [
    "many at a time",
    async ({ bench, work }) => {
      await add(bench, 40);
      await work(20);
    },
  ],
  [
    "with priorities",
    async ({ bench, work }) => {
      await add(bench, 4, 7);
      await add(bench, 4);
      await add(bench, 4, 2);
      await work(1);
    },
  ],
  [
    "delayed and due",
    async ({ bench, queue, work }) => {
      await add(bench, 2);
      for (const jobId of ["d@1", "d@2", "d@3"]) await queue.add("plain", {}, { jobId, delay: 1 });
      const last = (await queue.getDelayed())[0] as Job;
      await eventually(() => expect(Date.now()).toBeGreaterThan(last.timestamp + 5));
      await work(1);
    },
  ],
  [
    "one at a time of all workers",
    async ({ bench, queue, work }) => {
      await queue.setGlobalConcurrency(1);
      await add(bench, 5);
      await work(5);
    },
  ],
  [
    "limited in their rate",
    async ({ bench, queue, work }) => {
      await queue.setGlobalRateLimit(3, 150);
      await add(bench, 8);
      await work(5);
    },
  ],
  [
    "paused in the middle",
    async ({ bench, queue, work }) => {
      await add(bench, 6);
      await queue.pause();
      await work(2);
      await queue.resume();
      await work(2);
    },
  ],
  [
    "a parent and its children, and failures",
    async ({ bench, work }) => {
      const flows = new FlowProducer({
        connection: bench.connect(),
        prefix: bullPrefix(bench.store.namespace, QUEUE),
      });
      const child = (jobId: string) => ({ name: "plain", queueName: QUEUE, data: {}, opts: { jobId } });
      await flows.add({
        name: "plain",
        queueName: QUEUE,
        data: {},
        opts: { jobId: "all@1" },
        children: ["a@1", "b@1", "bad@1"].map((id) => ({
          ...child(id),
          opts: { jobId: id, ignoreDependencyOnFailure: true },
        })),
      });
      await add(bench, 3);
      await work(1);
      await flows.close();
    },
  ],
];

/** Returns the result of a run's handler, which BullMQ's worker gets too. */
async function handle(job: Job): Promise<unknown> {
  if (String(job.id).startsWith("bad@")) throw Object.assign(new Error("no"), { stack: "no" });
  return job.name === "noop" ? { of: job.data.payload } : "plain";
}

onEveryEngine("a turn", (connection) => {
  const own = Bench.use(connection);

  const prefixOf = (bench: Bench) => bullPrefix(bench.store.namespace, QUEUE);
  /** Whether no work is left for a worker. */
  const idle = (queue: Queue) =>
    eventually(async () => {
      const { active, waiting, prioritized, delayed } = await queue.getJobCounts();
      const parents = await queue.getWaitingChildrenCount();
      if (active || (!(await queue.isPaused()) && (waiting || prioritized || delayed || parents)))
        return false;
      return true;
    });

  function crewOf(one: Bench, make: (concurrency: number) => Worker): Crew {
    const queue = one.queue();
    return {
      bench: one,
      queue,
      async work(concurrency) {
        const worker = make(concurrency);
        worker.on("error", () => {});
        void worker.run();
        await idle(queue);
        await worker.close();
      },
    };
  }

  const theirs = (one: Bench) =>
    crewOf(one, (concurrency) => {
      const options = {
        connection: one.connect(),
        prefix: prefixOf(one),
        concurrency,
        name: "me",
        autorun: false,
      };
      return new Worker(QUEUE, handle, options);
    });

  const ours = (one: Bench) =>
    crewOf(one, (concurrency) => {
      const options = { connection: one.connect(), prefix: prefixOf(one), concurrency, name: "me" };
      const lanes = one.store.runs.lanes(QUEUE, LANE);
      const process = async (job: Job) => {
        const value = await handle(job);
        const turn = worker.turnOf(job) as Turn;
        if (!turn.start) return value;
        const { owner, task } = job.data.occurrence as { owner: string; task: string };
        const name = { queue: QUEUE, owner, id: task };
        const { fence } = begunOf(name, turn.start);
        const end = {
          name,
          run: String(job.id),
          fence,
          outcome: "succeeded",
          result: value,
        } as const;
        expect(await turn.end(end as never)).toBe("OK");
        return value;
      };
      const worker = new TurnWorker(QUEUE, process, options, lanes);
      return worker;
    });

  /** BullMQ's data of a queue, without times, and without the order of events if several jobs are worked at once. */
  async function kept(one: Bench, ordered: boolean): Promise<Record<string, unknown>> {
    const { namespace } = one.store;
    const state: Record<string, unknown> = {};
    // This key may expire at any moment.
    const { link, keys } = internalsOf(one.store);
    await link.ask((client) => client.del(`${keys.queue(QUEUE).bull}limiter`));
    for (const [key, held] of Object.entries(await one.dump())) {
      if (key.includes(":~") || !key.startsWith(`{${namespace}:`)) continue;
      const { value } = held as { value: unknown };
      const name = key.replaceAll(namespace, "ns");
      const text = (what: unknown) => JSON.parse(JSON.stringify(what).replaceAll(namespace, "ns")) as unknown;
      if (/:(stalled-check|marker)$/.test(key)) continue;
      if (key.endsWith(":events")) {
        const events = (value as [string, string[]][]).map(([, fields]) =>
          JSON.stringify(text(fields)).replace(/"delay","\d+"/, '"delay"'),
        );
        state[name] = ordered ? events : events.sort();
      } else if (/:(completed|failed)$/.test(key) && Array.isArray(value)) {
        const ids = (value as string[]).filter((_, i) => i % 2 === 0);
        state[name] = ids.sort();
      } else if (value !== null && typeof value === "object" && !Array.isArray(value)) {
        const {
          processedOn: _,
          finishedOn: __,
          timestamp: ___,
          data,
          opts,
          ...rest
        } = value as Record<string, string>;
        state[name] = text({
          ...rest,
          data: data?.replace(/"(enqueued|nominal|due|generation)":"?\d+"?/g, ""),
        });
      } else state[name] = text(value);
    }
    return state;
  }

  it("takes no more jobs than it can begin soon", async () => {
    const bench = await Bench.open(connection());
    let used = 1_000;
    const cpu = vi.spyOn(process, "cpuUsage").mockImplementation(() => ({ user: used * 1000, system: 0 }));
    const takes: number[] = [];
    try {
      await add(bench, 90);
      // Redis says one thing to all lanes, so one is enough.
      const [lane] = lanesOf(bench);
      vi.spyOn(lane, "next").mockImplementation((take) => {
        takes.push(take);
        return Object.getPrototypeOf(lane).next.call(lane, take);
      });
      let begun = 0;
      const handler = async () => {
        begun += 1;
        // 5 ms of CPU in each of the first turn's handlers, then nearly none.
        used += begun <= 32 ? 5 : 0;
      };
      const options = { connection: bench.connect(), prefix: prefixOf(bench), concurrency: 90, name: "me" };
      const worker = new TurnWorker(QUEUE, handler, options, [lane]);
      worker.on("error", () => {});
      void worker.run();
      await eventually(async () => begun === 90);
      await worker.close();
      expect(takes.slice(0, 2)).toEqual([32, 5]);
    } finally {
      cpu.mockRestore();
      await bench.close();
    }
  });

  it.each(scenarios)("leaves the same BullMQ data as BullMQ's own worker: %s", async (name, act) => {
    const [one, other] = await Promise.all([Bench.open(connection()), Bench.open(connection())]);
    try {
      await act(theirs(one));
      await act(ours(other));
      const ordered =
        name !== "many at a time" && name !== "limited in their rate" && name !== "paused in the middle";
      const wanted = await kept(one, ordered);
      expect(Object.keys(wanted).length).toBeGreaterThan(4);
      expect(await kept(other, ordered)).toEqual(wanted);
      const { runs } = other.store;
      for (const id of ["p0", "p2", "p7"])
        for (const run of await runs.list(other.name(id), 100))
          expect(run).toMatchObject({ state: "final", outcome: "succeeded", attempts: 1 });
    } finally {
      await one.close();
      await other.close();
    }
  });

  it("reports answers that make no sense, and works on", async () => {
    await add(own, 2);
    const nonsense = [
      { words: [], jobs: [["id", "token", ["data", "{"], ["start"]]], limit: 0, delay: 0, error: "" },
      { words: [] },
    ];
    const lanes = lanesOf(own).map((lane) => ({
      next: (take: number) => {
        const answer = nonsense.shift();
        return answer ? async () => answer : lane.next(take);
      },
    }));
    const options = { connection: own.connect(), prefix: prefixOf(own), concurrency: 2, name: "me" };
    const worker = new TurnWorker(QUEUE, handle, options, lanes as never);
    const errors: Error[] = [];
    worker.on("error", (error) => errors.push(error));
    void worker.run();
    await idle(own.queue());
    expect(errors.map(({ name }) => name)).toEqual(["SyntaxError", "TypeError"]);
    await worker.close();
  });

  it("counts the end of a run once, however often it is sent", async () => {
    await add(own, 1);
    const { keys } = internalsOf(own.store);
    const [lane] = lanesOf(own);
    const take = lane.next(3);
    const first = await take([]);
    const again = await take([]);
    expect(again.jobs.map(([id, token, , start]) => [id, token, start?.[1]])).toEqual(
      first.jobs.map(([id, token, , start]) => [id, token, String(start?.[1])]),
    );
    const end = endOf(own, first.jobs[0] as Taken);
    const { name } = end;
    const finish = lane.next(0);
    expect((await finish([end])).words).toEqual(["OK"]);
    expect((await finish([end])).words).toEqual(["OK"]);
    // Its record of turns has expired.
    await internalsOf(own.store).link.ask((client) => client.del(keys.queue(QUEUE).turn("me", 0)));
    expect((await finish([end])).words).toEqual(["OK"]);
    expect(await own.store.runs.stats(name)).toMatchObject({ succeeded: "1", crashes: "0", attempts: "1" });
  });

  it("does nothing if it arrives after a newer one of its lane", async () => {
    await add(own, 3);
    const [lane] = lanesOf(own);
    const [taken] = (await lane.next(1)([])).jobs as [Taken];
    const withEnd = lane.next(1);
    const withoutEnds = lane.next(2);
    // A newer turn finds nothing to take, and later ones end all that there is: none of them leaves a job on record.
    await own.queue().pause();
    expect((await lane.next(1)([])).jobs).toEqual([]);
    await own.queue().resume();
    const before = await own.dump();
    expect(await withoutEnds([])).toMatchObject({ words: [], jobs: [] });
    expect(await withEnd([endOf(own, taken)])).toMatchObject({ words: ["ASK"], jobs: [] });
    expect(await own.dump()).toEqual(before);
    // The newest turn is still known: it took nothing, and it takes nothing when it is sent again.
    const newest = lane.next(1);
    const [second] = (await newest([])).jobs as [Taken];
    expect(await withoutEnds([])).toMatchObject({ jobs: [] });
    expect((await newest([])).jobs.map(([id]) => id)).toEqual([second[0]]);
  });

  it("ends no run for an attempt that another one has taken over, even with the lock of the job", async () => {
    await add(own, 1);
    const [lane] = lanesOf(own);
    const [taken] = (await lane.next(1)([])).jobs as [Taken];
    const end = endOf(own, taken);
    expect((await lane.next(0)([{ ...end, fence: end.fence - 1 }])).words).toEqual(["ASK"]);
    expect(await own.store.runs.get(QUEUE, end.run)).toMatchObject({ state: "running" });
    expect((await lane.next(0)([end])).words).toEqual(["OK"]);
  });

  it("acknowledges only the end that a final run has: its fence and its outcome", async () => {
    await add(own, 1);
    const [lane] = lanesOf(own);
    const [taken] = (await lane.next(1)([])).jobs as [Taken];
    const end = endOf(own, taken);
    expect((await lane.next(0)([end])).words).toEqual(["OK"]);
    const words = async (other: object) => (await lane.next(0)([{ ...end, ...other }])).words;
    expect(await words({})).toEqual(["OK"]);
    expect(await words({ fence: end.fence - 1 })).toEqual(["ASK"]);
    expect(await words({ outcome: "partial" })).toEqual(["ASK"]);
  });

  it("says if a job has ended whose run could not be written, also when it is sent again", async () => {
    await own.put({ id: "p0", alertIf: { noSuccessFor: "1h" } });
    await own.trigger("p0", "one");
    const { link, keys } = internalsOf(own.store);
    const [lane] = lanesOf(own);
    const [taken] = (await lane.next(1)([])).jobs as [Taken];
    const end = endOf(own, taken);
    // The end of the job succeeds, and a write after it fails.
    await link.ask((client) => client.set(keys.queue(QUEUE).expected, "in the way"));
    const finish = lane.next(0);
    expect((await finish([end])).words).toEqual(["ENDED"]);
    expect((await finish([end])).words).toEqual(["ENDED"]);
    expect(await own.queue().getJobState(end.run)).toBe("completed");
  });

  it.each(["wait", "prioritized"])(
    "ends runs although foreign data is in place of %s, also when it is sent again",
    async (list) => {
      await add(own, 2);
      const { link, keys } = internalsOf(own.store);
      const [lane] = lanesOf(own);
      const [first, second] = (await lane.next(2)([])).jobs as [Taken, Taken];
      const { fence, ...end } = endOf(own, second);
      await link.ask((client) => client.set(own.queue().toKey(list), "foreign"));
      const finish = lane.next(2);
      const ends = [endOf(own, first), { ...end, fence: fence - 1 }];
      for (let sent = 0; sent < 2; sent++) expect((await finish(ends)).words).toEqual(["OK", "ASK"]);
      expect(await own.store.runs.get(QUEUE, first[0])).toMatchObject({ state: "final" });
      const journal = await link.ask((client) => client.zscore(keys.queue(QUEUE).journal, first[0]));
      expect(journal).not.toBeNull();
      expect((await lane.next(2)([{ ...end, fence }])).error).toContain("WRONGTYPE");
    },
  );

  it.each([0, 1])("does not start a run whose task was deleted, after %d starts", async (starts) => {
    await add(own, 2);
    const [lane] = lanesOf(own);
    const started = async (take: number) =>
      (await lane.next(take)([])).jobs.map(([, , , start]) => start?.[0]);
    expect(await started(starts)).toEqual(Array(starts).fill("OK"));
    // Removes it, as a delete does whose runs are not cleared yet.
    const { link, keys } = internalsOf(own.store);
    const { task, stats } = keys.queue(QUEUE);
    await link.ask((client) => client.del(task("system/p0"), stats("system/p0")));
    expect(await started(1)).toEqual([undefined]);
  });

  it("leaves the end of all but plain jobs to BullMQ, and does not change their runs", async () => {
    const { job, run } = internalsOf(own.store).keys.queue(QUEUE);
    const { link } = internalsOf(own.store);
    const ways: Record<string, (key: string) => Promise<unknown>> = {
      "has children": (key) => link.ask((client) => client.sadd(`${key}:dependencies`, "child")),
      "has failed children": (key) => link.ask((client) => client.zadd(`${key}:unsuccessful`, 1, "child")),
      "is locked by another": (key) => link.ask((client) => client.set(`${key}:lock`, "another's")),
      "is not locked": (key) => link.ask((client) => client.del(`${key}:lock`)),
      "is not active": (key) =>
        link.ask((client) => client.lrem(`${key.replace(/[^:]+$/, "")}active`, 1, key.replace(/^.*:/, ""))),
      "is missing": (key) => link.ask((client) => client.del(key)),
      "is missing, and has children": (key) =>
        link.ask((client) => client.del(key).then(() => client.sadd(`${key}:dependencies`, "child"))),
    };
    await add(own, Object.keys(ways).length);
    const [lane] = lanesOf(own);
    const { jobs } = await lane.next(20)([]);
    for (const [i, act] of Object.values(ways).entries()) await act(job(jobs[i]?.[0] as string));
    const ends = jobs.map((taken) => endOf(own, taken));
    const before = await own.dump();
    const { words } = await lane.next(0)(ends);
    expect(Object.keys(ways).map((way, i) => [way, words[i]])).toEqual(
      Object.keys(ways).map((way) => [way, "ASK"]),
    );
    const without = (dump: Record<string, unknown>) =>
      Object.entries(dump).filter(([key]) => !/:(~turn:.*|meta|events)$/.test(key));
    expect(without(await own.dump())).toEqual(without(before));
    for (const { run: id } of ends)
      expect(await link.ask((client) => client.hget(run(id), "state"))).toBe("running");
  });

  it("leaves the end of a job with a parent, or an id for deduplication, to BullMQ", async () => {
    const { job } = internalsOf(own.store).keys.queue(QUEUE);
    const { link } = internalsOf(own.store);
    await add(own, 3);
    const [first, second] = (await own.store.runs.open(own.name("p0"))) as [string, string];
    await link.ask((client) => client.hset(job(first), "parentKey", job("another"), "parent", "{}"));
    await link.ask((client) => client.hset(job(second), "deid", "d"));
    const words: Record<string, unknown> = {};
    const options = { connection: own.connect(), prefix: prefixOf(own), concurrency: 1, name: "me" };
    const worker: TurnWorker = new TurnWorker(
      QUEUE,
      async (job) => {
        const run = String(job.id);
        const { start, end } = worker.turnOf(job) ?? {};
        const fence = Number(start?.[1]);
        words[run] = await end?.({ name: own.name("p0"), run, fence, outcome: "succeeded", result: 1 });
      },
      options,
      lanesOf(own),
    );
    worker.on("error", () => {});
    void worker.run();
    await eventually(async () => Object.keys(words).length === 3);
    await worker.close();
    expect({ [first]: words[first], [second]: words[second] }).toEqual({ [first]: "ASK", [second]: "ASK" });
    expect(Object.values(words).filter((word) => word === "OK")).toHaveLength(1);
  });

  it("leaves the start of all but plain runs to the worker", async () => {
    const { job, run } = internalsOf(own.store).keys.queue(QUEUE);
    const { link } = internalsOf(own.store);
    await add(own, 4);
    const ids = (await own.store.runs.open(own.name("p0"))) as [string, string, string, string];
    await own.store.runs.cancel(own.name("p0"), ids[1], "me");
    await link.ask((client) => client.hset(job(ids[2]), "stc", "1"));
    await link.ask((client) => client.del(run(ids[3])).then(() => client.set(run(ids[3]), "in the way")));
    await own.queue().add("plain", {}, { jobId: "plain@1" });
    const [lane] = lanesOf(own);
    const { jobs, error } = await lane.next(10)([]);
    expect(Object.fromEntries(jobs.map(([id, , , start]) => [id, start?.[0]]))).toEqual({
      [ids[0]]: "OK",
      [ids[1]]: undefined,
      [ids[2]]: undefined,
      [ids[3]]: undefined,
      "plain@1": undefined,
    });
    expect(error).toBe("");
  });
});
