import { operatorOf } from "@carillon/ops";
import type { Client, PutResult } from "@carillon/sdk";
import type { demoTypes } from "./types.js";

/** Keeps the runs of more than an hour. */
const AN_HOUR = { successes: 1_000 };
const TENANTS = ["acme", "globex", "initech"] as const;

/** Stores the demo's tasks. Idempotent: a second start finds them as they are. */
export async function seed(
  client: Client,
  types: ReturnType<typeof demoTypes>,
  { consoleUrl, project }: { consoleUrl: string; project: string },
): Promise<PutResult[]> {
  const now = Date.now();
  const puts: Promise<PutResult>[] = [
    client.put(types.diskUsage, {
      id: "disk-usage",
      schedule: { every: "10s" },
      retention: AN_HOUR,
      payload: { path: project, warnAbove: 0.9 },
      description: "How full is the disk under this project?",
    }),
    client.put(types.redisCheck, {
      id: "redis-check",
      schedule: { cron: "*/15 * * * * *" },
      retention: AN_HOUR,
      payload: {},
      description: "Redis INFO, and a memory purge where it is fragmented",
    }),
    client.put(types.httpCheck, {
      id: "console-check",
      schedule: { every: "5s" },
      payload: { url: `${consoleUrl}/health` },
      description: "Does the console answer?",
    }),
    client.put(types.backup, {
      id: "backup",
      schedule: { every: "10s" },
      overlap: "skip",
      payload: { source: `${project}/packages`, bytesPerSecond: 2_000 },
      description: "An inventory, written slowly: every second occurrence meets a run that is still going",
    }),
    client.put(types.welcome, {
      id: "welcome",
      schedule: { at: new Date(now + 20_000).toISOString() },
      payload: { started: now },
      description: "A one-off, 20 seconds after the start",
    }),
  ];
  for (const [i, tenant] of TENANTS.entries()) {
    puts.push(
      client.put(types.tenantDigest, {
        id: "digest",
        owner: tenant,
        schedule: { cron: `${i * 5}/20 * * * * *`, timezone: "Europe/Berlin" },
        payload: { tenant },
        tags: ["tenant"],
      }),
    );
  }
  puts.push(...toBeFound(client, types));
  const made = await Promise.all(puts);
  await Promise.all(made.map((put) => fillPast(client, put)));
  return made;
}

const HOUR = 3_600_000;
const PAST: ReadonlySet<string> = new Set(["disk-usage", "redis-check"]);

/** Runs the past hour of a new task, so that the console's board has one: the runs are real, and recorded as a backfill. */
async function fillPast(client: Client, { outcome, task }: PutResult): Promise<void> {
  if (outcome !== "created" || !PAST.has(task.id)) return;
  const { created } = await client.get(task);
  const range = { from: created - HOUR, to: created - 1, overlap: "allow" } as const;
  await operatorOf(client).backfills.start({ ...task, ...range }, { by: "demo" });
}

/** Real faults that the console's start page shows. They are created once, so that fixed ones stay fixed. */
function toBeFound(client: Client, types: ReturnType<typeof demoTypes>): Promise<PutResult>[] {
  const { httpCheck, warehouse, tenantDigest } = types;
  const once = async (put: Promise<PutResult>, make: (made: PutResult) => Promise<unknown>) => {
    const made = await put;
    if (made.outcome === "created") await make(made);
    return made;
  };
  return [
    client.put(httpCheck, {
      id: "partner-check",
      schedule: { every: "30s" },
      // A port on which nothing listens; `fetch` refuses some others by itself.
      payload: { url: "http://127.0.0.1:2/health" },
      description: "Fails: the partner's server is down",
    }),
    client.put({
      id: "invoices",
      owner: "acme",
      type: "pdf-render",
      queue: "billing",
      schedule: { cron: "* * * * *" },
      payload: { tenant: "acme" },
      description: "Waits: no worker knows its type",
    }),
    once(
      client.put(warehouse, {
        id: "warehouse",
        schedule: { every: "20s" },
        overlap: "queue-one",
        payload: {},
        description: "Late: its queue is paused",
      }),
      () =>
        operatorOf(client).queues.pause({ queue: "reports", note: "the warehouse is moving" }, { by: "ops" }),
    ),
    once(
      client.put(tenantDigest, {
        id: "export",
        owner: "globex",
        schedule: { calendar: "Mon..Fri *-*-* 06:00", timezone: "America/New_York" },
        payload: { tenant: "globex" },
        tags: ["tenant"],
        description: "Paused, with a note",
      }),
      ({ task }) => client.pause(task, { note: "globex migrates its data until Friday", by: "ops" }),
    ),
  ];
}
