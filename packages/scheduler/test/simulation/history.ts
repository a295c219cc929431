import type { Coverage } from "./coverage.js";
import type { Gear, Sabotaged } from "./equipment.js";
import type { Fault } from "./faults.js";

export interface Options {
  readonly sabotage?: Sabotaged;
  /** Replaces parts of a node, for a positive control. */
  readonly rig?: (gear: Gear, point: (name: string) => Promise<void>) => () => void;
  readonly coverage: Coverage;
  /** Uses these faults, at the highest rate. Default: the dice choose. */
  /** Number of steps; default: that of all histories. */
  readonly steps?: number;
  /** Share of handlers that fail; default: that of all histories. */
  readonly failing?: number;
  readonly faults?: readonly Fault[];
  /** Whether to return a hash of the data in Redis at the end. */
  readonly digest?: boolean;
}

export interface History {
  readonly seed: number;
  /** The broken promise; undefined: all were kept. */
  readonly violation: string | undefined;
  /** Every event, one line for each step. */
  readonly trace: readonly string[];
  readonly occurrences: number;
  readonly digest: string | undefined;
}
