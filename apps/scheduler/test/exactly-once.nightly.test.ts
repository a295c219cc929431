import { Client } from "@carillon/sdk";
import { eventually } from "@carillon/testing";
import { afterEach, describe, expect, it } from "vitest";
import { sharedRedis } from "../../../test/helpers.js";
import { killNodes, Node } from "./helpers.js";

const TASKS = Array.from({ length: 12 }, (_, i) => `t${i}`);

const redis = sharedRedis();
afterEach(killNodes);

async function putTasks(namespace: string): Promise<Client> {
  const client = new Client({ connection: redis.url, namespace });
  await client.putMany(
    TASKS.map((id) => ({
      id,
      type: "noop",
      queue: "bar",
      schedule: { every: "1s" },
      overlap: "allow" as const,
      catchUp: "all" as const,
    })),
  );
  return client;
}

/** The nominal times of a task's runs, in order. No worker runs, so every run is still there. */
async function nominals(client: Client, id: string): Promise<number[]> {
  const runs = await client.runs.list({ id, queue: "bar" }, { limit: 1_000 });
  return runs.map(({ nominal }) => nominal).sort((a, b) => a - b);
}

/** Pairs of neighbours that are not exactly one second apart. */
function faults(times: readonly number[]): string[] {
  return times.slice(1).flatMap((time, i) => {
    const gap = time - (times[i] as number);
    return gap === 1_000 ? [] : [`${gap === 0 ? "twice" : `gap of ${gap} ms`} at ${time}`];
  });
}

async function until(client: Client, runs: number): Promise<void> {
  await eventually(
    async () => {
      for (const id of TASKS) expect((await nominals(client, id)).length).toBeGreaterThanOrEqual(runs);
    },
    { intervalMs: 100 },
  );
}

describe("three nodes on one set of tasks", () => {
  it.each([
    ["with everything", {}],
    ["without the mutex", { CARILLON_TEST_ONLY_SABOTAGE: "mutex" }],
  ])(
    "enqueue each occurrence once, %s, while one after another is killed and replaced",
    async (name, more) => {
      const namespace = name.replaceAll(" ", "-");
      const env = { REDIS_URL: redis.url, CARILLON_NAMESPACE: namespace, ...more };
      const start = () => new Node(env);
      const nodes = [start(), start(), start()];
      await Promise.all(nodes.map((node) => node.ready(200)));
      const client = await putTasks(namespace);
      for (const runs of [2, 4, 6]) {
        await until(client, runs);
        void nodes.shift()?.kill();
        nodes.push(start());
      }
      await until(client, 9);
      for (const id of TASKS) expect(faults(await nominals(client, id))).toEqual([]);
      await client.close();
    },
  );

  it("fail this check without mutex and fence (positive control)", async () => {
    const namespace = "broken";
    const env = {
      REDIS_URL: redis.url,
      CARILLON_NAMESPACE: namespace,
      CARILLON_TEST_ONLY_SABOTAGE: "mutex,fence",
    };
    const nodes = [new Node(env), new Node(env), new Node(env)];
    await Promise.all(nodes.map((node) => node.ready(200)));
    expect(await nodes[0]?.logged(/BREAKS THE PROMISE/)).toMatchObject({ level: 40 });
    const client = await putTasks(namespace);
    await eventually(async () => {
      const all = await Promise.all(TASKS.map((id) => nominals(client, id)));
      expect(all.flatMap(faults)).not.toEqual([]);
    });
    await client.close();
  });
});
