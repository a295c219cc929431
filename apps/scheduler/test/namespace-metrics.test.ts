import { readFileSync } from "node:fs";
import { operatorOf } from "@carillon/ops";
import { Scheduler } from "@carillon/scheduler";
import { Client, defineTask, Worker, workerMetrics } from "@carillon/sdk";
import { internalsOf, Store } from "@carillon/sdk/internal";
import { eventually, type RedisServer, startRedis } from "@carillon/testing";
import * as prom from "prom-client";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { SILENT } from "../../../test/helpers.js";
import { schedulerMetrics } from "../src/metrics.js";

let redis: RedisServer;
let client: Client;
let scheduler: Scheduler;
let store: Store;
let registry: prom.Registry;
beforeEach(async () => {
  redis = await startRedis({ appendonly: true });
  client = new Client({ connection: redis.url });
  store = new Store({ connection: redis.url });
  scheduler = new Scheduler({ store, logger: SILENT });
  registry = schedulerMetrics(scheduler, store, "watched");
  await scheduler.start();
});
afterEach(async () => {
  await scheduler.stop();
  await store.close();
  await client.close();
  await redis.stop();
});

/** The lines about queues, without `carillon_queue_`. */
async function queueLines(): Promise<string[]> {
  const text = await registry.metrics();
  return text.split("\n").flatMap((line) => /^carillon_queue_(.*)/.exec(line)?.[1] ?? []);
}

