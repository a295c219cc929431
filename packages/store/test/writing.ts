import { ALERTS_QUEUE, parseTask } from "@carillon/core";
import { itemId } from "@carillon/core/internal";
import { copyOf, heldFor } from "@carillon/store";
import { internalsOf } from "@carillon/store/internal";
import { LANE } from "../../../test/helpers.js";
import type { TurnLane } from "../src/run/turns.js";
import type { Script } from "../src/script/script.js";
import { type Bench, ENTERED, QUEUE, START } from "./bench.js";

type Act = (bench: Bench) => Promise<unknown>;

/** A call that sends a script, and the opposite call, after which a copy of the first must do nothing. */
export interface Scenario {
  readonly script: string;
  readonly title: string;
  readonly before?: Act;
  readonly act: Act;
  readonly opposite: Act;
}

const none: Act = async () => {};
const keysOf = (bench: Bench) => internalsOf(bench.store).keys.queue(QUEUE);
const ask = <T>(bench: Bench, command: Parameters<ReturnType<typeof internalsOf>["link"]["ask"]>[0]) =>
  internalsOf(bench.store).link.ask(command) as Promise<T>;
const put: Act = (bench) => bench.put({ id: "t", tags: ["x"] });
const pause: Act = (bench) => bench.store.tasks.pause(bench.name("t"), "me", "why");
const resume: Act = (bench) => bench.store.tasks.resume(bench.name("t"), "skip");
/** At another time: a generation begins with the time. */
const putAgain: Act = async (bench) => [await bench.clock.advance(1), await put(bench)];
const remove: Act = (bench) => bench.store.tasks.delete(bench.name("t"));
const putIntoSet: Act = (bench) =>
  bench.store.tasks.put(
    QUEUE,
    [parseTask({ id: "t", type: "noop", queue: QUEUE, schedule: { every: "10s" } })],
    {
      set: { name: "s" },
    },
  );
const retire: Act = async (bench) =>
  bench.store.tasks.retire(bench.name("t"), (await bench.store.tasks.get(bench.name("t")))?.revision ?? "");
const paused: Act = async (bench) => [await put(bench), await pause(bench)];
const openRun = async (bench: Bench) => (await bench.store.runs.open(bench.name("t")))[0] as string;
const queued: Act = async (bench) => [await put(bench), await bench.trigger("t", "one")];

/** Starts the open run. Returns its id and fence. */
async function start(bench: Bench, attempt = 1): Promise<{ run: string; fence: number }> {
  const run = await openRun(bench);
  const started = await bench.begin("t", run, { attempt });
  return { run, fence: started.word === "OK" ? started.fence : 0 };
}
const running: Act = async (bench) => [await queued(bench), await start(bench)];
const fenceOf = async (bench: Bench) => {
  const run = await openRun(bench);
  const key = keysOf(bench).run(run);
  return { run, fence: Number(await ask<string>(bench, (client) => client.hget(key, "fence"))) };
};
const settle = async (bench: Bench, outcome: "succeeded" | undefined) => {
  const { run, fence } = await fenceOf(bench);
  await bench.settle("t", run, fence, { outcome, error: "no" });
};

const OTHER = "chimes";
const TO = { queue: OTHER, owner: "system", id: "t" };
const hold: Act = async (bench) => {
  const { moves } = bench.store;
  return moves.hold(await bench.stored("t"), heldFor(TO));
};
const putThere: Act = (bench) =>
  bench.store.tasks.put(
    OTHER,
    [parseTask({ id: "t", type: "noop", queue: OTHER, schedule: { every: "10s" }, enabled: false })],
    { copyOf: copyOf(bench.name("t")) },
  );
const raise = (bench: Bench, number: number) =>
  bench.store.sets.raise(bench.store.sets.guard("s", number), [QUEUE]);

const FREEZE = { id: "f", all: true, from: START, created: START, by: "me" } as never;
const SILENCE = { id: "s", until: START + 60_000, created: START, by: "me" } as never;
const TOKEN = { name: "ci", role: "viewer", created: START, sha256: "0".repeat(64) } as const;
const INCIDENT = {
  lasts: true,
  alert: { kind: "stopped" as never, code: "NO_NODE", at: START },
};
const collects = (bench: Bench, state: object | undefined) =>
  bench.store.alerts.collect("d", () => ({ state, due: START, answer: undefined }));
const BACKFILL = {
  id: "bf",
  from: START,
  to: START,
  at: START - 1,
  total: 1,
  every: 0,
  overlap: undefined,
  by: "me",
};
const backfill: Act = async (bench) => {
  const { created } = await bench.stored("t");
  await bench.store.backfills.put({ ...BACKFILL, task: bench.name("t"), taskCreated: created } as never);
};

