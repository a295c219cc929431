import { shardOf } from "@carillon/core/internal";
import type { ClaimItem, ClaimStatus, DueBatch, DueRange, Store, WhichDue } from "@carillon/store";
import type { Agenda } from "../loop/agenda.js";
import type { ServerClock } from "../loop/server-clock.js";
import type { Settings } from "../options.js";
import { type Part, TOGETHER } from "../part.js";
import type { ClaimReport, Committer } from "./committer.js";
import type { Decided, Decider } from "./decider.js";
import { Plan, type Planned, type Ready, unread } from "./plan.js";

/** Most commits of a queue that are under way at a time. Only full ones go beside others. */
const COMMITS = 4;
/** Limit of what is planned: characters of all plans. */
const SIZE_AT_MOST = 16_000_000;
/** Time in ms after its time for which a decision holds. */
const HOLDS_FOR = 2_000;
/** Number of refusals after which a task that keeps changing waits for another visit. */
const REFUSED_AT_MOST = 3;

/** One visit at the shards of a queue. */
interface Visit {
  readonly queue: string;
  readonly plan: Plan;
  /** The shards that this node owns. */
  readonly parts: ReadonlySet<Part>;
  /** How long before their time tasks are read, in ms. */
  readonly ahead: number;
  readonly report: ClaimReport;
  /** Shards that were read, and the time of their first task then: another read would find the same. */
  readonly read: Map<Part, number>;
  /** Shards that are read whatever is known of their times. */
  readonly anyway: ReadonlySet<Part>;
  /** Shards with a commit under way, and their number. */
  readonly sent: Map<Part, number>;
  /** Shards with a read under way, which replaces what is planned for them. */
  readonly reading: Set<Part>;
}

/**
 * The one way from due tasks to jobs: reads tasks before they are due, decides, and leaves only the commit for their time. While a
 * commit is under way, what comes due joins the next one. A task that changed meanwhile is `STALE` in the commit, and is
 * read again. What depends on a run that is not over is decided at its time.
 */
export class Claimer {
  readonly #store: Store;
  readonly #clock: ServerClock;
  readonly #settings: Settings;
  readonly #agenda: Agenda;
  readonly #decider: Decider;
  readonly #committer: Committer;
  readonly #plans = new Map<string, Plan>();
  /** Whether more may be planned. */
  #room = true;

  constructor(
    store: Store,
    clock: ServerClock,
    settings: Settings,
    agenda: Agenda,
    decider: Decider,
    committer: Committer,
  ) {
    this.#store = store;
    this.#clock = clock;
    this.#settings = settings;
    this.#agenda = agenda;
    this.#decider = decider;
    this.#committer = committer;
  }

  /** Time at which a shard of this node needs a visit. @param head due time of its first task */
  visitAt(queue: string, part: Part, head: number): number {
    const first = this.#plans.get(queue)?.first(part, this.#room);
    if (first && first.at <= head) return first.from;
    return this.#room ? head - this.#settings.ahead : head;
  }

  /** Forgets what is planned for a queue. */
  forget(queue: string): void {
    this.#plans.delete(queue);
  }

