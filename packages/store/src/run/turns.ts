import type { Json, Outcome, TaskName } from "@carillon/core";
import { localName, shardOf, turnId } from "@carillon/core/internal";
import { bullTurnKeys } from "../bull/bull-turn.js";
import type { NamespaceKeys } from "../keys.js";
import type { Scripts } from "../script/scripts.js";
import { cutResult, type Runner, runnerText } from "./codec.js";
import { type endingArgs, type StartReply, TURN, type TurnWord } from "./run-scripts.js";

/** Turns that a worker has under way at a queue: Redis works on one while the worker works on the jobs of others. */
export const LANES = 4;
export const MOST_ENDS = 16;
/** Most jobs that one turn takes: each, with its end, takes Redis some tens of microseconds. */
export const MOST_TAKEN = 32;

/** The end of a run that succeeded, which its job shares. */
export interface TurnEnd {
  readonly name: TaskName;
  readonly run: string;
  /** The lock of the job. */
  readonly token: string;
  readonly fence: number;
  readonly outcome: Outcome;
  /** Attempts that BullMQ counts as made, with this one. */
  readonly made: number;
  readonly result: Json | undefined;
}

export interface TurnAnswer {
  /** Answers to the ends, in their order. */
  readonly words: readonly TurnWord[];
  readonly jobs: readonly [id: string, token: string, hash: string[], start?: StartReply][];
  /** Milliseconds until the queue's rate limit lets jobs go; 0: now. */
  readonly limit: number;
  /** Time of the next delayed job, UTC ms; 0: none. */
  readonly delay: number;
  /** Reason why no more jobs could be taken; "" if they could. */
  readonly error: string;
}

/** The worker that sends the turns. */
export interface LaneWorker extends Runner {
  /** Duration of its locks, in ms. */
  readonly lock: number;
}

/** The turns of one worker at one queue, one after the other; a worker may have several lanes. */
export class TurnLane {
  readonly #send: (
    turn: { number: number; take: number; clock: number },
    ends: readonly TurnEnd[],
  ) => Promise<unknown[]>;
  #number = 0;

  constructor(
    scripts: Scripts,
    keys: NamespaceKeys,
    retention: ReturnType<typeof endingArgs>,
    queue: string,
    worker: LaneWorker,
    lane: number,
  ) {
    const of = keys.queue(queue);
    const { worker: id, lock } = worker;
    const { runs, next, journal, alerts, expected, outcomes } = of;
    const given = {
      runs,
      next,
      journal,
      alerts,
      expected,
      outcomes,
      turn: of.turn(id, lane),
      bull: bullTurnKeys(of.bull),
    };
    this.#send = (turn, ends) =>
      scripts.run(
        TURN,
        given,
        {
          ...retention,
          by: runnerText(worker),
          worker: id,
          lock,
          token: turnId(id, lane, turn.number),
          ...turn,
        },
        ends.map(item),
      );
  }

  /** Begins the next turn. Returns how to send it: again, as long as its answer is unknown. */
  next(take: number): (ends: readonly TurnEnd[]) => Promise<TurnAnswer> {
    this.#number += 1;
    const turn = { number: this.#number, take, clock: Date.now() };
    return async (ends) => {
      const [words, jobs, limit, delay, error] = (await this.#send(turn, ends)) as [
        TurnWord[],
        TurnAnswer["jobs"],
        number,
        number,
        string,
      ];
      return { words, jobs, limit, delay, error };
    };
  }
}

function item({ name, run, token, fence, outcome, made, result }: TurnEnd) {
  const local = localName(name);
  const value = JSON.stringify(result ?? null);
  const kept = result === undefined ? "" : cutResult(value);
  return {
    id: run,
    name: local,
    shard: shardOf(local),
    token,
    fence,
    outcome,
    made,
    value,
    result: kept === value ? "=" : kept,
  };
}
