import { guardsKey } from "./keys.js";
import { Repository } from "./repository.js";
import type { Guard } from "./script/context.js";
import { script } from "./script/script.js";

const RAISE_GUARD = script("raise-guard", {
  once: "number",
  keys: ["guards"],
  args: ["subject", "number"],
});

/** A set of tasks that are defined together, as the last apply left it. Times in UTC ms. */
export interface TaskSet {
  readonly name: string;
  /** Counts its applies that changed something, or took over from another one. */
  readonly generation: number;
  readonly members: number;
  /** An older version is never applied. */
  readonly version?: string | undefined;
  readonly commit?: string | undefined;
  readonly by?: string | undefined;
  readonly at: number;
  /** Tasks that no apply removes. */
  readonly protect: readonly string[];
  /** Queues in which an apply of it may still write; the next one raises its guard there. */
  readonly queues?: readonly string[] | undefined;
  /** Id of the plan whose apply has begun and not ended. */
  readonly applying?: string | undefined;
  /** Id of the last plan that changed something. */
  readonly applied?: string | undefined;
}

/** The records of the sets of a namespace: one hash, by name. Each task of a set names it. */
export class SetRepository extends Repository {
  async get(name: string): Promise<TaskSet | undefined> {
    return decode(name, await this.link.ask((client) => client.hget(this.keys.sets, name)));
  }

  async list(): Promise<TaskSet[]> {
    const all = await this.link.ask((client) => client.hgetall(this.keys.sets));
    const sets = Object.entries(all).flatMap(([name, text]) => decode(name, text) ?? []);
    return sets.sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  guard(name: string, generation: number): Guard {
    return { subject: `set:${name}`, number: generation };
  }

  /** Raises the guard: from here on, earlier applies write nothing more in these queues, and change no calendars and sets. */
  async raise({ subject, number }: Guard, queues: readonly string[]): Promise<void> {
    for (const key of [this.keys.sets, ...queues.map((queue) => this.keys.queue(queue).tasks)])
      await this.scripts.run(RAISE_GUARD, { guards: guardsKey(key) }, { subject, number });
  }

  /**
   * Changes a record; nothing comes between the read and the write.
   *
   * @param decide returns the new record, or undefined to leave it; may throw
   */
  async change(name: string, decide: (stored: TaskSet | undefined) => TaskSet | undefined): Promise<void> {
    await this.settings.change(this.keys, "sets", async (client, key) => {
      const set = decide(decode(name, await client.hget(key, name)));
      return set === undefined ? {} : { set: [name, JSON.stringify(set)] };
    });
  }
}

/** Undefined if there is none, or it is corrupt: the next apply begins again. */
function decode(name: string, text: string | null): TaskSet | undefined {
  try {
    const set = JSON.parse(text ?? "null") as TaskSet | null;
    const sound = set?.name === name && Number.isSafeInteger(set.generation) && Array.isArray(set.protect);
    return sound ? set : undefined;
  } catch {
    return undefined;
  }
}
