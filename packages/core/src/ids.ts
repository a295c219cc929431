/**
 * The ids of runs, items, processes and turns. All are made here, so that no two can be equal:
 *
 * | | form | |
 * | --- | --- | --- |
 * | token | 64 random bits in base 36 | the only source of uniqueness (`newToken` of the store); the id of a backfill |
 * | run, and its job | `task@nominal.token`, `task@nominal.token.n` | `nominal` in base 36; `n`: number in a commit, from the second on |
 * | item's job | `run_index` | |
 * | node, worker | `host-pid-token` | |
 * | turn of a worker, and a job's lock | `worker:lane:turn`, `worker:lane:turn:n` | |
 *
 * A task's id has no `@`, and a run's id no `_` after it: so the first `@` ends the task, and the `_` after it the run. Owners are not
 * part of a run's id: two runs of one commit differ by `n`, any others by the token. BullMQ refuses job ids with `:` and of digits only, and
 * an id like one of its key names would break the queue: `@` rules that out.
 */

/** Whether a value has the form of a token, which is also the id of a backfill. */
export function isToken(value: unknown): value is string {
  return typeof value === "string" && /^[0-9a-z]{13}$/.test(value);
}

/** The id of a run. @param n its number in its commit, from 0 */
export function runId(task: string, nominal: number, token: string, n = 0): string {
  const number = n === 0 ? "" : `.${n.toString(36)}`;
  return `${task}@${nominal.toString(36)}.${token}${number}`;
}

const RUN = /^[A-Za-z0-9._-]{1,128}@[A-Za-z0-9.-]+$/;

/** Whether a text has the form of a run's id: an item's has not. */
export function isRunId(text: string): boolean {
  return RUN.test(text);
}

export function nominalOf(run: string): number {
  return Number.parseInt(run.slice(run.indexOf("@") + 1), 36);
}

/** The part of a run's id after the nominal time: different for every run. */
export function tokenOf(run: string): string {
  return run.slice(run.indexOf(".", run.indexOf("@")) + 1);
}

export function itemId(run: string, index: number): string {
  return `${run}_${index}`;
}

/** The run that a job is for: its own, or the one that it is an item of. Other ids are returned as they are. */
export function runOfJob(job: string): string {
  return itemOf(job)?.run ?? job;
}

/** The item that a job is for. Undefined: it is not an item's. */
export function itemOf(job: string): { readonly run: string; readonly index: number } | undefined {
  const [, run, index] = /^(.*)_(\d+)$/.exec(job) ?? [];
  return run !== undefined && isRunId(run) ? { run, index: Number(index) } : undefined;
}

/** The name of a node or a worker: readable, and unique however many have the same host name and process number. */
export function processId(host: string, pid: number, token: string): string {
  const name = host.replace(/[^A-Za-z0-9._-]/g, "-").slice(0, 80) || "host";
  return `${name}-${pid}-${token}`;
}

/** The name of one of a worker's turns; the lock of a job that it takes adds `:` and the job's number. */
export function turnId(worker: string, lane: number, turn: number): string {
  return `${worker}:${lane}:${turn}`;
}
