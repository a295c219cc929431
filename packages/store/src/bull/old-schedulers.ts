import type { Observation } from "../observations.js";
import type { RedisClient } from "../redis/connection.js";
import { bullEvents, bullRepeatJob, bullSchedulerKeys } from "./bull-keys.js";

/** A Job Scheduler of BullMQ, version 5 or 6, and where it is: in any Redis, with any prefix. */
export interface OldScheduler {
  readonly redis: RedisClient;
  /** BullMQ's prefix; its default is `bull`. */
  readonly prefix: string;
  readonly queue: string;
  readonly id: string;
}

/** A scheduler as it is stored. */
export interface FoundScheduler {
  /** Its next time, UTC ms. */
  readonly next: number;
  /** Its hash: `name`, `pattern`, `tz`, `every`, `opts`, `data`, … */
  readonly definition: Readonly<Record<string, string>>;
  /** Time at which the job of its next time was made; undefined: there is none, or it is no longer delayed. */
  readonly made: string | undefined;
}

/** Record of a scheduler that was taken over, with what is needed to give it back. Kept next to its queue's keys. */
export interface Receipt {
  /** Names this one: no other receipt of the scheduler has it. */
  readonly token: string;
  /** Time of the change, and the first time that is ours; UTC ms. */
  readonly at: number;
  readonly next: number;
  /** Occurrences that the task had enqueued, or would have. */
  readonly fired: number;
  readonly definition: Readonly<Record<string, string>>;
  readonly job: Readonly<Record<string, string>>;
}

const COMMON = `
local id, token, next = ARGV[1], ARGV[2], ARGV[3]
local job = "repeat:" .. id .. ":" .. next
local kept = redis.call("GET", KEYS[6])
local score = redis.call("ZSCORE", KEYS[1], id)
`;

/**
 * Removes a scheduler and its next job, and writes the receipt, in one step. Only if its next time and its job are those that the
 * caller has seen, and the job is delayed: a request that arrives late finds another job.
 *
 * ARGV: id, token, next time, time at which its job was made, time, fired
 * Returns: { "OK" | "DONE" (removed before), receipt } | { "MOVED" } | { "GONE" }
 */
export const TAKE = `${COMMON}
if not score then return { kept and "DONE" or "GONE", kept or "" } end
if score ~= next or not redis.call("ZSCORE", KEYS[3], job) or redis.call("HGET", KEYS[4], "timestamp") ~= ARGV[4] then return { "MOVED" } end
local function fields(key)
  local flat, hash = redis.call("HGETALL", key), {}
  for i = 1, #flat, 2 do hash[flat[i]] = flat[i + 1] end
  return hash
end
local receipt = cjson.encode({ token = token, at = ARGV[5], next = next, fired = ARGV[6], definition = fields(KEYS[2]), job = fields(KEYS[4]) })
redis.call("SET", KEYS[6], receipt)
redis.call("ZREM", KEYS[1], id)
redis.call("ZREM", KEYS[3], job)
redis.call("DEL", KEYS[2], KEYS[4])
redis.call("XADD", KEYS[5], "*", "event", "removed", "jobId", job, "prev", "delayed")
return { "OK", receipt }
`;

/**
 * Puts a scheduler back with its next job, and deletes the receipt, in one step.
 *
 * ARGV: id, token of the receipt, next time, fields of the scheduler and of the job as JSON
 * Returns: { "OK" } | { "THERE" } | { "GONE" } (there is another receipt, or none)
 */
const GIVE_BACK = `${COMMON}
if score then return { "THERE" } end
if not kept or cjson.decode(kept).token ~= token then return { "GONE" } end
redis.call("HSET", KEYS[2], unpack(cjson.decode(ARGV[4])))
redis.call("HSET", KEYS[4], unpack(cjson.decode(ARGV[5])))
redis.call("ZADD", KEYS[1], next, id)
redis.call("ZADD", KEYS[3], next * 4096, job)
redis.call("DEL", KEYS[6])
local first = redis.call("ZRANGE", KEYS[3], 0, 0, "WITHSCORES")[2]
redis.call("ZADD", KEYS[7], math.floor(first / 4096), "1")
redis.call("XADD", KEYS[5], "*", "event", "delayed", "jobId", job, "delay", next)
return { "OK" }
`;

/**
 * Gives a receipt another token, so that requests with the one before have no effect any more.
 *
 * ARGV: id, token, next time, new token
 */
const RENEW = `${COMMON}
local receipt = kept and cjson.decode(kept)
if not receipt or receipt.token ~= token then return { "GONE" } end
receipt.token = ARGV[4]
redis.call("SET", KEYS[6], cjson.encode(receipt))
return { "OK" }
`;

/** @returns undefined: there is none */
export async function findScheduler(old: OldScheduler): Promise<FoundScheduler | undefined> {
  const { redis, id } = old;
  const keys = keysOf(old);
  const [score, definition] = await Promise.all([
    redis.zscore(keys.repeat, id),
    redis.hgetall(keys.scheduler),
  ]);
  if (score === null) return undefined;
  const job = bullRepeatJob(id, score);
  const [made, delayed] = await Promise.all([
    redis.hget(keys.job(score), "timestamp"),
    redis.zscore(keys.delayed, job),
  ]);
  return { next: Number(score), definition, made: (delayed !== null && made) || undefined };
}