  /**
   * Commits what is due, and reads what is due soon.
   *
   * @param ahead 0: what is due now, as Redis finds it
   * @param goOn called after each step; if false, the rest waits for another visit
   * @returns the shards in which another visit would find the same
   */
  async claim(
    queue: string,
    parts: ReadonlySet<Part>,
    goOn: () => boolean,
    report: ClaimReport,
    ahead = this.#settings.ahead,
  ): Promise<Part[]> {
    const plan = this.#plans.get(queue) ?? new Plan();
    this.#plans.set(queue, plan);
    const read = new Map<Part, number>();
    const anyway = new Set([...parts].filter((part) => ahead === 0 && plan.first(part, true) === undefined));
    const visit: Visit = {
      queue,
      plan,
      parts,
      ahead,
      report,
      read,
      anyway,
      sent: new Map(),
      reading: new Set(),
    };
    const commits = new Set<Promise<void>>();
    let reading: Promise<void> | undefined;
    let failure: { error: unknown } | undefined;
    const fail = (error: unknown) => {
      failure ??= { error };
    };
    const commit = (due: readonly Ready[]) => {
      const sent = this.#commit(visit, due)
        .catch(fail)
        .finally(() => commits.delete(sent));
      commits.add(sent);
    };
    try {
      for (let first = true; first || goOn(); first = false) {
        if (failure || this.#clock.holding) break;
        const most = this.#committer.size.current;
        const now = this.#clock.now();
        const free =
          visit.reading.size > 0 ? new Set([...parts].filter((p) => !visit.reading.has(p))) : parts;
        const due = commits.size < COMMITS ? plan.take(now, free, most, commits.size > 0) : [];
        if (due.length > 0) {
          commit(due);
          continue;
        }
        // While commits are under way, the next tasks are read.
        reading ??= this.#readMore(visit, now)
          ?.catch(fail)
          .finally(() => {
            reading = undefined;
            visit.reading.clear();
          });
        if (!reading && commits.size === 0) break;
        await Promise.race(reading ? [...commits, reading] : commits);
      }
    } finally {
      await Promise.all([...commits, reading]);
      const room = this.#hasRoom();
      if (room !== this.#room) this.#agenda.changed();
      this.#room = room;
      if (plan.empty) this.#plans.delete(queue);
    }
    if (failure) throw failure.error;
    const soon = this.#clock.now() + ahead;
    return [...read].flatMap(([part, head]) => {
      const known = (plan.first(part, true)?.at ?? Number.POSITIVE_INFINITY) <= head;
      const moved = head > soon || head !== this.#agenda.head(queue, part) || report.progress.has(part);
      return known || moved ? [] : [part];
    });
  }

  /** Most tasks of one read: as many as commits take meanwhile, so that a node that waits long for answers keeps up. */
  get #readAtMost(): number {
    return COMMITS * this.#committer.size.current;
  }

  #hasRoom(): boolean {
    let size = 0;
    for (const plan of this.#plans.values()) size += plan.size;
    return size < SIZE_AT_MOST;
  }

  async #commit(visit: Visit, due: readonly Ready[]): Promise<void> {
    const { queue, plan, report, sent } = visit;
    const shards = new Set(due.map(({ shard }) => shard));
    for (const shard of shards) sent.set(shard, (sent.get(shard) ?? 0) + 1);
    const mark = this.#agenda.mark();
    try {
      const items = due.map(({ item }) => item);
      const { results, heads } = await this.#committer.commit(queue, items, report);
      this.#agenda.moved(queue, heads, mark);
      const again: Planned[] = [];
      for (const [i, { status }] of results.entries()) {
        const one = due[i] as Ready;
        if (status === "OK" || status === "DONE") {
          report.progress.add(one.shard);
          visit.read.delete(one.shard);
        } else if (status === "EARLY") {
          report.progress.add(one.shard);
          // If the clock of Redis went back, it may be due, but not as it was decided.
          const outdated = one.item.decided > one.at;
          const later = { ...one, from: Math.max(one.at, this.#clock.now() + 1) };
          plan.add([outdated ? unread(one.shard, one.local, one.at, false) : later], true);
        } else if (hasMoved(status) && one.refusals < REFUSED_AT_MOST) {
          again.push(unread(one.shard, one.local, Number.NEGATIVE_INFINITY, false, one.refusals + 1));
        }
      }
      plan.add(again, true);
    } catch (error) {
      // It may have been done: sent again, it is recognised by its run.
      plan.add(due, true);
      throw error;
    } finally {
      for (const shard of shards) {
        const left = (sent.get(shard) as number) - 1;
        if (left === 0) sent.delete(shard);
        else sent.set(shard, left);
      }
    }
  }

  /** Reads what must be known next; undefined: nothing must. */
  #readMore(visit: Visit, now: number): Promise<void> | undefined {
    const { plan, parts } = visit;
    const hasRoom = this.#hasRoom();
    const room = visit.ahead > 0 && hasRoom;
    const by = room ? now + visit.ahead : undefined;
    const ranges = plan.backlog.unread(parts, by ?? now);
    if (ranges.length > 0) return this.#readNames(visit, ranges);
    let wanted = plan.toRead(now, parts, this.#readAtMost, room);
    if (wanted.length > 0) return this.#readNamed(visit, wanted, by);
    const { unknown, late } = this.#unknown(visit, now, room);
    // A backlog is dealt out first; what comes due later is read after it.
    if (unknown.length > 0) return this.#readDue(visit, unknown, late ? undefined : by);
    plan.deal(now, parts, this.#readAtMost, hasRoom);
    wanted = plan.toRead(now, parts, this.#readAtMost, room);
    return wanted.length > 0 ? this.#readNamed(visit, wanted, by) : undefined;
  }

  async #readNamed(visit: Visit, wanted: readonly Planned[], by: number | undefined): Promise<void> {
    const names = wanted.map(({ local }) => local);
    // Their times are known: none is lost because the clock of Redis is slightly behind.
    const until = Math.max(by ?? 0, ...wanted.map(({ at }) => at));
    const final = wanted.some(({ refusals }) => refusals > 0);
    const { planned } = await this.#read(visit, [], names.length, { names, by: until, final });
    visit.plan.fill(wanted, planned);
  }

  /** Reads all that is due in these shards, and if that is few, what comes due soon after `by`; or begins a backlog of it. */
  async #readDue(visit: Visit, shards: readonly Part[], by: number | undefined): Promise<void> {
    const { plan, reading } = visit;
    for (const one of shards) reading.add(one);
    const limit = shards.length > 1 ? this.#readAtMost : this.#committer.size.current;
    const until = by === undefined ? undefined : by + TOGETHER;
    const { now, more, planned } = await this.#read(visit, shards, limit, { by: until, whole: true });
    this.#replace(visit, shards, more ? undefined : { by: Math.max(now, until ?? 0), planned });
    plan.add(planned);
    if (!more) return;
    plan.backlog.begin(shards.map((one) => ({ shard: Number(one), by: Math.max(now, by ?? 0) })));
    await this.#readMore(visit, this.#clock.now());
  }

  /** Reads names of a backlog. */
  async #readNames(visit: Visit, ranges: readonly DueRange[]): Promise<void> {
    const { queue, plan } = visit;
    // If this read fails, another read of these shards finds the names.
    plan.backlog.begin([]);
    const { names, unread } = await this.#store.claims.dueNames(queue, ranges);
    plan.backlog.begin(ranges);
    plan.backlog.add(names, unread);
    if (unread.length === 0) await this.#readMore(visit, this.#clock.now());
  }

  /** A read of shards replaces what is planned for them: all of it, or what is due by this time, or is known to be. */
  #replace(
    { queue, read, plan }: Visit,
    shards: readonly Part[],
    found?: { by: number; planned: readonly Planned[] },
  ): void {
    for (const one of shards) read.set(one, this.#agenda.head(queue, one));
    const names = new Set(found?.planned.map(({ local }) => local));
    plan.drop(
      ({ shard, at, local }) => shards.includes(shard) && (!found || at <= found.by || names.has(local)),
    );
  }

  /** The shards in which a task comes due that is not in the plan: those that are due now, if there are any, or else those that are due soon. */
  #unknown(visit: Visit, now: number, room: boolean): { unknown: Part[]; late: boolean } {
    const { queue, plan, parts, ahead, read, anyway, sent } = visit;
    const by = (end: number) =>
      [...parts].filter((part) => {
        const head = this.#agenda.head(queue, part);
        const first = plan.first(part, room);
        if (anyway.has(part) && !read.has(part) && !first) return true;
        // The answer to a commit under way will tell more.
        if (sent.has(part) || read.get(part) === head || head > end) return false;
        return !first || first.at > head;
      });
    const late = by(now);
    if (late.length > 0 || !room) return { unknown: late, late: true };
    const end = now + ahead;
    return { unknown: by(end).length > 0 ? by(end + TOGETHER) : [], late: false };
  }

