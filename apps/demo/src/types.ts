import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { mkdir, readdir, stat, statfs, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { setTimeout as pause } from "node:timers/promises";
import { createGzip } from "node:zlib";
import { type Client, type ConnectionSpec, defineTask } from "@carillon/sdk";
import { connect } from "@carillon/sdk/internal";
import { z } from "zod";

/** Dependencies of the demo's handlers. */
export interface Surroundings {
  client: Client;
  connection: ConnectionSpec;
  /** Folder for reports and backups. */
  folder: string;
}

/** The task types of the demo: small, but each does what it says. */
export function demoTypes({ client, connection, folder }: Surroundings) {
  const diskUsage = defineTask("disk-usage", {
    queue: "ops",
    payload: z.object({ path: z.string(), warnAbove: z.number().min(0).max(1) }),
    async handler({ path, warnAbove }, { log }) {
      const disk = await statfs(path);
      const used = 1 - disk.bavail / disk.blocks;
      if (used > warnAbove) log(`disk is ${percent(used)} full`, { path });
      return { used: percent(used), freeGiB: Math.round((disk.bavail * disk.bsize) / 2 ** 30) };
    },
  });

  const redisCheck = defineTask("redis-check", {
    queue: "ops",
    payload: z.object({}),
    async handler(_payload, { log, signal }) {
      const redis = connect(connection, "safe");
      try {
        // A handler that waits for ever keeps its worker from stopping.
        await once(redis, "ready", { signal: AbortSignal.any([signal, AbortSignal.timeout(5_000)]) });
        const info = await redis.info();
        const field = (name: string) => new RegExp(`^${name}:(.*?)\r?$`, "m").exec(info)?.[1] ?? "?";
        const fragmentation = Number(field("mem_fragmentation_ratio"));
        if (fragmentation > 1.5 && Number(field("used_memory")) > 100 * 2 ** 20) {
          await redis.call("MEMORY", "PURGE");
          log("memory purged", { fragmentation });
        }
        return {
          memory: field("used_memory_human"),
          clients: field("connected_clients"),
          aof: field("aof_enabled"),
        };
      } finally {
        redis.disconnect();
      }
    },
  });

  const httpCheck = defineTask("http-check", {
    queue: "ops",
    payload: z.object({ url: z.url(), timeout: z.number().int().positive().default(3_000) }),
    async handler({ url, timeout }, { signal }) {
      const begun = performance.now();
      const response = await fetch(url, { signal: AbortSignal.any([signal, AbortSignal.timeout(timeout)]) });
      await response.arrayBuffer();
      if (!response.ok) throw new Error(`${url} answered ${response.status}`);
      return { status: response.status, ms: Math.round(performance.now() - begun) };
    },
  });

  /** Takes longer than its interval on purpose, to show the overlap policy. */
  const backup = defineTask("backup", {
    queue: "backups",
    payload: z.object({ source: z.string(), bytesPerSecond: z.number().int().positive() }),
    async handler({ source, bytesPerSecond }, { occurrence, signal, log }) {
      await mkdir(join(folder, "backups"), { recursive: true });
      const target = join(folder, "backups", `${occurrence.nominal}.ndjson.gz`);
      const files = await listFiles(source, 400);
      const bytes = { read: 0 };
      const lines = Readable.from(throttled(files, bytesPerSecond, bytes, signal));
      await pipeline(lines, createGzip(), createWriteStream(target));
      log("backup written", { target });
      return { files: files.length, bytes: bytes.read };
    },
  });

  /** One task for each tenant, all of one type; each sees only the tenant's own data. */
  const tenantDigest = defineTask("tenant-digest", {
    queue: "tenants",
    payload: z.object({ tenant: z.string() }),
    async handler({ tenant }, { occurrence }) {
      const { tasks } = await client.list({ owner: tenant });
      const runs = await client.runs.list(
        { queue: occurrence.queue, owner: tenant, id: occurrence.task },
        { limit: 50 },
      );
      const digest = { tenant, at: occurrence.nominal, tasks: tasks.length, runs: runs.length };
      await mkdir(join(folder, "digests"), { recursive: true });
      await writeFile(join(folder, "digests", `${tenant}.json`), `${JSON.stringify(digest, null, 2)}\n`);
      return digest;
    },
  });

  /** Counts the lines of all digests, as a warehouse would. */
  const warehouse = defineTask("warehouse", {
    queue: "reports",
    payload: z.object({}),
    async handler() {
      const files = await listFiles(join(folder, "digests"), 1_000);
      return { digests: files.length, bytes: files.reduce((sum, { size }) => sum + size, 0) };
    },
  });

  const welcome = defineTask("welcome", {
    queue: "ops",
    payload: z.object({ started: z.number() }),
    async handler({ started }, { occurrence, log }) {
      const seconds = Math.round((occurrence.enqueued - started) / 1000);
      log(`this one-off was planned ${seconds} s ago; it never fires again`);
      return { seconds };
    },
  });

  return { diskUsage, redisCheck, httpCheck, backup, tenantDigest, warehouse, welcome };
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}

async function listFiles(folder: string, most: number): Promise<{ path: string; size: number }[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).slice(0, most);
  return Promise.all(
    files.map(async (entry) => {
      const path = join(entry.parentPath, entry.name);
      return { path, size: (await stat(path).catch(() => ({ size: 0 }))).size };
    }),
  );
}

/** Lines of the inventory at a limited rate: a backup should not starve the system it backs up. */
async function* throttled(
  files: { path: string; size: number }[],
  bytesPerSecond: number,
  bytes: { read: number },
  signal: AbortSignal,
): AsyncGenerator<string> {
  for (const file of files) {
    const line = `${JSON.stringify(file)}\n`;
    bytes.read += line.length;
    yield line;
    await pause((line.length / bytesPerSecond) * 1000, undefined, { signal });
  }
}
