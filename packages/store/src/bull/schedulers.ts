import { createHash } from "node:crypto";
import type { JobsOptions } from "bullmq";
import { Redis } from "ioredis";
import type { RedisClient } from "../redis/connection.js";
import { bullMeta, bullRepeatJob, bullRepeats, bullSchedulerKeys } from "./bull-keys.js";
import { loadBull } from "./load.js";

/** A recurring job that an application's own BullMQ, version 5 or 6, keeps in its `repeat` set. */
export interface BullScheduler {
  readonly queue: string;
  /** Its member of the set. */
  readonly id: string;
  /** `repeatable`: of `queue.add(name, data, { repeat })`, which version 6 refuses to read. */
  readonly kind: "scheduler" | "repeatable";
  /** BullMQ that last opened the queue: `5.81.5`. */
  readonly version?: string | undefined;
  readonly definition: BullDefinition;
  /** Its score, and the part of `jobId` after the last colon. */
  readonly score: number;
  /** UTC ms at which its job is due: the score, but for some repeatables. */
  readonly next: number;
  readonly jobId: string;
  /** Its job is to come. Without one, BullMQ never fires it again. */
  readonly alive: boolean;
  /** The hash, as stored. */
  readonly raw: Readonly<Record<string, string>>;
}

export interface BullDefinition {
  readonly name: string;
  readonly pattern?: string | undefined;
  readonly tz?: string | undefined;
  /** In ms. */
  readonly every?: number | undefined;
  /** UTC ms, as `endDate`. */
  readonly startDate?: number | undefined;
  readonly endDate?: number | undefined;
  /** Runs left of its `limit`, the one to come included. */
  readonly left?: number | undefined;
  readonly data: unknown;
  readonly opts: JobsOptions;
}

/** Hashes that are read at once. */
const CHUNK = 500;
/** Options that BullMQ itself gives to each job. */
const PER_JOB = ["jobId", "delay", "timestamp", "prevMillis", "repeatJobKey"];

/**
 * Reads the recurring jobs of BullMQ, by queue and id. Writes nothing.
 * @param prefix BullMQ's; default `bull`
 * @param queue default: all queues with this prefix, which walks through the keys of the Redis
 */
export async function readBullSchedulers(
  redis: RedisClient,
  { prefix = "bull", queue }: { prefix?: string | undefined; queue?: string | undefined },
): Promise<BullScheduler[]> {
  const queues = queue === undefined ? await queuesOf(redis, prefix) : [queue];
  const found: BullScheduler[] = [];
  for (const one of queues) {
    const base = `${prefix}:${one}:`;
    const version = (await redis.hget(bullMeta(base), "version"))?.replace(/^bullmq:/, "");
    const members = await redis.zrange(bullRepeats(base), 0, "-1", "WITHSCORES");
    const pairs = members.flatMap((id, i) => (i % 2 ? [] : [[id, Number(members[i + 1])] as const])).sort();
    for (let from = 0; from < pairs.length; from += CHUNK) {
      const read = pairs.slice(from, from + CHUNK).map(([id, score]) => readOne(redis, base, id, score));
      found.push(...(await Promise.all(read)).map((rest) => ({ queue: one, version, ...rest })));
    }
  }
  return found;
}

async function queuesOf(redis: RedisClient, prefix: string): Promise<string[]> {
  const queues = new Set<string>();
  const pattern = bullRepeats(`${prefix.replace(/[[\]*?\\]/g, "\\$&")}:*:`);
  for (const node of redis instanceof Redis ? [redis] : redis.nodes("master")) {
    let cursor = "0";
    do {
      const [next, keys] = await node.scan(cursor, "MATCH", pattern, "COUNT", 1_000, "TYPE", "zset");
      for (const key of keys) queues.add(key.slice(prefix.length + 1, -bullRepeats(":").length));
      cursor = next;
    } while (cursor !== "0");
  }
  return [...queues].sort();
}

async function readOne(
  redis: RedisClient,
  base: string,
  id: string,
  score: number,
): Promise<Omit<BullScheduler, "queue" | "version">> {
  const { scheduler, delayed } = bullSchedulerKeys(base, id);
  const raw = (await redis.hgetall(scheduler)) as Record<string, string>;
  const hash = Object.keys(raw).length > 0 ? raw : ofLegacyKey(id);
  const kind = "ic" in raw ? "scheduler" : "repeatable";
  const jobId = bullRepeatJob(kind === "repeatable" ? hashedId(id, hash.name) : id, score);
  const [[data, opts, ended], due] = await Promise.all([
    redis.hmget(`${base}${jobId}`, "data", "opts", "finishedOn"),
    redis.zscore(delayed, jobId),
  ]);
  const alive = opts != null && ended == null;
  const { Job } = await loadBull();
  // BullMQ makes the next job of this one: where the two differ, the hash is what it forgets.
  const { repeat = {}, ...job }: JobsOptions & { repeat?: Record<string, unknown> } = Job.optsFromJSON(
    opts ?? hash.opts ?? "{}",
  );
  const [limit, count] = [number(hash.limit ?? repeat["limit"]), number(repeat["count"] ?? hash.ic ?? 1)];
  return {
    id,
    kind,
    score,
    jobId,
    alive,
    raw,
    // A delayed job's score is its time and 12 bits of order.
    next: due == null ? score : Math.floor(Number(due) / 4_096),
    definition: {
      name: hash.name ?? id,
      pattern: hash.pattern || undefined,
      tz: hash.tz || undefined,
      every: number(hash.every),
      startDate: time(hash.startDate ?? repeat["startDate"]),
      endDate: time(hash.endDate),
      left: limit && limit - count! + (alive ? 1 : 0),
      data: JSON.parse(hash.data ?? data ?? "{}"),
      opts: Object.fromEntries(Object.entries(job).filter(([name]) => !PER_JOB.includes(name))),
    },
  };
}

const number = (value: unknown) => (value == null || value === "" ? undefined : Number(value));
/** A repeatable's `startDate`, as its caller wrote it. */
const time = (value: unknown) =>
  value == null || value === "" ? undefined : new Date(Number(value) || `${value}`).getTime();

/** Hash of a repeatable that BullMQ 3 or 4 wrote: its key says all, `name:id:endDate:tz:pattern`. */
function ofLegacyKey(key: string): Record<string, string> {
  const [name = key, , endDate = "", tz = "", ...rest] = key.split(":");
  const rule = rest.join(":");
  return { name, endDate, tz, [/^\d+$/.test(rule) ? "every" : "pattern"]: rule };
}

/** Part of a repeatable's job id: its key, or a digest of a key in the old form. */
function hashedId(key: string, name = ""): string {
  const md5 = (text: string) => createHash("md5").update(text).digest("hex");
  return key.split(":").length > 2 ? md5(`${name}${md5(key)}`) : key;
}