  async #read(
    { queue, plan }: Visit,
    [shard = 0, ...others]: readonly (Part | number)[],
    limit: number,
    which: WhichDue,
  ): Promise<Pick<DueBatch, "now" | "more"> & { planned: Planned[] }> {
    const sentAt = this.#clock.mark();
    const { claims } = this.#store;
    const batch = await claims.readDue(queue, Number(shard), limit, { ...which, others: others.map(Number) });
    this.#clock.observe(batch.now, sentAt);
    const decided = await this.#decider.decide(queue, batch.entries, batch.now);
    const planned = decided.map((one) => {
      plan.prioritized ||= one.item.entry.task.definition.priority > 0;
      return this.#planned(queue, one, batch.now);
    });
    return { ...batch, planned };
  }

  #planned(queue: string, { item, at }: Decided, now: number): Planned {
    const { decision, entry } = item;
    const shard = String(shardOf(entry.local));
    // Other decisions depend on the state of runs at that time.
    if (at > now && !isCertain(item, at, now)) return unread(shard, entry.local, at, false);
    const { next } = decision;
    let until = at + Math.min(HOLDS_FOR, this.#settings.grace);
    // Under `one` a late time is taken as it is, whatever is due after it.
    const late = entry.task.definition.catchUp === "one";
    if (!late && typeof next === "object" && "due" in next && next.due > at)
      until = Math.min(until, next.due);
    // The clock of Redis decides what is due.
    const from = at <= now ? Number.NEGATIVE_INFINITY : at;
    const tracer = this.#settings.telemetry;
    const packed = this.#store.claims.pack(queue, item, this.#committer.nextToken(), at, { tracer });
    let size = 0;
    for (const text of packed.written.args) size += String(text).length;
    for (const key of packed.written.keys) size += key.length;
    const { local, since = at } = entry;
    return { shard, local, at: since, from, item: packed, until, size, soon: false, refusals: 0 };
  }
}

/**
 * Whether a decision as of `at` is the same whatever happens to runs from `now` on, or its commit is `STALE`: one that enqueues, or that
 * waits for a run that workers were so slow to begin that an end of it is all that could matter.
 */
function isCertain({ decision, entry }: ClaimItem, at: number, now: number): boolean {
  const { enqueue, skipped, pending, cancel, frozen } = decision;
  if (skipped.length > 0) return false;
  if (enqueue) return true;
  const { running, task } = entry;
  if (cancel || frozen || !running?.open || running.begun !== undefined) return false;
  return pending.length > task.pending.length && at - now < (at - running.nominal) / 2;
}

/** Whether the next read finds the refused task changed, or no longer among those that are due. */
function hasMoved(status: Exclude<ClaimStatus, "OK" | "DONE" | "EARLY">): boolean {
  switch (status) {
    case "STALE":
    case "OVERLAP":
      return true;
    case "LIMITED":
      return false;
    default:
      status satisfies `ERROR ${string}`;
      return false;
  }
}