export async function readReceipt(old: OldScheduler): Promise<Receipt | undefined> {
  const text = await old.redis.get(keysOf(old).receipt);
  return text === null ? undefined : decode(text);
}

/**
 * Removes a scheduler if nothing has changed since it was found.
 *
 * @param fired of the task that takes over @param script for tests
 * @returns undefined: it fired meanwhile, or is firing
 */
export async function takeOver(
  old: OldScheduler,
  { next, made }: FoundScheduler,
  { token, fired, script = TAKE }: { token: string; fired: number; script?: string },
): Promise<Receipt | undefined> {
  const [word, receipt] = await evaluate(old, next, script, [
    token,
    String(next),
    made ?? "",
    String(Date.now()),
    String(fired),
  ]);
  return word === "OK" || word === "DONE" ? decode(receipt as string) : undefined;
}

/** Makes requests to give back that are still under way useless. @returns undefined: there is another receipt, or none */
export async function renewReceipt(
  old: OldScheduler,
  receipt: Receipt,
  token: string,
): Promise<Receipt | undefined> {
  const [word] = await evaluate(old, receipt.next, RENEW, [receipt.token, String(receipt.next), token]);
  return word === "OK" ? { ...receipt, token } : undefined;
}

/**
 * Puts a scheduler back as its receipt has it.
 *
 * @param next its next time, UTC ms; if that is past, its job is due at once @param fired of the task that gives back
 * @returns false: there is another receipt, or none. A scheduler that is there already stays as it is
 */
export async function giveBack(
  old: OldScheduler,
  receipt: Receipt,
  { next, fired }: { next: number; fired: number },
): Promise<boolean> {
  const now = Date.now();
  const delay = Math.max(0, next - now);
  const opts = JSON.parse(receipt.job.opts ?? "{}");
  const count = fired - receipt.fired;
  opts.delay = delay;
  opts.jobId = bullRepeatJob(old.id, next);
  opts.prevMillis = next;
  opts.repeat = { ...opts.repeat, count: (opts.repeat?.count ?? 0) + count };
  // Another one than that of the job that was removed, by which a late request to remove it would know it.
  const timestamp = String(Math.max(now, Number(receipt.job.timestamp) + 1));
  const job = { ...receipt.job, timestamp, opts: JSON.stringify(opts), delay: String(delay) };
  const definition = { ...receipt.definition, ic: String(Number(receipt.definition.ic ?? 1) + count) };
  const flat = [definition, job].map((fields) => JSON.stringify(Object.entries(fields).flat()));
  const [word] = await evaluate(old, next, GIVE_BACK, [receipt.token, String(next), ...flat]);
  return word !== "GONE";
}

const ACTIVE = /^repeat:(.+):(\d{1,15})$/;
/** Entries in one read: twice as many as BullMQ keeps. */
const EVENTS = 20_000;

/**
 * The starts of the jobs of a queue's schedulers, by scheduler, since an entry of its event stream, which BullMQ trims to some 10,000 events.
 *
 * @param after `0`: from the oldest entry, of twice as many
 */
export async function firedSince(
  { redis, prefix, queue }: Omit<OldScheduler, "id">,
  after: string,
): Promise<{ fired: Map<string, Observation[]>; last: string }> {
  const stream = bullEvents(`${prefix}:${queue}:`);
  const entries = (await redis.xrevrange(stream, "+", `(${after}`, "COUNT", EVENTS)).reverse();
  const fired = new Map<string, Observation[]>();
  for (const [entry, fields] of entries) {
    const value = (name: string) => fields[fields.findIndex((field, i) => i % 2 === 0 && field === name) + 1];
    const [, id, nominal] = (value("event") === "active" && ACTIVE.exec(value("jobId") ?? "")) || [];
    if (id === undefined) continue;
    const times = fired.get(id) ?? [];
    fired.set(id, times);
    times.push({ nominal: Number(nominal), at: Number.parseInt(entry, 10) });
  }
  return { fired, last: entries.at(-1)?.[0] ?? after };
}

function keysOf({ prefix, queue, id }: Omit<OldScheduler, "redis">) {
  const bull = `${prefix}:${queue}:`;
  return {
    ...bullSchedulerKeys(bull, id),
    job: (next: number | string) => `${bull}${bullRepeatJob(id, next)}`,
    receipt: `${bull}carillon:${id}`,
  };
}

async function evaluate(old: OldScheduler, next: number, script: string, args: string[]): Promise<string[]> {
  const { repeat, scheduler, delayed, job, events, receipt, marker } = keysOf(old);
  const keys = [repeat, scheduler, delayed, job(next), events, receipt, marker];
  return (await old.redis.eval(script, keys.length, ...keys, old.id, ...args)) as string[];
}

function decode(text: string): Receipt {
  const { at, next, fired, ...rest } = JSON.parse(text);
  return { ...rest, at: Number(at), next: Number(next), fired: Number(fired) };
}
