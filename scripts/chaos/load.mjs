// The tasks of a run, and the client that edits them meanwhile.
import { operatorOf } from "@carillon/ops";
import { isCarillonError } from "@carillon/sdk";
import { pause } from "../lib/nodes.mjs";
import { monotonic } from "./failpoint.mjs";

/** Queues without workers: every job stays, and all are counted. */
export const COUNT_QUEUES = ["count-a", "count-b", "count-c"];
/** A queue with the SDK's workers and a plain BullMQ worker. */
export const WORK = "work";
const EDIT = "edit";
export const PLAIN = "plain";
/** A queue with workers, and with limits of concurrent runs by owner. */
const LIMITED = "limited";
/** Most runs of each owner that its limit ever allows. The client sets the limit of beta to 1, 2 or 3 all the time. */
export const LIMITS = { [LIMITED]: { acme: 2, beta: 3 } };
/** A queue with workers, whose tasks are frozen by queue, owner and tag. */
export const FROZEN = "frozen";
export const ICE = "ice";
export const COLD = "cold";
/** A queue with workers. Its tasks have one id, each with another owner, and fan out at the same instants. */
const FAN = "fan";
const TENANTS = 40;
/** Queue of a newer version of Carillon. */
export const NEXT = "next";
export const QUEUES = [...COUNT_QUEUES, WORK, EDIT, PLAIN, LIMITED, FROZEN, FAN, NEXT];
export const WORKED_QUEUES = [WORK, EDIT, LIMITED, FROZEN, FAN];

const KEEP = { retention: { successes: 10_000, failures: 10_000 } };
const CRASH = { crash: { delay: "300ms", attempts: 100 } };
const work = (least, most = least, fails = 0) => ({ least, most, fails });

/**
 * Facts about each task for the checks. `edited`: the edit that the client makes; if the schedule changes or the task
 * is deleted, gaps cannot be derived from its last definition. `origin` shifts a task within its second.
 */
function countTasks(each) {
  return COUNT_QUEUES.flatMap((queue) =>
    Array.from({ length: each }, (_, i) => ({
      id: `c${i}`,
      type: "none",
      queue,
      schedule: { every: "1s", ...(i % 2 ? { origin: "1970-01-01T00:00:00.500Z" } : {}) },
      overlap: "allow",
      catchUp: "all",
    })),
  );
}

const times = (n, make) => Array.from({ length: n }, (_, i) => make(i));

function workTasks() {
  const tasks = [
    ...times(6, (i) => ({ id: `skip-${i}`, overlap: "skip", payload: work(100, 1_600) })),
    ...times(4, (i) => ({ id: `queue-one-${i}`, overlap: "queue-one", payload: work(500, 1_400) })),
    ...times(3, (i) => ({
      id: `queue-all-${i}`,
      overlap: "queue-all",
      catchUp: "one",
      payload: work(700, 900),
      schedule: { every: "2s" },
    })),
    ...times(3, (i) => ({ id: `cancel-${i}`, overlap: "cancel-running", payload: work(1_500) })),
    ...times(2, (i) => ({
      id: `retry-${i}`,
      overlap: "skip",
      payload: work(20, 100, 0.4),
      retry: { attempts: 3, delay: "200ms", backoff: "fixed" },
    })),
    ...times(2, (i) => ({
      id: `rerun-${i}`,
      overlap: "skip",
      payload: work(20, 100, 0.5),
      schedule: { every: "2s" },
      rerun: { delay: "300ms", backoff: "fixed" },
    })),
    ...times(2, (i) => ({ id: `one-${i}`, overlap: "allow", catchUp: "one", payload: work(10) })),
    ...times(2, (i) => ({ id: `none-${i}`, overlap: "allow", catchUp: "skip", payload: work(10) })),
    ...times(2, (i) => ({
      id: `jitter-${i}`,
      overlap: "allow",
      catchUp: "all",
      payload: work(10),
      schedule: { every: "2s", jitter: "50%" },
    })),
    ...times(2, (i) => ({
      id: `after-${i}`,
      overlap: "skip",
      payload: work(200, 500),
      schedule: { every: "1s", anchor: "finish" },
    })),
  ];
  return tasks.map((task) => ({
    type: "job",
    queue: WORK,
    schedule: { every: "1s" },
    catchUp: "all",
    ...KEEP,
    ...CRASH,
    ...task,
  }));
}

