/** Place where sentences are shown, and its times. */
export interface Voice {
  /** Remedies name commands on the command line, and pages in the console. */
  readonly surface: "cli" | "pages";
  /** A time in the reader's zone. */
  time(ms: number): string;
}
