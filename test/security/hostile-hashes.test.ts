import { CarillonError, parseTask } from "@carillon/core";
import { shardOf } from "@carillon/core/internal";
import { operatorOf } from "@carillon/ops";
import { Scheduler } from "@carillon/scheduler";
import { Client } from "@carillon/sdk";
import { namespaceKeys } from "@carillon/store";
import { virtualStore } from "@carillon/testing";
import { describe, expect, it } from "vitest";
import { explained } from "../../packages/ops/test/in-words.js";
import { enqueued, SILENT } from "../helpers.js";
import { Stand } from "../seeds/harness.js";

/*
 * An attacker with the password of Redis writes nonsense into the hash of a task or a run, or into data of the
 * namespace. That task may be lost to its owner; the node and every other task continue unaffected.
 */

const QUEUE = "bells";
const stand = Stand.use();

/** Two tasks in each shard, one before and one after the hostile task by name. */
const GOOD = ["a", "z"].flatMap((letter) => {
  const byShard = new Map(Array.from({ length: 200 }, (_, n) => [shard(`${letter}${n}`), `${letter}${n}`]));
  return [...byShard.values()];
});

function shard(id: string): number {
  return shardOf(`system/${id}`);
}

const deep = (open: string, close: string, levels = 100_000) => open.repeat(levels) + close.repeat(levels);
const json = (value: unknown) => JSON.stringify(value);

/** Fields of a task hash, each with hostile values. */
const FIELDS: [field: string, values: string[]][] = [
  ["v", ["", "abc", "-1", "1e9", "0x7fffffff"]],
  ["gen", ["", "abc", "-5", "1e400", "nan", "0x10", "9".repeat(400)]],
  ["state", ["", "running", "__proto__", "scheduled\n"]],
  ["due", ["", "abc", "-1", "1e400", "nan"]],
  ["nominal", ["", "abc", "-1", "1e400"]],
  ["cursor", ["", "abc", "1e400", "nan"]],
  ["fired", ["", "abc", "1e400"]],
  ["calrev", ["", "abc", "1e400"]],
  ["priority", ["", "abc", "-1", "1e400", "9".repeat(400)]],
  ["type", ["", "a b", "a\nb", "x".repeat(100_000), "{}"]],
  ["overlap", ["", "sometimes", "constructor"]],
  ["catchUp", ["", "sometimes"]],
  ["tags", ["", ",", ",,,", "}:x{", "a\nb"]],
  ["calendars", ["", ",", "}:x{"]],
  [
    "schedule",
    [
      "",
      "null",
      "{",
      "[]",
      '"x"',
      "1",
      "{}",
      ...[{ every: "0s" }, { every: 0 }, { every: "-1s" }, { every: "1ns" }, { cron: "0 0 30 2 *" }].map(
        json,
      ),
      ...[{ cron: "* * * * *", timezone: "Moon/Base" }, { cron: 5 }, { calendar: "x" }, { at: "x" }].map(
        json,
      ),
      ...[{ any: [] }, { any: [null] }, { every: "1s", except: 5 }, { every: "1s", jitter: "x" }].map(json),
      json({ cron: `${"1,".repeat(500_000)}1 * * * *` }),
      '{"__proto__":{"every":"1s"}}',
      deep('{"any":[', "]}"),
    ],
  ],
  ["payload", ["", "{", 'null}},"occurrence":{', "\u0000", deep("[", "]")]],
  [
    "policies",
    [
      "",
      "{",
      "null",
      "5",
      "[]",
      '{"__proto__":{"linger":1}}',
      deep("[", "]"),
      ...[{ linger: "abc" }, { timeLimit: "abc" }, { timeLimitGrace: {} }, { minGap: "abc" }].map(json),
      ...[{ retry: { attempts: 1e9, delay: "x" } }, { retry: 5 }, { catchUpLimits: { every: "x" } }].map(
        json,
      ),
      // Values that are not policies.
      ...[
        { queue: "other" },
        { id: "z0", owner: "root" },
        { payload: 1 },
        { schedule: { every: "1ms" } },
      ].map(json),
    ],
  ],
  [
    "pending",
    [
      "",
      "{",
      "null",
      "5",
      "{}",
      "[null]",
      "[5]",
      '"x"',
      deep("[", "]"),
      ...[[{}], [{ key: 1 }], [{ key: "k", nominal: "x", due: 1, trigger: "retry" }]].map(json),
      ...[[{ key: "k", nominal: 1, due: 1, trigger: "retry", at: "x" }]].map(json),
      ...[[{ key: "k", nominal: 1, due: 1, trigger: "nonsense", at: -1 }]].map(json),
      ...[Array.from({ length: 3_000 }, () => ({ key: "k", nominal: 1, due: 1, trigger: "retry" }))].map(
        json,
      ),
    ],
  ],
  [
    "open",
    [
      "",
      "a",
      "*",
      " x",
      "a\tb",
      "a\u001fb",
      "id",
      "wait",
      "meta",
      "x@y",
      " a@b c@d ",
      "@",
      "x".repeat(100_000),
    ],
  ],
  ["wait", ["", "a", "a b", "a 1e400", " ", "x 5 y"]],
  ["crash", ["", "a", "1 2 3", "9".repeat(400)]],
  ["keep", ["", "a", "1", "1 2 3 4 5"]],
  ["linger", ["", "abc", "1e400"]],
  ["expect", ["", "abc", "1e400"]],
  ["description", ["\u001b[31m\n{", "x".repeat(1_000_000)]],
];

