import { CarillonError, type Json, type Outcome, type TaskName } from "@carillon/core";
import { decideEnd, isFailure, itemId, localName, parseLocalName, shardOf } from "@carillon/core/internal";
import { bullRepeats } from "../bull/bull-keys.js";
import type { CalendarRepository } from "../calendars.js";
import { newToken } from "../ids.js";
import { KeyedLock } from "../keyed-lock.js";
import { failsForAll, redisError } from "../redis/connection.js";
import type { Parts } from "../repository.js";
import { decodeTask, isForeign, type Retention } from "../task/codec.js";
import { CallBatcher } from "./call-batcher.js";
import { cutResult, decodeDetails, LONGEST_TEXT, runnerText } from "./codec.js";
import { chunks, RunReads } from "./run-reads.js";
import {
  type About,
  begunOf,
  CANCEL_RUN,
  type CancelWord,
  CHECKPOINT,
  type End,
  type EndWord,
  endingArgs,
  READ_SETTLE,
  RECONCILE,
  SAVE_OUTPUT,
  SETTLE_RUN,
  type Settlement,
  type SettleWord,
  START_RUN,
  type Start,
  type StartReply,
  type StartResult,
  TERMINATING,
  type Worked,
} from "./run-scripts.js";
import { LANES, type LaneWorker, TurnLane } from "./turns.js";

/** Runs checked, or cleared, in one script. */
const RECONCILE_BATCH = 100;
/** Between two checks of a run, in ms. */
const LONGEST_WAIT = 300_000;
/** Runs that start, or end, in one script: each takes some tens of microseconds. */
const TOGETHER = 16;

/** Changes to a task at the end of its run, for settle-run.lua. Times are texts, because Lua formats large numbers inexactly. */
interface Aftermath {
  /** The state that the decision was based on. */
  readonly generation: string;
  readonly failures: string;
  /** All pending occurrences, as JSON; undefined: as before. */
  readonly pending: string | undefined;
  /** The next occurrence is in `pending`, in place of a delay after the run. */
  readonly retried: boolean;
  /** Reason why the task is paused; undefined: it is not. */
  readonly note: string | undefined;
  /** Nominal time of a retry that the next occurrence supersedes, and the nominal time before it. */
  readonly superseded: { readonly nominal: string; readonly before: string | undefined } | undefined;
  /** Time of a run that the handler asked for earlier and that another one replaces. */
  readonly replaced: string | undefined;
}

export class RunRepository extends RunReads {
  readonly #calendars: CalendarRepository;
  readonly #retention: ReturnType<typeof endingArgs>;
  readonly #starts: CallBatcher<Start, unknown>;
  readonly #settles: CallBatcher<End, unknown>;
  /** Numbers checkpoints and texts of output in the order in which they are sent. */
  readonly #sender = newToken();
  #number = 0;

  constructor(parts: Parts, calendars: CalendarRepository, retention: Retention) {
    super(parts);
    this.#calendars = calendars;
    this.#retention = endingArgs(retention);
    this.#starts = this.#together((queue, all) => this.#startAll(queue, all));
    this.#settles = this.#together((queue, all) => this.#settleAll(queue, all));
  }

