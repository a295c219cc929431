import type { WorkerClock } from "./clock.js";
import { CancelledError, LockLostError, StoppingError, StuckError, TimeLimitError } from "./errors.js";

/** Reason for aborting an attempt. */
export type Interrupt = "timed-out" | "cancelled" | "lost" | "stopping";

/** The end of an attempt's code. */
export type Ended<T> =
  | { readonly how: "returned"; readonly value: T }
  | { readonly how: "threw"; readonly error: unknown }
  /** Its code still ran at the end of its grace. */
  | { readonly how: "stuck"; readonly error: StuckError };

export interface Bounds {
  /** The time limit, in ms; undefined: none. */
  readonly limit: number | undefined;
  /** The part of it that is left, in ms; undefined: all of it. */
  readonly left?: number | undefined;
  /** Grace period for the code to end after the limit, a cancel or the loss of the job, in ms. */
  readonly grace: number;
}

const NOTHING: ReadonlySet<Interrupt> = new Set();

/** The bounds of one attempt: its signal, the stop reasons it received, and its forced end. */
export class TimeBox {
  // Created on demand, because most attempts have no limit and receive no stop reason.
  #received: Set<Interrupt> | undefined;
  #controller: AbortController | undefined;
  #timers: (() => void)[] | undefined;
  readonly #onTerminating: () => void;
  #bounds: Bounds | undefined;
  #deadline = Number.POSITIVE_INFINITY;
  #graceOver: ((error: StuckError) => void) | undefined;
  #inGrace = false;

  /** @param onTerminating called once, when the time limit or a cancel asks for the end */
  constructor(
    private readonly clock: WorkerClock,
    onTerminating: () => void = () => {},
  ) {
    this.#onTerminating = onTerminating;
  }

  get received(): ReadonlySet<Interrupt> {
    return this.#received ?? NOTHING;
  }

  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    return this.#controller.signal;
  }

  /** Whether the work has begun, has not ended, and was not given up. */
  get atWork(): boolean {
    return this.#graceOver !== undefined;
  }

  /** Time left until the limit, in ms; infinite without one. */
  timeLeft(): number {
    return Math.max(0, this.#deadline - this.clock.now());
  }

  cancel(): void {
    this.#receive("cancelled", new CancelledError());
    this.#beginGrace(this.#onTerminating);
  }

  lose(): void {
    this.#receive("lost", new LockLostError());
    this.#beginGrace();
  }

  stop(): void {
    this.#receive("stopping", new StoppingError());
  }

  /** Does the work within these bounds; never rejects. Its result after a hard end is ignored. */
  run<T>(bounds: Bounds, work: () => Promise<T>): Promise<Ended<T>> {
    return new Promise((resolve) => {
      this.#bounds = bounds;
      const stuck = (error: StuckError) => end({ how: "stuck", error });
      const end = (ended: Ended<T>) => {
        if (this.#graceOver !== stuck) return;
        for (const takeBack of this.#timers?.splice(0) ?? []) takeBack();
        this.#graceOver = undefined;
        resolve(ended);
      };
      this.#graceOver = stuck;
      const { limit, left = limit } = bounds;
      if (limit !== undefined && left !== undefined) {
        this.#deadline = this.clock.now() + left;
        this.#later(left, () => this.#timeOut(limit));
      }
      // A cancel or a loss may have come before the work began.
      if (this.received.has("cancelled")) this.#beginGrace(this.#onTerminating);
      if (this.received.has("lost")) this.#beginGrace();
      work().then(
        (value) => end({ how: "returned", value }),
        (error: unknown) => end({ how: "threw", error }),
      );
    });
  }

  #timeOut(limit: number): void {
    this.#receive("timed-out", new TimeLimitError(limit));
    this.#beginGrace(this.#onTerminating);
  }

  #receive(what: Interrupt, reason: Error): void {
    this.#received ??= new Set();
    this.#received.add(what);
    this.#controller ??= new AbortController();
    this.#controller.abort(reason);
  }

  #later(ms: number, act: () => void): void {
    this.#timers ??= [];
    this.#timers.push(this.clock.after(ms, act));
  }

  /** Begins at most once, and only while the work is running. */
  #beginGrace(tell: () => void = () => {}): void {
    if (!this.#bounds || !this.#graceOver || this.#inGrace) return;
    this.#inGrace = true;
    const { grace } = this.#bounds;
    const reason = this.signal.reason as Error;
    this.#later(grace, () => this.#graceOver?.(new StuckError(reason, grace)));
    tell();
  }
}
