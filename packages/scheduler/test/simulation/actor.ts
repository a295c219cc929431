/** A point at which a branch of an actor waits until the director lets it continue. */
export interface Park {
  readonly point: string;
  /** Distinguishes branches at the same point. */
  readonly key: string;
  readonly go: () => void;
  readonly fail: (why: string) => void;
}

/** A timer of an actor, in virtual time. Has the methods of Node's timers. */
export class ActorTimer {
  /**
   * @param at virtual ms since the start
   * @param every interval in ms; 0: once
   */
  constructor(
    readonly actor: Actor,
    readonly fire: () => void,
    public at: number,
    readonly every: number,
  ) {}

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }
}

/** An actor of a simulation: a node, a client or a worker. One branch of one actor moves at a time. */
export class Actor {
  readonly parks: Park[] = [];
  /** Timers in the order in which they were set. */
  readonly timers = new Set<ActorTimer>();
  /** Messages that were published and are not delivered yet. */
  readonly mail: { channel: string; text: string }[] = [];
  /** The process is stopped, as by SIGSTOP. */
  frozen = false;
  /** Error of its wall clock, in ms. */
  skew = 0;
  /** Time by which its monotonic clock has run ahead, in ms. */
  lead = 0;

  constructor(readonly name: string) {}

  /** Its clock and timers run ahead: until the next answer of Redis, so does its estimate of that clock. */
  runAhead(ms: number): void {
    this.lead += ms;
    for (const timer of this.timers) timer.at -= ms;
  }

  /** Ends its process: the rest of it never moves again. */
  abandon(): void {
    this.parks.length = 0;
    this.timers.clear();
    this.mail.length = 0;
    this.frozen = false;
  }

  /** Removes a point at which it waited. */
  release(park: Park): void {
    this.parks.splice(this.parks.indexOf(park), 1);
  }

  /** Due timers, earliest first. */
  dueTimers(now: number): ActorTimer[] {
    return [...this.timers].filter(({ at }) => at <= now).sort((a, b) => a.at - b.at);
  }
}
