import type { TaskName } from "@carillon/core";
import { localName, shardOf } from "@carillon/core/internal";
import { scored } from "../redis/scored.js";
import { Repository } from "../repository.js";
import { FACTS } from "../script/facts.js";
import { STATS, TASK } from "../script/libraries.js";
import { answers, script } from "../script/script.js";
import type { StoredTask } from "./codec.js";

const HOLD_TASK = script("hold-task", {
  once: "generation",
  keys: ["task", "due", "next", "expected", "runs"],
  args: ["name", "shard", "gen", "mark"],
  uses: [TASK],
  answer: answers<"OK" | "STALE" | "MISSING">(),
});

const ADOPT_TASK = script("adopt-task", {
  once: "generation",
  keys: ["task", "due", "next", "expected", "runs", "stats", "ledger", "revisions"],
  args: ["name", "shard", "seen", "gen", "state", "copyOf", "fields[]", "stats[]", "ledger[]", "revisions[]"],
  uses: [TASK, STATS],
  answer: answers<"OK" | "STALE" | "MISSING" | "TAKEN">(),
});

const END_MOVE = script("end-move", {
  once: "generation",
  keys: ["task", "due", "next", "expected", "runs"],
  args: ["name", "shard", "gen"],
  uses: [TASK],
  answer: answers<"OK" | "STALE" | "UNCHANGED" | "MISSING">(),
});

/** Fields of a task's hash that belong to its place, and do not move. */
const OF_PLACE: ReadonlySet<string> = new Set([
  "gen",
  "state",
  "token",
  "open",
  "calrev",
  "updated",
  "moving",
]);

/** Mark of a task that is held for a move to this name. */
export function heldFor({ queue, id }: TaskName): string {
  return `to ${queue} ${id}`;
}

/** The mark of a copy of this task is this, and the generation that was copied; 0: none yet. */
export function copyOf({ queue, id }: TaskName): string {
  return `from ${queue} ${id}`;
}

/** The other place of a task that is held for a move, and the generation that was copied; undefined: it is not held. */
export function moveOf({ definition: { owner }, moving }: Pick<StoredTask, "definition" | "moving">) {
  if (moving === undefined) return undefined;
  const [direction, queue = "", id = "", generation] = moving.split(" ");
  return { isCopy: direction === "from", other: { queue, owner, id }, generation: Number(generation ?? 0) };
}

/** The steps of a move to another queue, which is another cluster slot. */
export class MoveRepository extends Repository {
  /** Holds a task: nothing is claimed, whatever its state. `STALE`: it changed since it was read. @param mark see `heldFor` */
  async hold({ definition, generation }: StoredTask, mark: string): Promise<"OK" | "STALE" | "MISSING"> {
    return this.scripts.run(HOLD_TASK, this.#keysOf(definition), {
      ...this.#nameOf(definition),
      gen: generation,
      mark,
    });
  }

  /** Tasks of a queue that a move has held since before `until`, the oldest first: their local names and times. */
  async held(queue: string, until: number, limit: number): Promise<{ local: string; since: number }[]> {
    const flat = await this.link.ask((client) =>
      client.zrangebyscore(
        this.keys.queue(queue).inState("moving"),
        ...(["-inf", until, "WITHSCORES", "LIMIT", 0, limit] as const),
      ),
    );
    return scored(flat).map(([local, since]) => ({ local, since }));
  }

  /**
   * Copies all data of a held task except its definition to the task that was put in the other queue, which is held
   * too. Repeated, it copies again what has changed. Returns the generation that was copied. `TAKEN`: the other one is
   * not a copy of it.
   */
  async adopt(
    from: TaskName,
    to: TaskName,
  ): Promise<{ answer: "OK" | "MISSING" | "TAKEN"; generation: string }> {
    const keys = this.#keysOf(from);
    const [hash, stats, ledger, revisions] = await this.link.ask((client) =>
      Promise.all([
        client.hgetall(keys.task),
        client.hgetall(keys.stats),
        client.lrange(keys.ledger, 0, "-1"),
        client.lrange(keys.revisions, 0, "-1"),
      ]),
    );
    const { gen: generation = "0", moving, state } = hash;
    if (moving === undefined) return { answer: "MISSING", generation };
    const fields = Object.entries(hash).filter(
      ([field]) => FACTS.bookkeeping.has(field) && !OF_PLACE.has(field),
    );
    const seen = await this.#generation(to);
    const answer = await this.scripts.run(ADOPT_TASK, this.#keysOf(to), {
      ...this.#nameOf(to),
      seen,
      gen: generation,
      state,
      copyOf: copyOf(from),
      fields: fields.flat(),
      stats: Object.entries(stats).flat(),
      ledger,
      revisions,
    });
    return answer === "STALE" ? this.adopt(from, to) : { answer, generation };
  }

  /** Lets a task that is held, or was adopted, go on. Returns whether it was held. */
  async end(name: TaskName): Promise<boolean> {
    for (;;) {
      const sent = { ...this.#nameOf(name), gen: await this.#generation(name) };
      const answer = await this.scripts.run(END_MOVE, this.#keysOf(name), sent);
      if (answer !== "STALE") return answer === "OK";
    }
  }

  async #generation(name: TaskName): Promise<string> {
    const { task } = this.#keysOf(name);
    return (await this.link.ask((client) => client.hget(task, "gen"))) ?? "";
  }

  #nameOf(name: TaskName) {
    const local = localName(name);
    return { name: local, shard: shardOf(local) };
  }

  #keysOf(name: TaskName) {
    const keys = this.keys.queue(name.queue);
    const local = localName(name);
    return {
      task: keys.task(local),
      due: keys.due(shardOf(local)),
      next: keys.next,
      expected: keys.expected,
      runs: keys.runs,
      stats: keys.stats(local),
      ledger: keys.ledger(local),
      revisions: keys.revisions(local),
    };
  }
}
