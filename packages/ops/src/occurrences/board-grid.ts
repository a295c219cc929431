import type { TaskName } from "@carillon/core";
import { FAILURES } from "@carillon/core/internal";
import type { ShortRun } from "@carillon/store";
import { isLate, percentile } from "../runs/figures.js";
import type { BoardSkip } from "./board-reads.js";

/**
 * Counts of a cell. `planned` at the planned time; `onTime`, `late`, `failed` and `open` at the start; `backfilled` and skips at the
 * planned time; `overdue`: planned, and no node has claimed it.
 */
export const MARKS = [
  "planned",
  "onTime",
  "backfilled",
  "late",
  "failed",
  "open",
  "skipped",
  "missed",
  "overdue",
] as const;
type Mark = (typeof MARKS)[number];
type Cell = Partial<Record<Mark, number>>;

interface Row {
  readonly task: TaskName | undefined;
  readonly cells: Map<number, Cell>;
}

interface Range {
  readonly from: number;
  readonly to: number;
  readonly step: number;
  readonly size: number;
}

const FAULTS: readonly Mark[] = ["failed", "missed", "overdue", "late"];

/** Counts occurrences by row and cell. */
export class BoardGrid {
  readonly #tagsOf: (task: TaskName) => readonly string[];
  readonly #rows = new Map<string, Row>();
  readonly #delays = new Map<number, number[]>();
  readonly #ended: number[];
  readonly #sums = { ended: 0, late: 0, failed: 0, skipped: 0, missed: 0 };

  constructor(
    private readonly range: Range,
    private readonly by: "queue" | "owner" | "tag" | "task",
    tagsOf: (task: TaskName) => readonly string[],
  ) {
    this.#tagsOf = tagsOf;
    this.#ended = new Array<number>(range.size).fill(0);
  }

  /** The names of a task's rows, which exist from now on. */
  rowsOf(task: TaskName, tags = this.#tagsOf(task)): string[] {
    const { queue, owner, id } = task;
    const names =
      this.by === "task"
        ? [`${owner}/${id} ${queue}`]
        : this.by === "tag"
          ? tags.length > 0
            ? [...tags]
            : [""]
          : [this.by === "queue" ? queue : owner];
    for (const name of names)
      if (!this.#rows.has(name))
        this.#rows.set(name, {
          task: this.by === "task" ? { queue, owner, id } : undefined,
          cells: new Map(),
        });
    return names;
  }

  add(task: TaskName, at: number, mark: Mark, count: number): void {
    for (const row of this.rowsOf(task)) this.#mark(row, at, mark, count);
  }

  addRun(run: ShortRun, count: number): void {
    const { task, nominal, started, enqueued, finished, outcome, lateMs = 0, waitMs = 0, trigger } = run;
    if (trigger !== "manual" && trigger !== "retry") this.add(task, nominal, "planned", count);
    const late = isLate(run);
    const isFailed = outcome !== undefined && FAILURES.has(outcome);
    const mark = finished === undefined ? "open" : isFailed ? "failed" : late ? "late" : "onTime";
    if (trigger === "backfill" && finished !== undefined)
      this.add(task, nominal, mark === "failed" ? mark : "backfilled", count);
    else this.add(task, started ?? enqueued, mark, count);
    const cell = this.#cellAt(finished ?? started ?? enqueued);
    if (finished !== undefined && cell !== undefined) {
      this.#ended[cell] = (this.#ended[cell] ?? 0) + count;
      this.#sums.ended += count;
      if (late) this.#sums.late += count;
      if (isFailed) this.#sums.failed += count;
    }
    const start = started === undefined ? undefined : this.#cellAt(started);
    if (start === undefined || run.lateMs === undefined) return;
    const delays = this.#delays.get(start);
    if (delays) delays.push(lateMs + waitMs);
    else this.#delays.set(start, [lateMs + waitMs]);
  }

  addSkip({ task, reason, from, to }: BoardSkip): void {
    const mark = reason === "missed" ? "missed" : "skipped";
    this.#sums[mark] += 1;
    // A range has a time in each cell between its ends, as far as is known.
    const first = Math.max(from, this.range.from);
    const last = Math.min(to, this.range.to - 1);
    for (let at = first; at <= last; at += this.range.step) {
      this.add(task, at, "planned", 1);
      this.add(task, at, mark, 1);
    }
  }

  /** @param counts of steps from `from` on @param stands number of occurrences that each counts for */
  addPlanned(row: string, from: number, counts: readonly number[], stands: number): void {
    for (const [i, count] of counts.entries())
      if (count > 0) this.#mark(row, from + i * this.range.step, "planned", count * stands);
  }

  charts(): { ended: number[]; lateMs: number[] } {
    const p95 = (all: number[]) =>
      percentile(
        all.sort((a, b) => a - b),
        0.95,
      ) ?? 0;
    return {
      ended: this.#ended.map(Math.round),
      lateMs: this.#ended.map((_, i) => p95(this.#delays.get(i) ?? [])),
    };
  }

  sums() {
    const { ended, late, failed, skipped, missed } = this.#sums;
    return {
      ...{ skipped, missed },
      ended: Math.round(ended),
      late: Math.round(late),
      failed: Math.round(failed),
    };
  }

  /** The rows that matter most, in the order of their names. */
  shown(most: number) {
    const weights = [...this.#rows].map(([name, row]) => {
      const sum = (marks: readonly Mark[]) =>
        [...row.cells.values()].reduce(
          (sum, cell) => sum + marks.reduce((n, mark) => n + (cell[mark] ?? 0), 0),
          0,
        );
      return { name, row, faults: sum(FAULTS), all: sum(MARKS) };
    });
    const rows = weights
      .sort((a, b) => b.faults - a.faults || b.all - a.all || (a.name < b.name ? -1 : 1))
      .slice(0, most)
      .sort((a, b) => (a.name < b.name ? -1 : 1))
      .map(({ name, row: { task, cells } }) => ({
        name: task ? `${task.owner}/${task.id}` : name,
        ...(task && { task }),
        cells: [...cells].sort(([a], [b]) => a - b).map(([i, cell]) => ({ i, ...rounded(cell) })),
      }));
    return { rows, hidden: weights.length - rows.length };
  }

  #mark(row: string, at: number, mark: Mark, count: number): void {
    const i = this.#cellAt(at);
    const cells = this.#rows.get(row)?.cells;
    if (i === undefined || cells === undefined) return;
    const cell = cells.get(i) ?? {};
    cell[mark] = (cell[mark] ?? 0) + count;
    cells.set(i, cell);
  }

  #cellAt(at: number): number | undefined {
    const i = Math.floor((at - this.range.from) / this.range.step);
    return i >= 0 && i < this.range.size ? i : undefined;
  }
}

function rounded(cell: Cell): Cell {
  return Object.fromEntries(
    Object.entries(cell).map(([mark, count]) => [mark, Math.max(1, Math.round(count))]),
  );
}
