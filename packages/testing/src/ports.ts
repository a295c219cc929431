import { existsSync, mkdirSync, rmSync, symlinkSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { scratchDir } from "./scratch.js";

/**
 * Below the range that the operating system uses for outgoing connections: otherwise a client that retries
 * while its server is down could get the server's own port, and connect to itself.
 */
const FIRST = 12_000;
const LAST = 22_000;

/** A Redis Cluster node's default bus port is its port plus this. */
const BUS_OFFSET = 10_000;

export interface FreePortOptions {
  /** Also require `port + 10000`, which a Redis Cluster node needs for its bus. */
  clusterBus?: boolean;
}

/** A TCP port that nothing on 127.0.0.1 listens on now, and that no other call gets before this process ends. */
export async function freePort(options: FreePortOptions = {}): Promise<number> {
  for (;;) {
    const port = FIRST + Math.floor(Math.random() * (LAST - FIRST));
    if (!(await isFree(port))) continue;
    if (options.clusterBus && !(await isFree(port + BUS_OFFSET))) continue;
    if (reserve(port)) return port;
  }
}

const RESERVED = join(tmpdir(), "carillon-ports");
const ours = new Set<string>();
process.once("exit", () => {
  for (const link of ours) rmSync(link, { force: true });
});

/** Takes a port by a link to this process's folder. The link of a process that was killed leads nowhere: its port is free for a later call. */
function reserve(port: number): boolean {
  const link = join(RESERVED, String(port));
  try {
    mkdirSync(RESERVED, { recursive: true });
    symlinkSync(scratchDir(), link);
    ours.add(link);
    return true;
  } catch (error) {
    // Without rights to such links, ports are not reserved.
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") return true;
    if (!existsSync(link)) rmSync(link, { force: true });
    return false;
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once("error", () => resolve(false));
    probe.listen({ port, host: "127.0.0.1", exclusive: true }, () => probe.close(() => resolve(true)));
  });
}
