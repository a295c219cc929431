import { isLate, type StatusReasonFacts } from "@carillon/core/internal";
import type { Scope } from "@carillon/sdk/internal";
import { isAlive, readStatus, type StoredTask } from "@carillon/store";
import { readServerInfo } from "@carillon/store/internal";
import { z } from "zod";
import { operation } from "../operation.js";
import { count } from "../shapes.js";
import { stuckDeliveries, undeliverable } from "./deliveries.js";
import { clocks, dead, lostHistory, notReady, redisFindings, skews, slowness } from "./environment.js";
import { type Finding, finding } from "./finding.js";
import * as task from "./tasks.js";

const diagnosis = z
  .object({
    state: z.enum(["healthy", "warnings", "errors"]),
    findings: z.array(finding).readonly().describe("Errors first."),
    tasks: z
      .object({ read: count, of: count })
      .describe(
        "At most 2,000 tasks are read: in each queue half of them the first by name, half the next due.",
      ),
    skipped: z.array(z.string()).readonly().describe("Checks that could not be made, and why."),
  })
  .meta({ id: "Diagnosis" });

/** Examines a namespace: reads a bounded number of keys and changes nothing. */
export const doctor = operation({
  http: "GET /doctor",
  role: "viewer",
  reach: "namespace",
  cost: "computes",
  summary:
    "Looks for faults beyond the status: settings of Redis, versions, clocks, types and alerts without a worker, tasks that never ran or take too long, herds, indexes.",
  input: z.strictObject({}),
  output: diagnosis,
  run: ({ scope }) => examine(scope),
});

async function examine(scope: Scope): Promise<z.output<typeof diagnosis>> {
  const { store } = scope;
  const { reasons, notes, at } = await readStatus(scope);
  // An error stops work, as in the exit codes of the status.
  const found: Finding[] = [
    ...reasons.map((one) => ({ ...one, severity: isLate(one) ? ("warning" as const) : ("error" as const) })),
    // `redisFindings` reports the settings of Redis.
    ...notes
      .filter(({ code }) => code !== "AOF_OFF" && code !== "EVICTION")
      .map((one) => ({ ...one, severity: "warning" as const })),
  ];
  const skipped: string[] = [];
  const writable = !reasons.some(({ code }) => code.startsWith("REDIS_"));
  if (at === undefined) return diagnosisOf(found, [], ["all others: Redis does not answer"]);
  const [infos, commands, nodes, workers, queues] = await Promise.all([
    store.info().catch((error: Error) => {
      skipped.push(`Redis' settings: ${error.message}`);
      return [readServerInfo("")];
    }),
    // The ACL for Carillon's own users does not allow SLOWLOG, which shows the commands of everybody.
    store.slowCommands().catch((error: Error) => {
      skipped.push(`slow commands: ${error.message}`);
      return [];
    }),
    store.registry.nodes(),
    store.registry.workers(),
    store.registry.queues(),
  ]);
  const alive = {
    nodes: nodes.filter((one) => isAlive(one, at)),
    workers: workers.filter((one) => isAlive(one, at)),
  };
  const hidden = new Set(infos.flatMap((info) => info.hidden));
  if (hidden.size > 0) skipped.push(`Redis' ${[...hidden].join(", ")}: INFO does not show it`);
  if (!writable) skipped.push("nodes and workers: they cannot report while Redis refuses writes");
  const samples = await Promise.all(
    queues.map((queue) => task.sample(scope, queue, Math.ceil(task.SAMPLE / 2 / queues.length))),
  );
  const tasks = samples.flatMap((one) => one.tasks).filter(({ state }) => state === "scheduled");
  const [schedules, unplanned] = task.schedulesOf(scope, tasks);
  found.push(
    ...infos.flatMap(redisFindings),
    ...slowness(alive.nodes, commands, at),
    ...lostHistory(alive.nodes, at),
    ...skews(alive.nodes, alive.workers),
    ...clocks(alive.nodes),
    ...notReady(alive.nodes, at),
    ...(writable ? [...dead("NODE_DEAD", nodes, at), ...dead("WORKER_DEAD", workers, at)] : []),
    ...(writable ? await uncovered(scope, tasks, reasons) : []),
    ...(await stuckDeliveries(scope, at, [...reasons, ...notes])),
    ...(writable ? await undeliverable(scope, tasks) : []),
    ...unplanned,
    ...task.sameIds(tasks),
    ...(await task.neverRan(scope, at)),
    ...(await task.tooLong(scope, tasks, schedules, at)),
    ...samples.flatMap(({ queue, tasks: all }) => task.herds(queue, all)),
    ...samples.flatMap(task.unreadable),
    ...samples.flatMap(task.orphans),
  );
  return diagnosisOf(found, samples, skipped);
}

function diagnosisOf(
  found: readonly Finding[],
  samples: readonly task.Sampled[],
  skipped: readonly string[],
): z.output<typeof diagnosis> {
  const errors = found.filter(({ severity }) => severity === "error");
  const findings = [...errors, ...found.filter(({ severity }) => severity === "warning")];
  const state = errors.length > 0 ? "errors" : findings.length > 0 ? "warnings" : "healthy";
  const sum = (value: (one: task.Sampled) => number) => samples.reduce((all, one) => all + value(one), 0);
  return {
    state,
    findings,
    tasks: { read: sum(({ tasks }) => tasks.length), of: sum(({ total }) => total) },
    skipped,
  };
}

/**
 * Task types and alerts that no worker handles, whether or not jobs wait for one.
 * @param reasons of the status, which names those for which jobs wait
 */
async function uncovered(
  { coverage }: Scope,
  tasks: readonly StoredTask[],
  reasons: readonly StatusReasonFacts[],
): Promise<Finding[]> {
  const works = new Map(
    tasks.map(({ definition: { queue, type } }) => [`${queue} ${type}`, { queue, type }] as const),
  );
  const gaps = await coverage.gaps([...works.values()]);
  const known = reasons.flatMap(({ code, queue, type = "" }) =>
    code === "NO_WORKER" ? [`${queue} ${type}`] : [],
  );
  const reported = new Set(known);
  return [...gaps.values()]
    .filter(({ queue, type, workers }) => {
      // One finding for a queue without any worker, whatever types it has.
      const name = `${queue} ${workers === 0 ? "" : type}`;
      return !reported.has(name) && reported.add(name);
    })
    .map(
      (gap): Finding => ({
        ...(gap.workers === 0 ? { code: "NO_WORKER", gap } : { code: "TYPE_UNHANDLED", gap }),
        severity: "error",
        queue: gap.queue,
      }),
    );
}