interface World {
  client: Client;
  /** Advances ten seconds. */
  round(): Promise<void>;
  key(local: string): string;
  keys: ReturnType<ReturnType<typeof namespaceKeys>["queue"]>;
  /** Number of occurrences enqueued for each of these tasks. */
  fired(ids: readonly string[]): Promise<number[]>;
}

/** @param hostile names of further tasks */
async function world(hostile: readonly string[] = ["m"]): Promise<World> {
  const { store, clock } = await virtualStore({
    connection: stand.redis.url,
    namespace: stand.namespace,
    queues: [QUEUE, "other"],
  });
  stand.later(() => store.close());
  const node = new Scheduler({ store, logger: SILENT });
  const client = new Client({ store });
  const keys = namespaceKeys(stand.namespace).queue(QUEUE);
  const put = (id: string) =>
    parseTask({ id, queue: QUEUE, type: "t", schedule: { every: "10s" }, overlap: "allow" });
  await store.tasks.put(QUEUE, [...GOOD, ...hostile].map(put));
  return {
    client,
    keys,
    key: (local) => keys.task(local),
    async round() {
      await clock.advance(10_000);
      await node.tick();
    },
    async fired(ids) {
      const counts = await stand.admin.zrange(keys.runs, 0, "-1");
      return ids.map((id) => counts.filter((run) => run.startsWith(`${id}@`)).length);
    },
  };
}

const all = (times: number) => GOOD.map(() => times);

/** Checks that all other tasks continue. */
async function goesOn(at: World, rounds: number): Promise<void> {
  for (let n = 1; n <= rounds; n++) {
    await at.round();
    expect(await at.fired(GOOD)).toEqual(all(n));
  }
}

it("valid tasks are in all shards, before and after the hostile one", () => {
  expect(new Set(GOOD.map(shard)).size).toBe(8);
  expect(GOOD).toHaveLength(16);
  expect(shardOf("system/m")).toBeTypeOf("number");
});

/** Lists, forecasts and the journal contain the other tasks, whatever they show of the hostile one. */
async function isSeen(at: World): Promise<void> {
  const others = (names: readonly { id: string }[]) =>
    [...new Set(names.map(({ id }) => id))].filter((id) => !id.startsWith("m")).sort();
  const { tasks } = await at.client.list({ limit: 1_000 });
  expect(others(tasks)).toEqual([...GOOD].sort());
  expect(tasks.filter(({ owner, queue }) => owner !== "system" || queue !== QUEUE)).toEqual([]);
  expect(
    others(
      (await operatorOf(at.client).occurrences.upcoming({ limit: 1_000 })).upcoming.map(({ task }) => task),
    ),
  ).toEqual([...GOOD].sort());
  const forecast = (await operatorOf(at.client).occurrences.upcoming({ within: "10s", limit: 1_000 }))
    .upcoming;
  expect(others(forecast.map(({ task }) => task))).toEqual([...GOOD].sort());
  await at.client.runs.journal();
}

