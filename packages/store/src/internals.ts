import type { NamespaceKeys } from "./keys.js";
import type { OptimisticWrites } from "./optimistic.js";
import type { Link } from "./redis/link.js";
import type { Mutex } from "./redis/mutex.js";
import type { StoreSeams } from "./seams.js";

/** Parts of a store. Tests read them, and replace some. */
export interface StoreInternals {
  readonly link: Link;
  readonly optimistic: OptimisticWrites;
  readonly keys: NamespaceKeys;
  mutex: Mutex;
  readonly seams: StoreSeams;
}

/** Global symbols: a process may have loaded a package twice. */
const INTERNALS = Symbol.for("carillon.internals");
const STORE = Symbol.for("carillon.store");

/** Called once by each store. */
export function rememberInternals(store: object, internals: StoreInternals): void {
  Object.defineProperty(store, INTERNALS, { value: internals });
}

/** @param store a `Store` */
export function internalsOf(store: object): StoreInternals {
  return (store as { [INTERNALS]: StoreInternals })[INTERNALS];
}

/** Called once by each client and each node. */
export function rememberStore<Store extends object>(owner: object, store: Store): void {
  Object.defineProperty(owner, STORE, { value: store });
}

/** @param owner a `Client` or a `Scheduler` */
export function storeOf<Store extends object>(owner: object): Store {
  return (owner as { [STORE]: Store })[STORE];
}
