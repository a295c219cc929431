import { type Gap, gapText, reasonText, sentence, type Work } from "@carillon/core/internal";
import { Coverage } from "@carillon/store";
import type { Warning } from "./types.js";

/** Warns of what tasks lack to run: a worker, or any node. */
export class WorkerWarnings extends Coverage {
  /** Warnings of each: no node, no worker. Never rejects: a warning must not fail the call. */
  async warnings(works: readonly Work[]): Promise<Warning[][]> {
    const [gaps, hasNode] = await Promise.all([
      this.gaps(works).catch(() => new Map<Work, Gap>()),
      this.hasNode().catch(() => true),
    ]);
    return works.map((work) => {
      const gap = gaps.get(work);
      return [...(hasNode ? [] : [NO_NODE]), ...(gap ? [noWorker(gap)] : [])];
    });
  }

  /** The same as `warnings`, for one task type. */
  async warningsOf(work: Work): Promise<Warning[]> {
    return (await this.warnings([work])).flat();
  }
}

const NO_NODE: Warning = {
  code: "NO_NODE",
  message: sentence(reasonText({ code: "NO_NODE" })),
  remedy: "Start one, for example carillon-scheduler: until then nothing is enqueued at its time.",
};

/** Warnings about a run whose job is in its queue: it needs no node. */
export function ofEnqueued(warnings: readonly Warning[]): Warning[] {
  return warnings.filter((warning) => warning !== NO_NODE);
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
  return { code: "NO_WORKER", message: `${sentence(gapText(gap))}. ${then}`, remedy };
}
