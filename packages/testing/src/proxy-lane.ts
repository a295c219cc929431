import type { Socket } from "node:net";

export interface Slowness {
  /** In ms. */
  readonly latency: number;
  readonly bytesPerSecond: number;
}

/** One direction of a connection. Delayed data arrives in order. */
export class Lane {
  readonly #waiting: { readonly at: number; readonly bytes: Buffer }[] = [];
  #timer: NodeJS.Timeout | undefined;
  /** Time at which the last byte will have passed, on the monotonic clock. */
  #freeAt = 0;

  constructor(private readonly to: Socket) {
    to.once("close", () => clearTimeout(this.#timer));
  }

  send(bytes: Buffer, slow: Slowness | undefined): void {
    if (!slow && this.#waiting.length === 0) {
      this.to.write(bytes);
      return;
    }
    const earliest = performance.now() + (slow?.latency ?? 0);
    const takes = slow ? (bytes.length / slow.bytesPerSecond) * 1_000 : 0;
    this.#freeAt = Math.max(this.#freeAt, earliest) + takes;
    this.#waiting.push({ at: this.#freeAt, bytes });
    this.#timer ??= setTimeout(() => this.#deliver(), this.#freeAt - performance.now());
  }

  #deliver(): void {
    this.#timer = undefined;
    const now = performance.now();
    for (let next = this.#waiting[0]; next && next.at <= now + 1; next = this.#waiting[0]) {
      this.#waiting.shift();
      if (!this.to.destroyed) this.to.write(next.bytes);
    }
    const next = this.#waiting[0];
    if (next && !this.to.destroyed) this.#timer = setTimeout(() => this.#deliver(), next.at - now);
  }
}
