import { internalsOf } from "@carillon/store/internal";
import type { Redis } from "ioredis";
import { beforeEach, expect, it } from "vitest";
import { attempt, onEveryEngine } from "../../../test/helpers.js";
import { Bench, QUEUE, START } from "./bench.js";

/** A node name such as Kubernetes assigns. */
const NODE = "scheduler-6f7c9d8b7d-q8w2z-1";
const HOST = "reports-worker-7d9f8b6c5d-x2x4z";
const BY = attempt({ worker: `${HOST}-17`, pid: 17, host: HOST });

onEveryEngine("the record of a run with long names in it", (connection) => {
  const bench = Bench.use(connection);
  let run: string;
  const name = () => bench.name("weekly-digest-of-sales", "team-north");
  const client = () => internalsOf(bench.store).link.client as Redis;
  const key = () => internalsOf(bench.store).keys.queue(QUEUE).run(run);
  const start = (by: Partial<typeof BY> = {}) => bench.begin(name(), run, { ...BY, ...by });

  beforeEach(async () => {
    await bench.put({
      id: "weekly-digest-of-sales",
      owner: "team-north",
      type: "send-weekly-digest-of-sales",
      schedule: { every: "10s" },
      timeLimit: "5m",
      timeLimitGrace: "7s",
      retry: { attempts: 3, delay: "1m" },
    });
    await bench.clock.advance(10_000);
    const { items, now } = await bench.read("weekly-digest-of-sales", "team-north");
    const { claims } = bench.store;
    const packed = items.map((item) => claims.pack(QUEUE, item, "a", now));
    await claims.commit(QUEUE, packed, { token: "a", node: NODE });
    [run] = (await bench.store.runs.open(name())) as [string];
  });

  it("stays in Redis' small encoding from start to end, with everything recorded", async () => {
    const enqueued = {
      id: run,
      state: "queued",
      node: NODE,
      enqueued: START + 10_000,
      attempts: 0,
      maxAttempts: 3,
      lateMs: 0,
      type: "send-weekly-digest-of-sales",
      nominal: START + 10_000,
      due: START + 10_000,
      trigger: "schedule",
      key: `${QUEUE}/team-north/weekly-digest-of-sales@${START + 10_000}`,
      task: { queue: QUEUE, owner: "team-north", id: "weekly-digest-of-sales" },
    };
    expect(await bench.store.runs.get(QUEUE, run)).toEqual(enqueued);
    expect(await bench.encoding(key())).toBe("listpack");
    const started = await bench.begun(name(), run, BY);
    expect(started).toMatchObject({ limit: 300_000, grace: 7_000 });
    await bench.settle(name(), run, started.fence);
    expect(await bench.encoding(key())).toBe("listpack");
    expect(await bench.store.runs.get(QUEUE, run)).toEqual({
      ...enqueued,
      state: "final",
      outcome: "succeeded",
      started: START + 10_000,
      finished: START + 10_000,
      attempts: 1,
      waitMs: 0,
      worker: BY.worker,
      pid: 17,
      host: HOST,
    });
  });

  it("lists where each of its attempts ran, and when it ended", async () => {
    await start();
    const one = { attempt: 1, started: START + 10_000, worker: BY.worker, pid: 17, host: HOST };
    const attempts = () => bench.store.runs.attempts(QUEUE, run);
    expect(await attempts()).toEqual([one]);
    // Two workers die: the first two attempts end without a report.
    const elsewhere = { worker: "w2", pid: 2, host: "h2", attempt: 2 };
    await start(elsewhere);
    await bench.clock.advance(300_000);
    expect(await start(elsewhere)).toMatchObject({ word: "OK", attempt: 2 });
    const two = { attempt: 2, started: START + 310_000, worker: "w2", pid: 2, host: "h2" };
    expect(await attempts()).toEqual([one, two]);
    await start({ attempt: 3 });
    // The wait after a second crash in a row is twice as long.
    await bench.clock.advance(600_000);
    const third = await bench.begun(name(), run, { ...BY, attempt: 3 });
    expect(third).toMatchObject({ attempt: 3 });
    const three = { ...one, attempt: 3, started: START + 910_000 };
    expect(await attempts()).toEqual([one, two, three]);
    await bench.clock.advance(2_500);
    await bench.settle(name(), run, third.fence, { outcome: undefined, error: "no answer" });
    await bench.clock.advance(10_000);
    await start({ attempt: 4 });
    expect(await attempts()).toEqual([
      ...[one, two, { ...three, ended: START + 912_500 }],
      { ...one, attempt: 4, started: START + 922_500 },
    ]);
  });

  it("is read unchanged if it is stored in one piece", async () => {
    await client().hset(key(), {
      of: `team-north/weekly-digest-of-sales ${START} ${NODE}`,
      info: JSON.stringify({ type: "old", nominal: START }),
      worker: "w2",
      pid: 2,
      host: "h2",
      attempts: 2,
      "a:1": `${START} w1 1 h1 1`,
      "a:2": `${START + 1} w2 2 h2 2`,
    });
    await client().hdel(key(), "type", "node");
    expect(await bench.store.runs.get(QUEUE, run)).toMatchObject({
      type: "old",
      node: NODE,
      enqueued: START,
    });
    expect(await bench.store.runs.attempts(QUEUE, run)).toEqual([
      { attempt: 1, started: START, worker: "w1", pid: 1, host: "h1" },
      { attempt: 2, started: START + 1, worker: "w2", pid: 2, host: "h2" },
    ]);
  });
});
