/** A jump forward by more than this is not accepted at once, in ms. */
const SUSPICIOUS = 60_000;
/** A suspicious time is accepted when a read at least this many ms later agrees. */
const CONFIRM_AFTER = 5_000;
/** Two reads agree on a jump if their offsets differ by no more than this and the round trip, in ms. */
const AGREES_WITHIN = 1_000;
/** Any newer sample replaces one that is older than this, in ms, because clocks drift. */
const STALE_SAMPLE = 60_000;

/**
 * Redis time as seen from here: the monotonic clock plus an offset, estimated from each answer that carries the
 * server's time. The node's own wall clock plays no part, so a wrong one does no harm.
 */
export class ServerClock {
  readonly #monotonic: () => number;
  readonly #suspicious: number;
  #offset: number | undefined;
  #roundTrip = Number.POSITIVE_INFINITY;
  #sampledAt = 0;
  #suspect: { offset: number; at: number } | undefined;

  /** @param suspicious a jump forward by more than this many ms is not accepted at once; default 60,000 */
  constructor(monotonic: () => number = () => performance.now(), suspicious = SUSPICIOUS) {
    this.#monotonic = monotonic;
    this.#suspicious = suspicious;
  }

  /** Marks the start of a request; pass the result to `observe` with the time in the answer. */
  mark(): number {
    return this.#monotonic();
  }

  observe(serverTime: number, sentAt: number): void {
    const receivedAt = this.#monotonic();
    const roundTrip = receivedAt - sentAt;
    const offset = serverTime - (sentAt + roundTrip / 2);
    if (this.#offset === undefined) return this.#accept(offset, roundTrip, receivedAt);
    const jump = offset - this.#offset;
    if (jump > this.#suspicious + roundTrip) return this.#doubt(offset, roundTrip, receivedAt);
    this.#suspect = undefined;
    // Accept a sample that is at least as good as the last one, or that proves that the offset has changed.
    const impossible = Math.abs(jump) > (roundTrip + this.#roundTrip) / 2 + 1;
    if (roundTrip <= this.#roundTrip || impossible || receivedAt - this.#sampledAt > STALE_SAMPLE) {
      this.#accept(offset, roundTrip, receivedAt);
    }
  }

  #accept(offset: number, roundTrip: number, at: number): void {
    this.#offset = offset;
    this.#roundTrip = roundTrip;
    this.#sampledAt = at;
    this.#suspect = undefined;
  }

  #doubt(offset: number, roundTrip: number, at: number): void {
    const agrees = this.#suspect && Math.abs(offset - this.#suspect.offset) < AGREES_WITHIN + roundTrip;
    if (!agrees) this.#suspect = { offset, at };
    else if (at - (this.#suspect as { at: number }).at >= CONFIRM_AFTER) this.#accept(offset, roundTrip, at);
  }

  /** Claims are held: the server's clock jumped forward suspiciously far, and no second read has confirmed it yet. */
  get holding(): boolean {
    return this.#suspect !== undefined;
  }

  /** Time until the jump may be confirmed, in ms. */
  get confirmIn(): number {
    return this.#suspect ? Math.max(0, this.#suspect.at + CONFIRM_AFTER - this.#monotonic()) : 0;
  }

  get known(): boolean {
    return this.#offset !== undefined;
  }

  /** Estimated time of the server, in ms. */
  now(): number {
    return this.#monotonic() + (this.#offset ?? Date.now() - this.#monotonic());
  }

  /** Lead of this machine's wall clock over the server's, in ms. */
  get wallOffset(): number {
    return this.#offset === undefined ? 0 : Math.round(Date.now() - this.now());
  }
}
