import type { ParsedTask, TaskName } from "@carillon/core";
import { calendarsOf, conflict, firstNext, isOver, localName, shardOf } from "@carillon/core/internal";
import { fieldsOf, type NewBackfill } from "../backfills.js";
import { type CalendarRepository, READ_TIME } from "../calendars.js";
import type { FreezeRepository } from "../freezes.js";
import { newToken } from "../ids.js";
import { scored } from "../redis/scored.js";
import type { Registry } from "../registry.js";
import type { Parts } from "../repository.js";
import { FACTS } from "../script/facts.js";
import {
  BULL,
  BULL_PROMOTE,
  CHECKS,
  LEDGER,
  MARKS,
  OPEN,
  REVISIONS,
  STATS,
  TASK,
  TRIED,
} from "../script/libraries.js";
import { answers, script } from "../script/script.js";
import { isManual, isRetired } from "./codec.js";
import { clearDeletedRuns } from "./deleted-runs.js";
import { owedOf, type PutOptions, type PutResult } from "./draft.js";
import { isMoving, noText, notAsAsked, unsupportedFormat } from "./errors.js";
import { type PlannedPut, PutWriter } from "./put.js";
import { TaskReads } from "./task-reads.js";

/** Tasks per batch when all are replanned. */
const REPLAN_PAGE = 200;
/** Names read at once, of tasks to be counted, or of runs. */
const NAMES_PAGE = 5_000;

const AUDIT = script("audit", {
  once: { repeats: "It repairs indexes from what is stored when it runs." },
  keys: ["tasks", "next", "dues[]", "priorities"],
  args: ["last"],
  each: { keys: ["task"], args: ["name", "shard"] },
  uses: [TASK],
  answer: answers<number>(),
});

const PAUSE = script("pause", {
  once: "generation",
  keys: ["task", "due", "next", "expected", "runs"],
  args: ["name", "shard", "gen", "by", "note"],
  uses: [TASK, CHECKS],
  answer: answers<string>(),
});

const RESUME = script("resume", {
  once: "generation",
  keys: [
    "task",
    "due",
    "next",
    "expected",
    "runs",
    "ledger",
    "stats",
    "open",
    "backfill?",
    "backfills",
    "replaying",
  ],
  args: [
    "name",
    "shard",
    "gen",
    "state",
    "nominal",
    "due",
    "passedFrom",
    "passedTo",
    "by",
    "mode",
    "backfill",
    "after",
    "fields[]",
  ],
  uses: [TASK, LEDGER, OPEN, BULL, BULL_PROMOTE],
  answer: answers<"OK" | "STALE" | "MISSING">(),
});

const RETIRE = script("retire", {
  once: "generation",
  keys: ["task", "due", "next", "expected", "runs", "ledger", "owned"],
  args: ["name", "shard", "gen", "state", "set", "passedFrom", "passedTo"],
  uses: [TASK, LEDGER, CHECKS],
  answer: answers<"OK" | "STALE" | "MISSING">(),
});

const DELETE = script("delete", {
  once: "generation",
  keys: [
    "task",
    "due",
    "next",
    "expected",
    "runs",
    "tasks",
    "ledger",
    "observed",
    "revisions",
    "deleted",
    "stats",
    "alerts",
    "backfills",
    "priorities",
    "open",
    "history",
    "failures",
    "marks",
    "left[]",
  ],
  args: ["name", "shard", "which", "gen", "mark", "change", "names[]"],
  uses: [TASK, OPEN, STATS, TRIED, MARKS, REVISIONS],
  answer: answers<0 | 1 | 2 | "STALE">(),
});

/** Owed times of a paused task, and the backfill that runs them. */
export interface Replayed {
  /** The first owed time when they were counted. */
  readonly owed: number;
  readonly backfill: Omit<NewBackfill, "task" | "taskCreated" | "pause">;
  /** Delay before its first step, in ms. */
  readonly after: number;
}

export class TaskRepository extends TaskReads {
  readonly #registry: Registry;
  readonly #calendars: CalendarRepository;
  readonly #writer: PutWriter;

