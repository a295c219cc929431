import { type Json, OUTCOMES, type Outcome, type Run, type TaskName, type Trigger } from "@carillon/core";
import { delaysOf, FAILURES, occurrenceKey, parseLocalName, SUCCESSES } from "@carillon/core/internal";

/** Details of a run that are known when it is enqueued, packed into one field: it never changes afterwards. */
export interface RunDetails {
  type: string;
  key: string;
  nominal: number;
  due: number;
  trigger: Trigger;
  missed?: { from: number; to: number };
  itemsOf?: string;
  /** Attempts that it may have; undefined: one. */
  most?: number;
  /** Time in ms that an attempt may take, and then to end by itself. */
  limit?: number;
  grace?: number;
  /** The name of the requester. */
  by?: string;
  trace?: string;
  /** JSON of a payload that is not the task's. A text within the text, so that scripts mistake no field of it for one of these. */
  payload?: string;
}

/**
 * All fields in one order, undefined if absent: thousands of objects of the same shape are handled much faster. JSON
 * omits undefined fields.
 */
type Sparse<Kind> = {
  readonly [Field in keyof Kind]-?: undefined extends Kind[Field] ? Kind[Field] | undefined : Kind[Field];
};

/**
 * Omits default values: a hash with a value longer than 64 bytes takes more than twice the memory. If the text is still longer,
 * the script stores the type in a field of its own (`recordRun`), so the type must come first.
 */
export function encodeDetails(task: TaskName, details: Sparse<RunDetails>): string {
  const { key, nominal, due, trigger } = details;
  return JSON.stringify({
    type: details.type,
    missed: details.missed,
    itemsOf: details.itemsOf,
    most: details.most,
    limit: details.limit,
    grace: details.grace,
    nominal,
    key: key === occurrenceKey(task, nominal) ? undefined : key,
    due: due === nominal ? undefined : due,
    trigger: trigger === "schedule" ? undefined : trigger,
    by: details.by,
    trace: details.trace,
    payload: details.payload,
  });
}

export function decodeDetails(task: TaskName, text: string): RunDetails {
  const stored = JSON.parse(text) as Omit<RunDetails, "key" | "due" | "trigger"> & Partial<RunDetails>;
  const { nominal } = stored;
  return { key: occurrenceKey(task, nominal), due: nominal, trigger: "schedule", ...stored };
}

/** Error texts and results beyond this many characters are cut. */
export const LONGEST_TEXT = 16 * 1024;

/** A result as JSON, as it is kept with its run. */
export function cutResult(json: string): string {
  return json.length > LONGEST_TEXT ? JSON.stringify({ cut: true, length: json.length }) : json;
}

/** Undefined if there is no record, or it is corrupt. */
export function decodeRun(queue: string, id: string, hash: Record<string, string>): Run | undefined {
  if (!hash.info || !hash.of) return undefined;
  try {
    return readRun(queue, id, hash as Stored);
  } catch {
    return undefined;
  }
}

type Stored = Record<string, string> & { readonly info: string; readonly of: string };

/** Sets each field by its own name: pages ask for thousands of runs, and objects made from lists of fields took twice the CPU. */
function readRun(queue: string, id: string, hash: Stored): Run {
  const [local, enqueued, node = hash.node] = hash.of.split(" ") as [string, string, string | undefined];
  const task = { queue, ...parseLocalName(local) };
  const details = decodeDetails(task, hash.info);
  const run = {
    id,
    task,
    state: hash.state ?? "queued",
    enqueued: Number(enqueued),
    node,
    attempts: Number(hash.attempts ?? 0),
    type: hash.type ?? details.type,
    key: details.key,
    nominal: details.nominal,
    due: details.due,
    trigger: details.trigger,
  } as { -readonly [Field in keyof Run]: Run[Field] };
  if (details.missed !== undefined) run.missed = details.missed;
  if (details.itemsOf !== undefined) run.itemsOf = details.itemsOf;
  if (details.by !== undefined) run.by = details.by;
  if (details.trace !== undefined) run.trace = details.trace;
  if (details.payload !== undefined) run.payload = JSON.parse(details.payload) as Json;
  if (details.most !== undefined) run.maxAttempts = details.most;
  if (hash.outcome !== undefined) run.outcome = hash.outcome as Outcome;
  if (hash.started !== undefined) run.started = Number(hash.started);
  if (hash.finished !== undefined) run.finished = Number(hash.finished);
  if (hash.worker !== undefined) run.worker = hash.worker;
  if (hash.pid !== undefined) run.pid = Number(hash.pid);
  if (hash.host !== undefined) run.host = hash.host;
  if (hash.error !== undefined) run.error = hash.error;
  if (hash.crashes !== undefined) run.crashes = Number(hash.crashes);
  if (hash.notBefore !== undefined) run.notBefore = Number(hash.notBefore);
  if (hash.checkpoint !== undefined) run.checkpoint = JSON.parse(hash.checkpoint) as Json;
  if (hash.result !== undefined) run.result = JSON.parse(hash.result) as Json;
  const cancel = cancelOf(hash.cancel);
  if (cancel !== undefined) run.cancel = cancel;
  const { lateMs, waitMs } = delaysOf(run);
  if (lateMs !== undefined) run.lateMs = lateMs;
  if (waitMs !== undefined) run.waitMs = waitMs;
  return run;
}