const lanes = new WeakMap<Bench, TurnLane>();
const laneOf = (bench: Bench) => {
  const known = lanes.get(bench);
  if (known) return known;
  const made = bench.store.runs.lanes(QUEUE, LANE);
  lanes.set(bench, made[0] as TurnLane);
  return made[0] as TurnLane;
};

const lockOf = async (bench: Bench, job: string) => `${keysOf(bench).job(job)}:lock`;
/** Adds an item to the open run, whose job this worker holds. */
async function addItem(bench: Bench): Promise<void> {
  const { run, fence } = await fenceOf(bench);
  await bench.store.items.add(
    {
      queue: QUEUE,
      run,
      fence,
      token: "held",
      round: fence,
      type: "noop",
      data: {},
      options: { attempts: 1 },
    },
    [{ index: 0, item: 1 }],
  );
}
const heldRun: Act = async (bench) => {
  await running(bench);
  const lock = await lockOf(bench, await openRun(bench));
  await ask(bench, (client) => client.set(lock, "held"));
};
const heldItem: Act = async (bench) => {
  await heldRun(bench);
  await addItem(bench);
  const lock = await lockOf(bench, itemId(await openRun(bench), 0));
  await ask(bench, (client) => client.set(lock, "held"));
};
const takenItem = async (bench: Bench) => ({
  name: bench.name("t"),
  run: await openRun(bench),
  index: 0,
  token: "held",
});
const startItem: Act = async (bench) =>
  bench.store.items.start(await takenItem(bench), { made: 0, pid: 1, worker: "w" });
const endItem: Act = async (bench) => bench.store.items.end(await takenItem(bench), { status: "completed" });
const loseItem: Act = async (bench) => {
  const lock = await lockOf(bench, itemId(await openRun(bench), 0));
  await ask(bench, (client) => client.del(lock));
};

const enqueue: Act = (bench) =>
  bench.store.claims.enqueueNow(
    parseTask({ id: "t", type: "noop", queue: QUEUE, schedule: { at: START } }),
    { key: "k", token: "tok", node: "test" },
    ENTERED,
  );
const calendar = async (bench: Bench, day: string) => {
  await bench.store.calendars.put("c", [day], "me");
  await bench.store.calendars.refresh();
  await bench.store.calendars.replanStale(QUEUE);
};
const onCalendar: Act = async (bench) => {
  await bench.store.calendars.put("c", ["2026-12-24"], "me");
  await bench.put({ id: "t", schedule: { every: "1h", except: [{ named: "c" }] } as never });
};

const of = (script: string, title: string, act: Act, opposite: Act, before: Act = none): Scenario => ({
  script,
  title,
  act,
  opposite,
  before,
});

