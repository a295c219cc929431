// Freezes that come and go during a run, and the check that nothing is enqueued while one holds.
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
   * @type {{ id: string, scope: any, from: number, to: number, mono: number }[]}
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
      ...{ ...scope, note: "a window" },
      ...(ends && { until: Math.round(now + ms) }),
    });
    const mono = monotonic();
    // Runs enqueued within this millisecond may have been committed before it.
    const freeze = { id, scope, from: (await this.#client.serverTime()) + 1, to: until, mono };
    await pause(ms);
    freeze.to = Math.min(until, await this.#client.serverTime());
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
 * No run of a task was enqueued while a freeze of it held, by the times in the records. A failover may lose a freeze,
 * and one that has ended does not hold again if the clock goes back.
 */
export function heldStill(found, { freezes, specs, jumps, observer }, { queue }, runs) {
  const isLost = ({ mono }) => observer.failovers.some(({ from, to }) => from <= mono && mono <= to);
  const sure = freezes.filter((freeze) => !isLost(freeze));
  for (const run of runs) {
    const spec = specs.get(`${queue} ${run.task}`) ?? { queue };
    for (const { id, scope, from, to } of sure) {
      if (!covers(scope, spec) || run.enqueued < from || run.enqueued >= to) continue;
      const wentBack = jumps.some(({ at, back = 0 }) => run.enqueued <= at && run.enqueued >= at - back);
      if (wentBack) found.undecided += 1;
      else found.frozen.push(`${queue} ${run.id}: enqueued ${run.enqueued - from} ms into the freeze ${id}`);
    }
  }
}

function covers({ queue, owner, tag }, spec) {
  const fits = (asked, has) => asked === undefined || asked === has;
  return (
    fits(queue, spec.queue) &&
    fits(owner, spec.owner ?? "system") &&
    (tag === undefined || (spec.tags ?? []).includes(tag))
  );
}
