import type { Store } from "@carillon/store";
import { internalsOf, seamsOf, withSeams } from "@carillon/store/internal";
import { type BurstSettings, DEFAULT_BURSTS, NO_BURSTS } from "./burst/bursts.js";

/** Settings of a node that only tests may change. Its store has seams of its own. */
export interface NodeSeams {
  readonly bursts?: BurstSettings | undefined;
}

/** @param options of a `Scheduler` */
export function withNodeSeams<Options extends object>(options: Options, seams: NodeSeams): Options {
  return withSeams(options, seams);
}

export function burstsOf(options: { store?: Store | undefined }): BurstSettings {
  const { bursts } = seamsOf<NodeSeams>(options);
  const sabotage = options.store && internalsOf(options.store).seams.sabotage;
  // Sharing bursts out separates nodes as the mutex does, so a test that removes the mutex removes this too.
  return bursts ?? (sabotage?.includes("mutex") ? NO_BURSTS : DEFAULT_BURSTS);
}
