import { createServer } from "node:net";

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

/** A TCP port that nothing on 127.0.0.1 listens on now. */
export async function freePort(options: FreePortOptions = {}): Promise<number> {
  for (;;) {
    const port = FIRST + Math.floor(Math.random() * (LAST - FIRST));
    if (!(await isFree(port))) continue;
    if (options.clusterBus && !(await isFree(port + BUS_OFFSET))) continue;
    return port;
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once("error", () => resolve(false));
    probe.listen({ port, host: "127.0.0.1", exclusive: true }, () => probe.close(() => resolve(true)));
  });
}
