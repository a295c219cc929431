import type { Outcome, Run, TaskName } from "@carillon/core";
import { type Cause, causeOf, delaysOf, FAILURES, grouped, localName } from "@carillon/core/internal";
import { readEach, readFields, readHashes } from "../redis/hashes.js";
import { scored } from "../redis/scored.js";
import { Repository } from "../repository.js";
import { FACTS } from "../script/facts.js";
import { unreadableRun } from "../task/errors.js";
import { type Attempt, decodeAttempts, decodeOutcomes, decodeRun, decodeStats } from "./codec.js";
import { type End, type Failure, readFailures } from "./failures.js";
import { type Kept, readKept } from "./kept.js";
import { decodeLedger, type Skip } from "./ledger.js";
import { type Ended, type Recent, readEnded, readRecent, readShort, type ShortRun } from "./recent.js";

/** Runs read, or cancelled, at once. */
const AT_ONCE = 500;

/** Ended runs whose errors are read at once. */
const FAILURES_AT_ONCE = 250;

/** The last run of a task that did something. */
export interface LastRun {
  readonly run: Run | undefined;
  /** End of the last run that had nothing to do, UTC ms. */
  readonly checked: number | undefined;
  /** Its failures in a row, at least 1, and the end of the first of them, UTC ms, if that is recorded. Undefined: it did not fail. */
  readonly failing?: { readonly failures: number; readonly since?: number } | undefined;
}

export class RunReads extends Repository {
  /** Filters the runs for which a cancel was requested. */
  async cancelRequests(queue: string, runs: readonly string[]): Promise<string[]> {
    const keys = this.keys.queue(queue);
    const asked = await this.link.ask((client) =>
      Promise.all(runs.map((run) => client.hexists(keys.run(run), "cancel"))),
    );
    return runs.filter((_, i) => asked[i] === 1);
  }

  /** The captured output of a run, by attempt. */
  async output(queue: string, run: string): Promise<{ attempt: number; text: string; cut: boolean }[]> {
    const stored = await this.link.ask((client) => client.hgetall(this.keys.queue(queue).output(run)));
    return Object.entries(stored)
      .flatMap(([attempt, json]) => outputOf(json).map((output) => ({ attempt: Number(attempt), ...output })))
      .sort((a, b) => a.attempt - b.attempt);
  }

  /** A task's runs, newest first: the ones that are not final, then the others by their end. */
  async list(name: TaskName, limit: number, offset = 0): Promise<Run[]> {
    const keys = this.keys.queue(name.queue);
    const local = localName(name);
    const last = offset + limit - 1;
    const [named, set, successes, failures] = await this.link.ask((client) =>
      Promise.all([
        client.hget(keys.task(local), "open"),
        client.zrevrange(keys.open(local), 0, last),
        client.zrevrange(keys.history(local), 0, last, "WITHSCORES"),
        client.zrevrange(keys.failures(local), 0, last, "WITHSCORES"),
      ]),
    );
    const final = scored([...successes, ...failures]).sort(([, a], [, b]) => b - a);
    const ids = [...openIds(named, set), ...final.map(([id]) => id)].slice(offset, offset + limit);
    return this.many(name.queue, ids);
  }

  /** @throws `UNSUPPORTED_FORMAT` if its record is corrupt */
  async get(queue: string, id: string): Promise<Run | undefined> {
    const [hash] = await readHashes(this.link, [this.keys.queue(queue).run(id)]);
    const run = decodeRun(queue, id, hash ?? {});
    if (run || (hash && Object.keys(hash).length === 0)) return run;
    throw unreadableRun(id);
  }

  /** Those that there are, without corrupt ones. */
  async many(queue: string, ids: readonly string[]): Promise<Run[]> {
    const keys = this.keys.queue(queue);
    const runs: Run[] = [];
    for (const some of chunks(ids)) {
      const hashes = await readHashes(this.link, some.map(keys.run));
      for (const [i, id] of some.entries()) {
        const run = decodeRun(queue, id, hashes[i] ?? {});
        if (run) runs.push(run);
      }
    }
    return runs;
  }

