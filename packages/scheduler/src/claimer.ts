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
import { keep } from "./lease.js";
import type { Settings } from "./options.js";
import { Preparations, Prepared, WINDOW } from "./prepared.js";
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
  readonly #preparations = new Preparations();

  constructor(store: Store, clock: ServerClock, settings: Settings) {
    this.#store = store;
    this.#clock = clock;
    this.#settings = settings;
  }

  /**
   * Reads and decides what comes due at a time that is near, so that only the commit is left to do then. The commit's checks make it
   * safe: whatever has changed meanwhile is `STALE` there, and read anew. What hangs on how a run goes on until then is left
   * out.
   *
   * @param goOn asked before each read
   */
  async prepare(queue: string, shard: number, at: number, goOn: () => boolean): Promise<void> {
    const prepared = new Prepared(at, this.#settings.grace);
    this.#preparations.set(queue, shard, prepared);
    let names: readonly string[] | undefined;
    while (names?.length !== 0 && !prepared.full && !this.#preparations.full && goOn()) {
      const limit = this.#size.current;
      const which = names ? { names: names.slice(0, limit) } : { window: WINDOW };
      const { entries, rest } = await this.#store.claims.readDue(queue, shard, limit, { by: at, ...which });
      names = names?.slice(limit) ?? rest;
      await this.#learnCalendars(entries);
      const items = prepared.choose(entries, (entry) => this.#foresee(queue, entry, at));
      if (items.length > 0) prepared.add(this.#store.claims.pack(queue, shard, items, this.#nextClaim(), at));
    }
  }

  /** What was prepared long ago goes. */
  forget(now: number): void {
    this.#preparations.forget(now);
  }

  /** Undefined: it is not simply enqueued. */
  #foresee(queue: string, entry: DueEntry, at: number): ClaimItem | undefined {
    const [item] = this.#decide(queue, entry, at);
    return item?.decision.enqueue && item.decision.skipped.length === 0 ? item : undefined;
  }

  /** @param goOn asked after each batch: what is left then is left for another turn */
  async claim(queue: string, shard: number, lease: Lease, goOn: () => boolean): Promise<ShardReport> {
    const report: ShardReport = { progress: false, decided: [], refused: [] };
    if (await this.#claimPrepared(queue, shard, lease, goOn, report)) {
      await this.#claimDue(queue, shard, lease, goOn, report);
    }
    return report;
  }

  /** @returns whether to go on with what was not prepared */
  async #claimPrepared(
    queue: string,
    shard: number,
    lease: Lease,
    goOn: () => boolean,
    report: ShardReport,
  ): Promise<boolean> {
    const prepared = this.#preparations.get(queue, shard);
    if (!prepared || this.#clock.now() < prepared.at) return true;
    const { commits } = prepared;
    while (prepared.holds(this.#clock.now())) {
      const [commit] = commits;
      if (!commit) break;
      if (this.#clock.holding) return false;
      const refused = report.refused.length;
      const send = () => this.#store.claims.send(commit);
      const progressed = await this.#commit(queue, commit.items.length, send, report);
      if (!progressed && report.refused.slice(refused).every(({ status }) => status === "EARLY")) {
        // By Redis' clock it is not time yet.
        report.refused.length = refused;
        report.progress = true;
        return false;
      }
      commits.shift();
      if (!progressed) return false;
      // Tasks that changed may now have a priority that goes before what is left here.
      if (prepared.prioritized && report.refused.length > refused) break;
      if (!goOn()) return false;
      await keep(lease, this.#settings.mutexTtl);
    }
    this.#preparations.drop(queue, shard, prepared);
    return true;
  }

  async #claimDue(
    queue: string,
    shard: number,
    lease: Lease,
    goOn: () => boolean,
    report: ShardReport,
  ): Promise<void> {
    let pass: number | undefined;
    let chosen: readonly string[] = [];
    let beyond = true;
    while (pass === undefined || pass < PASS_AT_MOST) {
      const limit = this.#size.current;
      const names = chosen.slice(0, limit);
      const sentAt = this.#clock.mark();
      const which = names.length > 0 ? { names } : { pass };
      const { now, more, entries, rest } = await this.#store.claims.readDue(queue, shard, limit, which);
      const waited = this.#clock.mark() - sentAt;
      this.#clock.observe(now, sentAt);
      if (names.length > 0) chosen = chosen.slice(limit);
      else [chosen, beyond] = [rest, more];
      const left = beyond || chosen.length > 0;
      // Another node has done what was chosen: go on with the rest.
      if (names.length > 0 && entries.length === 0 && left && goOn()) continue;
      // Nothing is due yet: the timer was a little early, which is no reason to rest. Or all that is due was passed over.
      if (entries.length === 0) report.progress ||= !pass;
      if (entries.length === 0 || this.#clock.holding) return;

      await this.#learnCalendars(entries);
      const items = entries.flatMap((entry) => this.#decide(queue, entry, now));
      // What is left to newer nodes stays due, at the head: it must not keep the others from their turn.
      const undecided = entries.length - items.length;
      if (pass !== undefined) pass += undecided;
      else if (undecided > 0) [pass, chosen, beyond] = [0, [], true];
      const by = this.#nextClaim();
      const send = () => this.#store.claims.commit(queue, shard, items, by, now);
      if (items.length > 0 && !(await this.#commit(queue, items.length, send, report, waited))) return;
      if (!left || !goOn()) return;
      await keep(lease, this.#settings.mutexTtl);
    }
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

  /**
   * @param waited how long the read before it took, in ms: so much of the commit's time is the way, and waiting for other clients
   * @returns whether there is any use in going on
   */
  async #commit(
    queue: string,
    tasks: number,
    send: () => Promise<{ now: number; results: ClaimResult[] }>,
    report: ShardReport,
    waited = 0,
  ): Promise<boolean> {
    const sentAt = this.#clock.mark();
    // Redis does those first that were sent before on this connection: other commits, and what the reconciler settles.
    const place = 1 + this.#store.link.underWay;
    const { now: at, results } = await send();
    const took = this.#clock.mark() - sentAt;
    this.#size.learn(Math.min(took / place, took - waited), tasks);
    this.#clock.observe(at, sentAt);
    let progressed = false;
    for (const result of results) {
      if (result.status === "OK" || result.status === "DONE") {
        progressed = true;
        report.progress = true;
        tell(report.decided, queue, result, at);
      } else {
        report.refused.push({ task: result.item.entry.local, status: result.status });
        // What changed under us is read again at once; what came too early or failed is not.
        if (result.status === "STALE" || result.status === "OVERLAP") progressed = true;
      }
    }
    return progressed;
  }

  /** Unique in the cluster: the claim's identity when its answer is lost, and part of the run's id. */
  #nextClaim(): { token: string; node: string } {
    this.#tokens += 1;
    return { token: `${this.#tokenBase}${this.#tokens.toString(36)}`, node: this.#settings.nodeId };
  }

  #warnOnce(key: string, message: string, details: object): void {
    if (this.#warned.has(key)) return;
    if (this.#warned.size > 10_000) this.#warned.clear();
    this.#warned.add(key);
    this.#settings.logger.warn(details, message);
  }
}

function tell(decided: Decided[], queue: string, { item, run }: ClaimResult, at: number): void {
  const { entry, decision } = item;
  const task = entry.local;
  for (const { reason, to } of decision.skipped)
    decided.push({ queue, task, due: entry.task.due ?? at, at, nominal: to, outcome: "skipped", reason });
  if (!decision.enqueue || run === undefined) return;
  const { nominal, due, trigger } = decision.enqueue;
  decided.push({ queue, task, due, at, nominal, outcome: "enqueued", trigger, run });
}
