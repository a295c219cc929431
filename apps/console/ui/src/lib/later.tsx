import { type ComponentType, useEffect, useState } from "react";
import { isReachable } from "./api.js";

/*
 * Parts of the page that are loaded after the first one. They are all fetched once the first page has its answers, so that a restart or a
 * new release of the console does not break an open page.
 */

const fetches: (() => Promise<unknown>)[] = [];

/** A part of the page could not be fetched. It is tried again: the console may only be away. */
export class PartMissing extends Error {}

/**
 * A component that is fetched when it is first shown, or before by `preload`. Throws if that fails, and tries again when it is shown
 * again, as `React.lazy` does not.
 */
export function later<Props extends object>(
  load: () => Promise<{ default: ComponentType<Props> }>,
): ComponentType<Props> {
  let part: ComponentType<Props> | undefined;
  const fetchPart = async () => {
    part ??= (await load()).default;
    return part;
  };
  fetches.push(fetchPart);
  return function Later(props: Props) {
    const [is, set] = useState<{ part?: ComponentType<Props> | undefined; error?: unknown }>({ part });
    useEffect(() => {
      if (part) return;
      fetchPart().then(
        (part) => set({ part }),
        async () => {
          await reloadOnce();
          set({ error: new PartMissing() });
        },
      );
    }, []);
    if (is.error !== undefined) throw is.error;
    return is.part ? <is.part {...props} /> : <div className="loading" />;
  };
}

/** Fetches all parts one by one, also those of parts. One that fails is fetched again when it is shown. */
export async function preload(): Promise<void> {
  for (const fetchPart of fetches) await fetchPart().catch(() => undefined);
}

const RELOADED = "carillon-reloaded";
/** Time in ms in which the page does not reload itself a second time. */
const PATIENCE_MS = 60_000;

/**
 * Reloads the page if the console answers: a release has replaced its files, or the browser remembers that one failed. Returns if
 * that would not help.
 */
async function reloadOnce(): Promise<void> {
  const last = Number(sessionStorage.getItem(RELOADED) ?? 0);
  if (Date.now() - last < PATIENCE_MS || !(await isReachable())) return;
  sessionStorage.setItem(RELOADED, String(Date.now()));
  location.reload();
  await new Promise(() => {});
}