/** Calls about the hostile task are answered, or refused with a code. */
async function answersOf(at: World, id = "m"): Promise<void> {
  for (const ask of [
    () => at.client.get(id),
    () => at.client.runs.list(id),
    () => at.client.runs.stats(id),
    () => at.client.runs.skips(id),
    () => explained(at.client, id, "2026-01-01T00:00:10Z"),
    () => at.client.pause(id),
    () => at.client.resume(id),
    () => at.client.trigger(id, { overlap: "allow" }),
  ]) {
    await ask().catch((error: unknown) => expect(error).toBeInstanceOf(CarillonError));
  }
}

describe("a field of a task's hash", () => {
  // All values of a third of the fields at once: each task may only harm itself.
  it.each([0, 1, 2])("of third %i", async (third) => {
    const fields = FIELDS.filter((_, n) => n % 3 === third);
    const written = fields.flatMap(([field, values]) =>
      values.map((value, n) => [`m-${field}-${n}`, field, value] as const),
    );
    const hostile = written.map(([id]) => id);
    const at = await world(hostile);
    for (const [id, field, value] of written) await stand.admin.hset(at.key(`system/${id}`), field, value);
    await goesOn(at, 3);
    // Whatever the field means, the task is not enqueued again and again, nor in another queue.
    const fired = await at.fired(hostile);
    expect(hostile.filter((_, n) => (fired[n] ?? 0) > 3)).toEqual([]);
    const jobs = await stand.queue(QUEUE).getJobCounts();
    expect(jobs["waiting"]! + jobs["prioritized"]!).toBeLessThanOrEqual(3 * (GOOD.length + hostile.length));
    expect(await stand.admin.exists(`{${stand.namespace}:other}:other:wait`)).toBe(0);
    await isSeen(at);
    for (const id of hostile) await answersOf(at, id);
    // Drains the queue: the runs of the other tasks are settled.
    await stand.queue(QUEUE).drain();
    await at.round();
    await at.round();
    for (const id of GOOD.slice(0, 2)) {
      const final = (await at.client.runs.list(id)).filter(({ state }) => state === "final");
      expect(final.length).toBeGreaterThanOrEqual(3);
    }
    for (const id of hostile) {
      await at.client.delete({ queue: QUEUE, id });
      await at.client.put({ id, queue: QUEUE, type: "t", schedule: { every: "10s" } });
      expect((await at.client.get(id)).state).toBe("scheduled");
    }
    expect(({} as Record<string, unknown>)["linger"]).toBeUndefined();
  });

  it("the task's key is not a hash", async () => {
    const at = await world();
    await stand.admin.set(at.key("system/m"), "nonsense");
    await goesOn(at, 3);
    expect((await at.fired(["m"]))[0]).toBe(0);
  });
});

const RUN_FIELDS: [field: string, values: string[]][] = [
  ["state", ["", "nonsense"]],
  ["task", ["", "nobody", "a/b/c", "}:x{", "system/a0\n"]],
  ["enqueued", ["", "abc", "1e400"]],
  ["finished", ["", "abc"]],
  ["outcome", ["", "nonsense", "__proto__"]],
  ["cancel", ["", "abc", "1 2 3"]],
  ["fence", ["", "abc"]],
  ["made", ["", "abc"]],
  ["notBefore", ["", "abc"]],
  ["started", ["", "abc"]],
  ["info", ["", "{", "null", "5", deep("[", "]"), '{"key":5}']],
  ["result", ["{", deep("[", "]")]],
  ["checkpoint", ["{"]],
];

describe("a field of a run's record", () => {
  it("harms no other task", async () => {
    const at = await world();
    const hostile: string[] = [];
    for (const [field, value] of RUN_FIELDS.flatMap(([field, all]) =>
      all.map((one) => [field, one] as const),
    )) {
      const triggered = enqueued(await at.client.trigger("m", { overlap: "allow" }));
      await stand.admin.hset(at.keys.run(triggered.run), field, value);
      hostile.push(triggered.run);
    }
    await goesOn(at, 1);
    await stand.queue(QUEUE).drain();
    for (let n = 2; n <= 4; n++) {
      await at.round();
      expect(await at.fired(GOOD)).toEqual(all(n));
    }
    const final = await Promise.all(GOOD.map((id) => at.client.runs.list(id)));
    for (const runs of final) expect(runs.filter(({ state }) => state === "final").length).toBeGreaterThan(0);
    await isSeen(at);
    await answersOf(at);
    for (const run of hostile)
      await at.client.runs.get(run).catch((error: unknown) => expect(error).toBeInstanceOf(CarillonError));
  });
});
