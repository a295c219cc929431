import type { Client, PutResult } from "@carillon/sdk";
import type { demoTypes } from "./types.js";

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
      payload: { path: project, warnAbove: 0.9 },
      description: "How full is the disk under this project?",
    }),
    client.put(types.redisCheck, {
      id: "redis-check",
      schedule: { cron: "*/15 * * * * *" },
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
  return Promise.all(puts);
}
