import {
  type Json,
  type Outcome,
  parseLocalName,
  type Run,
  type RunState,
  type Trigger,
} from "@carillon/core";

/** What is known of a run when it is enqueued, packed into one field: it never changes afterwards. */
export interface RunDetails {
  type: string;
  key: string;
  nominal: number;
  due: number;
  trigger: Trigger;
  missed?: { from: number; to: number };
}

export function encodeDetails(details: RunDetails): string {
  return JSON.stringify(details);
}

export function decodeRun(queue: string, id: string, hash: Record<string, string>): Run | undefined {
  if (!hash.info || !hash.task) return undefined;
  const details = JSON.parse(hash.info) as RunDetails;
  const number = (field: string) => (hash[field] === undefined ? undefined : Number(hash[field]));
  const optional = {
    outcome: hash.outcome as Outcome | undefined,
    started: number("started"),
    finished: number("finished"),
    worker: hash.worker,
    pid: number("pid"),
    host: hash.host,
    error: hash.error,
    result: hash.result === undefined ? undefined : (JSON.parse(hash.result) as Json),
  };
  const present = Object.fromEntries(Object.entries(optional).filter(([, value]) => value !== undefined));
  return {
    id,
    task: { queue, ...parseLocalName(hash.task) },
    state: (hash.state ?? "queued") as RunState,
    enqueued: Number(hash.enqueued ?? 0),
    node: hash.node ?? "",
    attempts: number("attempts") ?? 0,
    ...details,
    ...present,
  } as Run;
}
