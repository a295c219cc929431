/** Where a branch of an actor stands still, until the director lets it go on. */
export interface Park {
  readonly point: string;
  /** Tells branches at the same point apart. */
  readonly key: string;
  readonly go: () => void;
  readonly fail: (why: string) => void;
}

/** A timer of an actor, in virtual time. Answers as Node's own do. */
export class ActorTimer {
  /** @param at virtual ms since the start @param every 0: once */
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

/** Whoever acts in a simulation: a node, a client, a worker. One branch of one actor moves at a time. */
export class Actor {
  readonly parks: Park[] = [];
  /** In the order in which they were set. */
  readonly timers = new Set<ActorTimer>();
  /** Messages that were published and not delivered yet. */
  readonly mail: { channel: string; text: string }[] = [];
  /** Nothing of it moves: stopped, as by SIGSTOP. */
  frozen = false;
  /** How far its wall clock is off, in ms. */
  skew = 0;

  constructor(readonly name: string) {}

  /** Its process is gone: what is left of it never moves again. */
  abandon(): void {
    this.parks.length = 0;
    this.timers.clear();
    this.mail.length = 0;
    this.frozen = false;
  }

  /** It stands there no longer. */
  release(park: Park): void {
    this.parks.splice(this.parks.indexOf(park), 1);
  }

  /** Those whose time has come, earliest first. */
  dueTimers(now: number): ActorTimer[] {
    return [...this.timers].filter(({ at }) => at <= now).sort((a, b) => a.at - b.at);
  }
}
