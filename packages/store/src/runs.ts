import {
  afterFailure,
  CarillonError,
  isFailure,
  type Json,
  localName,
  type Outcome,
  type Pending,
  parseLocalName,
  type Run,
  shardOf,
  type TaskName,
  tokenOf,
} from "@carillon/core";
import type { CalendarRepository } from "./calendars.js";
import { failsForAll, redisError } from "./connection.js";
import type { Contention } from "./contention.js";
import { Gathering } from "./gathering.js";
import { LOOK_AGAIN } from "./gone.js";
import type { NamespaceKeys } from "./keys.js";
import type { Link } from "./link.js";
import { type Attempt, decodeAttempts, decodeDetails, decodeOutcomes, decodeRun } from "./run-codec.js";
import type { Script, Scripts } from "./scripts.js";
import { DEFAULT_CRASH, decodeTask, isForeign, type Retention } from "./task-codec.js";
import { Turns } from "./turns.js";

export type StartResult =
  | {
      readonly word: "OK";
      readonly fence: number;
      /** From 1. */
      readonly attempt: number;
      readonly now: number;
      /** Milliseconds that the attempt may take; undefined: no limit. */
      readonly limit: number | undefined;
      /** Milliseconds that it gets to end by itself after that, or after a cancel. */
      readonly grace: number;
      /** What the run before saved. */
      readonly checkpoint: Json | undefined;
      /** Attempts of this run whose worker died. */
      readonly crashes: number;
      /** It may have begun elsewhere, and been handed back. */
      readonly goesOn: boolean;
    }
  /** The worker no longer has the job; this start is not recorded. */
  | { readonly word: "LOST" }
  /** The task was deleted: there is nothing to do. */
  | { readonly word: "GONE" }
  /** The run is over, and its record is no longer kept; its job was retried from outside. */
  | { readonly word: "FORGOTTEN" }
  /** The run is over already; its worker died between settling and completing the job. */
  | { readonly word: "FINAL"; readonly outcome: Outcome }
  /** Too soon after the run before; recorded. */
  | { readonly word: "DROPPED" }
  /** A cancel came first; recorded. */
  | { readonly word: "CANCELLED" }
  /** Its worker died too often; recorded. */
  | { readonly word: "CRASHED"; readonly error: string }
  /** The wait after a crash is not over before `until`; now it is `now`. Both by the clock of Redis. */
  | { readonly word: "WAIT"; readonly until: number; readonly now: number };

/** Of an attempt that may begin: what start-run.lua returns. */
type Begun = [
  fence: number,
  now: number,
  details: string,
  checkpoint: string,
  crashes: number,
  attempt: number,
  goesOn: 0 | 1,
];

export interface Worked {
  worker: string;
  pid: number;
  host: string;
  /** The worker's own number for this start, which tells it from the same one sent again. Attempts are numbered by `start`. */
  attempt: number;
  /** Attempts that BullMQ counts as made (`job.attemptsMade`). */
  made: number;
  /** What the worker took the job with; undefined: whether it still has the job is not checked. */
  token?: string;
}

export interface Settlement {
  fence: number;
  /** As at the attempt's start. */
  made: number;
  /** Undefined: this attempt failed and another is left. */
  outcome: Outcome | undefined;
  error?: string | undefined;
  result?: Json | undefined;
  /** When the handler wants to run again, UTC ms: an occurrence of its own. */
  nextAt?: number | undefined;
}

export type SettleWord = "OK" | "FENCED" | "GONE" | "FINAL";
/** `CANCELLED`: recorded as that, whatever was said: someone wanted it, and this worker had not heard. */
export type EndWord = SettleWord | "CANCELLED";

type CancelWord = "OK" | "UNCHANGED" | "FINAL" | "GONE";

/** Error texts and results beyond this many characters are cut. */
const CAP = 16 * 1024;
/** Runs looked at, or cleared, in one script. */
const RECONCILE_BATCH = 100;
/** Runs asked for, or cancelled, at once. */
const AT_ONCE = 500;
/** Runs that start, or end, in one script: each takes some tens of microseconds. */
const TOGETHER = 16;
/** What an attempt gets to end by itself, where its task says nothing, in ms. */
const DEFAULT_GRACE = 10_000;

