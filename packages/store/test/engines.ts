import type { ConnectionSpec } from "@carillon/store";
import { startCluster, startRedis } from "@carillon/testing";
import { afterAll, beforeAll, describe } from "vitest";

interface Engine {
  readonly url: string;
  stop(): Promise<unknown>;
}

const ENGINES: Record<"single" | "cluster", () => Promise<Engine>> = {
  single: () => startRedis(),
  cluster: () => startCluster({ masters: 3 }),
};

/** The cluster is the stricter one, and most other tests use a single server: `npm run test:engines` runs these on it too. */
const WANTED = (process.env["CARILLON_ENGINES"] ?? "cluster").split(",") as (keyof typeof ENGINES)[];

/** Runs a suite on a cluster of three masters, or on what `CARILLON_ENGINES` names: `single`, `cluster`. */
export function onEveryEngine(name: string, suite: (connection: () => ConnectionSpec) => void): void {
  const starting = new Map<string, Promise<Engine>>();
  // Starts all together: a cluster takes two seconds.
  beforeAll(() => {
    for (const engine of WANTED) {
      const started = ENGINES[engine]();
      started.catch(() => {}); // reported by the suite that needs it
      starting.set(engine, started);
    }
  });
  afterAll(async () => {
    const started = await Promise.allSettled(starting.values());
    await Promise.all(started.map((one) => one.status === "fulfilled" && one.value.stop()));
  });
  for (const engine of WANTED) {
    describe(`${name} (${engine})`, () => {
      let url: string;
      beforeAll(async () => {
        url = (await (starting.get(engine) as Promise<Engine>)).url;
      });
      suite(() => url);
    });
  }
}