const CALENDAR = "closed";

function editTasks() {
  const task = (id, edited, more = {}) => ({
    id,
    type: "job",
    queue: EDIT,
    schedule: { every: "1s" },
    overlap: "skip",
    catchUp: "all",
    payload: work(10, 400),
    ...KEEP,
    ...CRASH,
    ...more,
    edited,
  });
  return [
    ...times(4, (i) => task(`payload-${i}`, "payload")),
    ...times(2, (i) => task(`pause-${i}`, "pause")),
    ...times(2, (i) => task(`trigger-${i}`, "trigger", { overlap: "queue-all" })),
    ...times(2, (i) => task(`schedule-${i}`, "schedule")),
    ...times(2, (i) => task(`again-${i}`, "delete")),
    task("closed", "calendar", { schedule: { every: "1s", except: [{ named: CALENDAR }] } }),
  ];
}

function plainTasks() {
  return times(3, (i) => ({
    id: `plain-${i}`,
    type: "job",
    queue: PLAIN,
    schedule: { every: "1s" },
    overlap: i === 2 ? "queue-one" : "skip",
    catchUp: "all",
    ...KEEP,
  }));
}

/** Each owner alone has more work than its limit allows in a busy second. */
function limitedTasks() {
  return Object.keys(LIMITS[LIMITED]).flatMap((owner) =>
    times(4, (i) => ({
      id: `${owner}-${i}`,
      owner,
      type: "job",
      queue: LIMITED,
      schedule: { every: "1s" },
      catchUp: "all",
      overlap: i === 3 ? "queue-one" : "allow",
      payload: work(50, 250),
      ...KEEP,
      ...CRASH,
      ...(owner === "beta" && i === 0 ? { edited: "limit" } : {}),
    })),
  );
}

/** Freezes skip due times of these schedules, and hold pending occurrences and retries. */
function frozenTasks() {
  const task = (id, more) => ({
    id,
    type: "job",
    queue: FROZEN,
    schedule: { every: "1s" },
    overlap: "allow",
    catchUp: "all",
    payload: work(10, 100),
    ...KEEP,
    ...CRASH,
    ...more,
  });
  return [
    ...times(4, (i) => task(`ice-${i}`, { owner: ICE, schedule: { every: "500ms" } })),
    ...times(4, (i) => task(`cold-${i}`, { tags: [COLD], schedule: { every: "500ms" } })),
    ...times(2, (i) => task(`waits-${i}`, { overlap: "queue-all", payload: work(700, 1_200) })),
    ...times(2, (i) =>
      task(`fails-${i}`, {
        overlap: "skip",
        schedule: { every: "2s" },
        payload: work(20, 100, 0.5),
        rerun: { delay: "300ms", backoff: "fixed" },
      }),
    ),
  ];
}

function fanTasks() {
  return times(TENANTS, (i) => ({
    id: "sync",
    owner: `tenant-${i}`,
    type: "fan",
    queue: FAN,
    schedule: { every: "5s" },
    overlap: "skip",
    catchUp: "one",
    payload: { items: 5, ms: 20 },
    ...KEEP,
    ...CRASH,
  }));
}

/** @param {number} each tasks in each queue that is only counted */
export function makeTasks(each) {
  return [
    ...countTasks(each),
    ...workTasks(),
    ...editTasks(),
    ...plainTasks(),
    ...limitedTasks(),
    ...frozenTasks(),
    ...fanTasks(),
  ];
}

/** The task in the form that a client puts. */
function inputOf({ edited: _, ...input }) {
  return input;
}

export async function putAll(client, tasks) {
  await operatorOf(client).calendars.put({ name: CALENDAR, entries: ["2030-01-01"] });
  await client.putMany(tasks.map(inputOf));
  for (const [owner, runs] of Object.entries(LIMITS[LIMITED]))
    await operatorOf(client).queues.limit({ queue: LIMITED, owner, runs });
}