  /** Delays with which runs were enqueued and started, in the order of their ids; nothing for those whose records are gone. */
  async delays(queue: string, ids: readonly string[]): Promise<Pick<Run, "lateMs" | "waitMs">[]> {
    const keys = this.keys.queue(queue);
    const found = await this.link.ask((client) =>
      Promise.all(ids.map((id) => client.hmget(keys.run(id), "info", "of", "started"))),
    );
    return ids.map((id, i) => {
      const [info = "", of = "", started] = found[i]?.map((text) => text ?? undefined) ?? [];
      const run = decodeRun(queue, id, { info, of, ...(started !== undefined && { started }) });
      return run ? delaysOf(run) : {};
    });
  }

  /** The last run of each of these tasks, as their statistics have it: two round trips for each of their queues. */
  async last(names: readonly TaskName[]): Promise<LastRun[]> {
    return this.#inQueues(names, async (queue, locals) => {
      const keys = this.keys.queue(queue);
      const fields = ["lastRun", "lastChecked", "ends", "failing"] as const;
      const stats = await readEach(
        this.link,
        locals.map((local) => ["hmget", keys.stats(local), ...fields] as const),
      );
      const known = stats.flatMap((stored) => stored?.[0] ?? []);
      const hashes = await readHashes(this.link, known.map(keys.run));
      const runs = new Map(known.map((id, i) => [id, decodeRun(queue, id, hashes[i] ?? {})]));
      return stats.map((stored): LastRun => {
        const [id, checked, ends, failing] = stored ?? [];
        return {
          run: runs.get(id ?? ""),
          checked: checked ? Number(checked) : undefined,
          failing: failingOf(decodeStats({ ...(ends && { ends }), ...(failing && { failing }) })),
        };
      });
    });
  }

  /** Reads something of tasks by their queues; the answers are in the order of the names. */
  async #inQueues<T>(
    names: readonly TaskName[],
    read: (queue: string, locals: readonly string[]) => Promise<T[]>,
  ): Promise<T[]> {
    const places = grouped(names.keys(), (i) => (names[i] as TaskName).queue);
    const found: T[] = [];
    await Promise.all(
      [...places].map(async ([queue, indexes]) => {
        const locals = indexes.map((i) => localName(names[i] as TaskName));
        for (const [n, one] of (await read(queue, locals)).entries()) found[indexes[n] as number] = one;
      }),
    );
    return found;
  }

  /**
   * Records of these tasks: two round trips for each of their queues.
   *
   * @param bounds `most` of each task: its newest open runs, final runs and ledger entries; `since`: only runs that have not ended before
   * this time, UTC ms
   */
  async recent(
    names: readonly TaskName[],
    bounds: { most: number; since?: number | undefined },
  ): Promise<Recent[]> {
    return this.#inQueues(names, (queue, locals) =>
      readRecent({ link: this.link, scripts: this.scripts }, this.keys.queue(queue), queue, locals, bounds),
    );
  }

  /** The worker of each attempt of a run. */
  async attempts(queue: string, id: string): Promise<Attempt[]> {
    return decodeAttempts(await this.link.ask((client) => client.hgetall(this.keys.queue(queue).run(id))));
  }

  /** Final runs of a queue by their end, newest first, from `before` on (UTC ms and run id; the id is left out). */
  async journal(
    queue: string,
    window: { from: number; to: number },
    limit: number,
    offset: number,
  ): Promise<End[]> {
    const { journal } = this.keys.queue(queue);
    const flat = await this.link.ask((client) =>
      client.zrevrangebyscore(journal, window.to, window.from, "WITHSCORES", "LIMIT", offset, limit),
    );
    return scored(flat).map(([id, at]) => ({ id, at }));
  }

  /** Number of runs of a queue that ended in this time, both ends included. */
  async countEnded(queue: string, { from, to }: { from: number; to: number }): Promise<number> {
    return this.link.ask((client) => client.zcount(this.keys.queue(queue).journal, from, to));
  }

  /** Reads the newest skips of a queue's tasks, newest first; how many are kept: lib/ledger.lua. */
  async skips(queue: string): Promise<(Pick<Skip, "reason" | "from" | "to" | "at"> & { local: string })[]> {
    const found = await this.link.ask((client) => client.xrevrange(this.keys.queue(queue).skips, "+", "-"));
    return found.map(([id, [, text = ""]]) => {
      const [local = "", reason = "", from, to] = text.split(" ");
      return { local, reason, from: Number(from), to: Number(to), at: Number.parseInt(id, 10) };
    });
  }

  /** Runs with what a sum needs: one round trip. Those whose records are gone are left out. */
  async brief(queue: string, ids: readonly string[]): Promise<ShortRun[]> {
    const runs = await readShort(this.scripts, this.keys.queue(queue), queue, ids);
    return runs.filter((run) => run !== undefined);
  }

  /** The ends of runs of a queue, in pages as `ends` gives them. */
  async *ended(queue: string, window: { from: number; to: number }): AsyncGenerator<Ended[]> {
    for await (const ends of this.ends(queue, window, AT_ONCE))
      yield readEnded(this.scripts, this.keys.queue(queue), ends);
  }

  /**
   * Final runs of a queue by their end, newest first, in pages: each once, and none is left out while others are added or deleted.
   *
   * @param most runs of a page
   */
  async *ends(
    queue: string,
    { from, to }: { from: number; to: number },
    most: number,
  ): AsyncGenerator<End[]> {
    // The place of the reader.
    let here: End | undefined;
    for (let offset = 0; ; ) {
      const found = await this.journal(queue, { from, to: here?.at ?? to }, most, offset);
      const place = here;
      const page = place ? found.filter((end) => isAfter(end, place)) : found;
      if (page.length > 0) yield page;
      const last = found.at(-1);
      if (found.length < most || !last) return;
      // The reader continues by offset only if one millisecond holds more ends than a page.
      offset = last.at === here?.at ? offset + most : 0;
      here = here === undefined || isAfter(last, here) ? last : here;
    }
  }

  /** The failed runs of a queue that ended in this time, both ends included, newest first, in pages: a few milliseconds of Redis each. */
  async *failures(queue: string, window: { from: number; to: number }): AsyncGenerator<Failure[]> {
    for await (const ends of this.ends(queue, window, FAILURES_AT_ONCE))
      yield readFailures(this.scripts, this.keys.queue(queue), ends);
  }

  /** The newest runs of a queue that ended in this time, at most `most`: their number, and those that failed. */
  async newestFailures(
    queue: string,
    window: { from: number; to: number },
    most: number,
  ): Promise<{ looked: number; failed: Failure[] }> {
    const ends = await this.journal(queue, window, most, 0);
    return {
      looked: ends.length,
      failed: await readFailures(this.scripts, this.keys.queue(queue), ends),
    };
  }

  /** Times from which on the records of these tasks are complete, and their skips. @param now UTC ms */
  kept(queue: string, locals: readonly string[], now: number): Promise<Kept[]> {
    return readKept(this.scripts, this.keys.queue(queue), locals, now);
  }

  /** The cause of a failed run, or of the last failed run of a task. Undefined if its record is not kept. */
  async cause(task: TaskName, id?: string): Promise<Cause | undefined> {
    const keys = this.keys.queue(task.queue);
    const failures = keys.failures(localName(task));
    const [run] = id === undefined ? await this.link.ask((client) => client.zrevrange(failures, 0, 0)) : [id];
    if (run === undefined) return undefined;
    const [failure] = await readFailures(this.scripts, keys, [{ id: run, at: 0 }]);
    return failure && causeOf(failure.error.outcome, failure.error.line, failure.error.frame);
  }

  /** The ends of the last runs and of the last successes of tasks of one queue, UTC ms; absent: none. */
  async lastEnds(queue: string, locals: readonly string[]): Promise<{ last?: number; success?: number }[]> {
    const keys = this.keys.queue(queue);
    const found = await readFields(this.scripts, locals.map(keys.stats), ["ends"]);
    return found.map(([ends = ""]) => {
      const { lastFinish, lastSuccess } = decodeStats({ ends });
      return {
        ...(lastFinish !== undefined && { last: Number(lastFinish) }),
        ...(lastSuccess !== undefined && { success: Number(lastSuccess) }),
      };
    });
  }

  /** Number of ended runs of a queue, by outcome. */
  async outcomes(queue: string): Promise<Record<Outcome, number>> {
    const { outcomes } = this.keys.queue(queue);
    return decodeOutcomes(await this.link.ask((client) => client.hgetall(outcomes)));
  }

  /**
   * The ms that the ended runs of a queue took: those that succeeded, and those that failed. They restart at 0 as
   * `outcomes` does.
   */
  async durations(queue: string): Promise<{ successMs: number; failureMs: number }> {
    const { outcomes } = this.keys.queue(queue);
    const [success, failure] = await this.link.ask((client) =>
      client.hmget(outcomes, "successMs", "failureMs"),
    );
    return { successMs: Number(success ?? 0), failureMs: Number(failure ?? 0) };
  }

  /** A task's statistics. */
  async stats(name: TaskName): Promise<Record<string, string>> {
    const keys = this.keys.queue(name.queue);
    return decodeStats(await this.link.ask((client) => client.hgetall(keys.stats(localName(name)))));
  }

  /** The statistics of tasks, and how many runs of each are not final: one round trip for each of their queues. */
  async manyStats(names: readonly TaskName[]): Promise<StoredStats[]> {
    return this.#inQueues(names, (queue, locals) => this.#statsIn(queue, locals));
  }

  async #statsIn(queue: string, locals: readonly string[]): Promise<StoredStats[]> {
    const keys = this.keys.queue(queue);
    const [stats, named, sizes] = await Promise.all([
      readHashes(this.link, locals.map(keys.stats)),
      readEach(
        this.link,
        locals.map((local) => ["hget", keys.task(local), "open"] as const),
      ),
      readEach(
        this.link,
        locals.map((local) => ["zcard", keys.open(local)] as const),
      ),
    ]);
    return locals.map((_, i) => ({
      stored: decodeStats(stats[i] ?? {}),
      open: named[i] === FACTS.inSet ? (sizes[i] ?? 0) : named[i] ? 1 : 0,
    }));
  }

  /**
   * The runs of a task that are not final, oldest first: one is named by the task itself, more are in a set. @param
   * most at least 1; default all
   */
  async open(name: TaskName, most?: number): Promise<string[]> {
    const keys = this.keys.queue(name.queue);
    const local = localName(name);
    const last = most === undefined ? "-1" : String(most - 1);
    const [[named], [set]] = await Promise.all([
      readEach(this.link, [["hget", keys.task(local), "open"]]),
      readEach(this.link, [["zrange", keys.open(local), 0, last]]),
    ]);
    return openIds(named ?? null, set ?? []);
  }

  /** Occurrences of a task that were not enqueued, and why; newest first. */
  async ledger(name: TaskName): Promise<Skip[]> {
    const key = this.keys.queue(name.queue).ledger(localName(name));
    const lines = await this.link.ask((client) => client.lrange(key, 0, -1));
    return decodeLedger(lines);
  }
}