  constructor(parts: Parts, registry: Registry, freezes: FreezeRepository, calendars: CalendarRepository) {
    super(parts, registry);
    this.#registry = registry;
    this.#calendars = calendars;
    this.#writer = new PutWriter(parts, freezes, calendars);
  }

  /** The time of this queue's Redis, in ms. */
  async time(queue: string): Promise<number> {
    return this.scripts.run(READ_TIME, { any: this.keys.queue(queue).tasks });
  }

  /**
   * Stores tasks of one queue, each for itself, in the order given. An identical one changes nothing. The caller has checked their
   * types (`Registry.rules`).
   *
   * @throws `CONFLICT` with the field `ifRevision` if the stored revision is another one and the definitions differ
   */
  async put(queue: string, tasks: readonly ParsedTask[], options: PutOptions = {}): Promise<PutResult[]> {
    const shared = tasks.some(({ definition }) => calendarsOf(definition.schedule).length > 0);
    if (shared) await this.#assertCalendars(tasks);
    const mark = this.#registry.enter(queue);
    try {
      const view = await this.#writer.view(queue, mark);
      const results = await this.#writer.put(queue, tasks, view, options);
      // A calendar that changed meanwhile was replanned without these tasks, also if an earlier attempt of this put was interrupted.
      if (shared) await this.#lookAgain(queue, tasks);
      return results;
    } finally {
      await this.#registry.leave(queue, await mark);
    }
  }

  /** Says what `put` would do now; changes nothing. @throws as `put` */
  async plan(queue: string, tasks: readonly ParsedTask[], options: PutOptions = {}): Promise<PlannedPut[]> {
    if (!options.schedules && tasks.some(({ definition }) => calendarsOf(definition.schedule).length > 0))
      await this.#assertCalendars(tasks);
    return this.#writer.plan(queue, tasks, await this.time(queue), options);
  }

