import {
  type Json,
  localName,
  type Outcome,
  parseLocalName,
  type Run,
  shardOf,
  type TaskName,
} from "@carillon/core";
import type { NamespaceKeys } from "./keys.js";
import type { Link } from "./link.js";
import { decodeRun } from "./run-codec.js";
import type { Scripts } from "./scripts.js";

/** What is kept of the past, per task and per job. Times in ms. */
export interface Retention {
  /** Final runs kept a task; default 100. */
  runsPerTask: number;
  /** A completed job stays in BullMQ for; default 10 minutes. */
  completedJobs: number;
  /** A failed job stays in BullMQ for; default 24 hours. */
  failedJobs: number;
}

export const DEFAULT_RETENTION: Retention = {
  runsPerTask: 100,
  completedJobs: 10 * 60_000,
  failedJobs: 24 * 3_600_000,
};

export type StartResult =
  | { readonly word: "OK"; readonly fence: number; readonly now: number }
  /** The task was deleted: there is nothing to do. */
  | { readonly word: "GONE" }
  /** The run is over already; its worker died between settling and completing the job. */
  | { readonly word: "FINAL"; readonly outcome: Outcome };

export interface Worked {
  worker: string;
  pid: number;
  host: string;
  /** From 1. */
  attempt: number;
  /** Attempts that BullMQ counts as made (`job.attemptsMade`). */
  made: number;
}

export interface Settlement {
  fence: number;
  /** As at the attempt's start. */
  made: number;
  /** Undefined: this attempt failed and another is left. */
  outcome: Outcome | undefined;
  error?: string | undefined;
  result?: Json | undefined;
}

/** Error texts and results beyond this many characters are cut. */
const CAP = 16 * 1024;
/** Runs looked at in one script. */
const RECONCILE_BATCH = 100;

export class RunRepository {
  readonly #link: Link;
  readonly #keys: NamespaceKeys;
  readonly #scripts: Scripts;
  readonly #retention: Retention;

  constructor(link: Link, keys: NamespaceKeys, scripts: Scripts, retention: Retention) {
    this.#link = link;
    this.#keys = keys;
    this.#scripts = scripts;
    this.#retention = retention;
  }

  /** An attempt starts: written before its handler runs. */
  async start(name: TaskName, run: string, by: Worked): Promise<StartResult> {
    const keys = this.#keys.queue(name.queue);
    const local = localName(name);
    const [word, value, now] = (await this.#link.run(
      this.#scripts["start-run"],
      [keys.run(run), keys.task(local), keys.open(local), keys.history(local)],
      [run, by.worker, by.pid, by.host, by.attempt, by.made],
    )) as [StartResult["word"], number | string, number];
    if (word === "OK") return { word, fence: Number(value), now };
    return word === "FINAL" ? { word, outcome: value as Outcome } : { word };
  }

  /** An attempt ends. `FENCED`: another attempt has taken the run over, and this one's word does not count. */
  async settle(name: TaskName, run: string, end: Settlement): Promise<"OK" | "FENCED" | "GONE" | "FINAL"> {
    return (await this.#settle(name, run, end)) as "OK" | "FENCED" | "GONE" | "FINAL";
  }

  async #settle(
    name: TaskName,
    run: string,
    end: Omit<Settlement, "fence" | "made"> & Partial<Pick<Settlement, "fence" | "made">>,
  ): Promise<string> {
    const keys = this.#keys.queue(name.queue);
    const local = localName(name);
    const shard = shardOf(local);
    const stays = end.outcome === "succeeded" ? this.#retention.completedJobs : this.#retention.failedJobs;
    const result = end.result === undefined ? "" : JSON.stringify(end.result);
    const answer = await this.#link.run(
      this.#scripts["settle-run"],
      [
        ...[keys.run(run), keys.open(local), keys.history(local), keys.runs, keys.next],
        ...[keys.task(local), keys.due(shard), keys.job(run)],
      ],
      [
        ...[run, end.fence ?? "", end.outcome ?? "", (end.error ?? "").slice(0, CAP)],
        ...[result.length > CAP ? JSON.stringify({ cut: true, length: result.length }) : result],
        ...[keys.run(""), this.#retention.runsPerTask, stays, end.made ?? ""],
        ...[local, shard, this.#keys.wake, name.queue],
      ],
    );
    return answer as string;
  }

  /** A task's runs, newest first: the ones that are not final, then the history. */
  async list(name: TaskName, limit: number, offset = 0): Promise<Run[]> {
    const keys = this.#keys.queue(name.queue);
    const local = localName(name);
    const [open, history] = await this.#link.ask((client) =>
      Promise.all([
        client.zrevrange(keys.open(local), 0, offset + limit - 1),
        client.zrevrange(keys.history(local), 0, offset + limit - 1),
      ]),
    );
    const ids = [...open, ...history].slice(offset, offset + limit);
    const runs = await Promise.all(ids.map((id) => this.get(name.queue, id)));
    return runs.filter((run) => run !== undefined);
  }

  async get(queue: string, id: string): Promise<Run | undefined> {
    const hash = await this.#link.ask((client) => client.hgetall(this.#keys.queue(queue).run(id)));
    return decodeRun(queue, id, hash);
  }

  /** What was not enqueued of a task, and why; newest first. */
  async ledger(name: TaskName): Promise<LedgerEntry[]> {
    const key = this.#keys.queue(name.queue).ledger(localName(name));
    const lines = await this.#link.ask((client) => client.lrange(key, 0, -1));
    return lines.map((line) => {
      const [reason, from, to, count, at, by] = line.split(" ") as [
        string,
        string,
        string,
        string,
        string,
        string,
      ];
      return { reason, from: Number(from), to: Number(to), decisions: Number(count), at: Number(at), by };
    });
  }

  /**
   * Looks at the runs whose time has come: settles what no Carillon worker settled, removes jobs after their grace.
   * Bounded: `more` says that another call has work at once.
   */
  async reconcile(
    queue: string,
  ): Promise<{ now: number; seen: [run: string, what: string][]; more: boolean }> {
    const keys = this.#keys.queue(queue);
    const [now, looked, ...found] = (await this.#link.run(
      this.#scripts.reconcile,
      [keys.runs, keys.next, keys.tasks, `${keys.bull}repeat`],
      [RECONCILE_BATCH, `${keys.tag}:~`, keys.bull, 5_000, 300_000],
    )) as [number, number, ...[string, string, string, Outcome, string][]];
    const seen = await Promise.all(
      found.map(async ([run, what, local, outcome, error]): Promise<[string, string]> => {
        if (what !== "over") return [run, what];
        const answer = await this.#settle({ queue, ...parseLocalName(local) }, run, { outcome, error });
        return [run, answer === "OK" ? outcome : ""];
      }),
    );
    return { now, seen: seen.filter(([, what]) => what !== ""), more: looked >= RECONCILE_BATCH };
  }
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
}
