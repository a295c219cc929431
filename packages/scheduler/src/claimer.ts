import { randomBytes } from "node:crypto";
import { decide } from "@carillon/core";
import {
  type ClaimItem,
  type ClaimResult,
  type DueEntry,
  dueTask,
  isForeign,
  type Lease,
  type Store,
} from "@carillon/store";
import { BatchSize } from "./batch-size.js";
import type { Decided } from "./events.js";
import type { Settings } from "./options.js";
import type { ServerClock } from "./server-clock.js";

export interface ShardReport {
  /** Whether anything was committed; without progress the shard is left alone for a while. */
  progress: boolean;
  decided: Decided[];
  refused: { task: string; status: string }[];
}

/** Due tasks of a shard that cannot be decided here are passed over up to this many. */
const PASS_AT_MOST = 2_000;

/** Turns the due tasks of a shard into jobs: read, decide, commit, until a short batch. */
export class Claimer {
  readonly #store: Store;
  readonly #clock: ServerClock;
  readonly #settings: Settings;
  readonly #size = new BatchSize();
  readonly #tokenBase = randomBytes(5).toString("hex");
  #tokens = 0;
  readonly #warned = new Set<string>();

  constructor(store: Store, clock: ServerClock, settings: Settings) {
    this.#store = store;
    this.#clock = clock;
    this.#settings = settings;
  }

  /** @param goOn asked after each batch: what is left then is left for another turn */
  async claim(queue: string, shard: number, lease: Lease, goOn: () => boolean): Promise<ShardReport> {
    const report: ShardReport = { progress: false, decided: [], refused: [] };
    let pass: number | undefined;
    let chosen: readonly string[] = [];
    let beyond = true;
    while (pass === undefined || pass < PASS_AT_MOST) {
      const limit = this.#size.current;
      const names = chosen.slice(0, limit);
      const sentAt = this.#clock.mark();
      const which = names.length > 0 ? { names } : { pass };
      const { now, more, entries, rest } = await this.#store.claims.readDue(queue, shard, limit, which);
      this.#clock.observe(now, sentAt);
      if (names.length > 0) chosen = chosen.slice(limit);
      else [chosen, beyond] = [rest, more];
      const left = beyond || chosen.length > 0;
      // What was chosen is done already: someone else was there as well.
      if (names.length > 0 && entries.length === 0 && left && goOn()) continue;
      // Fired a little early, or nothing but what cannot be decided here.
      if (entries.length === 0) report.progress ||= !pass;
      if (entries.length === 0 || this.#clock.holding) return report;

      await this.#learnCalendars(entries);
      const items = entries.flatMap((entry) => this.#decide(queue, entry, now));
      // What is left to newer nodes stays due, at the head: it must not keep the others from their turn.
      const undecided = entries.length - items.length;
      if (pass !== undefined) pass += undecided;
      else if (undecided > 0) [pass, chosen, beyond] = [0, [], true];
      if (items.length > 0 && !(await this.#commit(queue, shard, items, now, report))) return report;
      if (!left || !goOn()) return report;
      if (lease.remaining < this.#settings.mutexTtl / 2) await lease.extend(this.#settings.mutexTtl);
    }
    return report;
  }

  /** A task that was planned with newer calendars than ours is not decided about with the older ones. */
  async #learnCalendars(entries: readonly DueEntry[]): Promise<void> {
    const { calendars } = this.#store;
    const newer = ({ task }: DueEntry) =>
      task !== undefined && !isForeign(task) && task.calendarRevision > calendars.revision;
    if (entries.some(newer)) await calendars.refresh();
  }

  #decide(queue: string, entry: DueEntry, now: number): ClaimItem[] {
    const { task, local } = entry;
    if (!task || isForeign(task)) {
      this.#warnOnce(
        `${queue} ${local}`,
        task
          ? `written in format ${task.version}, newer than ours: left to newer nodes`
          : "due, but not stored, or not readable",
        { queue, task: local },
      );
      return [];
    }
    try {
      const item = { ...entry, task };
      const decision = decide(dueTask(item, this.#store.calendars.schedules), now, this.#settings.grace);
      return [{ entry: item, decision }];
    } catch (error) {
      this.#warnOnce(`${queue} ${local} ${task.generation}`, "cannot be decided here: left alone", {
        queue,
        task: local,
        error: String(error),
      });
      return [];
    }
  }

  async #commit(
    queue: string,
    shard: number,
    items: ClaimItem[],
    now: number,
    report: ShardReport,
  ): Promise<boolean> {
    const by = { token: this.#nextToken(), node: this.#settings.nodeId };
    const sentAt = this.#clock.mark();
    const { now: at, results } = await this.#store.claims.commit(queue, shard, items, by, now);
    this.#size.learn(this.#clock.mark() - sentAt, items.length);
    this.#clock.observe(at, sentAt);
    let progressed = false;
    for (const result of results) {
      if (result.status === "OK" || result.status === "DONE") {
        progressed = true;
        report.progress = true;
        report.decided.push(...decisionsOf(queue, result, at));
      } else {
        report.refused.push({ task: result.item.entry.local, status: result.status });
        // What changed under us is read again at once; what came too early or failed is not.
        if (result.status === "STALE" || result.status === "OVERLAP") progressed = true;
      }
    }
    return progressed;
  }

  /** Unique in the cluster: the claim's identity when its answer is lost, and part of the run's id. */
  #nextToken(): string {
    this.#tokens += 1;
    return `${this.#tokenBase}${this.#tokens.toString(36)}`;
  }

  #warnOnce(key: string, message: string, details: object): void {
    if (this.#warned.has(key)) return;
    if (this.#warned.size > 10_000) this.#warned.clear();
    this.#warned.add(key);
    this.#settings.logger.warn(details, message);
  }
}

function decisionsOf(queue: string, { item, run }: ClaimResult, at: number): Decided[] {
  const { entry, decision } = item;
  const base = { queue, task: entry.local, due: entry.task.due ?? at, at };
  const skipped = decision.skipped.map(
    ({ reason, to }): Decided => ({ ...base, nominal: to, outcome: "skipped", reason }),
  );
  if (!decision.enqueue || run === undefined) return skipped;
  const { nominal, due, trigger } = decision.enqueue;
  return [...skipped, { ...base, due, nominal, outcome: "enqueued", trigger, run }];
}
