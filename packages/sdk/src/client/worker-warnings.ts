import { type Gap, gapText, type Work } from "@carillon/core/internal";
import { Coverage } from "@carillon/store";
import type { Warning } from "./types.js";

/** Warns of task types that no worker handles. */
export class WorkerWarnings extends Coverage {
  /** A warning for each that has no worker. Never rejects: a warning must not fail the call. */
  async warnings(works: readonly Work[]): Promise<(Warning | undefined)[]> {
    const gaps = await this.gaps(works).catch(() => new Map<Work, Gap>());
    return works.map((work) => {
      const gap = gaps.get(work);
      return gap && noWorker(gap);
    });
  }

  /** The same as `warnings`, for one task type. */
  async warningsOf(work: Work): Promise<Warning[]> {
    const [warning] = await this.warnings([work]);
    return warning ? [warning] : [];
  }
}

function noWorker(gap: Gap): Warning {
  const { queue, type, workers } = gap;
  const [then, remedy] =
    workers === 0
      ? [
          `Jobs of type ${type} wait there until one starts.`,
          `Start a worker that has the type ${type} and works the queue ${queue}.`,
        ]
      : [
          "A worker fails the runs whose type it does not have.",
          `Give the type ${type} to all workers of ${queue}, or put the task into another queue.`,
        ];
  const text = gapText(gap);
  return { code: "NO_WORKER", message: `${text[0]?.toUpperCase()}${text.slice(1)}. ${then}`, remedy };
}
