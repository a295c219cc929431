// Taken once, so that a test that fakes timers later does not freeze its own waiting.
const later = globalThis.setTimeout;
const now = performance.now.bind(performance);

export interface EventuallyOptions {
  /**
   * Longest time to keep trying, in ms; default 180,000. If the test runner's own time limit is shorter, its message is
   * shown instead.
   */
  timeoutMs?: number;
  /** Pause between two tries, in ms; default 20. */
  intervalMs?: number;
}

/** `never` for a value that may be missing: its `undefined` would end the wait, as that of an assertion does. */
type Told<T> = undefined extends T ? ([T] extends [void] ? unknown : never) : unknown;

/**
 * Calls `fn` until it neither throws nor returns `false`, and returns its result. When time is up it
 * throws the last error of `fn`, so an assertion inside keeps its own message and diff.
 *
 * @example await eventually(() => expect(seen).toHaveLength(3));
 * @example const job = await eventually(async () => (await queue.getJob(id)) ?? false);
 */
export async function eventually<T>(
  fn: (() => T | Promise<T>) & Told<T>,
  { timeoutMs = 180_000, intervalMs = 20 }: EventuallyOptions = {},
): Promise<Exclude<T, false>> {
  const deadline = now() + timeoutMs;
  for (;;) {
    let failure: unknown;
    try {
      const value = await fn();
      if (value !== false) return value as Exclude<T, false>;
      failure = new Error(`The condition was still false after ${timeoutMs} ms.`);
    } catch (error) {
      failure = error;
    }
    if (now() >= deadline) throw failure;
    await new Promise((resolve) => later(resolve, intervalMs));
  }
}
