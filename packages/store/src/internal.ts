/**
 * For Carillon's own packages and tests. Nothing here is part of the public API: it may change in any release.
 *
 * @packageDocumentation
 */
import { bull, loadBull } from "./bull/load.js";
import type { TurnWorker } from "./bull/turn-worker.js";
import * as internals from "./internals.js";
import type { Store } from "./store.js";

export {
  type FoundScheduler,
  findScheduler,
  firedSince,
  giveBack,
  type OldScheduler,
  type Receipt,
  readReceipt,
  renewReceipt,
  TAKE,
  takeOver,
} from "./bull/old-schedulers.js";
export { internalsOf, rememberStore, type StoreInternals } from "./internals.js";
export { onceOf } from "./script/script.js";
export { type StoreSeams, seamsOf, withSeams } from "./seams.js";
export { bull, loadBull };

/** @param owner a `Client` or a `Scheduler` */
export function storeOf(owner: object): Store {
  return internals.storeOf(owner);
}
export { type BullDefinition, type BullScheduler, readBullSchedulers } from "./bull/schedulers.js";
export { readServerInfo } from "./redis/server-info.js";
export { LEDGER_MOST } from "./script/facts.js";

/** The class of our workers, which extends BullMQ's: loaded by the first worker that starts. */
export async function turnWorker(): Promise<typeof TurnWorker> {
  const [module] = await Promise.all([import("./bull/turn-worker.js"), loadBull()]);
  return module.TurnWorker;
}
