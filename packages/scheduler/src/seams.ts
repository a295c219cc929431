import type { Store } from "@carillon/store";
import { internalsOf, seamsOf, withSeams } from "@carillon/store/internal";

export interface ClaimSettings {
  /** How long before its time a task is read and decided, in ms; default 500. */
  readonly ahead: number;
  /** Whether each shard is the share of one node; default true. */
  readonly shares: boolean;
}

/** Settings of a node that only tests may change. Its store has seams of its own. */
export interface NodeSeams {
  readonly claims?: ClaimSettings | undefined;
}

/** @param options of a `Scheduler` */
export function withNodeSeams<Options extends object>(options: Options, seams: NodeSeams): Options {
  return withSeams(options, seams);
}

export function claimsOf(options: { store?: Store | undefined }): ClaimSettings {
  const { claims } = seamsOf<NodeSeams>(options);
  const sabotage = options.store && internalsOf(options.store).seams.sabotage;
  // Shares separate nodes as the mutex does, so a test that removes the mutex removes them too.
  return claims ?? { ahead: 500, shares: !sabotage?.includes("mutex") };
}
