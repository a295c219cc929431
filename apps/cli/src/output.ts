import type { Writable } from "node:stream";
import { type Paint, painter } from "./text.js";

/**
 * Standard output that waits for a slow reader and survives one that left (`carillon list --all | head`). Whoever
 * produces a lot asks `closed` and stops; whoever stores goes on silently.
 */
export class Output {
  readonly paint: Paint;
  #closed = false;
  readonly #stream: Writable;

  constructor(stream: Writable & { isTTY?: boolean } = process.stdout) {
    this.#stream = stream;
    this.paint = painter(stream);
    stream.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code !== "EPIPE") throw error;
      this.#closed = true;
      stream.emit("drain");
    });
  }

  get closed(): boolean {
    return this.#closed;
  }

  async write(text: string): Promise<void> {
    if (this.#closed || text === "" || this.#stream.write(text)) return;
    await new Promise<void>((resolve) => this.#stream.once("drain", resolve));
  }

  /** One JSON document. */
  async json(value: unknown): Promise<void> {
    await this.write(`${JSON.stringify(value)}\n`);
  }
}
