/** Source of a line of output: `context.log`, or the console's regular or error output. */
export type Stream = "log" | "out" | "err";

/**
 * Output of an attempt: one line each, with the prefix `log `, `out ` or `err `; the newest lines, up to a number of
 * bytes.
 */
export class Output {
  readonly #lines: string[] = [];
  #bytes = 0;
  #cut = 0;
  #unsaved = false;
  #closed = false;

  /** @param most bytes in UTF-8 */
  constructor(private readonly most: number) {}

  /**
   * Continues the output that another worker saved of this attempt. Call it before anything is written.
   * @param text as `take` returned it
   */
  goOnFrom(text: string): void {
    const [mark = "", cut = 0] = /^cut (\d+) bytes before this\n/.exec(text) ?? [];
    this.#cut = Number(cut);
    for (const line of text.slice(mark.length).match(/[^\n]*\n/g) ?? []) this.#push(line);
  }

  write(stream: Stream, text: string): void {
    if (this.#closed) return;
    for (const line of text.split("\n")) this.#push(`${stream} ${line}\n`);
    this.#unsaved = true;
  }

  #push(line: string): void {
    const kept = lastBytes(line, this.most);
    this.#lines.push(kept);
    this.#bytes += Buffer.byteLength(kept);
    this.#cut += Buffer.byteLength(line) - Buffer.byteLength(kept);
    while (this.#bytes > this.most) {
      const oldest = Buffer.byteLength(this.#lines.shift() as string);
      this.#bytes -= oldest;
      this.#cut += oldest;
    }
  }

  get unsaved(): boolean {
    return this.#unsaved;
  }

  /** Returns the output to save, or undefined if there is none since the last call. */
  take(): { text: string; cut: boolean } | undefined {
    if (!this.#unsaved) return undefined;
    this.#unsaved = false;
    const cut = this.#cut > 0;
    const mark = cut ? `cut ${this.#cut} bytes before this\n` : "";
    return { text: mark + this.#lines.join(""), cut };
  }

  /** Call it if the output could not be saved: `take` then returns it again. */
  putBack(): void {
    this.#unsaved = true;
  }

  /** Discards all later output: it comes from code that outlived its attempt. */
  close(): void {
    this.#closed = true;
  }
}

/** The end of a line that is too long, after its stream's prefix. */
function lastBytes(line: string, most: number): string {
  if (Buffer.byteLength(line) <= most) return line;
  const mark = line.slice(0, 4);
  if (most <= mark.length) return "";
  // Leaves out an incomplete character.
  return (
    mark +
    Buffer.from(line)
      .subarray(mark.length - most)
      .toString()
      .replace(/^\uFFFD+/, "")
  );
}
