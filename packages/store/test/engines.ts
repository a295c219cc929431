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

/** Runs the same suite on a single Redis and on a cluster of three masters. */
export function onEveryEngine(name: string, suite: (connection: () => ConnectionSpec) => void): void {
  const starting = new Map<string, Promise<Engine>>();
  // Starts both together: a cluster takes two seconds, during which the tests on the single Redis run.
  beforeAll(() => {
    for (const [engine, start] of Object.entries(ENGINES)) {
      const started = start();
      started.catch(() => {}); // reported by the suite that needs it
      starting.set(engine, started);
    }
  });
  afterAll(async () => {
    const started = await Promise.allSettled(starting.values());
    await Promise.all(started.map((one) => one.status === "fulfilled" && one.value.stop()));
  });
  for (const engine of Object.keys(ENGINES) as (keyof typeof ENGINES)[]) {
    describe(`${name} (${engine})`, () => {
      let url: string;
      beforeAll(async () => {
        url = (await (starting.get(engine) as Promise<Engine>)).url;
      });
      suite(() => url);
    });
  }
}
