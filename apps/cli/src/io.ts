import type { Readable, Writable } from "node:stream";
import type { ClientOptions } from "@carillon/sdk";

/** Streams and environment of one command line, as in `process`. */
export interface Io {
  readonly stdin: Readable & { isTTY?: boolean };
  readonly stdout: Writable & { isTTY?: boolean; columns?: number };
  readonly stderr: Writable & { isTTY?: boolean };
  readonly env: NodeJS.ProcessEnv;
  /** Used instead of a connection to `REDIS_URL`: tests have one in virtual time. */
  readonly store?: ClientOptions["store"];
}
