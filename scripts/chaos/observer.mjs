// Reads Redis throughout a run, because some data are deleted by its end. Checks that generations and cursors only
// grow, and that no task has two live runs if its policy forbids that; keeps ledger entries, of which Redis keeps 50
// for each task.
import { pause } from "../lib/nodes.mjs";
import { ledgerEntry } from "./evidence.mjs";
import { monotonic } from "./failpoint.mjs";

/** One script, so that all data are of one moment. A run is live while its job exists and is not finished. */
const LOOK = `
local ours, bull, out = ARGV[1], ARGV[2], {}
redis.call("DEL", KEYS[1] .. ":none") -- nothing; and a replica, which may lag, refuses it
for _, entry in ipairs(redis.call("ZRANGE", KEYS[1], 0, -1)) do
  local name = string.match(entry, "%S+")
  local task = redis.call("HMGET", ours .. "t:" .. name, "gen", "cursor", "overlap", "created", "open", "rev")
  local live = {}
  if task[3] ~= "allow" then
    local ids = redis.call("ZRANGE", ours .. "open:" .. name, 0, -1)
    -- One alone is named by the task.
    if task[5] and task[5] ~= "" and task[5] ~= "*" then ids[#ids + 1] = task[5] end
    for _, set in ipairs({ "hist:", "fail:" }) do
      for _, id in ipairs(redis.call("ZREVRANGE", ours .. set .. name, 0, 4)) do ids[#ids + 1] = id end
    end
    for _, id in ipairs(ids) do
      local job = redis.call("HMGET", bull .. id, "timestamp", "finishedOn")
      if job[1] and not job[2] then live[#live + 1] = id end
    end
  end
  local ledger = ARGV[3] == "1" and redis.call("LRANGE", ours .. "ledger:" .. name, 0, -1) or {}
  out[#out + 1] = { name, task[1] or "", task[2] or "", live, ledger, task[4] or string.sub(task[6] or "", 1, -4) }
end
return { redis.call("INFO", "replication"), out }`;

const EVERY = 400;
/** Number of reads after which the ledger is read too. */
const LEDGER_EVERY = 5;
/** Ledger entries of this many ms before a failover that cannot be traced may be lost with it. Longer than a failover takes. */
const IN_DOUBT = 30_000;
/**
 * Time in ms for which a master that was replaced may still answer after the new one did: it was frozen, or has not learnt
 * of it.
 */
const LINGERS = 15_000;

/**
 * A moment in a master's replication history, as `INFO replication` reports it. `parent` is the history that it
 * continues, and `until` the first offset of that one that it does not have.
 */
function pointOf(info) {
  const field = (name) => new RegExp(`^${name}:(.*?)\\r?$`, "m").exec(info)?.[1];
  return {
    id: field("master_replid"),
    offset: Number(field("master_repl_offset")),
    parent: field("master_replid2"),
    until: Number(field("second_repl_offset")),
  };
}

export class Observer {
  #servers;
  #namespace;
  #queues;
  #onFailover;
  /** By queue: the history of the last read, and the reads of it. */
  #histories = new Map();
  /** By queue and name. */
  #seen = new Map();
  #running = true;
  #done;
  #inDoubt = false;
  /** Queues that have not been read since an ordered failover. */
  #suspect = new Set();
  #wentBack = 0;
  looks = 0;
  /** @type {string[]} */
  regressions = [];
  /** @type {Set<string>} */
  overlaps = new Set();
  /** By queue and name: entries by reason and beginning. */
  ledgers = new Map();
  /**
   * Replicas that took over, by queue. Writes that were acknowledged between `from` and `to`, on the monotonic clock,
   * may be lost.
   * @type {{ queue: string, from: number, to: number, ordered: boolean }[]}
   */
  failovers = [];

  /** @param {(failover: any) => void} [onFailover] */
  constructor(servers, namespace, queues, onFailover = () => {}) {
    this.#servers = servers;
    this.#namespace = namespace;
    this.#queues = queues;
    this.#onFailover = onFailover;
    this.#done = this.#run();
  }