interface StoredStats {
  readonly stored: Record<string, string>;
  /** Runs that are not final. */
  readonly open: number;
}

/** Reads in pages: a task may have a hundred thousand runs, and other commands must run in between. */
export function chunks(ids: readonly string[]): string[][] {
  const count = Math.ceil(ids.length / AT_ONCE);
  return Array.from({ length: count }, (_, i) => ids.slice(i * AT_ONCE, (i + 1) * AT_ONCE));
}

/** @param named what the task's `open` says (lib/open.lua) */
function openIds(named: string | null, set: string[]): string[] {
  if (named === FACTS.inSet) return set;
  return named ? [named] : [];
}

/** Whether the journal lists one end after the other. */
function isAfter(one: End, other: End): boolean {
  return one.at === other.at ? one.id < other.id : one.at < other.at;
}

/** Captured output as it is stored, without its sender and number. Empty if it is corrupt. */
function outputOf(json: string): { text: string; cut: boolean }[] {
  try {
    const { text, cut } = JSON.parse(json) as { text: string; cut: boolean };
    return [{ text, cut }];
  } catch {
    return [];
  }
}

/** The last failures of a task in a row. Undefined: its last run did not fail. */
function failingOf({
  lastOutcome,
  lastFinish,
  lastSuccess = "0",
  consecutiveFailures = "0",
  failing = "0",
}: Record<string, string>): LastRun["failing"] {
  if (!FAILURES.has(lastOutcome as Outcome)) return undefined;
  const failures = Math.max(1, Number(consecutiveFailures));
  // An older node does not record the first failure: then this is that of failures before the last success.
  const since = failures === 1 ? lastFinish : Number(failing) > Number(lastSuccess) ? failing : undefined;
  return { failures, ...(since !== undefined && { since: Number(since) }) };
}
