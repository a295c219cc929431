import type { Writable } from "node:stream";
import { Failure } from "./failure.js";
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
    // Whoever writes gets it too.
    stream.on("error", (error: NodeJS.ErrnoException) => {
      this.#closed ||= error.code === "EPIPE";
    });
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** @throws `INTERNAL` for what the system does not take: a full disk, say */
  async write(text: string): Promise<void> {
    if (this.#closed || text === "") return;
    const error = await new Promise<NodeJS.ErrnoException | null | undefined>((resolve) =>
      this.#stream.write(text, resolve),
    );
    if (error?.code === "EPIPE") this.#closed = true;
    if (!error || this.#closed) return;
    const message = `standard output cannot be written: ${error.message}.`;
    throw new Failure({ code: "INTERNAL", message }, error);
  }

  /** One JSON document. */
  async json(value: unknown): Promise<void> {
    await this.write(`${JSON.stringify(value)}\n`);
  }
}