  /**
   * Set to true before a failover and to false after it: meanwhile, reads may reach the old master.
   * @param {boolean} now
   */
  redisMayLose(now) {
    this.#inDoubt = now;
    if (!now) for (const queue of this.#queues) this.#suspect.add(queue);
  }

  /** Call it when the clock of Redis is put back, with the ms. */
  clockGoesBack(ms) {
    this.#wentBack += ms;
  }

  async #run() {
    for (let round = 0; this.#running; round++) {
      // If Redis is down or refuses, the next read retries.
      for (const queue of this.#queues) await this.#look(queue, round % LEDGER_EVERY === 0).catch(() => {});
      await pause(EVERY);
    }
  }

  async #look(queue, withLedger) {
    const tag = `{${this.#namespace}:${queue}}`;
    const mono = monotonic();
    const [info, found] = await this.#servers.admin.eval(
      ...[LOOK, 1, `${tag}:~tasks`, `${tag}:~`, `${tag}:${queue}:`, withLedger ? "1" : "0"],
    );
    this.looks += 1;
    const point = pointOf(info);
    this.#follow(queue, point, mono);
    for (const [name, gen, cursor, live, ledger, created] of found) {
      // While a slot moves, the task may be on the other master already: this read is inconclusive.
      if (!gen) continue;
      const key = `${queue} ${name}`;
      this.#compare(key, { gen: BigInt(gen), cursor: Number(cursor), created, offset: point.offset });
      if (live.length > 1) this.overlaps.add(`${key}: ${[...live].sort().join(" and ")} are live at once`);
      if (withLedger) this.#keep(key, ledger.map(ledgerEntry), point.offset);
    }
  }

  /** Forgets reads of a history that the present one does not continue. */
  #follow(queue, { id, offset, parent, until }, mono) {
    const before = this.#histories.get(queue);
    const suspect = this.#suspect.delete(queue) || this.#inDoubt;
    if (before?.id === id) {
      before.looks.push({ mono, offset });
      return;
    }
    this.#histories.set(queue, { id, looks: [{ mono, offset }] });
    if (!before) return;
    const continued = parent === before.id;
    // Another history without a failover: a single server restarted or was a replica for a moment, or the slot moved.
    // Nothing is lost.
    const alone = this.#servers.topology === "single";
    if (alone || (!continued && !suspect)) return this.#forget(queue, () => true);
    const last = before.looks.findLast((look) => continued && look.offset < until);
    const from = continued ? last?.mono : before.looks.at(-1).mono - IN_DOUBT;
    const failover = { queue, from: from ?? 0, to: mono + LINGERS, ordered: suspect };
    this.failovers.push(failover);
    this.#onFailover(failover);
    const survives = (record) => record.offset < until;
    const isOld = ({ at }) => at !== undefined && at < Date.now() - IN_DOUBT;
    this.#forget(queue, continued ? survives : isOld);
  }

  /** Forgets the reads of a queue, except those that are certain. Offsets of another history have no meaning. */
  #forget(queue, isKept) {
    const sift = (records, key, record) => {
      if (isKept(record)) record.offset = -1;
      else records.delete(key);
    };
    for (const [key, seen] of this.#seen) if (key.startsWith(`${queue} `)) sift(this.#seen, key, seen);
    for (const [key, kept] of this.ledgers) {
      if (key.startsWith(`${queue} `)) for (const [id, entry] of kept) sift(kept, id, entry);
    }
  }

  #compare(key, now) {
    const before = this.#seen.get(key);
    this.#seen.set(key, now);
    if (!before) return;
    const problems = [];
    const same = now.created === before.created;
    // A task that was deleted and put again starts at the clock of Redis: above its old generation, unless the clock
    // was put back meanwhile.
    const lowest = same ? before.gen : before.gen - BigInt(this.#wentBack * 1_000);
    if (now.gen < lowest) problems.push(`${key}: generation ${before.gen}, then ${now.gen}`);
    if (same && now.cursor < before.cursor)
      problems.push(`${key}: cursor ${before.cursor}, then ${now.cursor}`);
    this.regressions.push(...problems);
  }

  #keep(key, entries, offset) {
    const kept = this.ledgers.get(key) ?? new Map();
    this.ledgers.set(key, kept);
    for (const entry of entries) {
      const id = `${entry.reason} ${entry.from}`;
      // An entry grows while nothing else is decided.
      if ((kept.get(id)?.to ?? Number.NEGATIVE_INFINITY) < entry.to) kept.set(id, { ...entry, offset });
    }
  }

  async stop() {
    this.#running = false;
    await this.#done;
    for (const queue of this.#queues) await this.#look(queue, true);
  }
}
