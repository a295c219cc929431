import { OVERLAP_POLICIES, parseTask, type TaskInput } from "@carillon/core";
import type { Freeze, FreezeScope } from "@carillon/core/internal";
import type { Store } from "@carillon/store";
import { internalsOf } from "@carillon/store/internal";
import type { Dice } from "./dice.js";
import { FREEZER, type FreezeWatch } from "./freeze-watch.js";

export const QUEUE = "bells";
export const OWNER = "system";
export const IDS = ["a", "b", "c"] as const;
/** A task that is a shadow from its beginning to its end. */
export const SHADE = "shade";

const SCHEDULES: readonly TaskInput["schedule"][] = [
  { every: "10s" },
  { every: "10s" },
  { every: "30s" },
  { every: "10s", jitter: "50%" },
  { every: "10s", maxRuns: 4 },
  { every: "20s", anchor: "finish" },
  { cron: "* * * * *" },
];

/** Habits of the clients of one history: drawn once, so that histories differ in kind and not only in order. */
export interface Character {
  /** The schedule of each task; undefined: each put draws another one. */
  readonly schedules: ReadonlyMap<string, TaskInput["schedule"]> | undefined;
  readonly overlaps: readonly (typeof OVERLAP_POLICIES)[number][];
  readonly deletes: boolean;
  /** Whether limits of concurrent runs by owner come and go. */
  readonly limits: boolean;
  /** Whether freezes come and go. */
  readonly freezes: boolean;
  /** Whether there are backfills, new runs of failed items, and a shadow. */
  readonly more: boolean;
}

/** Tag of every task: a freeze may name it. */
const TAG = "bell";
/** Scopes that cover all tasks of a history. */
const SCOPES: readonly FreezeScope[] = [{ all: true }, { owner: OWNER }, { queue: QUEUE }, { tag: TAG }];

export function character(dice: Dice, seed: number): Character {
  const strict = OVERLAP_POLICIES.filter((policy) => policy !== "allow");
  return {
    schedules: dice.chance(0.8) ? new Map(IDS.map((id) => [id, dice.pick(SCHEDULES)])) : undefined,
    overlaps: dice.chance(0.7) ? strict : OVERLAP_POLICIES,
    deletes: dice.chance(0.5),
    // Derived from the seed without the dice, so that histories without limits stay as they were.
    limits: seed % 2 === 1,
    // Half of the histories with limits, and half of those without.
    freezes: seed % 4 >= 2,
    // Half of the histories without freezes.
    more: seed % 8 < 2,
  };
}

/** Something that a client does about a task. */
export interface Operation {
  readonly what:
    | "put"
    | "pause"
    | "resume"
    | "delete"
    | "trigger"
    | "cancel"
    | "enqueue"
    | "limit"
    | "freeze"
    | "unfreeze"
    | "backfill"
    | "items";
  readonly id: string;
  /** Description for the trace. */
  readonly text: string;
  /** From here on two runs of the task may overlap. */
  readonly allows: boolean;
  run(store: Store, freezes: FreezeWatch): Promise<unknown>;
}

export function putOf(dice: Dice, { schedules, overlaps, freezes }: Character, id: string): Operation {
  const input: TaskInput = {
    id,
    type: "noop",
    queue: QUEUE,
    schedule: schedules?.get(id) ?? dice.pick(SCHEDULES),
    overlap: dice.pick(overlaps),
    catchUp: dice.pick(["skip", "one", "all"] as const),
    crash: { delay: "1s", attempts: 3 },
    maxQueued: 5,
    payload: {},
    ...(freezes ? { tags: [TAG] } : {}),
    ...(dice.chance(0.3) ? { rerun: { delay: "3s", jitter: 0 } } : {}),
    ...(dice.chance(0.2) ? { pauseAfterFailures: 2 } : {}),
    ...(dice.chance(0.3) ? { retry: { attempts: 2, delay: "1s" } } : {}),
    ...(dice.chance(0.2) ? { timeLimit: "15s", timeLimitGrace: "2s" } : {}),
    ...(id === SHADE ? { mode: "shadow" as const } : {}),
  };
  return {
    what: "put",
    id,
    text: `put ${JSON.stringify(input)}`,
    allows: input.overlap === "allow",
    run: async (store) => (await store.tasks.put(QUEUE, [parseTask(input)]))[0]?.outcome,
  };
}

