import type { PutResult } from "@carillon/sdk";
import { EXIT, type ExitCode } from "./exit-codes.js";
import { Failure } from "./failure.js";
import type { Io } from "./io.js";
import { widthOf } from "./table.js";
import { type Paint, painter, printable, warningText } from "./text.js";

/**
 * Standard output that waits for a slow reader and survives a closed pipe (`carillon list --all | head`). Commands that
 * print a lot check `closed` and stop; commands that store continue silently.
 */
export class Output {
  readonly paint: Paint;
  /** Columns of the terminal; undefined: not a terminal. */
  readonly width: number | undefined;
  readonly stderr: Io["stderr"];
  /** Exit code of a command that does not fail. */
  exitCode: ExitCode = EXIT.ok;
  #closed = false;
  readonly #stdout: Io["stdout"];

  constructor({ stdout, stderr, env }: Io) {
    this.#stdout = stdout;
    this.stderr = stderr;
    this.paint = painter(stdout, env);
    this.width = widthOf(stdout);
    // The writer receives the error too.
    stdout.on("error", (error: NodeJS.ErrnoException) => {
      this.#closed ||= error.code === "EPIPE";
    });
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** @throws `INTERNAL` if the system refuses the write, for example because the disk is full */
  async write(text: string): Promise<void> {
    if (this.#closed || text === "") return;
    const error = await new Promise<NodeJS.ErrnoException | null | undefined>((resolve) =>
      this.#stdout.write(text, resolve),
    );
    if (error?.code === "EPIPE") this.#closed = true;
    if (!error || this.#closed) return;
    const message = `standard output cannot be written: ${error.message}.`;
    throw new Failure({ code: "INTERNAL", message }, error);
  }

  /** Prints one JSON document: always an object, like the HTTP API, because a list could not get further fields. */
  async json<T extends object>(value: T extends readonly unknown[] ? never : T): Promise<void> {
    await this.write(`${JSON.stringify(value)}\n`);
  }

  /** To stderr: stdout holds results only. */
  warn(where: string, warnings: PutResult["warnings"]): void {
    for (const warning of warnings) this.note(`warning: ${where}: ${warningText(warning)}`);
  }

  /** Names the cursor of the next page, if there is one, apart from the answer: programs that read that do not get it. */
  more(cursor: string | undefined): void {
    if (cursor !== undefined) this.stderr.write(`There may be more: --cursor ${cursor}\n`);
  }

  /** Writes a hint about the answer to stderr. */
  note(text: string): void {
    this.stderr.write(`carillon: ${printable(text)}\n`);
  }
}
