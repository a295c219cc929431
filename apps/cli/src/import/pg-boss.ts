import { type Imported, Notes, settle } from "@carillon/ops/internal";
import { jsonOf, type Row, readRows, textOf } from "./rows.js";
import type { Source, SourceOptions, Task } from "./source.js";

interface Options {
  readonly retryLimit?: number;
  readonly retryDelay?: number;
  readonly retryBackoff?: boolean;
  readonly expireInSeconds?: number;
  readonly [name: string]: unknown;
}

/** Rows of `pgboss.schedule`. */
export const pgBoss: Source = (text, options) => settle(readRows(text).map((row) => convert(row, options)));

function convert(row: Row, options: SourceOptions): Imported {
  const notes = new Notes();
  const [name = "", key, cron = ""] = [textOf(row["name"]), textOf(row["key"]), textOf(row["cron"])];
  const timezone = textOf(row["timezone"]) ?? options.timezone ?? "UTC";
  const {
    retryLimit = 2,
    retryDelay = 0,
    retryBackoff = false,
    expireInSeconds,
    ...rest
  } = (jsonOf(row["options"]) ?? {}) as Options;
  // Stored with the options, and a column of its own.
  const { tz: _, key: __, ...unknown } = rest;
  for (const [option, value] of Object.entries(unknown))
    notes.add(
      "DROPPED",
      `The option ${option}: ${JSON.stringify(value)} has no counterpart, or another meaning: see docs/moving.md.`,
    );
  const task: Task = {
    id: notes.name("id", key ? `${name}-${key}` : name),
    type: notes.name("type", name),
    queue: notes.name("queue", name),
    schedule: { cron, timezone, dialect: "cron-parser" },
    payload: jsonOf(row["data"]) ?? {},
    overlap: "allow",
    // It enqueues only what is due within its minute.
    catchUp: "skip",
    ...(retryLimit > 0 && {
      retry: {
        attempts: Math.min(retryLimit + 1, 100),
        backoff: retryBackoff ? ("exponential" as const) : ("fixed" as const),
        delay: retryDelay > 0 ? `${retryDelay}s` : "1ms",
      },
    }),
    ...(expireInSeconds && { timeLimit: `${expireInSeconds}s` }),
  };
  return {
    from: key ? `${name}/${key}` : name,
    task,
    theirs: { library: "cron-parser 5", cron, timezone },
    notes: notes.list,
  };
}