/** @param serial number of this operation: names that it creates must be unique */
export function operationOf(dice: Dice, kind: Character, serial: number): Operation {
  const id = dice.pick(IDS);
  const name = { queue: QUEUE, owner: OWNER, id };
  const base = { id, allows: false };
  if (kind.freezes && dice.chance(0.2))
    return dice.chance(0.5) ? freezeOf(dice, `freeze-${serial}`) : unfreezeOf();
  if (kind.more && dice.chance(0.2)) return moreOf(dice, kind, id, serial);
  const roll = dice.next();
  if (roll < 0.28) return putOf(dice, kind, id);
  if (roll < 0.56) {
    const overlap = dice.pick([undefined, ...kind.overlaps]);
    const by = { key: `manual-${serial}`, token: `t${serial}`, node: "client" };
    return {
      what: "trigger",
      id,
      text: `trigger ${id} ${overlap ?? ""} ${by.key}`,
      allows: overlap === "allow",
      run: async (store) => (await store.claims.trigger(name, by, overlap)).outcome,
    };
  }
  if (roll < 0.66) return { ...base, what: "pause", text: `pause ${id}`, run: (s) => s.tasks.pause(name) };
  if (roll < 0.8) {
    const from = dice.pick(["skip", "catch-up"] as const);
    return { ...base, what: "resume", text: `resume ${id} ${from}`, run: (s) => s.tasks.resume(name, from) };
  }
  if (roll < 0.88 && kind.deletes) {
    return { ...base, what: "delete", text: `delete ${id}`, run: (s) => s.tasks.delete(name) };
  }
  if (roll < 0.94) {
    return { ...base, what: "cancel", text: `cancel a run of ${id}`, run: (s) => cancelOne(s, name) };
  }
  if (kind.limits && dice.chance(0.7)) return limitOf(dice, id);
  return enqueueOf(`once-${serial}`, serial);
}

type Named = Parameters<Store["tasks"]["get"]>[0];

function moreOf(dice: Dice, kind: Character, id: string, serial: number): Operation {
  const name = { queue: QUEUE, owner: OWNER, id };
  const what = dice.pick(["backfill", "items", "shade"] as const);
  if (what === "shade") return putOf(dice, kind, SHADE);
  const [text, run] =
    what === "items"
      ? [`retry the failed items of ${id}`, (store: Store) => retryItems(store, name)]
      : [`backfill the last minute of ${id}`, (store: Store) => backfill(store, name, `backfill-${serial}`)];
  return { what, id, allows: false, text, run };
}

/** Retries the failed items of the last run that has ended; plants that there are some. */
async function retryItems(store: Store, name: Named): Promise<string> {
  const run = (await store.runs.list(name, 1_000)).find(({ state }) => state === "final");
  if (!run) return "nothing to retry";
  const { link, keys } = internalsOf(store);
  await link.ask((client) => client.hset(keys.queue(QUEUE).items(run.id), "n", 1));
  return (await store.claims.retryItems(run, { node: "client" })).run;
}

/** It waits for other runs and skips nothing, so that each time stays decided once. */
async function backfill(store: Store, name: Named, id: string): Promise<string> {
  const task = await store.tasks.get(name);
  if (!task || "anchor" in task.definition.schedule) return "nothing to backfill";
  const to = await store.tasks.time(QUEUE);
  const range = { from: to - 60_000, to, at: to - 60_001, total: 6, enqueued: 0, skipped: 0, every: 0 };
  await store.backfills.put({
    task: name,
    taskCreated: task.created,
    ...range,
    overlap: "queue-all",
    by: "client",
    id,
  });
  return id;
}

function freezeOf(dice: Dice, id: string): Operation {
  const scope = dice.pick(SCOPES);
  const [starts, lasts] = [dice.pick([0, 0, 5_000]), dice.pick([20_000, 45_000, undefined])];
  return {
    what: "freeze",
    id,
    allows: false,
    text: `freeze ${JSON.stringify(scope)} in ${starts} for ${lasts ?? "good"}`,
    async run({ freezes }, watch) {
      const acknowledged = watch.puts();
      const created = await freezes.time();
      const from = created + starts;
      const until = lasts === undefined ? {} : { until: from + lasts };
      const freeze: Freeze = { id, ...scope, from, ...until, by: FREEZER, created };
      await freezes.put(freeze);
      acknowledged(freeze);
      return "frozen";
    },
  };
}

function unfreezeOf(): Operation {
  return {
    what: "unfreeze",
    id: "the oldest",
    text: "unfreeze",
    allows: false,
    async run({ freezes }, watch) {
      const [oldest] = await freezes.list();
      if (!oldest) return "nothing to lift";
      watch.lifts(oldest.id);
      await freezes.lift(oldest.id);
      return oldest.id;
    },
  };
}

export function limitOf(dice: Dice, id: string): Operation {
  const [owner, runs] = [dice.pick([OWNER, "*"]), dice.pick([1, 1, 2, undefined])];
  return {
    what: "limit",
    id,
    text: `limit ${owner} ${runs ?? "lifted"}`,
    allows: false,
    run: (store) => store.queues.setLimit(QUEUE, owner, runs),
  };
}

async function cancelOne(store: Store, name: { queue: string; owner: string; id: string }): Promise<string> {
  const [run] = await store.runs.open(name);
  return run === undefined ? "nothing to cancel" : store.runs.cancel(name, run, "client");
}

function enqueueOf(id: string, serial: number): Operation {
  const by = { key: id, token: `t${serial}`, node: "client" };
  return {
    what: "enqueue",
    id,
    text: `enqueue ${id}`,
    allows: false,
    async run(store) {
      const at = await store.tasks.time(QUEUE);
      const parsed = parseTask({ id, type: "noop", queue: QUEUE, schedule: { at }, payload: {} });
      const entered = await store.registry.enter(QUEUE);
      try {
        if (await store.claims.enqueueNow(parsed, by, entered)) return "enqueued";
        // The owner is at its limit of runs: the task waits as a due task.
        return (await store.tasks.put(QUEUE, [parsed]))[0]?.outcome;
      } finally {
        await store.registry.leave(QUEUE, entered);
      }
    },
  };
}
