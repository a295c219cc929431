/** Most lines that are kept: the newest. */
const KEPT = 10;

/** A logger that keeps warnings and errors of nodes and workers, to show them when a test fails. */
export class Complaints {
  readonly #lines: string[] = [];

  debug(): void {}
  info(): void {}

  warn(details: object, message: string): void {
    const line = `${message} ${JSON.stringify(details)}`.slice(0, 400);
    if (this.#lines.includes(line)) return;
    this.#lines.push(line);
    if (this.#lines.length > KEPT) this.#lines.shift();
  }

  error(details: object, message: string): void {
    this.warn(details, message);
  }

  /** Text for the end of a message; empty if there were none. */
  toString(): string {
    if (this.#lines.length === 0) return "";
    return `\nNodes and workers complained:\n${this.#lines.map((line) => `- ${line}`).join("\n")}\n`;
  }
}
