import type { Failpoint } from "./redis/failpoints.js";
import type { Sabotage, TimeSource } from "./script/context.js";

/** Settings for tests only. No option of a node, a client or the environment leads here. */
export interface StoreSeams {
  readonly time?: TimeSource | undefined;
  /** Parts of the protocol to leave out, to see the check for them fail. */
  readonly sabotage?: readonly (Sabotage | "mutex")[] | undefined;
  readonly failpoint?: Failpoint | undefined;
}

/** No option has this name: options that come from a file or a request cannot hold it. */
const SEAMS = Symbol.for("carillon.seams");

/** The options of a store, a node or a worker, with a test's seams in them. */
export function withSeams<Options extends object, Seams extends object = StoreSeams>(
  options: Options,
  seams: Seams,
): Options {
  return { ...options, [SEAMS]: seams };
}

export function seamsOf<Seams extends object = StoreSeams>(options: object): Partial<Seams> {
  return (options as { [SEAMS]?: Partial<Seams> })[SEAMS] ?? {};
}