/** After a pause or a delete, nothing is enqueued. */
const NOTHING = { what: "paused" };

/**
 * Edits by a client, by the task's `edited`. Each takes the dice, so that a seed repeats it. Some return what holds for runs
 * that are enqueued afterwards (holds.mjs).
 */
const EDITS = {
  async payload(client, task, dice, edit) {
    const priority = Math.floor(dice() * 3);
    await client.put({
      ...inputOf(task),
      priority,
      payload: { ...work(10, 100 + Math.floor(dice() * 300)), edit },
    });
    return { what: "stale", edit };
  },
  async pause(client, task, dice) {
    if (dice() < 0.5) return client.pause(task).then(() => NOTHING);
    await client.resume(task, { missed: dice() < 0.5 ? "skip" : "catch-up" });
  },
  async limit(client, { queue, owner }, dice) {
    const runs = 1 + Math.floor(dice() * LIMITS[queue][owner]);
    await operatorOf(client).queues.limit({ queue, owner, runs });
  },
  async trigger(client, task) {
    await client.trigger(task);
  },
  async schedule(client, task, dice) {
    await client.put({ ...inputOf(task), schedule: { every: dice() < 0.5 ? "1s" : "700ms" } });
  },
  async delete(client, task, dice) {
    if (dice() < 0.5) return client.delete(task).then(() => NOTHING);
    await client.put(inputOf(task));
  },
  async calendar(client, _task, dice) {
    const entries = [`20${30 + Math.floor(dice() * 60)}-01-01`];
    await operatorOf(client).calendars.put({ name: CALENDAR, entries });
  },
};

/** Edits until it is stopped. Edits that fail because of Redis are tried again later. */
export function startEditing(client, tasks, dice, onUnexpected) {
  const editable = tasks.filter(({ edited }) => edited);
  /** Holds that the next edit of their task ended, and those that still hold. */
  const holds = [];
  const open = new Map();
  let running = true;
  let edits = 0;
  const end = async (task) => {
    const hold = open.get(task);
    open.delete(task);
    if (hold) holds.push({ ...hold, to: await client.serverTime() });
  };
  const edit = async (task) => {
    await end(task);
    const after = await EDITS[task.edited](client, task, dice, edits + 1);
    edits += 1;
    const { queue, id } = task;
    const hold = { id: `edit ${edits}`, scope: { queue, task: id }, mono: monotonic(), ...after };
    // Runs enqueued within this millisecond may have been committed before it.
    if (after) open.set(task, { ...hold, from: (await client.serverTime()) + 1 });
  };
  const done = (async () => {
    while (running) {
      const task = editable[Math.floor(dice() * editable.length)];
      try {
        await edit(task);
      } catch (error) {
        if (!isCarillonError(error) || !EXPECTED.has(error.code)) onUnexpected(error);
      }
      await pause(60 + dice() * 180);
    }
  })();
  return {
    holds,
    get edits() {
      return edits;
    },
    async stop() {
      running = false;
      await done;
      for (const task of [...open.keys()]) await end(task).catch(() => {});
    },
  };
}

/** Errors caused by faults, by a task that was just deleted, or by concurrent changes. */
export const EXPECTED = new Set([
  "FREEZE_NOT_FOUND",
  "FROZEN",
  "REDIS_UNAVAILABLE",
  "REDIS_READ_ONLY",
  "REDIS_OUT_OF_MEMORY",
  "REDIS_AUTH",
  "TASK_NOT_FOUND",
  "CONFLICT",
]);

/**
 * Ends all schedules: owed occurrences are claimed or passed over, pending ones continue. Repeats until Redis has
 * accepted it.
 */
export async function endSchedules(client, tasks, now) {
  const end = new Date(now).toISOString();
  const ended = tasks.filter(({ queue }) => [...WORKED_QUEUES, PLAIN].includes(queue));
  for (const task of ended) {
    if (task.edited === "pause") await client.resume(task, { missed: "catch-up" });
    await client.put({
      ...inputOf(task),
      schedule: { ...task.schedule, end },
    });
  }
}
