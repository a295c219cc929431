import type { UnsafeSetting } from "@carillon/core/internal";

/** Status that a node reports with each heartbeat. Times in UTC ms of Redis time. */
export interface NodeInfo {
  id: string;
  /** Tells nodes with the same id apart: random for each process. */
  instance?: string;
  host: string;
  pid: number;
  version: string;
  /** The version of BullMQ. */
  bullmq: string;
  started: number;
  /** The last heartbeat. */
  beat: number;
  /** Interval of its beats, in ms. */
  every: number;
  /** The version of the time zone data that it computes with. */
  tzdata: string;
  /** Lead of its clock over Redis, in ms. */
  clockOffset: number;
  /** Whether it has an `onAlert`. */
  onAlert?: boolean;
  /** Whether it claims; if not, `why`. A node that cannot write cannot report that: its last heartbeat gets old. */
  ready: boolean;
  why?: string;
  /** The usual round trip of a command to Redis, in ms. */
  roundTrip?: number;
  /** Within the last hour, Redis lost writes under this node. */
  lost?: LostHistory;
  /** Settings with which Redis may lose tasks, and that it did not have when this node started. */
  unsafe?: readonly ChangedSetting[];
}

/** A setting of Redis, and when a node first saw it, UTC ms of Redis time. */
export type ChangedSetting = Exclude<UnsafeSetting, { code: "UNKNOWN_SETTINGS" }> & {
  readonly since: number;
};

/** Redis went back to an older state, or came back empty. */
export interface LostHistory {
  /** When a node noticed it. */
  readonly at: number;
  /** The last heartbeat in what is left. Absent: nothing was left. */
  readonly to?: number;
}

/** A run that a worker has under way. */
export interface WorkerRun {
  readonly run: string;
  readonly queue: string;
  /** `owner/id`. */
  readonly task: string;
}

/**
 * A task type that a worker does not have, and whose runs in this queue it failed for that, first at `since`, UTC ms of
 * Redis time.
 */
export interface LackedType {
  readonly queue: string;
  readonly type: string;
  readonly since: number;
}

/** Status that a worker process reports with each heartbeat. Times in UTC ms of Redis time. */
export interface WorkerInfo {
  /** Also the `worker` of the runs that it works. */
  readonly id: string;
  readonly host: string;
  readonly pid: number;
  readonly queues: readonly string[];
  /** The task types that it handles. */
  readonly types: readonly string[];
  readonly versions: { readonly carillon: string; readonly bullmq: string; readonly node: string };
  readonly started: number;
  /** The last heartbeat. */
  readonly beat: number;
  /** Interval of its beats, in ms. */
  readonly every: number;
  /** It takes no more jobs, and waits for those under way. */
  readonly stopping: boolean;
  /** Number of runs that it has under way. */
  readonly running: number;
  /** The first 20 of these. */
  readonly runs: readonly WorkerRun[];
  /** Digest of the schemas that it publishes; absent: none. */
  readonly schemas?: string;
  /** The types that it lacked within the last ten minutes; absent: none. */
  readonly lacking?: readonly LackedType[];
}

/** JSON Schemas of payloads by task type, as a worker publishes them. */
export type TypeSchemas = Readonly<Record<string, object>>;

/** Undefined: missing, corrupt or foreign. */
export function readSchemas(text: string | null | undefined): TypeSchemas | undefined {
  try {
    const schemas: unknown = JSON.parse(text || "");
    const sound = Object.values(Object(schemas)).every((one) => typeof one === "object" && one !== null);
    return sound ? (schemas as TypeSchemas) : undefined;
  } catch {
    return undefined;
  }
}

/** Fields that nodes and workers have in common. */
type Beat = Pick<NodeInfo, "id" | "instance" | "beat" | "every">;

/** The field of a node or a worker in the hash of all. */
export function fieldOf({ id, instance }: Pick<Beat, "id" | "instance">): string {
  return instance === undefined ? id : `${id} ${instance}`;
}

/**
 * Whether a node or a worker has missed no more than three heartbeats. A last beat too far in the future was written
 * before the server's clock went back.
 * @param now in UTC ms of Redis time
 */
export function isAlive({ beat, every }: Beat, now: number): boolean {
  return Math.abs(now - beat) <= 3 * every;
}

/** Whether a node or a worker has missed a heartbeat: it hangs, is cut off, or its Redis accepts no writes. */
export function isSilent({ beat, every }: Beat, now: number): boolean {
  return Math.abs(now - beat) > 1.5 * every;
}

/** The nodes of a hash, sorted by id. Leaves out corrupt and foreign data. */
export function readNodes(all: Record<string, string>): NodeInfo[] {
  return readBeats(all, isNode);
}

/** Leaves out nodes that ended before one with the same id was started. */
export function withoutReplaced(nodes: readonly NodeInfo[]): NodeInfo[] {
  return nodes.filter(
    ({ id, instance, beat }) =>
      !nodes.some((one) => one.id === id && one.instance !== instance && one.started > beat),
  );
}

/** Reads the workers, like `readNodes`. */
export function readWorkers(all: Record<string, string>): WorkerInfo[] {
  return readBeats(all, isWorker);
}

function readBeats<Info extends Beat>(
  all: Record<string, string>,
  isSound: (info: Partial<Info>) => boolean,
): Info[] {
  return Object.entries(all)
    .flatMap(([field, text]) => {
      try {
        const info = JSON.parse(text) as Info;
        return fieldOf(info) === field && Number.isFinite(info.beat + info.every) && isSound(info)
          ? [info]
          : [];
      } catch {
        return [];
      }
    })
    .sort((a, b) => (fieldOf(a) < fieldOf(b) ? -1 : 1));
}

function isNode({ tzdata, ready, roundTrip = 0, lost, unsafe = [] }: Partial<NodeInfo>): boolean {
  const numbers = [roundTrip, lost === undefined ? 0 : lost?.at, lost?.to ?? 0].every(Number.isFinite);
  const changed = Array.isArray(unsafe) && unsafe.every(isSetting);
  return typeof tzdata === "string" && typeof ready === "boolean" && numbers && changed;
}

function isSetting(one: Partial<ChangedSetting> & { readonly policy?: string }): boolean {
  const known = one?.code === "AOF_OFF" || (one?.code === "EVICTION" && isText(one.policy));
  return known && Number.isFinite(one.since);
}

function isWorker({
  host,
  queues,
  types,
  versions,
  started,
  running,
  runs,
  schemas = "",
  lacking = [],
}: Partial<WorkerInfo>): boolean {
  const lists = [queues, types].every((list) => Array.isArray(list) && list.every(isText));
  const versioned = [versions?.carillon, versions?.bullmq, versions?.node].every(isText);
  const counted = Number.isFinite(started) && Number.isFinite(running);
  const listed =
    Array.isArray(runs) && runs.every((one) => isText(one?.run) && isText(one.queue) && isText(one.task));
  const lacked =
    Array.isArray(lacking) && lacking.every((one) => isText(one?.queue) && isText(one.type) && one.since > 0);
  return lists && versioned && counted && listed && lacked && isText(host) && isText(schemas);
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}
