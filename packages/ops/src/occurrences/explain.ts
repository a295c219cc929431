import { previewSchedule, type Run, seedOf, type TaskDefinition } from "@carillon/core";
import {
  calendarsOf,
  counted,
  covers,
  errorOf,
  frozenAt,
  type Pending,
  scheduleSteps,
  scheduleZone,
} from "@carillon/core/internal";
import { notFound, roundedInstant, type Scope } from "@carillon/sdk/internal";
import {
  type Attempt,
  Coverage,
  isAlive,
  type NodeInfo,
  nextOf,
  type Skip,
  type StoredTask,
} from "@carillon/store";
import { z } from "zod";
import { operation } from "../operation.js";
import { instant, taskRef } from "../shapes.js";
import {
  type ExplainedEvent,
  type ExplainedReason,
  type ExplainedRun,
  type Explanation,
  explanation,
  run as runFacts,
} from "./explanation.js";
import { TimeSlice } from "./time-slice.js";
import { foresee } from "./walk.js";

/** An enqueue is called late from this many ms on. */
const LATE = 1_000;
/** More runs than a task may keep of one kind. */
const ALL = 100_000;

export const explain = operation({
  http: "GET /tasks/:queue/:owner/:id/explain",
  role: "viewer",
  reach: "owner",
  cost: "computes",
  summary: "Says why a task ran, or did not, at a time: each recorded decision, attempt and end, as facts.",
  input: z.strictObject({
    ...taskRef,
    time: instant
      .optional()
      .describe("The nominal time. Default, or `now`: of what is due or waits now, or else comes next."),
  }),
  output: explanation,
  async run({ scope }, { time, ...ref }) {
    const at = time === undefined || time === "now" ? undefined : roundedInstant(time, "time");
    const name = await scope.locate(ref);
    const stored = await scope.store.tasks.get(name);
    if (!stored) throw notFound(name);
    return new Explainer(scope, stored, at).explanation();
  },
});

type Verdict = Explanation["verdict"];

class Explainer {
  readonly #asked: number | undefined;
  #time = 0;
  #now = 0;
  #nodes: readonly NodeInfo[] = [];
  #runs: readonly Run[] = [];

  /** @param time undefined: that of the occurrence that is due or waits now, or comes next */
  constructor(
    private readonly scope: Scope,
    private readonly stored: StoredTask,
    time: number | undefined,
  ) {
    this.#asked = time;
  }

  async explanation(): Promise<Explanation> {
    const { store } = this.scope;
    const { definition, nominal } = this.stored;
    const { queue, owner, id } = definition;
    const task = { queue, owner, id };
    const [now, all, ledger, nodes] = await Promise.all([
      store.tasks.time(queue),
      store.runs.list(task, ALL),
      store.runs.ledger(task),
      store.registry.nodes(),
      store.calendars.refresh(),
    ]);
    this.#now = now;
    this.#runs = all;
    this.#nodes = nodes;
    const schedule = store.calendars.schedules.get(definition);
    const time = this.#asked ?? this.#present();
    this.#time = time;
    const isOccurrence = schedule.delay === undefined ? schedule.next(time - 1) === time : nominal === time;
    const runs = all.filter((run) => run.nominal === time).sort((a, b) => a.enqueued - b.enqueued);
    // A range names the occurrences in it, not all times between its ends.
    const skips = ledger.filter(({ from, to }) =>
      from === to ? from === time : isOccurrence && from <= time && time <= to,
    );
    const pending = this.stored.pending.find((one) => one.nominal === time);
    const last = runs.at(-1);
    const behind = pending !== undefined && (pending.at ?? now) <= now;
    const queued = all.find(
      ({ id, state }) => state === "queued" && (last ? id === last.id : behind || id === skips[0]?.run),
    );
    const [events, hold, printed, [verdict, why]] = await Promise.all([
      this.#events(runs, skips, pending),
      queued && this.#hold(),
      last && store.runs.output(queue, last.id),
      this.#verdict({ isOccurrence, last, skips, pending }),
    ]);
    const lines = printed?.reduce((sum, { text }) => sum + text.trimEnd().split("\n").length, 0);
    const nearest = () => ({ before: schedule.latest(time - 1), after: schedule.next(time) });
    return {
      task,
      time,
      now,
      timezone: scheduleZone(definition.schedule),
      verdict,
      why,
      events,
      runs: runs.length,
      run: last && factsOf(last),
      printed: lines || undefined,
      hold,
      ...(why.code === "not-scheduled" || why.code === "excluded" ? { nearest: nearest() } : {}),
      nodes: nodes.filter((node) => isAlive(node, now)).length,
    };
  }

