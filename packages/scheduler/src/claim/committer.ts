import { type ClaimResult, type CommitAnswer, newToken, type PackedItem, type Store } from "@carillon/store";
import type { Decided } from "../events.js";
import type { ServerClock } from "../loop/server-clock.js";
import type { Settings } from "../options.js";
import type { Part } from "../part.js";
import { BatchSize } from "./batch-size.js";

/** Results of one visit's claims. */
export interface ClaimReport {
  /** Shards in which anything was committed. */
  readonly progress: Set<Part>;
  decided: Decided[];
  refused: { task: string; status: string }[];
}

export function emptyReport(): ClaimReport {
  return { progress: new Set(), decided: [], refused: [] };
}

/** Sends commits, adapts their size to how long they take, and reports their results. */
export class Committer {
  readonly size = new BatchSize();
  readonly #store: Store;
  readonly #clock: ServerClock;
  readonly #learn: (took: number) => void;
  readonly #nodeId: string;
  readonly #tokenBase = newToken();
  #tokens = 0;

  /** @param learn receives the time in ms for which each commit blocked Redis */
  constructor(
    store: Store,
    clock: ServerClock,
    { nodeId }: Pick<Settings, "nodeId">,
    learn: (took: number) => void = () => {},
  ) {
    this.#store = store;
    this.#clock = clock;
    this.#learn = learn;
    this.#nodeId = nodeId;
  }

  /** Unique in the cluster: identifies a commit if its answer is lost, or is part of a run's id. */
  nextToken(): string {
    this.#tokens += 1;
    return `${this.#tokenBase}${this.#tokens.toString(36)}`;
  }

  /** Sends decisions about tasks of one queue, and reports what became final. */
  async commit(queue: string, items: readonly PackedItem[], report: ClaimReport): Promise<CommitAnswer> {
    const sentAt = this.#clock.mark();
    const by = { token: this.nextToken(), node: this.#nodeId };
    const answer = await this.#store.claims.commit(queue, items, by);
    this.size.learn(answer.took, items.length);
    this.#learn(answer.took);
    this.#clock.observe(answer.now, sentAt);
    for (const result of answer.results) {
      const { item, status } = result;
      if (status === "OK" || status === "DONE") addDecided(report.decided, queue, result, answer.now);
      // Not due yet by the clock of Redis: sent again a little later.
      else if (status !== "EARLY") report.refused.push({ task: item.entry.local, status });
    }
    return answer;
  }
}

function addDecided(decided: Decided[], queue: string, { item, run }: ClaimResult, at: number): void {
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
