import type { Client, Run, Skip, Task } from "@carillon/sdk";
import { compileSchedule, seedOf } from "@carillon/sdk/schedule";

/** Nominal times remembered of each task. */
const MEMORY = 500;

interface History {
  /** By nominal time: the runs that were enqueued for it. */
  readonly runs: Map<number, Set<string>>;
  /** Skips by their begin; itself it keeps the newest 50 only. */
  readonly skips: Map<number, Skip>;
  /** Times before this are not checked: their entries may have been lost before the tally began. */
  readonly since: number;
  missed: Set<number>;
}

/**
 * Checks the promise while the demo runs, from records alone: each nominal time has one run, a skip that says
 * why not, or it waits for another run to end.
 */
export class Tally {
  readonly #tasks = new Map<string, History>();

  get enqueued(): number {
    return this.#sum((history) => history.runs.size);
  }

  get doubled(): number {
    return this.#sum((history) => [...history.runs.values()].filter((runs) => runs.size > 1).length);
  }

  get missed(): number {
    return this.#sum((history) => history.missed.size);
  }

  get skipped(): number {
    return this.#sum(({ skips }) => [...skips.values()].reduce((sum, { decisions }) => sum + decisions, 0));
  }

  #sum(of: (history: History) => number): number {
    return [...this.#tasks.values()].reduce((sum, history) => sum + of(history), 0);
  }

  async refresh(client: Client): Promise<void> {
    const { tasks } = await client.list({ limit: 1_000 });
    for (const task of tasks) {
      const ref = { queue: task.queue, owner: task.owner, id: task.id };
      const [runs, skips] = await Promise.all([
        client.runs.list(ref, { limit: 100 }),
        client.runs.skips(ref),
      ]);
      this.learn(task, runs, skips);
    }
  }

  learn(task: Task, runs: readonly Run[], skips: readonly Skip[]): void {
    const key = `${task.queue} ${task.owner}/${task.id}`;
    const since = Math.min(...skips.map(({ from }) => from));
    const history = this.#tasks.get(key) ?? {
      runs: new Map(),
      skips: new Map(),
      missed: new Set(),
      since: Number.isFinite(since) ? since : 0,
    };
    this.#tasks.set(key, history);
    for (const run of runs) {
      if (run.trigger === "manual" || run.trigger === "backfill") continue;
      const known = history.runs.get(run.nominal) ?? new Set();
      known.add(run.id);
      history.runs.set(run.nominal, known);
    }
    for (const entry of skips) history.skips.set(entry.from, entry);
    if (history.runs.size === 0 || task.cursor === undefined) return;

    const schedule = compileSchedule(task.schedule, seedOf(task));
    const recorded = (time: number) =>
      history.runs.has(time) ||
      [...history.skips.values()].some(({ from, to }) => from <= time && time <= to) ||
      task.pending.some(({ nominal }) => nominal === time);
    const nominals = [...history.runs.keys()].sort((a, b) => a - b).slice(-MEMORY);
    history.missed = new Set();
    let time: number | undefined = Math.max(history.since, nominals[0] as number);
    for (const [from, { to }] of history.skips) if (to < time) history.skips.delete(from);
    while (time !== undefined && time <= task.cursor) {
      if (!recorded(time)) history.missed.add(time);
      time = schedule.next(time);
    }
  }
}