  /** The nominal time of the occurrence that is due or waits; of the run under way; of the next one; or of the last run. */
  #present(): number {
    const { state, nominal, due, pending, definition } = this.stored;
    const now = this.#now;
    if (state === "scheduled" && nominal !== undefined && due !== undefined && due <= now) return nominal;
    const waits = pending.find(({ at = now }) => at <= now);
    const open = this.#runs.filter((run) => run.state !== "final");
    // Newest first.
    const run = open.findLast((one) => one.state === "queued") ?? open.at(-1);
    const next =
      nextOf(this.stored)?.nominal ??
      nominal ??
      (state === "finished" ? undefined : this.scope.store.calendars.schedules.get(definition).next(now));
    return (waits ?? run)?.nominal ?? next ?? this.#runs[0]?.nominal ?? now;
  }

  async #verdict({ isOccurrence, last, skips, pending }: Found): Promise<[Verdict, ExplainedReason]> {
    const { store } = this.scope;
    const { definition, nominal, cursor, created, moving, state, paused } = this.stored;
    const [time, now] = [this.#time, this.#now];
    const schedule = store.calendars.schedules.get(definition);
    if (last) return ["enqueued", { code: "ran" }];
    const freezes = await store.freezes.list();
    const frozen = frozenAt(
      freezes.filter((one) => covers(one, definition)),
      now,
    );
    if (frozen && (pending || (isOccurrence && nominal === time && time <= now)))
      return ["waiting", { code: "frozen", frozen }];
    if (pending) return ["waiting", { code: "pending", ...waitOf(pending, now) }];
    // A retry's own end: nothing else of the occurrence is left.
    if (skips.some(({ reason }) => reason === RETRY)) return ["enqueued", { code: RETRY }];
    if (skips[0]) {
      const { reason, note } = skips[0];
      return ["skipped", { code: "skipped", reason, note }];
    }
    if (!isOccurrence) return ["no-occurrence", this.#excluder() ?? { code: "not-scheduled" }];
    if (time <= created) return ["before-task", { code: "put-later", at: created }];
    if (cursor !== undefined && time <= cursor) return ["expired", { code: "forgotten" }];
    const isBeyond = await this.#isBeyondMaxRuns();
    if (isBeyond) return ["no-occurrence", { code: "beyond-max-runs" }];
    if (moving !== undefined) return ["held", { code: "moving" }];
    if (state === "paused") return ["held", { code: "paused", at: paused?.at ?? 0 }];
    if (nominal !== undefined && time < nominal) return ["expired", { code: "passed-over" }];
    const due = schedule.due(time);
    if (due > now) return ["planned", { code: "planned", due, isBounded: isBeyond === undefined }];
    const { held, waits } = await store.queues.place(definition);
    if (waits) return ["due", { code: "owner-full", due, held }];
    const claims = this.#nodes.some((node) => isAlive(node, now));
    return ["due", { code: claims ? "not-claimed" : "no-node", due }];
  }

  /** The exclusion that removes this time from the schedule; undefined if there is none. */
  #excluder(): ExplainedReason | undefined {
    const { schedules } = this.scope.store.calendars;
    const task: TaskDefinition = this.stored.definition;
    if (schedules.get(task).delay !== undefined) return undefined;
    const options = { from: this.#time - 1, count: 1, seed: seedOf(task), context: schedules.context };
    const { excluded } = previewSchedule(task.schedule, options);
    const by = excluded.find((one) => one.time === this.#time)?.by;
    return by === undefined
      ? undefined
      : { code: "excluded", by, calendar: calendarsOf(task.schedule).includes(by) };
  }

  /** Whether `maxRuns` is used up before this time, if runs take no time. Undefined: too many times lie in between to tell. */
  async #isBeyondMaxRuns(): Promise<boolean | undefined> {
    const { store } = this.scope;
    const { definition, fired, pending } = this.stored;
    const schedule = store.calendars.schedules.get(definition);
    if (!schedule.spent(Number.POSITIVE_INFINITY)) return false;
    if (schedule.spent(fired + counted(pending))) return true;
    const going = {
      ...this.stored,
      state: "scheduled",
      pending: [],
      fired: fired + counted(pending),
    } as const;
    const slice = new TimeSlice();
    const coming = foresee(store, going, this.#now, Number.MAX_SAFE_INTEGER);
    for await (const one of slice.over(coming, scheduleSteps(definition.schedule)))
      if (one && one.nominal >= this.#time) return false;
    return slice.spent ? undefined : true;
  }

  async #hold(): Promise<Explanation["hold"]> {
    const { store } = this.scope;
    const { queue, type } = this.stored.definition;
    const state = await store.queues.state(queue);
    if (state?.paused) return { code: "queue-paused", ...state.paused };
    const [gap] = (await new Coverage(store).gaps([{ queue, type }])).values();
    return gap && { code: "no-worker", ...gap };
  }

  async #events(
    runs: readonly Run[],
    skips: readonly Skip[],
    pending: Pending | undefined,
  ): Promise<ExplainedEvent[]> {
    const { queue } = this.stored.definition;
    const store = this.scope.store.runs;
    const attempts = await Promise.all(runs.map(({ id }) => store.attempts(queue, id)));
    const ways = await Promise.all(
      skips.map(({ run }) => (run === undefined ? undefined : store.get(queue, run))),
    );
    const events = [
      ...runs.flatMap((run, i) => this.#eventsOf(run, attempts[i] ?? [])),
      ...skips.map((entry, i) => this.#skip(entry, ways[i])),
      ...(pending ? [{ code: "pending" as const, ...waitOf(pending, this.#now) }] : []),
    ];
    return events.sort((a, b) => (a.at ?? Number.POSITIVE_INFINITY) - (b.at ?? Number.POSITIVE_INFINITY));
  }

  #eventsOf(run: Run, attempts: readonly Attempt[]): ExplainedEvent[] {
    const { id, enqueued, due, node, trigger, missed, by, cancel, crashes, finished: at, outcome } = run;
    const wait = this.#crashWait(run);
    const before = enqueued - due >= LATE ? this.#inTheWay(run) : undefined;
    return [
      {
        code: "enqueued",
        at: enqueued,
        run: id,
        ...this.#nodeAt(node, enqueued),
        trigger,
        lateMs: enqueued - due,
        from: missed?.from,
        for: by,
      },
      ...attempts.map(
        ({ started, worker, ...rest }): ExplainedEvent => ({
          code: "attempt",
          at: started,
          run: id,
          by: worker,
          ...rest,
        }),
      ),
      ...(cancel ? [{ code: "cancelled" as const, run: id, ...cancel }] : []),
      ...(crashes ? [{ code: "crashes" as const, run: id, at, crashes }] : []),
      ...(at === undefined
        ? []
        : [{ code: "ended" as const, run: id, at, outcome, error: firstLine(errorOf(run)) }]),
      ...(wait ? [{ code: "crash-wait" as const, run: id, ...wait }] : []),
      ...(before ? [{ code: "waited" as const, at: due, other: factsOf(before) }] : []),
    ];
  }

  /** A node with its process, as far as it is known. A node of this name that started later was another one. */
  #nodeAt(by: string, at: number): Pick<ExplainedEvent, "by" | "host" | "pid"> {
    const node = this.#nodes.find(({ id, started }) => id === by && started <= at);
    return { by, ...(node && { host: node.host, pid: node.pid }) };
  }

  /** Reason why a crashed run waits for its next attempt; undefined if it does not. */
  #crashWait({ state, notBefore }: Run): Pick<ExplainedEvent, "until" | "paused"> | undefined {
    if (state !== "queued" || notBefore === undefined) return undefined;
    const until = this.#now < notBefore ? notBefore : undefined;
    const paused = this.stored.state === "paused";
    return until === undefined && !paused ? undefined : { until, paused };
  }

  /** The run that delayed a late run: the last one still open when that was due. */
  #inTheWay(run: Run): Run | undefined {
    return this.#runs
      .filter(({ id, enqueued }) => id !== run.id && enqueued <= run.due)
      .filter(({ finished = Number.POSITIVE_INFINITY }) => finished > run.due)
      .sort((a, b) => b.enqueued - a.enqueued)[0];
  }

  #skip({ reason, from, to, at, by, run, note }: Skip, way: Run | undefined): ExplainedEvent {
    const range = from === to ? {} : { from, to };
    // A run in place of the author: its end decided, that of this occurrence or of the last one in the range.
    if (reason === RETRY && by.includes("@")) return { code: RETRY, at, reason, ...range };
    const who = this.#nodeAt(by, at);
    return { code: "skipped", at, ...who, reason, note, run, ...range, ...(way && { other: factsOf(way) }) };
  }
}

const RETRY = "retry-superseded";

interface Found {
  readonly isOccurrence: boolean;
  readonly last: Run | undefined;
  readonly skips: readonly Skip[];
  readonly pending: Pending | undefined;
}

function waitOf(
  { at, trigger, by }: Pending,
  now: number,
): Pick<ExplainedEvent, "trigger" | "until" | "for"> {
  return { trigger, until: at === undefined || at <= now ? undefined : at, for: by };
}

function factsOf(run: Run): ExplainedRun {
  // Picks the fields without checking them: a corrupt record is explained as it is.
  const facts = runFacts.keyof().options.map((field) => [field, run[field]]);
  return { ...Object.fromEntries(facts), error: firstLine(run.error) };
}

function firstLine(text: string | undefined): string | undefined {
  return text?.split("\n", 1)[0];
}
