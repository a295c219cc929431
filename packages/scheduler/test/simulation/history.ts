import type { Coverage } from "./coverage.js";
import type { Gear, Sabotaged } from "./equipment.js";
import type { Fault } from "./faults.js";

export interface Options {
  readonly sabotage?: Sabotaged;
  /** Other ways for a node to do things, for a positive control. */
  readonly rig?: (gear: Gear, point: (name: string) => Promise<void>) => () => void;
  readonly coverage: Coverage;
  /** These faults, as often as ever. Default: what the dice say. */
  readonly faults?: readonly Fault[];
  /** Whether to tell what Redis held at the end. */
  readonly digest?: boolean;
}

export interface History {
  readonly seed: number;
  /** What broke a promise; undefined: all were kept. */
  readonly violation: string | undefined;
  /** All that happened, a line a step. */
  readonly trace: readonly string[];
  readonly occurrences: number;
  readonly digest: string | undefined;
}
