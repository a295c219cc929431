// Looks at Redis all through a run, because some of it is gone at the end: generations and cursors only grow, a task never has two
// live runs where its policy forbids that, and what the ledger said (it keeps 50 entries a task).
import { pause } from "../measure/nodes.mjs";
import { ledgerEntry } from "./evidence.mjs";

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
return out`;

const EVERY = 400;
/** The ledger is read with each n-th look. */
const LEDGER_EVERY = 5;
/** Records of this many ms before the end of a failover may be lost with it. Longer than a failover takes. */
const IN_DOUBT = 30_000;

export class Observer {
  #servers;
  #namespace;
  #queues;
  #seen = new Map();
  #running = true;
  #done;
  #inDoubt = false;
  #wentBack = 0;
  looks = 0;
  /** @type {string[]} */
  regressions = [];
  /** @type {Set<string>} */
  overlaps = new Set();
  /** By queue and name: entries by reason and beginning. */
  ledgers = new Map();

  constructor(servers, namespace, queues) {
    this.#servers = servers;
    this.#namespace = namespace;
    this.#queues = queues;
    this.#done = this.#run();
  }

  /**
   * From `true` to `false`: Redis crashes, or a replica takes over, and what is read may be of a history that is lost, or older than
   * what was read before. @param {boolean} now
   */
  redisMayLose(now) {
    this.#inDoubt = now;
    if (now) return;
    this.#seen.clear();
    for (const kept of this.ledgers.values()) {
      // Valid entries are still among the newest, so they are read again.
      for (const [id, { at }] of kept) if (at > Date.now() - IN_DOUBT) kept.delete(id);
    }
  }

  /** The clock of Redis is put back, by so many ms. */
  clockGoesBack(ms) {
    this.#wentBack += ms;
  }

  async #run() {
    for (let round = 0; this.#running; round++) {
      // A Redis that is down or refuses is looked at the next time.
      for (const queue of this.#queues) await this.#look(queue, round % LEDGER_EVERY === 0).catch(() => {});
      await pause(EVERY);
    }
  }

  async #look(queue, withLedger) {
    const tag = `{${this.#namespace}:${queue}}`;
    const found = await this.#servers.admin.eval(
      ...[LOOK, 1, `${tag}:~tasks`, `${tag}:~`, `${tag}:${queue}:`, withLedger ? "1" : "0"],
    );
    if (this.#inDoubt) return;
    this.looks += 1;
    for (const [name, gen, cursor, live, ledger, created] of found) {
      // While a slot moves, a task may be with the other master already: this look says nothing of it.
      if (!gen) continue;
      const key = `${queue} ${name}`;
      this.#compare(key, { gen: BigInt(gen), cursor: Number(cursor), created });
      if (live.length > 1) this.overlaps.add(`${key}: ${[...live].sort().join(" and ")} are live at once`);
      if (withLedger) this.#keep(key, ledger.map(ledgerEntry));
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

  #keep(key, entries) {
    const kept = this.ledgers.get(key) ?? new Map();
    this.ledgers.set(key, kept);
    for (const entry of entries) {
      const id = `${entry.reason} ${entry.from}`;
      // An entry grows while nothing else is decided.
      if ((kept.get(id)?.to ?? Number.NEGATIVE_INFINITY) <= entry.to) kept.set(id, entry);
    }
  }

  async stop() {
    this.#running = false;
    await this.#done;
    for (const queue of this.#queues) await this.#look(queue, true);
  }
}
