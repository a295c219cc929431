import { createHash } from "node:crypto";
import type { JobsOptions } from "bullmq";
import { Redis } from "ioredis";
import type { RedisClient } from "../redis/connection.js";
import { scored } from "../redis/scored.js";
import {
  bullDelayed,
  bullHeldKeys,
  bullMeta,
  bullRepeatJob,
  bullRepeats,
  bullSchedulerKeys,
  bullStateKeys,
} from "./bull-keys.js";
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
  /** Its queue is paused: no worker takes a job. */
  readonly paused?: boolean;
  /** Jobs of its queue that have not ended, without those to come of its schedulers. */
  readonly waiting?: number;
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
  /** Options of its recurrence, as its job has them. */
  readonly repeat?: Readonly<Record<string, unknown>>;
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
    const [version, paused] = await redis.hmget(bullMeta(base), "version", "paused");
    const known = { queue: one, version: version?.replace(/^bullmq:/, ""), paused: paused === "1" };
    const own: BullScheduler[] = [];
    const members = await redis.zrange(bullRepeats(base), 0, "-1", "WITHSCORES");
    const pairs = scored(members).sort();
    for (let from = 0; from < pairs.length; from += CHUNK) {
      const read = pairs.slice(from, from + CHUNK).map(([id, score]) => readOne(redis, base, id, score));
      own.push(...(await Promise.all(read)).map((rest) => ({ ...known, ...rest })));
    }
    const waiting = own.length > 0 ? await openJobs(redis, base) : 0;
    const others = Math.max(0, waiting - own.filter(({ alive }) => alive).length);
    found.push(...own.map((rest) => ({ ...rest, waiting: others })));
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

/** Number of a queue's jobs that have not ended. */
async function openJobs(redis: RedisClient, base: string): Promise<number> {
  const { wait, paused, active, prioritized } = bullStateKeys(base);
  const [counts, last] = await Promise.all([
    Promise.all([
      ...[wait, paused, active].map((key) => redis.llen(key)),
      ...[prioritized, bullDelayed(base), bullHeldKeys(base).parents].map((key) => redis.zcard(key)),
    ]),
    Promise.all([wait, paused].map((key) => redis.lindex(key, -1))),
  ]);
  // With a delayed job, BullMQ 4 keeps a marker at the end of a list, which is no job.
  const markers = last.filter((id) => id?.startsWith("0:")).length;
  return counts.reduce((sum, count) => sum + count, -markers);
}

async function readOne(
  redis: RedisClient,
  base: string,
  id: string,
  score: number,
): Promise<Omit<BullScheduler, "queue" | "version">> {
  const { scheduler, delayed } = bullSchedulerKeys(base, id);
  const raw = (await redis.hgetall(scheduler)) as Record<string, string>;
  const legacy = LEGACY_KEY.exec(id)?.groups;
  const hash = Object.keys(raw).length > 0 ? raw : ofLegacyKey(id, legacy);
  const kind = "ic" in raw ? "scheduler" : "repeatable";
  const jobId =
    kind === "repeatable" && id.split(":").length > 2
      ? await digestJob(redis, base, id, legacy?.["head"] ?? "", score)
      : bullRepeatJob(id, score);
  const [[data, opts, ended, title], due] = await Promise.all([
    redis.hmget(`${base}${jobId}`, "data", "opts", "finishedOn", "name"),
    redis.zscore(delayed, jobId),
  ]);
  const alive = opts != null && ended == null;
  const { Job } = await loadBull();
  // BullMQ makes the next job of this one: where the two differ, the hash is what it forgets.
  const { repeat = {}, ...job }: JobsOptions & { repeat?: Record<string, unknown> } = Job.optsFromJSON(
    opts ?? hash.opts ?? "{}",
  );
  const [limit, count] = [number(hash.limit ?? repeat["limit"]), number(repeat["count"] ?? hash.ic ?? 1)];
  const moved = (kind === "repeatable" && number(repeat["offset"])) || 0;
  return {
    id,
    kind,
    score,
    jobId,
    alive,
    raw,
    // A delayed job's score is its time and 12 bits of order. One that began at once keeps its distance to the score.
    next: due == null ? score + moved : Math.floor(Number(due) / 4_096),
    definition: {
      name: raw["name"] ?? title ?? hash.name ?? id,
      pattern: hash.pattern || undefined,
      tz: hash.tz || (repeat["utc"] === true ? "UTC" : undefined),
      every: number(hash.every),
      startDate: time(hash.startDate ?? repeat["startDate"]),
      endDate: time(hash.endDate),
      left: limit && limit - count! + (alive ? 1 : 0),
      data: JSON.parse(hash.data ?? data ?? "{}"),
      repeat,
      opts: Object.fromEntries(Object.entries(job).filter(([name]) => !PER_JOB.includes(name))),
    },
  };
}

const number = (value: unknown) => (value == null || value === "" ? undefined : Number(value));
/** A repeatable's `startDate`, as its caller wrote it. */
const time = (value: unknown) =>
  value == null || value === "" ? undefined : new Date(Number(value) || `${value}`).getTime();

/** Key of a repeatable that BullMQ 3 or 4 wrote: name, id of its job, end, zone, rule. Names and ids may have colons. */
const LEGACY_KEY = /^(?<head>.*:.*):(?<endDate>\d*):(?<tz>[^:]*):(?<rule>[^:]*)$/s;

/** Hash of such a repeatable, which has none of its own. */
function ofLegacyKey(key: string, legacy: Record<string, string> | undefined): Record<string, string> {
  if (!legacy) return { name: key };
  const { head = "", endDate = "", tz = "", rule = "" } = legacy;
  return { name: head.replace(/:[^:]*$/, ""), endDate, tz, [/^\d+$/.test(rule) ? "every" : "pattern"]: rule };
}

/** Jobs that are due at one moment, of which one may be that of a repeatable. */
const SAME_TIME = 1_000;

/**
 * The job to come of a repeatable whose key has colons: its id is a digest of the name, an id, and the key. BullMQ 4 takes the id of the
 * job, 5 that of its data, and a queue may choose the digest; but the job names its key.
 */
async function digestJob(
  redis: RedisClient,
  base: string,
  key: string,
  head: string,
  score: number,
): Promise<string> {
  const md5 = (text: string) => createHash("md5").update(text).digest("hex");
  const idOf = (name: string, id: string) => bullRepeatJob(md5(`${name}${id}${md5(key)}`), score);
  const colons = [...head.matchAll(/:/g)].map(({ index }) => index);
  const splits = colons.map((at) => [head.slice(0, at), head.slice(at + 1)] as const).reverse();
  const likely = splits.flatMap(([name, id]) => [idOf(name, id), idOf(name, "")]);
  for (const one of likely) if (await redis.exists(`${base}${one}`)) return one;
  const [from, to] = [score * 4_096, (score + 1) * 4_096 - 1];
  for (const one of await redis.zrangebyscore(bullDelayed(base), from, to, "LIMIT", 0, SAME_TIME))
    if ((await redis.hget(`${base}${one}`, "rjk")) === key) return one;
  return likely[0] ?? bullRepeatJob(key, score);
}