type Argument = string | number;

type StartReply = [word: StartResult["word"], ...details: (string | number)[]];

/** A run that a script is about, and what it is told of it. */
interface About {
  readonly local: string;
  readonly run: string;
  readonly own: readonly Argument[];
}

/** What the end of a run makes of its task, for settle-run.lua. Times are texts: to Lua a large number is an inexact one. */
interface Aftermath {
  /** What it was decided with. */
  readonly generation: string;
  readonly failures: string;
  /** All that waits now, as JSON; undefined: as before. */
  readonly pending: string | undefined;
  /** What is to come is among it, in place of a delay after the run. */
  readonly retried: boolean;
  /** Why the task is paused; undefined: it is not. */
  readonly note: string | undefined;
  /** The nominal time of a retry that the next occurrence takes the place of, and the one before it. */
  readonly superseded: { readonly nominal: string; readonly before: string | undefined } | undefined;
  /** The time of a run that was asked for before, and that another one takes the place of. */
  readonly replaced: string | undefined;
}

export class RunRepository {
  readonly #link: Link;
  readonly #keys: NamespaceKeys;
  readonly #scripts: Scripts;
  readonly #calendars: CalendarRepository;
  readonly #retention: Retention;
  readonly #contention: Contention;
  readonly #starts: Gathering<About, unknown>;
  readonly #settles: Gathering<About, unknown>;

  constructor(
    link: Link,
    keys: NamespaceKeys,
    scripts: Scripts,
    calendars: CalendarRepository,
    contention: Contention,
    retention: Retention,
  ) {
    this.#link = link;
    this.#keys = keys;
    this.#scripts = scripts;
    this.#calendars = calendars;
    this.#contention = contention;
    this.#retention = retention;
    this.#starts = this.#together("start-run");
    this.#settles = this.#together("settle-run");
  }

