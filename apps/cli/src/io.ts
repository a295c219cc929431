import type { Readable, Writable } from "node:stream";

/** Streams and environment of one command line, as in `process`. */
export interface Io {
  readonly stdin: Readable & { isTTY?: boolean };
  readonly stdout: Writable & { isTTY?: boolean; columns?: number };
  readonly stderr: Writable & { isTTY?: boolean };
  readonly env: NodeJS.ProcessEnv;
}
