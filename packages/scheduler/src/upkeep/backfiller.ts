import type { OverlapPolicy } from "@carillon/core";
import {
  type Decision,
  type DueTask,
  decideReplay,
  decideStep,
  frozenAt,
  localName,
  nextStep,
} from "@carillon/core/internal";
import {
  type Backfill,
  type DueBackfill,
  dueTask,
  failsForAll,
  newToken,
  redisError,
  type Store,
} from "@carillon/store";
import type { Settings } from "../options.js";

/** Delay before a step that must wait for a run is tried again, in ms. */
const WAIT = 1_000;
/** Delay before a backfill that failed, or whose task only newer nodes can read, is tried again, in ms. */
const PUT_OFF = 10_000;
/** Most backfills in one visit. */
const AT_ONCE = 100;

/** Walks through past occurrences, one at a time, each under the overlap policy. Resumes where another node stopped. */
export class Backfiller {
  constructor(
    private readonly store: Store,
    private readonly settings: Settings,
  ) {}

  /** @param goOn called after each step @returns whether all due work was done */
  async work(queue: string, goOn: () => boolean): Promise<boolean> {
    const now = await this.store.tasks.time(queue);
    for (const one of await this.store.backfills.due(queue, now, AT_ONCE)) {
      await this.#walk(one, goOn).catch((error: unknown) => this.#putOff(one, error));
      if (!goOn()) return false;
    }
    return true;
  }

  /**
   * Postpones a backfill that failed, so that the others continue.
   * @throws an error of Redis that concerns them all
   */
  async #putOff(one: DueBackfill, error: unknown): Promise<void> {
    if (failsForAll(error)) throw error;
    const { code, message } = redisError(error);
    const { task, id } = one.backfill;
    const details = { code, queue: task.queue, backfill: id, task: localName(task), error: message };
    this.settings.logger.error(details, "a backfill failed and is postponed");
    await this.store.backfills.later(one, PUT_OFF);
  }

  async #walk(one: DueBackfill, goOn: () => boolean): Promise<void> {
    const { backfill } = one;
    const { queue } = backfill.task;
    const { backfills } = this.store;
    // It has ended, and its record was kept long enough.
    if (backfill.state !== "running") return backfills.delete(queue, backfill.id);
    let current: Backfill | undefined = backfill;
    while (current?.state === "running") {
      const wait = await this.#step(current);
      if (wait === undefined) return;
      if (wait > 0) return backfills.later(one, wait);
      // Queue it behind the others, so that a long backfill does not delay them.
      if (!goOn()) return backfills.later(one, 0);
      current = await backfills.get(queue, current.id);
    }
  }

  /** One occurrence. Returns the ms to wait before the next one, or undefined if the backfill has ended or was dropped. */
  async #step(backfill: Backfill): Promise<number | undefined> {
    const { task: name, id, at, every, taskCreated } = backfill;
    const { backfills, calendars, claims } = this.store;
    const read = await claims.read(name);
    const created = typeof read === "string" ? undefined : read.entry.task.created;
    // The task was deleted, and may have been put again since: its backfill is deleted too.
    if (read === "gone" || (created !== undefined && created !== (taskCreated ?? created))) {
      await backfills.delete(name.queue, id);
      return undefined;
    }
    // Left to newer nodes.
    if (read === "foreign") return PUT_OFF;
    const { now, entry } = read;
    if (entry.task.calendarRevision > calendars.revision) await calendars.refresh();
    const overlap = backfill.overlap ?? entry.task.definition.overlap;
    const task = dueTask(entry, calendars.schedules);
    const frozen = frozenAt(task.freezes ?? [], now);
    if (frozen) return Math.min(PUT_OFF, (frozen.until ?? Number.POSITIVE_INFINITY) - now);
    const step = await this.#decide(task, backfill, overlap);
    if (step === undefined) {
      await backfills.end(name.queue, id, "done");
      return undefined;
    }
    const { decision, isDone, position } = step;
    const count = decision.enqueue ? "enqueued" : "skipped";
    const set: [string, number][] = isDone
      ? [
          ["at", position],
          [count, backfill[count] + 1],
        ]
      : [];
    const { nodeId: node, telemetry: tracer } = this.settings;
    const by = { token: newToken(), node, overlap, tracer };
    if (!isDone && !decision.cancel) return WAIT;
    const status = await claims.commitStep(name, { entry, decision }, { id, at, set }, by, now);
    switch (status) {
      case "OK":
      case "DONE":
        if (!isDone) return WAIT;
        if (step.isFollowed()) return every;
        // Ends it now, not when the next step would be due.
        await backfills.end(name.queue, id, "done");
        return undefined;
      case "LIMITED":
        return WAIT;
      case "STALE":
      case "EARLY":
      case "OVERLAP":
        return 0;
      default:
        status satisfies `ERROR ${string}`;
        throw redisError(new Error(status.slice("ERROR ".length)));
    }
  }

  /** Undefined: nothing is left. */
  async #decide(task: DueTask, backfill: Backfill, overlap: OverlapPolicy): Promise<Step | undefined> {
    const { id, at, to, ranges, runs, by } = backfill;
    if (runs !== undefined) {
      const [index, run] = [at + 1, runs[at + 1]];
      if (run === undefined) return undefined;
      const record = run.payloadOf && (await this.store.runs.many(backfill.task.queue, [run.payloadOf]))[0];
      const isGone = run.payloadOf !== undefined && !record;
      const payload = isGone ? "gone" : { own: record ? record.payload : undefined };
      const decision = decideReplay(task, run, { id, index, by, payload });
      const isDone = isGone || decision.enqueue !== undefined;
      return { position: index, decision, isDone, isFollowed: () => index + 1 < runs.length };
    }
    const step = decideStep(task, { id, at, to, ranges, overlap, by });
    if (step === undefined) return undefined;
    const { nominal: position, decision } = step;
    const isDone = decision.enqueue !== undefined || decision.skipped.length > 0;
    const isFollowed = () => nextStep(task.schedule, { at: position, to, ranges }) !== undefined;
    return { position, decision, isDone, isFollowed };
  }
}

interface Step {
  /** The backfill's `at` after it. */
  readonly position: number;
  readonly decision: Decision;
  /** Whether the occurrence is decided; else the step is tried again. */
  readonly isDone: boolean;
  /** Whether another step follows it. */
  readonly isFollowed: () => boolean;
}
