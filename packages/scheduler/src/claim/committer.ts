import { type ClaimResult, type ClaimStatus, type CommitAnswer, newToken } from "@carillon/store";
import type { Decided } from "../events.js";
import type { ServerClock } from "../loop/server-clock.js";
import type { Settings } from "../options.js";
import { BatchSize } from "./batch-size.js";

/** Results of one turn's claims. */
export interface ClaimReport {
  /** Whether anything was committed; without progress the shards rest for a while. */
  progress: boolean;
  decided: Decided[];
  refused: { task: string; status: string }[];
}

export function emptyReport(): ClaimReport {
  return { progress: false, decided: [], refused: [] };
}

/** Sends commits, adapts their size to how long they take, and reports their results. */
export class Committer {
  readonly size = new BatchSize();
  readonly #clock: ServerClock;
  readonly #answered: (roundTrip: number) => void;
  readonly #nodeId: string;
  readonly #tokenBase = newToken();
  #tokens = 0;

  /** @param answered receives the round trip of each commit, in ms */
  constructor(
    clock: ServerClock,
    { nodeId }: Pick<Settings, "nodeId">,
    answered: (roundTrip: number) => void = () => {},
  ) {
    this.#clock = clock;
    this.#answered = answered;
    this.#nodeId = nodeId;
  }

  /** Unique in the cluster: identifies the claim if its answer is lost, and is part of the run's id. */
  nextClaim(): { token: string; node: string } {
    this.#tokens += 1;
    return { token: `${this.#tokenBase}${this.#tokens.toString(36)}`, node: this.#nodeId };
  }

  /** @returns whether it is useful to go on */
  async commit(
    queue: string,
    tasks: number,
    send: () => Promise<CommitAnswer>,
    report: ClaimReport,
  ): Promise<boolean> {
    const sentAt = this.#clock.mark();
    const { now: at, took, results } = await send();
    this.size.learn(took, tasks);
    this.#answered(this.#clock.mark() - sentAt);
    this.#clock.observe(at, sentAt);
    let progressed = false;
    for (const result of results) {
      if (result.status === "OK" || result.status === "DONE") {
        progressed = true;
        report.progress = true;
        tell(report.decided, queue, result, at);
      } else {
        report.refused.push({ task: result.item.entry.local, status: result.status });
        progressed ||= hasMoved(result.status);
      }
    }
    return progressed;
  }
}

/** Whether the next read finds the refused task changed, or no longer among those that are due. */
function hasMoved(status: Exclude<ClaimStatus, "OK" | "DONE">): boolean {
  switch (status) {
    case "STALE":
    case "OVERLAP":
    case "LIMITED":
      return true;
    case "EARLY":
      return false;
    default:
      status satisfies `ERROR ${string}`;
      return false;
  }
}

function tell(decided: Decided[], queue: string, { item, run }: ClaimResult, at: number): void {
  const { entry, decision } = item;
  const task = entry.local;
  for (const { reason, to } of decision.skipped)
    decided.push({ queue, task, due: entry.task.due ?? at, at, nominal: to, outcome: "skipped", reason });
  if (!decision.enqueue || run === undefined) return;
  const { nominal, due, trigger } = decision.enqueue;
  decided.push({
    queue,
    task,
    due,
    claimable: item.claimable ?? due,
    at,
    nominal,
    outcome: "enqueued",
    trigger,
    run,
  });
}
