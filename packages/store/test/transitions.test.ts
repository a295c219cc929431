import { parseTask } from "@carillon/core";
import { shardOf } from "@carillon/core/internal";
import { internalsOf } from "@carillon/store/internal";
import { expect, it } from "vitest";
import { onEveryEngine } from "../../../test/helpers.js";
import { Bench, ENTERED, QUEUE, START } from "./bench.js";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** Data about a task's state in Redis. Times in seconds from START; undefined: none. */
interface Held {
  state: "scheduled" | "paused" | "finished" | undefined;
  /** Time of its creation, or of its last put, pause or resume. */
  updated: number | undefined;
  /** Its entry in the due index. */
  check: number | undefined;
  /** Time by which a run must have succeeded. */
  expected: number | undefined;
  /** Time of its deletion. */
  linger: number | undefined;
  paused: { at: number; by?: string; note?: string } | undefined;
}

interface Transition {
  readonly name: string;
  readonly from: (bench: Bench) => Promise<unknown>;
  /** Everything happens at second 5, unless `act` moves the clock. */
  readonly act?: (bench: Bench) => Promise<unknown>;
  readonly held: Held;
}

/** Every 10 s; a run must succeed within a minute; when it is finished it stays for an hour. */
const TASK = { id: "t", alertIf: { noSuccessFor: "1m" }, linger: "1h" };
const LAST_AT_10 = { schedule: { at: START + 10 * SECOND } };
const NEVER = { schedule: { at: START - 1 } };

const put =
  (change: object = {}) =>
  (bench: Bench) =>
    bench.put({ ...TASK, ...change });
const pause = (bench: Bench) => bench.store.tasks.pause(bench.name("t"), "me", "why");
const resume = (bench: Bench) => bench.store.tasks.resume(bench.name("t"), "skip", "me");
const claim = async (bench: Bench) => {
  await bench.clock.set(START + 10 * SECOND);
  expect(await bench.claim("t", "claim")).toEqual(["OK"]);
};
const all =
  (...steps: ((bench: Bench) => Promise<unknown>)[]) =>
  async (bench: Bench) => {
    for (const step of steps) await step(bench);
  };

/** Starts the task's only open run, and ends it. */
const end =
  (outcome: "succeeded" | "failed", more: { nextAt?: number } = {}) =>
  async (bench: Bench) => {
    const [run = ""] = await bench.store.runs.open(bench.name("t"));
    await bench.work("t", run, { outcome, ...more });
  };

/** Sets the entries of the shared calendar that CALENDAR excludes. */
const holidays =
  (...entries: string[]) =>
  async ({ store: { calendars } }: Bench) => {
    await calendars.put("holidays", entries, "me");
    await calendars.refresh();
    await calendars.replanStale(QUEUE);
  };
const CALENDAR = { schedule: { every: "10s", end: "2026-01-01T12:00:00Z", except: [{ named: "holidays" }] } };
const DAY = "2026-01-01";

const SCHEDULED: Held = {
  state: "scheduled",
  updated: 0,
  check: 10,
  expected: 60,
  linger: undefined,
  paused: undefined,
};
const PAUSED: Held = {
  ...SCHEDULED,
  state: "paused",
  check: undefined,
  expected: undefined,
  paused: { at: 0 },
};
const FINISHED: Held = {
  ...SCHEDULED,
  state: "finished",
  check: undefined,
  expected: undefined,
  linger: 3_600,
};
const BY_ME = { at: 5, by: "me", note: "why" };

