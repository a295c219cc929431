// Executes a plan: chooses targets, runs faults alone or concurrently, and records their effects.
import { pause } from "../lib/nodes.mjs";
import { monotonic } from "./failpoint.mjs";
import { Unknown } from "./faults/unknown.mjs";
import { QUIET } from "./plan.mjs";

export class Storm {
  /** Injected faults: kind, point, whether it was effective, and when it was over. */
  results = [];
  #crew;
  #world;
  #verbose;
  #underWay = new Set();
  /** The first fault whose effect is not known. */
  #unknown;
  /** One fault of Redis at a time. */
  #redis = { id: "redis", busy: undefined };

  /**
   * @param {any} crew
   * @param {any} world what faults get besides
   * @param {{ verbose?: boolean, untilClaimed?: () => Promise<number> }} options `untilClaimed`: resolves with the
   * monotonic time at which all that was due at its call is claimed
   */
  constructor(crew, world, { verbose = false, untilClaimed } = {}) {
    this.#crew = crew;
    this.#verbose = verbose;
    this.untilClaimed = untilClaimed;
    this.#world = {
      ...world,
      nodes: crew.nodes,
      workers: crew.workers,
      settings: crew.settings,
      now: monotonic,
      acks: () => crew.nodes.reduce((sum, { acks }) => sum + acks, 0),
      acksOf: (node) => node.acks,
      claims: () => crew.acks.values(),
      errors: () => crew.errors.length,
      errorsOf: (text) => crew.errors.filter(({ message }) => message.includes(text)).length,
      errorSince: (count, pattern) => crew.errors.slice(count).some(({ message }) => pattern.test(message)),
    };
  }

  /** @throws `Unknown` if a fault may still take effect: nothing after it can be judged */
  async run(plan, ms) {
    let began = monotonic();
    const left = (until) => Math.max(0, began + until - monotonic());
    for (const entry of plan) {
      await pause(left(entry.at));
      if (this.#unknown) break;
      if (entry.probe) {
        // A probe runs alone: it waits for the end of the storm, and the next storm waits for its end.
        await Promise.all(this.#underWay);
        await this.#do(entry, () => QUIET);
        await pause(left(entry.storm));
        began += Math.max(0, monotonic() - began - entry.storm);
      } else this.#start(this.#do(entry, left));
    }
    if (!this.#unknown) await pause(left(ms));
    await Promise.all(this.#underWay);
    if (this.#unknown) throw this.#unknown;
  }

  #start(promise) {
    const tracked = promise.finally(() => this.#underWay.delete(tracked));
    this.#underWay.add(tracked);
  }

  async #do(entry, left) {
    const { fault, dice } = entry;
    const target = this.#target(fault, dice);
    if (!target) return;
    if (!fault.waits && !fault.beside) target.busy = fault.kind;
    const result = { kind: fault.kind, point: fault.point, began: monotonic() };
    const hit = async (work) => {
      result.began = monotonic();
      target.busy = fault.kind;
      const claimed = entry.probe ? this.untilClaimed?.() : undefined;
      await work();
      if (claimed) result.recovered = (await claimed) - result.began;
    };
    try {
      const within = Math.max(200, left(entry.storm) - 200);
      const end = await fault.run({ ...this.#world, target, dice, within, hit });
      if (end.happened === false) return;
      Object.assign(result, end);
      if (end.healed) result.healedAt = monotonic();
      this.results.push(result);
      const seen = end.effective ? "effective" : "no effect";
      if (this.#verbose) console.error(`${fault.kind} ${target.id}: ${seen} ${end.note ?? ""}`);
    } catch (error) {
      this.#crew.problems.push(`${fault.kind} could not be injected: ${error.stack ?? error}`);
      if (error instanceof Unknown) this.#unknown ??= error;
    } finally {
      if (target.busy === fault.kind) target.busy = undefined;
    }
  }

  /** A process without a fault in progress; one of them is always spared. */
  #target(fault, dice) {
    if (fault.scope === "redis") return this.#redis.busy ? undefined : this.#redis;
    const children = fault.scope === "node" ? this.#crew.nodes : this.#crew.workers;
    const free = children.filter(({ busy, down }) => !busy && !down);
    if (free.length <= 1) return undefined;
    const possible = fault.ends ? free.filter(({ spared }) => !spared) : free;
    return possible[Math.floor(dice() * possible.length)];
  }
}