export const SCENARIOS: readonly Scenario[] = [
  of("put", "put a new task, and delete it", put, remove),
  of(
    "put",
    "put another definition, and the former one",
    (bench) => bench.put({ id: "t", priority: 3 }),
    put,
    put,
  ),
  of("pause", "pause, and resume", pause, resume, put),
  of(
    "pause",
    "pause, delete, and put again",
    pause,
    async (bench) => [await remove(bench), await putAgain(bench)],
    put,
  ),
  of("resume", "resume, and pause", resume, pause, paused),
  of(
    "resume",
    "resume and run what is owed, and pause",
    (bench) =>
      bench.store.tasks.resume(bench.name("t"), {
        owed: START + 10_000,
        backfill: { ...BACKFILL, id: "owed", from: START + 10_000, to: START + 20_000 } as never,
        after: 0,
      }),
    pause,
    async (bench) => [await paused(bench), await bench.clock.advance(25_000)],
  ),
  of("retire", "remove from a set, and put for it again", retire, putIntoSet, putIntoSet),
  of("delete", "delete, and put again", remove, putAgain, put),
  of("delete", "delete what is corrupt, and put again", remove, put, async (bench) => {
    await put(bench);
    await ask(bench, (client) =>
      client.del(keysOf(bench).task("system/t")).then(() => client.set(keysOf(bench).task("system/t"), "x")),
    );
  }),
  of("enqueue-new", "enqueue, and delete", enqueue, remove),
  of(
    "commit",
    "claim, and work",
    (bench) => bench.claim("t", "tok"),
    (bench) => bench.workAll(),
    async (bench) => [await put(bench), await bench.clock.advance(10_000)],
  ),
  of(
    "hold-task",
    "hold for a move, and end the move",
    hold,
    (bench) => bench.store.moves.end(bench.name("t")),
    put,
  ),
  of(
    "end-move",
    "end a move, and hold again",
    (bench) => bench.store.moves.end(bench.name("t")),
    hold,
    async (bench) => [await put(bench), await hold(bench)],
  ),
  of(
    "adopt-task",
    "adopt a moved task, and end the move",
    (bench) => bench.store.moves.adopt(bench.name("t"), TO),
    (bench) => bench.store.moves.end(TO),
    async (bench) => [await put(bench), await putThere(bench), await hold(bench)],
  ),
  of(
    "raise-guard",
    "raise a guard, and raise it higher",
    (bench) => raise(bench, 1),
    (bench) => raise(bench, 2),
  ),
  of(
    "change-settings",
    "set a limit, and another one",
    (bench) => bench.store.queues.setLimit(QUEUE, "acme", 1),
    (bench) => bench.store.queues.setLimit(QUEUE, "acme", 2),
  ),
  of(
    "change-settings",
    "lift a limit, and set it",
    (bench) => bench.store.queues.setLimit(QUEUE, "acme", undefined),
    (bench) => bench.store.queues.setLimit(QUEUE, "acme", 2),
    (bench) => bench.store.queues.setLimit(QUEUE, "acme", 1),
  ),
  of(
    "change-settings",
    "set defaults, and remove them",
    (bench) => bench.store.registry.setDefaults("all", { catchUp: "all" } as never),
    (bench) => bench.store.registry.setDefaults("all", undefined),
  ),
  of(
    "change-settings",
    "silence alerts, and end it",
    (bench) => bench.store.alerts.silence(SILENCE),
    (bench) => bench.store.alerts.unsilence("s"),
  ),
  of(
    "change-settings",
    "restrict the types, and allow all",
    (bench) => bench.store.registry.setTypes(["noop"]),
    (bench) => bench.store.registry.setTypes([]),
  ),
  of(
    "change-settings",
    "create a token, and revoke it",
    (bench) => bench.store.tokens.add(TOKEN),
    (bench) => bench.store.tokens.remove("ci"),
  ),
  of(
    "change-freezes",
    "freeze, and lift it",
    (bench) => bench.store.freezes.put(FREEZE),
    (bench) => bench.store.freezes.lift("f"),
    put,
  ),
  of(
    "change-freezes",
    "lift a freeze, and put it again",
    (bench) => bench.store.freezes.lift("f"),
    (bench) => bench.store.freezes.put(FREEZE),
    async (bench) => [await put(bench), await bench.store.freezes.put(FREEZE)],
  ),
  of(
    "change-freezes",
    "set a quota, and remove it",
    (bench) => bench.store.freezes.setQuota("all", { waiting: 1 }),
    (bench) => bench.store.freezes.setQuota("all", {}),
    put,
  ),
  of(
    "copy-freezes",
    "copy a freeze, and lift it",
    (bench) => bench.store.freezes.put(FREEZE),
    (bench) => bench.store.freezes.lift("f"),
    put,
  ),
  of(
    "copy-freezes",
    "lift a freeze, and put it again",
    (bench) => bench.store.freezes.lift("f"),
    (bench) => bench.store.freezes.put(FREEZE),
    async (bench) => [await put(bench), await bench.store.freezes.put(FREEZE)],
  ),
  of(
    "put-calendar",
    "put a calendar, and another",
    (bench) => bench.store.calendars.put("c", ["2026-12-24"], "me"),
    (bench) => bench.store.calendars.put("c", ["2026-12-25"], "me"),
  ),
  of(
    "put-calendar",
    "put a calendar, and delete it",
    (bench) => bench.store.calendars.put("c", ["2026-12-24"], "me"),
    (bench) => bench.store.calendars.delete("c"),
  ),
  of(
    "replan",
    "replan for a calendar, and for the former one",
    (bench) => calendar(bench, "2026-01-01"),
    (bench) => calendar(bench, "2026-12-24"),
    onCalendar,
  ),
  of(
    "pause-queue",
    "pause a queue, and resume it",
    (bench) => bench.store.queues.pause(QUEUE, "me", "why"),
    (bench) => bench.store.queues.resume(QUEUE),
    put,
  ),
  of(
    "resume-queue",
    "resume a queue, and pause it",
    (bench) => bench.store.queues.resume(QUEUE),
    (bench) => bench.store.queues.pause(QUEUE, "me", "why"),
    async (bench) => [await put(bench), await bench.store.queues.pause(QUEUE, "me", "why")],
  ),
  of(
    "note-incidents",
    "raise an incident, and end it",
    (bench) => bench.store.alerts.noteIncidents([INCIDENT]),
    (bench) => bench.store.alerts.noteIncidents([]),
  ),
  of(
    "collect",
    "collect an alert for a destination, and forget it",
    (bench) => collects(bench, { groups: {} }),
    (bench) => collects(bench, undefined),
  ),
  of("unregister-queue", "delete the last task, and put it again", remove, putAgain, put),
  of(
    "put-backfill",
    "start a backfill, and cancel it",
    backfill,
    (bench) => bench.store.backfills.end(QUEUE, "bf", "cancelled"),
    put,
  ),
  of(
    "put-backfill",
    "start a backfill, delete its task, and put it again",
    backfill,
    async (bench) => [await remove(bench), await bench.clock.advance(1), await put(bench)],
    put,
  ),
  of(
    "start-run",
    "start an attempt, and end it",
    (bench) => start(bench),
    (bench) => settle(bench, "succeeded"),
    queued,
  ),
  of(
    "start-run",
    "start an attempt that fails, with another one left",
    (bench) => start(bench),
    (bench) => settle(bench, undefined),
    queued,
  ),
  of(
    "settle-run",
    "end an attempt, and start the next",
    (bench) => settle(bench, undefined),
    (bench) => start(bench, 2),
    running,
  ),
  of(
    "settle-run",
    "end an attempt, and wait for the next",
    (bench) => settle(bench, undefined),
    (bench) => bench.clock.advance(1_000),
    running,
  ),
  of(
    "turn",
    "take a job, and a newer turn of the lane",
    (bench) => laneOf(bench).next(1)([]),
    (bench) => laneOf(bench).next(0)([]),
    queued,
  ),
  of(
    "terminating",
    "mark an attempt as terminating, and end it",
    async (bench) => {
      const { run, fence } = await fenceOf(bench);
      await bench.store.runs.terminating(bench.name("t"), run, fence);
    },
    (bench) => settle(bench, "succeeded"),
    running,
  ),
  of(
    "checkpoint",
    "keep a checkpoint, and a newer one",
    async (bench) => {
      const { run, fence } = await fenceOf(bench);
      await bench.store.runs.checkpoint(bench.name("t"), run, fence, 1);
    },
    async (bench) => {
      const { run, fence } = await fenceOf(bench);
      await bench.store.runs.checkpoint(bench.name("t"), run, fence, 2);
    },
    running,
  ),
  of(
    "save-output",
    "save output, and more of it",
    async (bench) => bench.store.runs.saveOutput(QUEUE, await openRun(bench), 1, "a", false),
    async (bench) => bench.store.runs.saveOutput(QUEUE, await openRun(bench), 1, "a b", false),
    running,
  ),
  of(
    "cancel-run",
    "cancel a run, and reopen it",
    async (bench) => bench.store.runs.cancel(bench.name("t"), await openRun(bench), "me"),
    async (bench) => {
      const key = keysOf(bench).run(await openRun(bench));
      await ask(bench, (client) => client.hset(key, "reopened", START, "state", "running"));
      await ask(bench, (client) => client.hdel(key, "cancel"));
    },
    running,
  ),
  of(
    "add-items",
    "add items, and let another worker have the run",
    addItem,
    async (bench) => {
      const lock = await lockOf(bench, await openRun(bench));
      await ask(bench, (client) => client.set(lock, "another"));
    },
    heldRun,
  ),
  of(
    "start-item",
    "start an item, and end it",
    startItem,
    async (bench) => {
      await endItem(bench);
      await loseItem(bench);
    },
    heldItem,
  ),
  of("end-item", "end an item, and lose its job", endItem, loseItem, async (bench) => {
    await heldItem(bench);
    await startItem(bench);
  }),
  of(
    "add-change",
    "log a change, and another",
    async (bench) => [bench.store.changes.add('"a"'), await bench.store.changes.settled()],
    async (bench) => [bench.store.changes.add('"b"'), await bench.store.changes.settled()],
  ),
];

/** The queues of the scenarios. */
export const QUEUES = [QUEUE, OTHER, ALERTS_QUEUE];

/** A request as it was sent. */
export interface Sent {
  readonly script: Script;
  readonly keys: readonly string[];
  readonly args: readonly (string | number | Buffer)[];
}

/** Passes each request of this script to `seen` before it is sent. */
export async function sending<T>(
  bench: Bench,
  name: string,
  seen: (sent: Sent) => Promise<void> | void,
  act: () => Promise<T>,
): Promise<T> {
  const { link } = internalsOf(bench.store);
  const { run } = link;
  link.run = async (script, keys, args) => {
    if (script.name === name) await seen({ script, keys, args });
    return run.call(link, script, keys, args);
  };
  try {
    return await act();
  } finally {
    link.run = run;
  }
}
