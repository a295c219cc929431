import type { Operator } from "@carillon/ops";
import type { LiveEvent } from "@carillon/sdk";
import type { Query as AnyQuery, QueryClient } from "@tanstack/react-query";
import { useSyncExternalStore } from "react";
import { ApiError, apiAddress, type Named, reached, SHARED, Unreachable } from "./api.js";
import { store } from "./store.js";

/*
 * Reads shown data again when events of the server say that they changed. Also polls: rarely while events arrive, more
 * often otherwise.
 */

// biome-ignore lint/suspicious/noExplicitAny: a query of any data
export type Query = AnyQuery<any, any, any, any>;

const KINDS = ["run-started", "run-ended", "skipped", "changed", "node-up", "node-gone", "reset"] as const;
type Kind = (typeof KINDS)[number];

/** Interval in ms at which shown data are read without an event: with a stream of events, and without one. */
export const POLL_MS = { live: 60_000, alone: 5_000 };
/** Shortest age at which data are read again because of events, in ms: those of one task or run, and lists. */
const LEAST_MS = { one: 800, list: 3_000 };
/** Age of an answer that another viewer may have been given, in ms: a younger event is not in it. */
const SHARED_MS = SHARED * 1_000;
/** Wait after a refusal, in ms. Browsers reconnect on their own only after a lost connection. */
const RETRY_MS = 10_000;

type Noun = keyof Operator;

/** Nouns that only changes by people concern, not the start and end of runs. */
const STILL: ReadonlySet<string> = new Set<Noun>([
  ...(["calendars", "changes", "defaults", "deleted", "freezes", "namespaces", "nodes"] as const),
  ...(["quotas", "sets", "silences", "tokens", "types", "workers"] as const),
]);
/** Nouns that the start and the end of a node concern. */
const OF_NODES: ReadonlySet<string> = new Set<Noun>(["health", "nodes", "workers"]);

const live = store(false);

/** Whether an error says that nothing can be read now: Redis or the console is away. */
export function failsForAll(error: unknown): boolean {
  return error instanceof Unreachable || (error instanceof ApiError && error.status >= 500);
}

/** Whether the page shows the present: events arrive, and no read of what it shows fails. */
export function usePresent(client: QueryClient): boolean {
  const cache = client.getQueryCache();
  const isRead = useSyncExternalStore(
    (listener) => cache.subscribe(listener),
    () =>
      cache
        .findAll({ type: "active" })
        .every(({ state }) => !failsForAll(state.fetchFailureReason) && !failsForAll(state.error)),
  );
  return useLive() && isRead;
}

/** Whether events arrive. */
export const useLive = live.useValue;

/** A list with more pages than this is not read again while it is shown. */
const MOST_PAGES = 3;

function isDeep({ state }: Query): boolean {
  return ((state.data as { pages?: unknown[] } | undefined)?.pages?.length ?? 0) > MOST_PAGES;
}

/** Poll interval of data that events concern. */
export function pollInterval(query: Query): number | false {
  if (isDeep(query)) return false;
  return live.get() && !failsForAll(query.state.error) ? POLL_MS.live : POLL_MS.alone;
}

type Event = Pick<LiveEvent, "kind"> & { task?: Named; run?: string };

/** Whether the answer of an operation may have changed. */
function concerns({ queryKey: [name, input] }: Query, { kind, task, run }: Event): boolean {
  if (kind === "reset") return true;
  const [noun] = String(name).split(".") as [string];
  if (kind === "node-up" || kind === "node-gone") return OF_NODES.has(noun);
  if (kind === "changed") return true;
  if (STILL.has(noun)) return false;
  const { queue, owner, id } = Object(input) as Partial<Named>;
  if (id === undefined) return true;
  if (noun === "runs" && queue === undefined) return id === run;
  return task?.id === id && task.owner === owner && task.queue === queue;
}

/** Data of one task or run, not a list. */
function isOne({ queryKey: [, input] }: Query): boolean {
  return (Object(input) as Partial<Named>).id !== undefined;
}

/**
 * Listens while the page is visible: a browser opens few connections to one server, and hidden tabs would use them up.
 * @returns a function that ends it
 */
export function startLive(client: QueryClient): () => void {
  let source: EventSource | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let retry: ReturnType<typeof setTimeout> | undefined;
  /** When each query is read again, and when the last event came that concerns it. */
  const due = new Map<Query, { at: number; event: number }>();

  const flush = () => {
    timer = undefined;
    const now = Date.now();
    for (const [query, { at, event }] of due) {
      if (at > now) continue;
      due.delete(query);
      if (!query.isActive()) continue;
      void client.invalidateQueries({ queryKey: query.queryKey, exact: true });
      // The answer may be as old as others accept it, and not know of this event.
      if (event > now - SHARED_MS) due.set(query, { at: now + LEAST_MS.list, event });
    }
    plan();
  };
  const plan = () => {
    if (timer !== undefined || due.size === 0) return;
    timer = setTimeout(flush, Math.max(100, Math.min(...[...due.values()].map(({ at }) => at)) - Date.now()));
  };
  const mark = (event: Event) => {
    for (const query of client.getQueryCache().findAll({ type: "active" })) {
      if (query.meta?.["live"] === false || isDeep(query) || !concerns(query, event)) continue;
      const now = Date.now();
      const least = query.state.dataUpdatedAt + (isOne(query) ? LEAST_MS.one : LEAST_MS.list);
      const { at } = due.get(query) ?? { at: Math.max(least, now + SHARED_MS) };
      due.set(query, { at, event: now });
    }
    plan();
  };
  const open = () => {
    if (source || document.hidden) return;
    source = new EventSource(apiAddress("/events"));
    source.onopen = () => {
      live.set(true);
      reached();
    };
    source.onerror = () => {
      live.set(false);
      if (source?.readyState !== EventSource.CLOSED) return;
      source = undefined;
      retry = setTimeout(open, RETRY_MS);
    };
    for (const kind of KINDS)
      source.addEventListener(kind, ({ data }: MessageEvent<string>) => mark(read(kind, data)));
  };
  const shut = () => {
    source?.close();
    source = undefined;
    live.set(false);
  };
  const turn = () => {
    if (document.hidden) return shut();
    open();
    mark({ kind: "reset" });
  };
  document.addEventListener("visibilitychange", turn);
  open();
  return () => {
    document.removeEventListener("visibilitychange", turn);
    clearTimeout(timer);
    clearTimeout(retry);
    shut();
  };
}

function read(kind: Kind, data: string): Event {
  try {
    return { ...(JSON.parse(data) as object), kind };
  } catch {
    return { kind: "reset" };
  }
}
