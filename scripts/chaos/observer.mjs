// Looks at Redis all through a run, because some of it is gone at the end: generations and cursors only grow, a task never has two
// live runs where its policy forbids that, and what the ledger said (it keeps 50 entries a task).
import { pause } from "../measure/nodes.mjs";
import { ledgerEntry } from "./evidence.mjs";

/** In one script, so that all is of one moment. A run lives while its job is there and not finished. */
const LOOK = `
local ours, bull, out = ARGV[1], ARGV[2], {}
for _, name in ipairs(redis.call("ZRANGE", KEYS[1], 0, -1)) do
  local task = redis.call("HMGET", ours .. "t:" .. name, "gen", "cursor", "overlap")
  local live = {}
  if task[3] ~= "allow" then
    local ids = redis.call("ZRANGE", ours .. "open:" .. name, 0, -1)
    for _, set in ipairs({ "hist:", "fail:" }) do
      for _, id in ipairs(redis.call("ZREVRANGE", ours .. set .. name, 0, 4)) do ids[#ids + 1] = id end
    end
    for _, id in ipairs(ids) do
      local job = redis.call("HMGET", bull .. id, "timestamp", "finishedOn")
      if job[1] and not job[2] then live[#live + 1] = id end
    end
  end
  local ledger = ARGV[3] == "1" and redis.call("LRANGE", ours .. "ledger:" .. name, 0, -1) or {}
  out[#out + 1] = { name, task[1] or "", task[2] or "", live, ledger }
end
return out`;

const EVERY = 400;
/** The ledger is read with each n-th look. */
const LEDGER_EVERY = 5;

export class Observer {
  #servers;
  #namespace;
  #queues;
  #seen = new Map();
  #running = true;
  #done;
  /** Counts the times at which Redis may have lost what it had acknowledged. */
  #epoch = 0;
  looks = 0;
  /** @type {string[]} */
  regressions = [];
  /** Regressions at a crash or failover of Redis: it lost writes. @type {string[]} */
  rolledBack = [];
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

  /** Redis crashed, or a replica took over: what comes next may be an older state. */
  redisMayHaveLost() {
    this.#epoch += 1;
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
    const epoch = this.#epoch;
    const found = await this.#servers.admin.eval(
      ...[LOOK, 1, `${tag}:~tasks`, `${tag}:~`, `${tag}:${queue}:`, withLedger ? "1" : "0"],
    );
    this.looks += 1;
    for (const [name, gen, cursor, live, ledger] of found) {
      const key = `${queue} ${name}`;
      this.#compare(key, { gen: BigInt(gen || 0), cursor: Number(cursor), epoch });
      if (live.length > 1) this.overlaps.add(`${key}: ${[...live].sort().join(" and ")} are live at once`);
      if (withLedger) this.#keep(key, ledger.map(ledgerEntry));
    }
  }

  #compare(key, now) {
    const before = this.#seen.get(key);
    this.#seen.set(key, now);
    if (!before) return;
    const problems = [];
    if (now.gen < before.gen) problems.push(`${key}: generation ${before.gen}, then ${now.gen}`);
    if (now.gen === before.gen && now.cursor < before.cursor)
      problems.push(`${key}: cursor ${before.cursor}, then ${now.cursor}`);
    (now.epoch === before.epoch ? this.regressions : this.rolledBack).push(...problems);
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
