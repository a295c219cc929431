// Looks at Redis all through a run, because some of it is gone at the end: generations and cursors only grow, a task never has two
// live runs where its policy forbids that, and what the ledger said (it keeps 50 entries a task).
import { pause } from "../measure/nodes.mjs";
import { ledgerEntry } from "./evidence.mjs";
import { monotonic } from "./failpoint.mjs";

/** In one script, so that all is of one moment. A run lives while its job is there and not finished. */
const LOOK = `
local ours, bull, out = ARGV[1], ARGV[2], {}
redis.call("DEL", KEYS[1] .. ":none") -- nothing; and a replica, which may lag, refuses it
for _, entry in ipairs(redis.call("ZRANGE", KEYS[1], 0, -1)) do
  local name = string.match(entry, "%S+")
  local task = redis.call("HMGET", ours .. "t:" .. name, "gen", "cursor", "overlap", "created", "open")
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
  out[#out + 1] = { name, task[1] or "", task[2] or "", live, ledger, task[4] or "" }
end
return { redis.call("INFO", "replication"), out }`;

const EVERY = 400;
/** The ledger is read with each n-th look. */
const LEDGER_EVERY = 5;
/** Ledger entries of this many ms before a failover that cannot be traced may be lost with it. Longer than a failover takes. */
const IN_DOUBT = 30_000;
/** A master that was replaced may answer for this long after the new one did, in ms: it was frozen, or nobody has told it. */
const LINGERS = 15_000;

/**
 * A moment in a master's replication history, as `INFO replication` reports it. `parent` is the history that it continues, and `until`
 * the first offset of that one that it does not have.
 */
function pointOf(info) {
  const field = (name) => new RegExp(`^${name}:(.*?)\\r?$`, "m").exec(info)?.[1];
  return {
    ...{ id: field("master_replid"), offset: Number(field("master_repl_offset")) },
    ...{ parent: field("master_replid2"), until: Number(field("second_repl_offset")) },
  };
}

export class Observer {
  #servers;
  #namespace;
  #queues;
  #onFailover;
  /** By queue: the history that was read last, and the looks at it. */
  #histories = new Map();
  /** By queue and name. */
  #seen = new Map();
  #running = true;
  #done;
  #inDoubt = false;
  /** Queues that have not been read since a failover that was ordered. */
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
   * Replicas that took over, by queue. Writes that were acknowledged between `from` and `to`, on the monotonic clock, may be lost.
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

  /** From `true` to `false` a failover is under way: what is read may be of the old master. @param {boolean} now */
  redisMayLose(now) {
    this.#inDoubt = now;
    if (!now) for (const queue of this.#queues) this.#suspect.add(queue);
  }

  /** The clock of Redis is put back, by so many ms. */
  clockGoesBack(ms) {
    this.#wentBack += ms;
  }

  async #run() {
    for (let round = 0; this.#running; round++) {
      // If Redis is down or refuses, the next look reads it.
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
      // While a slot moves, a task may be with the other master already: this look says nothing of it.
      if (!gen) continue;
      const key = `${queue} ${name}`;
      this.#compare(key, { gen: BigInt(gen), cursor: Number(cursor), created, offset: point.offset });
      if (live.length > 1) this.overlaps.add(`${key}: ${[...live].sort().join(" and ")} are live at once`);
      if (withLedger) this.#keep(key, ledger.map(ledgerEntry), point.offset);
    }
  }

  /** Forgets what was read of a history and is not part of the one that continues it. */
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
    // Another history without a failover: a single server restarted or was a replica for a moment, or the slot moved. Nothing is lost.
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

  /** Forgets what was read of a queue, except what is kept: that is certain from now on. Offsets of another history mean nothing. */
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
    // Deleted and put again it starts at the clock of Redis: above where it was, unless that was put back meanwhile.
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
