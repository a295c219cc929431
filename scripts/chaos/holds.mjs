// Freezes that come and go during a run, and the check of what holds while freezes and edits are in force.
import { operatorOf } from "@carillon/ops";
import { isCarillonError } from "@carillon/sdk";
import { eventually } from "@carillon/testing";
import { pause } from "../lib/nodes.mjs";
import { monotonic } from "./failpoint.mjs";
import { COLD, EXPECTED, FROZEN, ICE } from "./load.mjs";

/** Scopes in turn; a freeze of all tasks is rarer. */
const SCOPES = [
  { queue: FROZEN },
  { owner: ICE },
  { tag: COLD },
  { queue: FROZEN, owner: ICE },
  { all: true },
];
const [SHORTEST, LONGEST] = [300, 2_500];
/** Pause between two freezes, in ms. */
const REST = 1_200;

/**
 * Puts and lifts freezes until it is stopped; some end on their own. A call that failed may still have frozen or
 * lifted.
 */
export class Freezer {
  /**
   * Freezes that were acknowledged. Each holds from `from` until `to`, UTC ms of Redis time: afterwards somebody may
   * have begun to lift it.
   * @type {Hold[]}
   */
  freezes = [];
  #client;
  #dice;
  #onUnexpected;
  #running = true;
  #done;

  constructor(client, dice, onUnexpected) {
    this.#client = client;
    this.#dice = dice;
    this.#onUnexpected = onUnexpected;
    this.#done = this.#run();
  }

  async #run() {
    for (let turn = 0; this.#running; turn++) {
      await this.#freeze(SCOPES[turn % SCOPES.length]).catch((error) => {
        if (!isCarillonError(error) || !EXPECTED.has(error.code)) this.#onUnexpected(error);
      });
      await pause(this.#dice() * REST);
    }
  }

  async #freeze(scope) {
    // An earlier call may have frozen without an answer, or failed to lift.
    await this.#liftAll();
    const ms = SHORTEST + this.#dice() * (LONGEST - SHORTEST);
    const ends = this.#dice() < 0.5;
    const now = await this.#client.serverTime();
    const { id, until = Number.POSITIVE_INFINITY } = await operatorOf(this.#client).freezes.put({
      ...scope,
      note: "a window",
      ...(ends && { until: Math.round(now + ms) }),
    });
    const mono = monotonic();
    // Runs enqueued within this millisecond may have been committed before it.
    const from = (await this.#client.serverTime()) + 1;
    /** @type {Hold} */
    const freeze = { what: "frozen", id, scope, from, to: until, mono };
    await pause(ms);
    const lifted = monotonic();
    const end = await this.#client.serverTime();
    freeze.to = Math.min(until, end);
    if (end < until) freeze.lifted = lifted;
    this.freezes.push(freeze);
  }

  async #liftAll() {
    for (const { id } of (await operatorOf(this.#client).freezes.list()).freezes)
      await operatorOf(this.#client).freezes.delete({ id });
  }

  /** Ends without any freeze. */
  async stop(patience) {
    this.#running = false;
    await this.#done;
    await eventually(() => this.#liftAll(), patience);
  }
}

/**
 * An acknowledged freeze or edit, and the runs that may be enqueued while it is in force: none, or only those with the
 * payload of this edit. `what`: the violation.
 *
 * @typedef {{ what: "frozen" | "paused" | "stale", id: string, scope: any, from: number, to: number, mono: number, lifted?: number, edit?: number }} Hold
 */

/**
 * No run was enqueued against a freeze or an edit that held, by the times in the records. A failover may lose it, and
 * one that has ended does not hold again if the clock goes back.
 */
export function heldStill(found, { holds, specs, jumps, observer, acks }, { queue }, runs) {
  const isLost = ({ mono }) => observer.failovers.some(({ from, to }) => from <= mono && mono <= to);
  const sure = holds.filter((hold) => !isLost(hold));
  for (const run of runs) {
    const spec = specs.get(`${queue} ${run.task}`) ?? { queue };
    for (const hold of sure) {
      const { what, id, scope, from, to, edit } = hold;
      if (!covers(scope, spec) || run.enqueued < from || run.enqueued >= to) continue;
      // A run whose job has been removed does not tell.
      if (edit !== undefined && run.edit === undefined) continue;
      found.runsAfterEdits += edit === undefined ? 0 : 1;
      if (edit !== undefined && run.edit === edit) continue;
      const text = `${queue} ${run.id}: enqueued ${run.enqueued - from} ms into ${id}`;
      const twice = jumps.find(({ at, back }) => run.enqueued <= at && run.enqueued >= at - back);
      if (!twice || holdsTwice(hold, twice)) found[what].push(text);
      else if (!(acks.get(run.id)?.mono < hold.mono)) found.undecided.push(`${what}: ${text}`);
    }
  }
}

/** Whether it was in force both times that the Redis clock showed a time: it began before the clock went back, and had not ended. */
function holdsTwice({ mono, to, lifted }, { at, mono: { before, after } }) {
  return mono < before && (to > at || lifted > after);
}

function covers({ queue, owner, tag, task }, spec) {
  const fits = (asked, has) => asked === undefined || asked === has;
  return (
    fits(queue, spec.queue) &&
    fits(owner, spec.owner ?? "system") &&
    fits(task, spec.id) &&
    (tag === undefined || (spec.tags ?? []).includes(tag))
  );
}
