import { defineTask } from "@carillon/sdk";
import { Store } from "@carillon/store";
import { internalsOf, storeOf, withSeams } from "@carillon/store/internal";
import { eventually } from "@carillon/testing";
import { expect, it, vi } from "vitest";
import { attempt, gate, SILENT } from "../../../../test/helpers.js";
import { Bench, next, nothing, QUEUE } from "./bench.js";

const bench = Bench.use("late");

it("a start that comes when another worker has the job has no effect, and runs no handler", async () => {
  const [held, go] = [gate(), gate()];
  const failpoint = async (at: string) => {
    if (at !== "before start-run") return;
    held.resolve();
    await go.promise;
  };
  const store = new Store(
    withSeams({ connection: bench.redis.url, namespace: bench.namespace }, { failpoint }),
  );
  const handler = vi.fn();
  const type = defineTask("type", { queue: QUEUE, payload: nothing, handler });
  await bench.put("t", "type", { schedule: { every: "100ms" }, crash: { attempts: 1 }, minGap: "1ms" });
  const run = await bench.due("t");
  const frozen = await bench.work([type], { connection: undefined, store, lockDuration: 600_000 });
  frozen.on("error", () => {});
  await held.promise;

  // The lock has expired: another worker takes the job, and starts it.
  await bench.admin.set(`${bench.jobKey(run)}:lock`, "second");
  const name = { queue: QUEUE, owner: "system", id: "t" };
  const by = attempt({ worker: "second", pid: 2, attempt: 2, token: "second" });
  const { runs } = storeOf(bench.client);
  const second = await runs.start(name, run, by);
  if (second.word !== "OK") throw new Error(second.word);
  const told = next(frozen, "fenced");
  go.resolve();
  expect(await told).toMatchObject({ run });

  const record = await bench.record(run);
  expect(record).toMatchObject({ state: "running", attempts: 1, worker: "second" });
  expect(record?.crashes).toBeUndefined();
  const end = { fence: second.fence, outcome: "succeeded", result: "by the second" } as const;
  expect(await runs.settle(name, run, end)).toBe("OK");
  expect(await bench.record(run)).toMatchObject({ outcome: "succeeded", result: "by the second" });
  expect(await bench.stats("t")).toMatchObject({ crashes: "0", succeeded: "1" });
  expect(handler).not.toHaveBeenCalled();
  await frozen.stop();
  await store.close();
});

it("a run in a newer format is handed back unchanged and logged, for a newer worker", async () => {
  const handler = vi.fn();
  const type = defineTask("type", { queue: QUEUE, payload: nothing, handler });
  const run = await bench.run("t", "type");
  const { link, keys } = internalsOf(storeOf(bench.client));
  const key = keys.queue(QUEUE).run(run);
  await link.ask((client) => client.hset(key, "v", "99"));
  const before = await link.ask((client) => client.hgetall(key));
  const told = gate<object>();
  const error = (details: object) => told.resolve(details);
  const worker = await bench.work([type], { logger: { ...SILENT, error } });
  expect(await told.promise).toMatchObject({ run, format: "99" });
  const job = await bench.queue().getJob(run);
  await eventually(async () => expect(await job?.getState()).toBe("delayed"));
  expect(await link.ask((client) => client.hgetall(key))).toEqual(before);
  expect(handler).not.toHaveBeenCalled();
  const settled = next(worker, "settled");
  await link.ask((client) => client.hdel(key, "v"));
  await job?.promote();
  expect(await settled).toMatchObject({ run, outcome: "succeeded", attempt: 1 });
});