  #keysOf({ name, run }: About) {
    const keys = this.keys.queue(name.queue);
    const local = localName(name);
    const shard = shardOf(local);
    return {
      key: keys.run(run),
      job: keys.job(run),
      task: keys.task(local),
      open: keys.open(local),
      history: keys.history(local),
      failures: keys.failures(local),
      stats: keys.stats(local),
      ledger: keys.ledger(local),
      due: keys.due(shard),
      id: run,
      name: local,
      shard,
    };
  }

  #startAll(queue: string, all: readonly Start[]): Promise<unknown[]> {
    const items = all.map((one) => {
      const { attempt, made, token } = one.by;
      return { ...this.#keysOf(one), by: runnerText(one.by), own: attempt, made, token };
    });
    return this.scripts.run(START_RUN, this.keys.queue(queue), this.#retention, items);
  }

  #settleAll(queue: string, all: readonly End[]): Promise<unknown[]> {
    const items = all.map((one) => ({ ...this.#keysOf(one), ...one.end }));
    return this.scripts.run(SETTLE_RUN, this.keys.queue(queue), this.#retention, items);
  }

  /** Batches the calls of a script about runs of one queue. */
  #together<One extends About>(
    send: (queue: string, all: readonly One[]) => Promise<unknown[]>,
  ): CallBatcher<One, unknown> {
    return new CallBatcher<One, unknown>(TOGETHER, async (queue, all) => {
      const answers = await send(queue, all);
      return all.map(async (one, i) => {
        const answer = answers[i];
        // Not processed; or an error of Redis as a whole, which the connection receives only as the whole answer (leaveReplica).
        const alone = answer === null || (answer instanceof Error && failsForAll(answer));
        if (alone) return (await send(queue, [one]))[0];
        if (answer instanceof Error) throw redisError(answer);
        return answer;
      });
    });
  }

  /** The lanes in which a worker of this process has its turns at a queue. */
  lanes(queue: string, worker: LaneWorker): TurnLane[] {
    return Array.from(
      { length: LANES },
      (_, lane) => new TurnLane(this.scripts, this.keys, this.#retention, queue, worker, lane),
    );
  }

  /** An attempt starts: written before its handler runs, and counted as a crash until its end takes that back. */
  async start(name: TaskName, run: string, by: Worked): Promise<StartResult> {
    const reply = (await this.#starts.call(name.queue, { name, run, by })) as StartReply;
    const [word, ...rest] = reply;
    switch (word) {
      case "OK":
        return begunOf(name, reply);
      case "FINAL":
        return { word, outcome: rest[0] as Outcome };
      case "CRASHED": {
        const error = "The workers of this run died.";
        await this.#settle(name, run, { fence: "crashed", outcome: "crashed", error });
        return { word, error };
      }
      case "WAIT":
        return { word, until: Number(rest[0]), now: Number(rest[1]) };
      case "NEWER":
        return { word, until: Number(rest[0]), now: Number(rest[1]), format: String(rest[2]) };
      default:
        return { word };
    }
  }

  /** An attempt ends. `FENCED`: another attempt has taken the run over, and this report is ignored. */
  async settle(name: TaskName, run: string, end: Settlement): Promise<EndWord> {
    return (await this.#settle(name, run, end)) as EndWord;
  }

  /** @returns also `LIVE`, if the reconciler was too early */
  async #settle(
    name: TaskName,
    run: string,
    end: Omit<Settlement, "fence"> & { fence?: number | "crashed" },
  ): Promise<string> {
    const { nextAt } = end;
    let { outcome } = end;
    let result = end.result === undefined ? "" : cutResult(JSON.stringify(end.result));
    let unheard = false;
    const decide = async (): Promise<string | undefined> => {
      const decides = nextAt !== undefined || (outcome !== undefined && isFailure(outcome));
      const after =
        decides && outcome !== undefined ? await this.#aftermath(name, run, outcome, nextAt) : undefined;
      const sent = {
        fence: end.fence,
        outcome,
        error: (end.error ?? "").slice(0, LONGEST_TEXT),
        result,
        following: after ? JSON.stringify(after) : "",
      };
      const word = await this.#settles.call(name.queue, { name, run, end: sent });
      if (word === "CANCELLED") [outcome, result, unheard] = ["cancelled", "", true];
      if (word === "CANCELLED" || word === "STALE") return undefined;
      return unheard && word === "OK" ? "CANCELLED" : (word as string);
    };
    // Each end that changes its task invalidates the other decisions about that task.
    const word = await this.optimistic.write([`${name.queue}/${localName(name)}`], decide);
    if (word !== undefined) return word;
    throw new CarillonError("CONFLICT", `${localName(name)} kept changing while its run was settled.`);
  }

  /** Decides how the end of a run changes its task, for settle-run.lua. Undefined: no change. */
  async #aftermath(
    name: TaskName,
    run: string,
    outcome: Outcome,
    nextAt: number | undefined,
  ): Promise<Aftermath | undefined> {
    const { key, task: taskKey, stats } = this.#keysOf({ name, run });
    const [now, flat, count, info] = await this.scripts.run(READ_SETTLE, { run: key, task: taskKey, stats });
    const task = decodeTask(name.queue, localName(name), flat);
    if (!task || isForeign(task) || info === "") return undefined;
    const { definition, state, due, pending, generation } = task;
    if (isFailure(outcome) && task.calendarRevision > this.#calendars.revision)
      await this.#calendars.refresh();
    const decision = decideEnd(
      {
        policies: definition,
        pending,
        failures: Number(count),
        schedule: () => this.#calendars.schedules.get(definition),
        due: state === "scheduled" ? due : undefined,
      },
      { ...decodeDetails(name, info), id: run, outcome, nextAt },
      now,
    );
    if (decision === undefined) return undefined;
    const { superseded } = decision;
    return {
      generation,
      failures: count,
      retried: decision.pending !== undefined,
      note: decision.pause,
      pending: decision.pending && JSON.stringify(decision.pending),
      superseded: superseded && {
        nominal: String(superseded.nominal),
        before: superseded.before?.toString(),
      },
      replaced: decision.replaced?.toString(),
    };
  }

  /** Keeps a handler's checkpoint for the next run of its task. */
  async checkpoint(name: TaskName, run: string, fence: number, value: Json): Promise<SettleWord> {
    const { key, task, stats } = this.#keysOf({ name, run });
    this.#number += 1;
    const sent = { fence, number: this.#number, value: JSON.stringify(value) };
    return this.scripts.run(CHECKPOINT, { run: key, task, stats }, sent);
  }

  /** Marks an attempt as terminating: it reached its time limit, or was cancelled. */
  async terminating(name: TaskName, run: string, fence: number): Promise<void> {
    await this.scripts.run(TERMINATING, { run: this.keys.queue(name.queue).run(run) }, { fence });
  }

  /** Requests the cancellation of a run, queued or running. `UNCHANGED`: requested before. */
  async cancel(name: TaskName, run: string, by: string): Promise<CancelWord> {
    return this.#cancel(name, run, by, false);
  }

  async #cancel(name: TaskName, run: string, by: string, onlyQueued: boolean): Promise<CancelWord> {
    const { run: runKey, runs, next } = this.keys.queue(name.queue);
    const who = by.replace(/\s/g, "_") || "-";
    for (;;) {
      const seen = await this.link.ask((client) => client.hget(runKey(run), "reopened"));
      const asked = { id: run, by: who, seen: seen ?? "", onlyQueued };
      const word = await this.scripts.run(CANCEL_RUN, { run: runKey(run), runs, next }, asked);
      if (word !== "STALE") return word;
    }
  }

  /**
   * Replaces the captured output of an attempt. It goes with the run's record, and is not kept without one.
   * @param of the number of a run's attempt, or an item and the lock token of the worker that has it
   */
  async saveOutput(
    queue: string,
    run: string,
    of: number | { readonly index: number; readonly token: string },
    text: string,
    cut: boolean,
  ): Promise<void> {
    const keys = this.keys.queue(queue);
    this.#number += 1;
    const [by, number] = [this.#sender, this.#number];
    const output = JSON.stringify({ by, number, text, cut });
    const where =
      typeof of === "number"
        ? { output: keys.output(run), job: keys.job(run), field: of, token: undefined }
        : {
            output: keys.items(run),
            job: keys.job(itemId(run, of.index)),
            field: `o${of.index}`,
            token: of.token,
          };
    const { output: key, job, ...args } = where;
    await this.scripts.run(
      SAVE_OUTPUT,
      { run: keys.run(run), output: key, job },
      { ...args, by, number, output },
    );
  }

  /** Requests the cancellation of a task's queued runs. @returns their number */
  async cancelQueued(name: TaskName, by: string): Promise<number> {
    let asked = 0;
    for (const some of chunks(await this.open(name))) {
      const queued = (await this.many(name.queue, some)).filter(({ state }) => state === "queued");
      // One may have started since.
      const words = await Promise.all(queued.map(({ id }) => this.#cancel(name, id, by, true)));
      asked += words.filter((word) => word === "OK").length;
    }
    return asked;
  }

  /**
   * Checks the runs that are due for a check: settles those that no Carillon worker settled, removes jobs after their grace.
   * Bounded: `more` means that another call has work at once. `lingered`: finished tasks to delete. `cleared`: all runs of a
   * deleted task are cleared.
   */
  async reconcile(queue: string): Promise<{
    now: number;
    seen: [run: string, what: string][];
    lingered: TaskName[];
    cleared: boolean;
    more: boolean;
  }> {
    const keys = this.keys.queue(queue);
    const [now, more, ...found] = await this.scripts.run(
      RECONCILE,
      { ...keys, repeats: bullRepeats(keys.bull) },
      { ...this.#retention, most: RECONCILE_BATCH, longest: LONGEST_WAIT },
    );
    const named = (local: string): TaskName => ({ queue, ...parseLocalName(local) });
    const lingered = found.filter(([, what]) => what === "lingered").map(([local]) => named(local));
    // One at a time per task, because each end invalidates what was read for another.
    const lock = new KeyedLock();
    const seen = await Promise.all(
      found
        .filter(([, what]) => what !== "lingered" && what !== "cleared")
        .map(async ([run, what, local, outcome, error]): Promise<[string, string]> => {
          if (what !== "over") return [run, what];
          try {
            const answer = await lock.take([local], () =>
              this.#settle(named(local), run, { outcome, error }),
            );
            return [run, answer === "OK" ? outcome : ""];
          } catch (failure) {
            if (failsForAll(failure)) throw failure;
            // Corrupt data must not stop the settling of the others.
            return [run, "unreadable"];
          }
        }),
    );
    const cleared = found.some(([, what]) => what === "cleared");
    const reported = seen.filter(([, what]) => what !== "");
    return { now, seen: reported, lingered, cleared, more: more === 1 };
  }
}