  /** @throws `INVALID_SCHEDULE` if one names a calendar that does not exist */
  async #assertCalendars(tasks: readonly ParsedTask[]): Promise<void> {
    await this.#calendars.refresh();
    for (const { definition } of tasks) this.#calendars.schedules.get(definition);
  }

  async #lookAgain(queue: string, tasks: readonly ParsedTask[]): Promise<void> {
    const known = this.#calendars.known;
    await this.#calendars.refresh();
    const names = new Set(tasks.flatMap(({ definition }) => calendarsOf(definition.schedule)));
    for (const name of names) await this.#calendars.restore(known, name);
    await this.#calendars.refresh();
    await this.#calendars.replanStale(queue);
  }

  /**
   * Replans the tasks of a queue whose next time differs.
   * @returns their number; `left`: tasks that cannot be planned: from a newer version, or corrupt
   */
  async replanAll(queue: string): Promise<{ replanned: number; left: number }> {
    await this.#calendars.refresh();
    let [replanned, left] = [0, 0];
    for await (const locals of this.names(queue, REPLAN_PAGE)) {
      const page = await this.#calendars.replan(queue, locals, false);
      replanned += page.done;
      left += page.left;
    }
    return { replanned, left };
  }

  /** Repairs the indexes of a queue from its definitions. Returns the number of repaired tasks and parts. */
  async audit(queue: string): Promise<number> {
    const keys = this.keys.queue(queue);
    let mended = 0;
    for await (const locals of this.names(queue, REPLAN_PAGE)) {
      const last = locals.length < REPLAN_PAGE;
      const items = locals.map((name) => ({ task: keys.task(name), name, shard: shardOf(name) }));
      mended += await this.scripts.run(AUDIT, keys, { last }, items);
    }
    return mended;
  }

  #movedKeys(name: TaskName) {
    const keys = this.keys.queue(name.queue);
    const local = localName(name);
    return { ...keys, task: keys.task(local), due: keys.due(shardOf(local)) };
  }

  async pause(name: TaskName, by = "", note = ""): Promise<"OK" | "UNCHANGED" | "MISSING" | "FINISHED"> {
    const local = localName(name);
    for (;;) {
      const gen = await this.#generation(name);
      const answer = await this.scripts.run(PAUSE, this.#movedKeys(name), {
        name: local,
        shard: shardOf(local),
        gen,
        by,
        note,
      });
      const [word, version] = answer.split(" ");
      if (word === "FOREIGN") throw unsupportedFormat(local, version as string);
      if (word !== "STALE") return word as "OK" | "UNCHANGED" | "MISSING" | "FINISHED";
    }
  }

  /**
   * Resumes a paused task. `missed: "skip"`: times that fell due during the pause are skipped, with a ledger entry.
   * `"catch-up"`: the catch-up policy decides about them. A time: those up to it are skipped, and the schedule continues after it;
   * `Replayed`: likewise up to the end of a backfill, which is stored in the same step.
   *
   * @param after delay before an owed time is claimed, in ms; its catch-up policy takes it as due then. Default: it stays overdue
   * @param mode of its schedule from now on. Default: as it is
   * @throws `CONFLICT` if it is held for a move; with `Replayed`, if it owes from another time now
   */
  async resume(
    name: TaskName,
    missed: "skip" | "catch-up" | number | Replayed,
    by = "",
    { after, mode }: { after?: number | undefined; mode?: "live" | "shadow" | undefined } = {},
  ): Promise<"OK" | "UNCHANGED" | "MISSING"> {
    const keys = this.keys.queue(name.queue);
    const local = localName(name);
    const replayed = typeof missed === "object" ? missed : undefined;
    const backfill = replayed && keys.backfill(replayed.backfill.id);
    for (;;) {
      const [now, task] = await Promise.all([this.time(name.queue), this.get(name)]);
      if (!task) return "MISSING";
      if (task.moving !== undefined && (replayed || task.state !== "paused"))
        throw isMoving(task.moving, local);
      if (task.state !== "paused") {
        // Its id is this call's: an earlier request, whose answer was lost, has stored it.
        const isDone = backfill && (await this.link.ask((client) => client.exists(backfill))) === 1;
        return isDone ? "OK" : "UNCHANGED";
      }
      if (replayed && task.nominal !== replayed.owed)
        throw conflict(`${local} has changed since what it owes was counted.`, "Call again.");
      if (task.calendarRevision > this.#calendars.revision) await this.#calendars.refresh();
      const schedule = this.#calendars.schedules.get(task.definition);
      const owed = task.nominal;
      // The run that it waits for has not ended: its end gives the next time.
      const kept = missed === "catch-up" || task.waiting !== undefined;
      const its = { task: name, taskCreated: task.created, pause: task.paused };
      const stored = replayed && { ...replayed.backfill, ...its };
      const through = replayed?.backfill.to ?? (typeof missed === "number" ? missed : now);
      const next = isRetired(task) ? undefined : firstNext(schedule, task, through);
      const { nominal, due: planned } = (kept ? task : next) ?? {};
      const due = planned !== undefined && after !== undefined ? Math.max(planned, now + after) : planned;
      const over = isOver({
        nominal,
        waits: task.waiting !== undefined,
        pending: task.pending,
        manual: isManual(task),
      });
      const skipped =
        missed !== "catch-up" && owed !== undefined && owed <= through
          ? (schedule.latest(through) ?? owed)
          : undefined;
      const answer = await this.scripts.run(
        RESUME,
        {
          ...this.#movedKeys(name),
          ledger: keys.ledger(local),
          stats: keys.stats(local),
          open: keys.open(local),
          backfill,
        },
        {
          name: local,
          shard: shardOf(local),
          gen: task.generation,
          state: over ? "finished" : "scheduled",
          nominal,
          due,
          passedFrom: skipped === undefined ? undefined : owed,
          passedTo: skipped,
          by: by || "-",
          mode,
          backfill: replayed?.backfill.id,
          after: replayed?.after,
          fields: stored ? Object.entries(fieldsOf(stored)).flat() : [],
        },
      );
      if (answer !== "STALE") return answer;
    }
  }

  /**
   * Takes a task out of its set: its schedule never fires again, its runs and what waits go on, and it is deleted once it has lingered.
   *
   * @throws `CONFLICT` if it has another revision, or is held for a move
   */
  async retire(name: TaskName, revision: string): Promise<void> {
    const local = localName(name);
    for (;;) {
      const [now, task] = await Promise.all([this.time(name.queue), this.get(name)]);
      if (!task?.set || isRetired(task)) return;
      if (task.revision !== revision) throw notAsAsked(local, "has changed since");
      if (task.moving !== undefined) throw isMoving(task.moving, local);
      const owed = owedOf(this.#calendars.schedules, task, now);
      const keys = this.keys.queue(name.queue);
      const answer = await this.scripts.run(
        RETIRE,
        { ...this.#movedKeys(name), ledger: keys.ledger(local), owned: keys.owned(task.set.name) },
        {
          name: local,
          shard: shardOf(local),
          gen: task.generation,
          state: task.pending.length > 0 && task.state === "scheduled" ? "scheduled" : "finished",
          set: `${task.set.name} ${task.set.filed}`,
          passedFrom: owed?.from,
          passedTo: owed?.to,
        },
      );
      if (answer !== "STALE") return;
    }
  }

  /** Names of the tasks of a set in a queue, with the time at which they were removed from it, 0 for its members. */
  async owned(queue: string, set: string): Promise<[local: string, removed: number][]> {
    return scored(
      await this.link.ask((client) =>
        client.zrange(this.keys.queue(queue).owned(set), 0, "-1", "WITHSCORES"),
      ),
    );
  }

  /** The generation of a task; "" if there is none, or corrupt data in its place. */
  async #generation(name: TaskName): Promise<string> {
    const { task } = this.#movedKeys(name);
    return this.link.ask((client) => client.hget(task, "gen").then((gen) => gen ?? "", noText));
  }

  /**
   * Deletes a task with all that belongs to it. Returns whether there was one. One that is held for a move has two places, so only the move
   * deletes it.
   *
   * @param which `finished`: only while the task is finished and has no runs left; `gen`: only in this generation, while it is held for a
   * move and has no open runs; `seen`: only in this generation; `change`: as of a put
   * @throws `CONFLICT` if it is held for a move
   */
  async delete(
    name: TaskName,
    which: "any" | "finished" | { gen: string } | { seen: string; change?: string | undefined } = "any",
  ): Promise<boolean> {
    const keys = this.keys.queue(name.queue);
    const local = localName(name);
    const token = newToken();
    const names = [`${FACTS.goneOpen}${local}`, `${FACTS.gone}${token}.hist`, `${FACTS.gone}${token}.fail`];
    const isHeld = typeof which === "object" && "gen" in which;
    const given = isHeld ? which.gen : typeof which === "object" ? which.seen : undefined;
    const gen = given ?? (await this.#generation(name));
    const gone = await this.scripts.run(
      DELETE,
      {
        ...this.#movedKeys(name),
        ledger: keys.ledger(local),
        revisions: keys.revisions(local),
        observed: keys.observed(local),
        stats: keys.stats(local),
        open: keys.open(local),
        history: keys.history(local),
        failures: keys.failures(local),
        marks: keys.marks,
        left: names.map((one) => keys.gone(one)),
      },
      {
        name: local,
        shard: shardOf(local),
        which: isHeld ? "held" : typeof which === "object" ? "any" : which,
        gen,
        mark: token,
        change: typeof which === "object" && "seen" in which ? which.change : undefined,
        names,
      },
    );
    if (gone === "STALE") return given === undefined && this.delete(name, which);
    if (gone === 2) {
      const moving = (await this.get(name))?.moving;
      if (!isHeld && which !== "finished" && moving !== undefined) throw isMoving(moving, local);
    }
    // If this is interrupted, a node or `clearDeletedRuns` finishes it.
    for (const one of names) await clearDeletedRuns(this.scripts, keys, one);
    await this.#registry.forgetIfEmpty(name.queue);
    return gone === 1;
  }

  async clearDeletedRuns(queue: string): Promise<void> {
    const keys = this.keys.queue(queue);
    const marks: string[] = [];
    for (let from = 0; ; from += NAMES_PAGE) {
      const page = await this.link.ask((client) => client.zrevrange(keys.runs, from, from + NAMES_PAGE - 1));
      for (const member of page) if (member.startsWith(FACTS.gone)) marks.push(member);
      if (page.length < NAMES_PAGE) break;
    }
    for (const mark of marks) await clearDeletedRuns(this.scripts, keys, mark);
  }
}
