import type { TaskName } from "@carillon/core";
import type {
  AlertFormat,
  Carrier,
  Gap,
  NotReady,
  StatusReasonFacts,
  UnsafeSetting,
} from "@carillon/core/internal";
import type { SlowCommand } from "@carillon/store";

/* The facts of findings: `words/finding.ts` makes sentences of them. */

interface Process {
  readonly id: string;
  readonly host: string;
}

/** A fault that the doctor found. Times in UTC ms. */
export type FindingFacts =
  | StatusReasonFacts
  | UnsafeSetting
  | { readonly code: "PERSISTENCE_FAILS"; readonly field: string }
  | { readonly code: "MEMORY"; readonly used: number; readonly most: number }
  /** Without a replica: this Redis is one itself. */
  | { readonly code: "REPLICA"; readonly replica?: { readonly name: string; readonly state: string } }
  /** `nearest`: round trip to the nearest node, in ms. `far`: a node with a long one, if only some have. `held`: by a slow command. */
  | {
      readonly code: "SLOW_REDIS";
      readonly nearest?: number;
      readonly far?: (Process & { readonly ms: number }) | undefined;
      readonly held?: SlowCommand & { readonly agoMs: number };
    }
  /** `lostMs`: length of the lost time; absent: Redis came back empty. */
  | { readonly code: "HISTORY_LOST"; readonly agoMs: number; readonly lostMs?: number }
  | {
      readonly code: "VERSION_SKEW" | "BULLMQ_SKEW" | "TZDATA_SKEW";
      readonly versions: readonly string[];
    }
  | { readonly code: "CLOCK"; readonly node: string; readonly aheadMs: number }
  | {
      readonly code: "NODE_DEAD" | "WORKER_DEAD";
      readonly processes: readonly (Process & { readonly agoMs: number })[];
      readonly others: number;
    }
  | ({ readonly code: "NODE_NOT_READY"; readonly node: Process } & NotReady)
  | { readonly code: "TYPE_UNHANDLED"; readonly gap: Gap }
  /** Number of tasks, and scopes of defaults, with alerts that nobody delivers. */
  | {
      readonly code: "NO_DELIVERER";
      readonly carrier: Carrier;
      readonly deliverer: string;
      readonly tasks: number;
      readonly scopes: readonly string[];
      readonly gap: Gap;
    }
  /** The same, with alerts in a format that their host does not take. */
  | {
      readonly code: "ALERT_FORMAT";
      readonly host: string;
      readonly format: AlertFormat;
      readonly instead: AlertFormat;
      readonly tasks: number;
      readonly scopes: readonly string[];
    }
  | { readonly code: "NOT_PLANNED"; readonly error: string }
  | { readonly code: "NEVER_RAN"; readonly agoMs: number }
  /** `run`: it is still under way. */
  | {
      readonly code: "RUN_TOO_LONG";
      readonly tookMs: number;
      readonly everyMs: number;
      readonly run: string | undefined;
    }
  | {
      readonly code: "HERD";
      readonly count: number;
      readonly read: number;
      readonly at: number;
      readonly perSecond: number;
    }
  | { readonly code: "UNREADABLE"; readonly text: string; readonly hint: string | undefined }
  | { readonly code: "ORPHAN"; readonly count: number; readonly names: readonly string[] };

export type Finding = FindingFacts & {
  /** `error`: work is lost, wrong or not done; `warning`: it may be. */
  readonly severity: "error" | "warning";
  readonly queue?: string | undefined;
  readonly task?: TaskName | undefined;
  /** Number of further tasks with this fault that are not listed. */
  readonly more?: number | undefined;
};

/** Names in findings of one code; the rest are counted. */
export const NAMED = 5;
