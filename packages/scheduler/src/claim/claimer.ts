import { shardOf } from "@carillon/core/internal";
import type { ClaimStatus, DueBatch, Store, WhichDue } from "@carillon/store";
import type { Agenda } from "../loop/agenda.js";
import type { ServerClock } from "../loop/server-clock.js";
import type { Settings } from "../options.js";
import type { Part } from "../part.js";
import type { ClaimReport, Committer } from "./committer.js";
import type { Decided, Decider } from "./decider.js";
import { Plan, type Planned, unread } from "./plan.js";

/** Most commits of a queue that are under way at a time. Only full ones go beside others. */
const COMMITS = 4;
/** Number of oldest, and of newest, tasks of a shard among which a fair choice is made ahead of their time. */
const WINDOW = 1_000;
/** Limits of what is planned: tasks of a shard, and characters of all plans. */
const TASKS_AT_MOST = 2 * WINDOW;
const SIZE_AT_MOST = 16_000_000;
/** Most tasks of a shard that are passed over because they cannot be decided here. */
const PASS_AT_MOST = 2_000;
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
  /** Whether more is due than can be read of several shards at once. */
  apart: boolean;
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
      apart: false,
    };
    const commits = new Set<Promise<void>>();
    let reading: Promise<void> | undefined;
    let failure: { error: unknown } | undefined;
    const fail = (error: unknown) => {
      failure ??= { error };
    };
    const commit = (due: readonly Planned[]) => {
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

  /** Most tasks of one read, once a fair order is known: as many as commits take meanwhile, so that a node that waits long for answers keeps up. */
  get #readAtMost(): number {
    return COMMITS * this.#committer.size.current;
  }

  #hasRoom(): boolean {
    let size = 0;
    for (const plan of this.#plans.values()) size += plan.size;
    return size < SIZE_AT_MOST;
  }

  async #commit(visit: Visit, due: readonly Planned[]): Promise<void> {
    const { queue, plan, report, sent } = visit;
    const shards = new Set(due.map(({ shard }) => shard));
    for (const shard of shards) sent.set(shard, (sent.get(shard) ?? 0) + 1);
    const mark = this.#agenda.mark();
    try {
      const items = due.flatMap(({ item }) => (item ? [item] : []));
      const { results, heads } = await this.#committer.commit(queue, items, report);
      this.#agenda.moved(queue, heads, mark);
      const again: Planned[] = [];
      for (const [i, { status }] of results.entries()) {
        const one = due[i] as Planned;
        if (status === "OK" || status === "DONE") {
          report.progress.add(one.shard);
          visit.read.delete(one.shard);
        } else if (status === "EARLY") {
          report.progress.add(one.shard);
          plan.add([{ ...one, from: Math.max(one.at, this.#clock.now() + 1) }], true);
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
    const room = visit.ahead > 0 && this.#hasRoom();
    const wanted = visit.plan.toRead(now, visit.parts, this.#readAtMost, room);
    const by = room ? now + visit.ahead : undefined;
    if (wanted.length > 0) return this.#readNamed(visit, wanted, by);
    const { unknown, late } = this.#unknown(visit, now, room);
    const [part] = unknown;
    if (part === undefined) return undefined;
    // A backlog is read as a fair choice; what comes due later is read after it.
    const until = late ? undefined : by;
    if (unknown.length > 1 && !visit.apart) return this.#readTogether(visit, unknown, until);
    return this.#readShard(visit, part, until, late);
  }

  async #readNamed(visit: Visit, wanted: readonly Planned[], by: number | undefined): Promise<void> {
    const { shard } = wanted[0] as Planned;
    const names = wanted.map(({ local }) => local);
    const { planned } = await this.#read(visit, [shard], names.length, { names, by });
    visit.plan.fill(wanted, planned);
  }

  async #readTogether(visit: Visit, shards: readonly Part[], by: number | undefined): Promise<void> {
    for (const one of shards) visit.reading.add(one);
    const { planned, more, undecided } = await this.#read(visit, shards, this.#readAtMost, { by });
    visit.apart = more || undecided;
    if (visit.apart) return;
    for (const one of shards) this.#begins(visit, one);
    visit.plan.add(planned);
  }

  /** A read of the shard replaces what is planned for it. */
  #begins({ queue, read, plan }: Visit, part: Part): void {
    read.set(part, this.#agenda.head(queue, part));
    plan.drop(({ shard }) => shard === part);
  }

  /** The shards in which a task comes due that is not in the plan: those that are due now, if there are any. */
  #unknown(visit: Visit, now: number, room: boolean): { unknown: Part[]; late: boolean } {
    const { queue, plan, parts, ahead, read, anyway, sent } = visit;
    const unknown = [...parts].filter((part) => {
      const head = this.#agenda.head(queue, part);
      if (anyway.has(part) && !read.has(part)) return true;
      // The answer to a commit under way will tell more.
      if (sent.has(part) || read.get(part) === head || head > now + (room ? ahead : 0)) return false;
      const first = plan.first(part, room);
      return !first || first.at > head;
    });
    const late = unknown.filter((part) => this.#agenda.head(queue, part) <= now);
    return late.length > 0 ? { unknown: late, late: true } : { unknown, late: false };
  }

  async #readShard(visit: Visit, part: Part, by: number | undefined, late: boolean): Promise<void> {
    const { plan } = visit;
    visit.reading.add(part);
    this.#begins(visit, part);
    const limit = this.#committer.size.current;
    const window = late ? undefined : WINDOW;
    const { planned, rest, undecided } = await this.#read(visit, [part], limit, { by, window });
    if (!undecided) {
      plan.add(planned);
      const room = Math.max(0, TASKS_AT_MOST - plan.count(part));
      const head = this.#agenda.head(visit.queue, part);
      plan.add(rest.slice(0, room).map((local) => unread(part, local, head, true)));
      return;
    }
    // Tasks that are left to newer nodes stay due, at the head: they must not block the others.
    for (let pass = 0; pass < PASS_AT_MOST && plan.count(part) < TASKS_AT_MOST; pass += limit) {
      const batch = await this.#read(visit, [part], limit, { by, pass });
      plan.add(batch.planned);
      if (!batch.more) return;
    }
  }

  async #read(
    { queue, plan }: Visit,
    [shard = 0, ...others]: readonly (Part | number)[],
    limit: number,
    which: WhichDue,
  ): Promise<Pick<DueBatch, "more" | "rest"> & { planned: Planned[]; undecided: boolean }> {
    const sentAt = this.#clock.mark();
    const { claims } = this.#store;
    const batch = await claims.readDue(queue, Number(shard), limit, { ...which, others: others.map(Number) });
    this.#clock.observe(batch.now, sentAt);
    const decided = await this.#decider.decide(queue, batch.entries, batch.now);
    const planned = decided.map((one) => {
      plan.prioritized ||= one.item.entry.task.definition.priority > 0;
      return this.#planned(queue, one, batch.now);
    });
    return { ...batch, planned, undecided: decided.length < batch.entries.length };
  }

  #planned(queue: string, { item, at }: Decided, now: number): Planned {
    const { decision, entry } = item;
    const shard = String(shardOf(entry.local));
    // Other decisions depend on the state of runs at that time.
    const certain = decision.enqueue !== undefined && decision.skipped.length === 0;
    if (at > now && !certain) return unread(shard, entry.local, at, false);
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
