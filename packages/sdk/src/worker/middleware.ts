import { conflict } from "@carillon/core/internal";
import type { AttemptContext } from "../context.js";

/**
 * Code around each attempt of a worker, for traces, error reports, `AsyncLocalStorage` and the like. `next` runs the rest; it rejects with what the
 * handler threw, and its result is the attempt's. An attempt whose payload does not fit, or whose type has no handler, fails in `next` too.
 *
 * @example
 * const timed: Middleware = async ({ type }, next) => {
 *   const begun = performance.now();
 *   try {
 *     return await next();
 *   } finally {
 *     histogram.observe({ type }, performance.now() - begun);
 *   }
 * };
 */
export type Middleware = (context: AttemptContext, next: () => Promise<unknown>) => Promise<unknown>;

/** Does the work inside all middleware; the first is the outermost. */
export async function through(
  middleware: readonly Middleware[],
  context: AttemptContext,
  work: () => Promise<unknown>,
): Promise<unknown> {
  return middleware.reduceRight<() => Promise<unknown>>(
    (next, one) => () => one(context, once(next)),
    work,
  )();
}

/** A second call would run the handler twice in one attempt. */
function once(next: () => Promise<unknown>): () => Promise<unknown> {
  let called = false;
  return async () => {
    if (called)
      throw conflict(
        "a middleware called next twice in one attempt.",
        "Call it once; to try again, give the task a retry policy.",
      );
    called = true;
    return next();
  };
}
