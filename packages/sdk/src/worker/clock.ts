/** Clock for time limits, and for jobs that wait for each other. */
export interface WorkerClock {
  /** Milliseconds; only differences count. */
  now(): number;
  /** Calls `act` once, `ms` from now; returns a function that cancels that. */
  after(ms: number, act: () => void): () => void;
  /** Waits for another job of this process: time passes meanwhile. */
  idle<T>(wait: Promise<T>): Promise<T>;
}

/** A longer timeout would fire at once. */
const LONGEST = 2 ** 31 - 1;

/** The monotonic clock; its timers keep no process alive. */
export const monotonicClock: WorkerClock = {
  now: () => performance.now(),
  after(ms, act) {
    let timer: NodeJS.Timeout;
    const arm = (left: number) => {
      const step = Math.min(left, LONGEST);
      timer = setTimeout(() => (left > step ? arm(left - step) : act()), step).unref();
    };
    arm(ms);
    return () => clearTimeout(timer);
  },
  idle: (wait) => wait,
};
