/** Kept at most; the newest. */
const KEPT = 10;

/** A logger that keeps what nodes and workers warn of, to be told where a test fails. */
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

  /** For the end of a message; empty where there were none. */
  toString(): string {
    if (this.#lines.length === 0) return "";
    return `\nNodes and workers complained:\n${this.#lines.map((line) => `- ${line}`).join("\n")}\n`;
  }
}