  /** Sends a script about one run. */
  async #about(script: Script, name: TaskName, run: string, own: readonly Argument[] = []): Promise<unknown> {
    return this.#aboutAll(script, name.queue, [{ local: localName(name), run, own }]);
  }

  /** Sends a script about runs of one queue: what `lib/about.lua` asks for, then of each its own arguments. */
  async #aboutAll(script: Script, queue: string, all: readonly About[]): Promise<unknown> {
    const keys = this.#keys.queue(queue);
    const keysOf = ({ local, run }: About) => [
      ...[keys.run(run), keys.task(local), keys.open(local), keys.history(local), keys.failures(local)],
      ...[keys.stats(local), keys.due(shardOf(local)), keys.job(run), keys.ledger(local)],
    ];
    return this.#link.run(
      script,
      [
        ...[keys.runs, keys.next, keys.journal, keys.alerts, keys.expected, keys.outcomes],
        ...all.flatMap(keysOf),
      ],
      [
        ...[queue, keys.run(""), keys.output(""), this.#keys.wake, ...this.#kept()],
        ...all.flatMap(({ local, run, own }) => [run, local, shardOf(local), ...own]),
      ],
    );
  }

  /** A script that does the same for several runs of a queue, and is asked about all that come at one moment together. */
  #together(name: "start-run" | "settle-run"): Gathering<About, unknown> {
    const script = this.#scripts[name];
    return new Gathering<About, unknown>(TOGETHER, async (queue, all) => {
      const answers = (await this.#aboutAll(script, queue, all)) as unknown[];
      const alone = async (one: About) => ((await this.#aboutAll(script, queue, [one])) as unknown[])[0];
      return all.map((one, i) => {
        const answer = answers[i];
        // Not asked; or of Redis as a whole, which the connection hears of only where it is the answer (leaveReplica).
        if (answer === null || (answer instanceof Error && failsForAll(answer))) return alone(one);
        return answer instanceof Error ? Promise.reject(redisError(answer)) : answer;
      });
    });
  }

  /** How long jobs stay, then what is kept of runs, where their task says nothing. */
  #kept(): Argument[] {
    const { completedJobs, failedJobs, successes, failures, successesFor, failuresFor } = this.#retention;
    return [completedJobs, failedJobs, successes, failures, successesFor, failuresFor];
  }

  /** An attempt starts: written before its handler runs, and counted as a crash until its end takes that back. */
  async start(name: TaskName, run: string, by: Worked): Promise<StartResult> {
    const own = [
      ...[by.worker, by.pid, by.host, by.attempt, by.made, DEFAULT_CRASH.wait, DEFAULT_CRASH.most],
      by.token ?? "",
    ];
    const about = { local: localName(name), run, own };
    const [word, ...rest] = (await this.#starts.ask(name.queue, about)) as StartReply;
    switch (word) {
      case "OK": {
        const [fence, now, details, checkpoint, crashes, attempt, goesOn] = rest as Begun;
        const { limit, grace = DEFAULT_GRACE } = decodeDetails(name, details);
        const saved = checkpoint === "" ? undefined : (JSON.parse(checkpoint) as Json);
        return {
          ...{ word, fence: Number(fence), attempt, now, limit, grace, checkpoint: saved, crashes },
          goesOn: goesOn === 1,
        };
      }
      case "FINAL":
        return { word, outcome: rest[0] as Outcome };
      case "CRASHED": {
        const error = "The workers of this run died.";
        await this.#settle(name, run, { fence: "crashed", made: by.made, outcome: "crashed", error });
        return { word, error };
      }
      case "WAIT":
        return { word, until: Number(rest[0]), now: Number(rest[1]) };
      default:
        return { word };
    }
  }

  /** An attempt ends. `FENCED`: another attempt has taken the run over, and this one's word does not count. */
  async settle(name: TaskName, run: string, end: Settlement): Promise<EndWord> {
    return (await this.#settle(name, run, end)) as EndWord;
  }

  /** @returns also `LIVE`, where the reconciler spoke too early */
  async #settle(
    name: TaskName,
    run: string,
    end: Omit<Settlement, "fence" | "made"> & { fence?: number | "crashed"; made?: number },
  ): Promise<string> {
    const { nextAt } = end;
    let { outcome } = end;
    let result = end.result === undefined ? "" : JSON.stringify(end.result);
    let unheard = false;
    const decide = async (): Promise<string | undefined> => {
      const decides = nextAt !== undefined || (outcome !== undefined && isFailure(outcome));
      const after =
        decides && outcome !== undefined ? await this.#aftermath(name, run, outcome, nextAt) : undefined;
      const own = [
        ...[end.fence ?? "", outcome ?? "", (end.error ?? "").slice(0, CAP)],
        result.length > CAP ? JSON.stringify({ cut: true, length: result.length }) : result,
        ...[end.made ?? "", after ? JSON.stringify(after) : ""],
      ];
      const word = await this.#settles.ask(name.queue, { local: localName(name), run, own });
      if (word === "CANCELLED") [outcome, result, unheard] = ["cancelled", "", true];
      if (word === "CANCELLED" || word === "STALE") return undefined;
      return unheard && word === "OK" ? "CANCELLED" : (word as string);
    };
    // Each end that asks something of its task outdates all others of it that have been decided.
    const word = await this.#contention.over([`${name.queue}/${localName(name)}`], decide);
    if (word !== undefined) return word;
    throw new CarillonError("CONFLICT", `${localName(name)} kept changing while its run was settled.`);
  }

  /** What a failure, or the handler's wish, asks of the task. Undefined: nothing. */
  async #aftermath(
    name: TaskName,
    run: string,
    outcome: Outcome,
    nextAt: number | undefined,
  ): Promise<Aftermath | undefined> {
    const [now, flat, count, info] = (await this.#about(this.#scripts["read-settle"], name, run)) as [
      number,
      string[],
      string,
      string,
    ];
    const task = decodeTask(name.queue, localName(name), flat);
    if (!task || isForeign(task) || info === "") return undefined;
    const details = decodeDetails(name, info);
    const { definition } = task;
    let pending: Pending[] = [...task.pending];
    // Of a delay after each run, what was asked for comes instead of the next time, whoever asked first.
    let retried = nextAt !== undefined;
    let note: string | undefined;
    let superseded: Aftermath["superseded"];
    const asked = pending.find(({ trigger }) => trigger === "self");
    const asks = nextAt !== undefined && asked?.nominal !== nextAt;
    if (asks) {
      // By who asks too: others may ask for the same time, once it is past.
      const key = `${details.key.replace(/@.*$/, "")}@self-${nextAt}.${tokenOf(run)}`;
      pending = pending.filter((one) => one !== asked);
      pending.push({ key, nominal: nextAt, due: nextAt, trigger: "self", at: nextAt });
    }
    if (isFailure(outcome) && details.trigger !== "manual") {
      if (task.calendarRevision > this.#calendars.revision) await this.#calendars.refresh();
      const schedule = this.#calendars.schedules.get(definition.schedule, definition.id);
      const interval = schedule.delay ?? (schedule.next(details.nominal) ?? Number.NaN) - details.nominal;
      const failures = Number(count) + 1;
      const seed = `${details.key}\n${failures}`;
      const wish = afterFailure(definition, failures, Number.isNaN(interval) ? undefined : interval, seed);
      if (wish.pause) note = `paused after ${failures} failures in a row`;
      if (wish.retryIn !== undefined) {
        const at = now + wish.retryIn;
        // A retry never passes the next occurrence: that does its work. (While the task is paused, nothing does.)
        if (task.state === "scheduled" && task.due !== undefined && at >= task.due) {
          const before = schedule.latest(details.nominal - 1)?.toString();
          superseded = { nominal: String(details.nominal), before };
        } else {
          const { key, nominal, due, missed } = details;
          pending.push({ key, nominal, due, trigger: "retry", at, ...(missed ? { missed } : {}) });
          retried = true;
        }
      }
    }
    // Of several that fail at once each must see the others: one of them may be the one too many.
    const counts = isFailure(outcome) && definition.pauseAfterFailures !== undefined;
    if (!retried && note === undefined && superseded === undefined && !counts) return undefined;
    return {
      generation: task.generation,
      failures: count,
      pending: retried ? JSON.stringify(pending) : undefined,
      retried,
      note,
      superseded,
      replaced: asks ? asked?.nominal.toString() : undefined,
    };
  }

  /** Keeps what a handler saved for the next run of its task. */
  async checkpoint(name: TaskName, run: string, fence: number, value: Json): Promise<SettleWord> {
    const text = JSON.stringify(value);
    return (await this.#about(this.#scripts.checkpoint, name, run, [fence, text])) as SettleWord;
  }

  /** The attempt was told to end: its time is up, or someone cancelled it. */
  async terminating(name: TaskName, run: string, fence: number): Promise<void> {
    await this.#about(this.#scripts.terminating, name, run, [fence]);
  }

  /** Asks for the end of a run, wherever it is. `UNCHANGED`: asked before. */
  async cancel(name: TaskName, run: string, by: string): Promise<CancelWord> {
    return this.#cancel(name, run, by, false);
  }

  async #cancel(name: TaskName, run: string, by: string, onlyQueued: boolean): Promise<CancelWord> {
    const own = [this.#keys.cancel, by.replace(/\s/g, "_") || "-", onlyQueued ? 1 : 0];
    return (await this.#about(this.#scripts["cancel-run"], name, run, own)) as CancelWord;
  }

  /** Which of these runs someone wants to end. */
  async cancelRequests(queue: string, runs: readonly string[]): Promise<string[]> {
    const keys = this.#keys.queue(queue);
    const asked = await this.#link.ask((client) =>
      Promise.all(runs.map((run) => client.hexists(keys.run(run), "cancel"))),
    );
    return runs.filter((_, i) => asked[i] === 1);
  }

  /** Replaces the captured output of an attempt. It goes with the run's record, and is not kept without one. */
  async saveOutput(queue: string, run: string, attempt: number, text: string, cut: boolean): Promise<void> {
    const keys = this.#keys.queue(queue);
    const line = JSON.stringify({ text, cut });
    await this.#link.run(this.#scripts["save-output"], [keys.run(run), keys.output(run)], [attempt, line]);
  }

  /** The captured output of a run, by attempt. */
  async output(queue: string, run: string): Promise<{ attempt: number; text: string; cut: boolean }[]> {
    const stored = await this.#link.ask((client) => client.hgetall(this.#keys.queue(queue).output(run)));
    return Object.entries(stored)
      .map(([attempt, json]) => ({
        attempt: Number(attempt),
        ...(JSON.parse(json) as { text: string; cut: boolean }),
      }))
      .sort((a, b) => a.attempt - b.attempt);
  }

  /** A task's runs, newest first: the ones that are not final, then the others by their end. */
  async list(name: TaskName, limit: number, offset = 0): Promise<Run[]> {
    const keys = this.#keys.queue(name.queue);
    const local = localName(name);
    const last = offset + limit - 1;
    const [named, set, successes, failures] = await this.#link.ask((client) =>
      Promise.all([
        client.hget(keys.task(local), "open"),
        client.zrevrange(keys.open(local), 0, last),
        client.zrevrange(keys.history(local), 0, last, "WITHSCORES"),
        client.zrevrange(keys.failures(local), 0, last, "WITHSCORES"),
      ]),
    );
    const final = [...scored(successes), ...scored(failures)].sort((a, b) => b.at - a.at);
    const ids = [...openIds(named, set), ...final.map(({ id }) => id)].slice(offset, offset + limit);
    return this.many(name.queue, ids);
  }

  async get(queue: string, id: string): Promise<Run | undefined> {
    const hash = await this.#link.ask((client) => client.hgetall(this.#keys.queue(queue).run(id)));
    return decodeRun(queue, id, hash);
  }

  async many(queue: string, ids: readonly string[]): Promise<Run[]> {
    const runs: Run[] = [];
    for (const some of chunks(ids)) {
      const found = await Promise.all(some.map((id) => this.get(queue, id)));
      for (const run of found) if (run) runs.push(run);
    }
    return runs;
  }

  /** Asks for the end of those of a task's runs that are queued. @returns of how many */
  async cancelQueued(name: TaskName, by: string): Promise<number> {
    let asked = 0;
    for (const some of chunks(await this.open(name))) {
      const queued = (await this.many(name.queue, some)).filter(({ state }) => state === "queued");
      // One may have started since.
      const words = await Promise.all(queued.map(({ id }) => this.#cancel(name, id, by, true)));
      asked += words.filter((word) => word === "OK").length;
    }
    return asked;
  }

  /** Where each attempt of a run ran. */
  async attempts(queue: string, id: string): Promise<Attempt[]> {
    return decodeAttempts(await this.#link.ask((client) => client.hgetall(this.#keys.queue(queue).run(id))));
  }

  /** Final runs of a queue by their end, newest first, from `before` on (UTC ms and run id; the id is left out). */
  async journal(
    queue: string,
    window: { from: number; to: number },
    limit: number,
    offset: number,
  ): Promise<{ id: string; at: number }[]> {
    const { journal } = this.#keys.queue(queue);
    const flat = await this.#link.ask((client) =>
      client.zrevrangebyscore(journal, window.to, window.from, "WITHSCORES", "LIMIT", offset, limit),
    );
    return scored(flat);
  }

  /** How many runs of a queue ended how. */
  async outcomes(queue: string): Promise<Record<Outcome, number>> {
    const { outcomes } = this.#keys.queue(queue);
    return decodeOutcomes(await this.#link.ask((client) => client.hgetall(outcomes)));
  }

  /** A task's statistics as stored. */
  async stats(name: TaskName): Promise<Record<string, string>> {
    const keys = this.#keys.queue(name.queue);
    return this.#link.ask((client) => client.hgetall(keys.stats(localName(name))));
  }

  /** The runs of a task that are not final, oldest first: one is named by the task itself, more are in a set. @param most at least 1; default all */
  async open(name: TaskName, most?: number): Promise<string[]> {
    const keys = this.#keys.queue(name.queue);
    const local = localName(name);
    const last = most === undefined ? "-1" : String(most - 1);
    const [named, set] = await this.#link.ask((client) =>
      Promise.all([client.hget(keys.task(local), "open"), client.zrange(keys.open(local), 0, last)]),
    );
    return openIds(named, set);
  }

  /** What was not enqueued of a task, and why; newest first. */
  async ledger(name: TaskName): Promise<LedgerEntry[]> {
    const key = this.#keys.queue(name.queue).ledger(localName(name));
    const lines = await this.#link.ask((client) => client.lrange(key, 0, -1));
    return lines.map((line) => {
      const [reason = "", from, to, count, at, by = "", run = "-"] = line.split(" ");
      return {
        ...{ reason, from: Number(from), to: Number(to), decisions: Number(count), at: Number(at), by },
        ...(run === "-" ? {} : { run }),
      };
    });
  }

  /**
   * Looks at the runs whose time has come: settles what no Carillon worker settled, removes jobs after their grace.
   * Bounded: `more` says that another call has work at once. `lingered`: finished tasks that are to be deleted. `cleared`: the last
   * of what a deleted task left is gone.
   */
  async reconcile(queue: string): Promise<{
    now: number;
    seen: [run: string, what: string][];
    lingered: TaskName[];
    cleared: boolean;
    more: boolean;
  }> {
    const keys = this.#keys.queue(queue);
    const [now, more, ...found] = (await this.#link.run(
      this.#scripts.reconcile,
      [keys.runs, keys.next, keys.tasks, `${keys.bull}repeat`, keys.journal, keys.expected, keys.outcomes],
      [RECONCILE_BATCH, `${keys.tag}:~`, keys.bull, LOOK_AGAIN, 300_000, ...this.#kept()],
    )) as [number, number, ...[string, string, string, Outcome, string][]];
    const named = (local: string): TaskName => ({ queue, ...parseLocalName(local) });
    const lingered = found.filter(([, what]) => what === "lingered").map(([local]) => named(local));
    // Of one task one after the other: each end outdates what was read for another.
    const turns = new Turns();
    const seen = await Promise.all(
      found
        .filter(([, what]) => what !== "lingered" && what !== "cleared")
        .map(async ([run, what, local, outcome, error]): Promise<[string, string]> => {
          if (what !== "over") return [run, what];
          try {
            const answer = await turns.take([local], () =>
              this.#settle(named(local), run, { outcome, error }),
            );
            return [run, answer === "OK" ? outcome : ""];
          } catch (failure) {
            if (failsForAll(failure)) throw failure;
            // Someone else has written there: the others are settled all the same.
            return [run, "unreadable"];
          }
        }),
    );
    const cleared = found.some(([, what]) => what === "cleared");
    const told = seen.filter(([, what]) => what !== "");
    return { now, seen: told, lingered, cleared, more: more === 1 };
  }
}

/** A task may have a hundred thousand runs: others must have their turn in between. */
function chunks(ids: readonly string[]): string[][] {
  const count = Math.ceil(ids.length / AT_ONCE);
  return Array.from({ length: count }, (_, i) => ids.slice(i * AT_ONCE, (i + 1) * AT_ONCE));
}

/** @param named what the task's `open` says (lib/open.lua) */
function openIds(named: string | null, set: string[]): string[] {
  if (named === "*") return set;
  return named ? [named] : [];
}

function scored(flat: readonly string[]): { id: string; at: number }[] {
  return Array.from({ length: flat.length / 2 }, (_, i) => ({
    id: flat[2 * i] as string,
    at: Number(flat[2 * i + 1]),
  }));
}

/** A skip, or several alike in a row. Times in UTC ms; `from` and `to` are nominal, both included. */
export interface LedgerEntry {
  reason: string;
  from: number;
  to: number;
  /** How many decisions this entry stands for. */
  decisions: number;
  at: number;
  /** The node or client that decided. */
  by: string;
  /** The run that was in the way. */
  run?: string;
}
