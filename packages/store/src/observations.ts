import type { TaskName } from "@carillon/core";
import { localName } from "@carillon/core/internal";
import { Repository } from "./repository.js";
import { answers, script } from "./script/script.js";

/** A time that another scheduler fired for a task; UTC ms. */
export interface Observation {
  readonly nominal: number;
  /** Time of the start. */
  readonly at: number;
}

const OBSERVE = script("observe", {
  once: { repeats: "The first mark of a time stays." },
  keys: ["observed"],
  args: ["most", "keep", "marks[]"],
  answer: answers<"OK">(),
});

/** Marks of a task that are kept, and for how long, in ms. */
const KEPT = { most: 10_000, keep: 30 * 86_400_000 };
/** Marks in one script. */
const BATCH = 500;

/** Times that the scheduler which a shadow is compared with really fired. */
export class ObservationRepository extends Repository {
  async add(name: TaskName, observations: readonly Observation[]): Promise<void> {
    const observed = this.keys.queue(name.queue).observed(localName(name));
    for (let at = 0; at < observations.length; at += BATCH) {
      const marks = observations.slice(at, at + BATCH).flatMap(({ nominal, at }) => [nominal, at]);
      await this.scripts.run(OBSERVE, { observed }, { ...KEPT, marks });
    }
  }

  /** Those with a nominal time from `from` to `to`, in order. */
  async list(name: TaskName, from: number, to: number): Promise<Observation[]> {
    const key = this.keys.queue(name.queue).observed(localName(name));
    const marks = await this.link.ask((client) => client.zrangebyscore(key, from, to));
    return marks.map((mark) => {
      const [nominal, at] = mark.split(" ").map(Number);
      return { nominal: nominal as number, at: at as number };
    });
  }
}
