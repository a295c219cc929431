import type { ConnectionSpec } from "@carillon/store";
import { startCluster, startRedis } from "@carillon/testing";
import { afterAll, beforeAll, describe } from "vitest";

/** Runs the same suite on a single Redis and on a cluster of three masters. */
export function onEveryEngine(name: string, suite: (connection: () => ConnectionSpec) => void): void {
  const engines = {
    single: async () => {
      const server = await startRedis();
      return { url: server.url, stop: () => server.stop() };
    },
    cluster: async () => {
      const cluster = await startCluster({ masters: 3 });
      return { url: cluster.nodes.map((node) => node.url).join(","), stop: () => cluster.stop() };
    },
  };
  for (const [engine, start] of Object.entries(engines)) {
    describe(`${name} (${engine})`, () => {
      let running: { url: string; stop: () => Promise<unknown> };
      beforeAll(async () => {
        running = await start();
      });
      afterAll(async () => {
        await running?.stop();
      });
      suite(() => ({ url: running.url, topology: engine as "single" | "cluster" }));
    });
  }
}