function cancelOf(text: string | undefined): Run["cancel"] {
  const [at, by] = text?.split(" ") ?? [];
  return at === undefined || by === undefined ? undefined : { at: Number(at), by };
}

/** The process that runs an attempt, which the start of a run records. */
export interface Runner {
  readonly worker: string;
  readonly pid: number;
  readonly host: string;
}

const RUNNER = ["worker", "pid", "host"] as const satisfies (keyof Runner)[];

/** A runner as the scripts of a start take it: each field's name and its value. The record has a field for each. */
export function runnerText(runner: Runner): string {
  return RUNNER.map((field) => `${field} ${runner[field]}`).join(" ");
}

/** One start of a run's handler. */
export interface Attempt extends Runner {
  /** From 1. */
  readonly attempt: number;
  readonly started: number;
  /** Missing: the run's own end is its end, it goes on, or its worker died. */
  readonly ended?: number;
}

/** Start, end, worker and host of each attempt of a run. */
export function decodeAttempts(hash: Record<string, string>): Attempt[] {
  return Object.entries(hash)
    .filter(([field]) => field.startsWith("a:"))
    .map(([field, text]) => {
      // Then the worker's own number for it. The runner of the newest one is in fields of its own.
      const [started, ...by] = text.split(" ");
      const [worker = "", pid, host = ""] = by.length > 1 ? by : RUNNER.map((name) => hash[name]);
      const attempt = field.slice(2);
      const ended = hash[`e:${attempt}`];
      return {
        attempt: Number(attempt),
        started: Number(started),
        ...(ended !== undefined && { ended: Number(ended) }),
        worker,
        pid: Number(pid),
        host,
      };
    })
    .sort((x, y) => x.attempt - y.attempt);
}

/** Words of a field of a task's statistics; "-" is none. */
function words(text: string | undefined, names: readonly string[]): Record<string, string> {
  const found = text?.split(" ") ?? [];
  return Object.fromEntries(
    names.flatMap((name, i) => {
      const word = found[i] ?? "-";
      return word === "-" ? [] : [[name, word]];
    }),
  );
}

/** A task's statistics, each by its own name: lib/stats.lua says how they are stored. */
export function decodeStats(hash: Readonly<Record<string, string>>): Record<string, string> {
  const { starts, ends, fence: _, ...rest } = hash;
  const sums = { successMs: SUCCESSES, failureMs: FAILURES };
  const times = Object.entries(sums).flatMap(([sum, outcomes]) => {
    const of = [...outcomes].flatMap((outcome) => words(rest[outcome], ["n", "ms"])["ms"] ?? []);
    return of.length === 0 ? [] : [[sum, String(of.reduce((total, ms) => total + Number(ms), 0))]];
  });
  const counts = OUTCOMES.flatMap((outcome) => {
    const { n } = words(rest[outcome], ["n"]);
    return n === undefined ? [] : [[outcome, n]];
  });
  return {
    ...rest,
    ...words(starts, ["attempts", "crashes", "consecutiveCrashes", "lastStart"]),
    ...words(ends, ["consecutiveFailures", "lastOutcome", "lastFinish", "lastMs", "lastSuccess"]),
    ...Object.fromEntries([...counts, ...times]),
  };
}

/** The usual duration of a task's runs, in ms: the mean of those that succeeded. Undefined: there are none. */
export function usualMsOf(stats: Readonly<Record<string, string>>): number | undefined {
  const successes = [...SUCCESSES].reduce((sum, outcome) => sum + Number(stats[outcome] ?? 0), 0);
  return successes > 0 ? Math.round(Number(stats["successMs"] ?? 0) / successes) : undefined;
}

/** Number of ended runs by outcome, from fields that are named after outcomes. */
export function decodeOutcomes(stored: Readonly<Record<string, string>>): Record<Outcome, number> {
  const counts = OUTCOMES.map((outcome) => [outcome, Number(stored[outcome] ?? 0)]);
  return Object.fromEntries(counts) as Record<Outcome, number>;
}