const TRANSITIONS: readonly Transition[] = [
  { name: "put: a new task", from: put(), held: SCHEDULED },
  { name: "put: a new task that is not enabled", from: put({ enabled: false }), held: PAUSED },
  { name: "put: a new task without a time", from: put(NEVER), held: FINISHED },
  { name: "put: the same", from: put(), act: put(), held: SCHEDULED },
  { name: "put: a change", from: put(), act: put({ priority: 1 }), held: { ...SCHEDULED, updated: 5 } },
  {
    name: "put: another deadline",
    from: put(),
    act: put({ alertIf: { noSuccessFor: "2m" } }),
    held: { ...SCHEDULED, updated: 5, expected: 125 },
  },
  {
    name: "put: no deadline any more",
    from: put(),
    act: put({ alertIf: undefined }),
    held: { ...SCHEDULED, updated: 5, expected: undefined },
  },
  {
    name: "put: another schedule",
    from: put(),
    act: put({ schedule: { every: "1m" } }),
    held: { ...SCHEDULED, updated: 5, check: 60 },
  },
  {
    name: "put: a schedule without a time",
    from: put(),
    act: put(NEVER),
    held: { ...FINISHED, updated: 5, linger: 3_605 },
  },
  {
    name: "put: times for a finished task",
    from: put(NEVER),
    act: put(),
    held: { ...SCHEDULED, updated: 5, expected: 65 },
  },
  {
    name: "put: a change of a finished task",
    from: put(NEVER),
    act: put({ ...NEVER, priority: 1 }),
    held: { ...FINISHED, updated: 5, linger: 3_605 },
  },
  {
    name: "put: another schedule of a paused task",
    from: all(put(), pause),
    act: put({ schedule: { every: "1m" } }),
    held: { ...PAUSED, updated: 5, paused: { ...BY_ME, at: 0 } },
  },
  { name: "pause", from: put(), act: pause, held: { ...PAUSED, updated: 5, paused: BY_ME } },
  {
    name: "pause by failures",
    from: all(put({ pauseAfterFailures: 1 }), claim),
    act: end("failed"),
    held: {
      ...PAUSED,
      updated: 10,
      paused: { at: 10, by: "carillon", note: "paused after 1 failures in a row" },
    },
  },
  {
    name: "resume",
    from: all(put(), pause),
    act: resume,
    held: { ...SCHEDULED, updated: 5, expected: 65 },
  },
  {
    name: "resume: no time is left",
    from: all(put(LAST_AT_10), pause),
    act: async (bench) => {
      await bench.clock.set(START + 20 * SECOND);
      await resume(bench);
    },
    held: { ...FINISHED, updated: 20, linger: 3_620 },
  },
  {
    name: "replan: another time",
    from: all(holidays(), put({ schedule: { ...CALENDAR.schedule, end: undefined } })),
    act: holidays(DAY),
    held: { ...SCHEDULED, check: 86_400 },
  },
  {
    name: "replan: no time is left",
    from: all(holidays(), put(CALENDAR)),
    act: holidays(DAY),
    held: { ...FINISHED, linger: 3_605 },
  },
  {
    name: "replan: a finished task has times again",
    from: all(holidays(DAY), put(CALENDAR)),
    act: holidays(),
    held: { ...SCHEDULED, expected: 65 },
  },
  {
    name: "replan: a paused task stays paused",
    from: all(holidays(), put(CALENDAR), pause),
    act: holidays(DAY),
    held: { ...PAUSED, paused: { ...BY_ME, at: 0 } },
  },
  { name: "commit", from: put(), act: claim, held: { ...SCHEDULED, check: 20 } },
  {
    name: "commit: the last time",
    from: put(LAST_AT_10),
    act: claim,
    held: { ...FINISHED, linger: 3_610 },
  },
  {
    name: "commit: a fixed delay waits for the run's end",
    from: put({ schedule: { every: "10s", anchor: "finish" } }),
    act: claim,
    held: { ...SCHEDULED, check: undefined },
  },
  {
    name: "commit: an occurrence of a finished task waits",
    from: all(put({ ...LAST_AT_10, overlap: "queue-one" }), claim),
    act: (bench) => bench.trigger("t", "manual"),
    held: { ...SCHEDULED, check: undefined, expected: 70 },
  },
  {
    name: "commit: a trigger of a paused task",
    from: all(put(), pause),
    act: (bench) => bench.trigger("t", "manual"),
    held: { ...PAUSED, paused: { ...BY_ME, at: 0 } },
  },
  {
    name: "settle: a success",
    from: all(put(), claim),
    act: end("succeeded"),
    held: { ...SCHEDULED, check: 20, expected: 70 },
  },
  {
    name: "settle: a failure",
    from: all(put(), claim),
    act: end("failed"),
    held: { ...SCHEDULED, check: 20 },
  },
  {
    name: "settle: a success of a paused task",
    from: all(put(), claim, pause),
    act: end("succeeded"),
    held: { ...PAUSED, updated: 10, paused: { ...BY_ME, at: 10 } },
  },
  {
    name: "settle: the end gives the next time",
    from: all(put({ schedule: { every: "10s", anchor: "finish" } }), claim),
    act: end("succeeded"),
    held: { ...SCHEDULED, check: 20, expected: 70 },
  },
  {
    name: "settle: a finished task is to run again",
    from: all(put(LAST_AT_10), claim),
    act: end("succeeded", { nextAt: START + HOUR }),
    held: { ...SCHEDULED, check: 10, expected: 70 },
  },
  {
    name: "delete",
    from: put(),
    act: (bench) => bench.store.tasks.delete(bench.name("t")),
    held: {
      state: undefined,
      updated: undefined,
      check: undefined,
      expected: undefined,
      linger: undefined,
      paused: undefined,
    },
  },
  {
    name: "enqueue: a one-off task is deleted with its run",
    from: (bench) =>
      bench.store.claims.enqueueNow(
        parseTask({ ...TASK, type: "noop", queue: QUEUE, schedule: { at: START } }),
        { key: "k", token: "once", node: "test" },
        ENTERED,
      ),
    held: { ...FINISHED, linger: undefined },
  },
];

onEveryEngine("the state of a task", (connection) => {
  const bench = Bench.use(connection);

  const seconds = (ms: number | undefined) => (ms === undefined ? undefined : (ms - START) / SECOND);

  async function held(): Promise<Held> {
    const keys = internalsOf(bench.store).keys.queue(QUEUE);
    const task = await bench.store.tasks.get(bench.name("t"));
    const score = async (key: string) => {
      const at = await internalsOf(bench.store).link.ask((client) => client.zscore(key, "system/t"));
      return at === null ? undefined : seconds(Number(at));
    };
    return {
      state: task?.state,
      updated: seconds(task?.updated),
      check: await score(keys.due(shardOf("system/t"))),
      expected: await score(keys.expected),
      linger: await score(keys.runs),
      paused: task?.paused && { ...task.paused, at: seconds(task.paused.at) as number },
    };
  }

  /** Checks that each part of the queue has the time of the first entry of its index. */
  async function expectPartsToFit(): Promise<void> {
    const keys = internalsOf(bench.store).keys.queue(QUEUE);
    const parts = await bench.store.claims.next(QUEUE);
    const sources = { [shardOf("system/t")]: keys.due(shardOf("system/t")), e: keys.expected, r: keys.runs };
    for (const [part, key] of Object.entries(sources)) {
      const [, at] = await internalsOf(bench.store).link.ask((client) =>
        client.zrange(key, 0, "0", "WITHSCORES"),
      );
      expect([part, parts.get(part)]).toEqual([part, at === undefined ? undefined : Number(at)]);
    }
  }

  it.each(TRANSITIONS)("$name", async ({ from, act, held: wanted }) => {
    await from(bench);
    if (act && bench.clock.now < START + 5 * SECOND) await bench.clock.set(START + 5 * SECOND);
    await act?.(bench);
    expect(await held()).toEqual(wanted);
    await expectPartsToFit();
  });
});