it("metrics show pause, waiting jobs, their age and workers of each queue", async () => {
  expect(await queueLines()).toEqual([]);
  await client.put({ id: "a", queue: "q", type: "noop", schedule: { every: "1d" } });
  await client.put({ id: "b", queue: "r", type: "noop", schedule: { every: "1d" } });
  await operatorOf(client).queues.pause({ queue: "q" });
  await client.trigger("a");
  const read = vi.spyOn(store.queues, "workers");
  const lines = await queueLines();
  // Read once for all five.
  expect(read).toHaveBeenCalledTimes(1);
  expect(lines.map((line) => line.replace(/(q"}) 0\.\d+$/, "$1 age"))).toEqual([
    'paused{queue="q"} 1',
    'paused{queue="r"} 0',
    'waiting_jobs{queue="q"} 1',
    'waiting_jobs{queue="r"} 0',
    'active_jobs{queue="q"} 0',
    'active_jobs{queue="r"} 0',
    'oldest_waiting_seconds{queue="q"} age',
    'oldest_waiting_seconds{queue="r"} 0',
    'workers{queue="q"} 0',
    'workers{queue="r"} 0',
  ]);
  await operatorOf(client).queues.resume({ queue: "q" });
  expect(await queueLines()).toContain('paused{queue="q"} 0');
});

it("metrics omit unavailable data: workers, a corrupt queue, everything while Redis hangs", async () => {
  await client.put({ id: "a", queue: "q", type: "noop", schedule: { every: "1d" } });
  await client.put({ id: "b", queue: "r", type: "noop", schedule: { every: "1d" } });
  const { link, keys } = internalsOf(store);
  await link.client.set(`${keys.queue("r").bull}wait`, "no list");
  store.queues.workers = async () => undefined;
  expect((await queueLines()).filter((line) => !line.includes('{queue="q"}'))).toEqual([]);
  expect((await queueLines()).map((line) => line.split("{")[0])).toEqual([
    "paused",
    "waiting_jobs",
    "active_jobs",
    "oldest_waiting_seconds",
  ]);
  redis.pause();
  const own =
    /^carillon_(build|clock|redis_roundtrip|ready|claims|occurrences|reconciled|mutex|last_claim|lateness|policy)/;
  const left = (await registry.metrics()).split("\n").filter((line) => line.startsWith("carillon_"));
  expect(left.filter((line) => !own.test(line))).toEqual([]);
  redis.continue();
});

/** The lines of metrics whose names begin with `prefix`, without `carillon_` and without zeros. */
async function lines(prefix: string, from = registry): Promise<string[]> {
  const text = await from.metrics();
  return text.split("\n").flatMap((line) => {
    const [, found = ""] = new RegExp(`^carillon_(${prefix}.*)`).exec(line) ?? [];
    return found === "" || found.endsWith(" 0") ? [] : [found];
  });
}

/** Repeats until the lines match: reads that take more than a second on a busy machine are left out. */
const shows = (prefix: string, expected: readonly string[], from = registry) =>
  eventually(async () => expect(await lines(prefix, from)).toEqual(expected));

const nothing = z.object({}).loose();
const fail = () => Promise.reject(new Error("planted"));
const types = [
  defineTask("good", { queue: "q", payload: nothing, handler: () => null }),
  defineTask("bad", { queue: "r", payload: nothing, handler: fail }),
];
const put = (id: string, type: string, queue: string, more: object = {}) =>
  client.put({ id, queue, type, schedule: { every: "1d" }, ...more });

it("metrics show why work is late, live processes, and the number of tasks", async () => {
  await put("a", "good", "q");
  await put("b", "good", "q", { enabled: false });
  await client.trigger("a");
  await operatorOf(client).freezes.put({ owner: "acme", until: Date.now() + 3_600_000, note: "INC-43" });
  await eventually(async () =>
    expect(await registry.getSingleMetricAsString("carillon_status_reasons")).toContain(
      '{code="NO_NODE",queue=""} 0',
    ),
  );
  await shows("(status|nodes|workers|tasks|alerts)", [
    'status_reasons{code="NO_WORKER",queue="q"} 1',
    'status_notes{code="FROZEN",queue=""} 1',
    'nodes{state="ready"} 1',
    'tasks{queue="q",state="planned"} 1',
    'tasks{queue="q",state="paused"} 1',
  ]);
  const worker = new Worker({ connection: redis.url, types, logger: SILENT });
  await worker.start();
  await shows("workers", ["workers_alive 1"]);
  await worker.stop();
  const { link, keys } = internalsOf(store);
  await link.client.rpush(keys.queue("q").alerts, "a", "b");
  await shows("alerts", ['alerts_undelivered{waits_for="node"} 2']);
  // A key of the wrong type in one queue must not hide the others.
  await put("c", "bad", "r");
  await link.client.del(keys.queue("q").alerts);
  await link.client.set(keys.queue("q").alerts, "no list");
  await shows("tasks", ['tasks{queue="r",state="planned"} 1']);
});

it("tasks with the tag have metrics of their own, and workers count their attempts", async () => {
  const runs = new prom.Registry();
  const [one, two] = [0, 1].map(() => new Worker({ connection: redis.url, types, logger: SILENT })) as [
    Worker,
    Worker,
  ];
  for (const worker of [one, two]) workerMetrics(worker, prom, runs);
  expect(await lines("", runs)).toEqual([]);
  const text = await runs.metrics();
  expect(text).toContain('carillon_attempts_total{queue="r",outcome="retrying"} 0');
  expect(text).toContain('carillon_attempt_duration_seconds_bucket{le="+Inf",queue="q"} 0');
  await one.start();
  await put("a", "good", "q", { tags: ["watched"] });
  await put("b", "bad", "r", { tags: ["watched"], retry: { attempts: 2, delay: "1ms" } });
  await put("c", "good", "q");
  for (const id of ["a", "b", "c"]) await client.trigger(id);
  await shows(
    "attempts",
    [
      'attempts_total{queue="q",outcome="succeeded"} 2',
      'attempts_total{queue="r",outcome="failed"} 1',
      'attempts_total{queue="r",outcome="retrying"} 1',
    ],
    runs,
  );
  const count = async (name: string) =>
    (await lines(`${name}_seconds_(count|bucket.*Inf)`, runs)).map((line) => line.slice(name.length));
  // Only first attempts wait for a worker.
  expect(await count("start_delay")).toEqual([
    '_seconds_bucket{le="+Inf",queue="q"} 2',
    '_seconds_count{queue="q"} 2',
    '_seconds_bucket{le="+Inf",queue="r"} 1',
    '_seconds_count{queue="r"} 1',
  ]);
  expect(await count("attempt_duration")).toEqual([
    '_seconds_bucket{le="+Inf",queue="q"} 2',
    '_seconds_count{queue="q"} 2',
    '_seconds_bucket{le="+Inf",queue="r"} 2',
    '_seconds_count{queue="r"} 2',
  ]);
  for (const worker of [one, two]) await worker.stop();
  const { lastSuccess = 0, successMs } = await client.runs.stats("a");
  // Runs of a few milliseconds.
  const took = successMs + (await client.runs.stats("c")).successMs;
  expect(await registry.metrics()).toContain(
    `carillon_run_seconds_total{queue="q",result="success"} ${took / 1000}\n`,
  );
  await shows("task_(last_[os]|cons)", [
    'task_last_outcome{queue="q",owner="system",task="a",outcome="succeeded"} 1',
    'task_last_outcome{queue="r",owner="system",task="b",outcome="failed"} 1',
    `task_last_success_timestamp_seconds{queue="q",owner="system",task="a"} ${lastSuccess / 1000}`,
    'task_consecutive_failures{queue="r",owner="system",task="b"} 1',
  ]);
  await client.putMany(
    Array.from({ length: 199 }, (_, i) => ({
      id: `t${i}`,
      queue: "q",
      type: "good",
      tags: ["watched"],
      schedule: { every: "1d" as const },
    })),
  );
  await shows("task_metrics_truncated", ["task_metrics_truncated 1"]);
  await eventually(async () => {
    const failures = await registry.getSingleMetricAsString("carillon_task_consecutive_failures");
    expect(failures.match(/^carillon/gm)).toHaveLength(200);
  });
});

it("rules and dashboard name existing metrics, and each rule a heading of the runbook", async () => {
  const read = (file: string) => readFileSync(new URL(`../../../${file}`, import.meta.url), "utf8");
  const workers = new prom.Registry();
  const worker = new Worker({ connection: redis.url, types, logger: SILENT });
  workerMetrics(worker, prom, workers);
  await worker.stop();
  const text = `${await registry.metrics()}${await workers.metrics()}`;
  const known = Array.from(text.matchAll(/^# TYPE (\S+) (\S+)/gm), ([, name, type]) =>
    type === "histogram" ? `${name}_bucket` : name,
  );
  const { groups } = parse(read("deploy/prometheus/rules.yml")) as {
    groups: { rules: { alert: string; expr: string; annotations: { runbook_url: string } }[] }[];
  };
  const rules = groups.flatMap((group) => group.rules);
  const { panels } = JSON.parse(read("deploy/grafana/carillon.json")) as {
    panels: { targets?: { expr: string }[] }[];
  };
  const queries = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
  expect(queries.length).toBeGreaterThan(20);
  const used = [...rules.map(({ expr }) => expr), ...queries].flatMap(
    (expr) => expr.match(/carillon_\w+/g) ?? ["none"],
  );
  expect([...new Set(used)].filter((name) => !known.includes(name))).toEqual([]);
  const headings = Array.from(read("docs/runbook.md").matchAll(/^## (Carillon\w+)$/gm), ([, name]) => name);
  expect(rules.map(({ alert }) => alert)).toEqual(headings);
  for (const { alert, annotations } of rules)
    expect(annotations.runbook_url).toMatch(new RegExp(`/docs/runbook\\.md#${alert.toLowerCase()}$`));
});
