import { parseTask } from "@carillon/core";
import { FORMAT_VERSION, localName, shardOf } from "@carillon/core/internal";
import { Scheduler } from "@carillon/scheduler";
import { internalsOf } from "@carillon/store/internal";
import { virtualStore } from "@carillon/testing";
import { expect, it } from "vitest";
import { sharedRedis } from "../../../test/helpers.js";
import { Bench, START } from "../../store/test/bench.js";
import { claimsOn, SHARD } from "./claiming.js";

const QUEUE = "bells";
const redis = sharedRedis();

it("tasks of a newer format are left alone and do not block the others of their shard", async () => {
  const { store, clock } = await virtualStore({
    connection: redis.url,
    namespace: "n",
    queues: [QUEUE],
  });
  const warnings: object[] = [];
  const silent = () => {};
  const logger = {
    debug: silent,
    info: silent,
    warn: (details: object) => warnings.push(details),
    error: silent,
  };
  const node = new Scheduler({ store, logger });

  // More unreadable tasks in one shard than a batch holds, all due before the readable one.
  const ids = Array.from({ length: 4_000 }, (_, i) => `t${i}`)
    .filter((id) => shardOf(localName({ owner: "system", id })) === 0)
    .slice(0, 151);
  const known = ids.pop() as string;
  const task = (id: string, every: string) =>
    parseTask({ id, type: "noop", queue: QUEUE, schedule: { every } });
  await store.tasks.put(QUEUE, [...ids.map((id) => task(id, "10s")), task(known, "20s")]);
  for (const id of ids) {
    await internalsOf(store).link.ask((client) =>
      client.hset(internalsOf(store).keys.queue(QUEUE).task(`system/${id}`), "v", String(FORMAT_VERSION + 1)),
    );
  }
  await clock.advance(20_000);
  const { decided } = await node.tick();
  expect(decided.map((one) => [one.task, one.outcome])).toEqual([[`system/${known}`, "enqueued"]]);
  expect(warnings).toHaveLength(ids.length);
  await store.close();
});

it("a shard with only such tasks due makes no progress, and is left alone for a while", async () => {
  const bench = await Bench.open(redis.url);
  const node = claimsOn(bench);
  const claim = () => node.claim(bench.name("t").queue);
  await bench.put({ id: "t" });
  // A timer that fires a little early, or another node's claim, must not make the node pause.
  expect(await claim()).toMatchObject({ left: [], decided: [], refused: [] });
  const key = internalsOf(bench.store).keys.queue(bench.name("t").queue).task("system/t");
  await internalsOf(bench.store).link.ask((client) => client.hset(key, "v", String(FORMAT_VERSION + 1)));
  await bench.clock.set(START + 10_000);
  expect(await claim()).toMatchObject({ left: [String(SHARD)], decided: [], refused: [] });
  await bench.close();
});

it("a run whose job was retried outside is in the way: found after one refusal", async () => {
  const bench = await Bench.open(redis.url);
  const node = claimsOn(bench);
  await bench.put({ id: "t" });
  await bench.clock.set(START + 10_000);
  await node.claim(QUEUE);
  await bench.workAll();
  await bench.store.runs.reconcile(QUEUE);
  await bench.clock.set(START + 20_000);
  await bench.store.runs.reconcile(QUEUE);
  await (await bench.jobs())[0]?.retry("completed");
  expect(await node.claim(QUEUE)).toMatchObject({
    decided: [{ task: "system/t", outcome: "skipped" }],
    refused: [{ task: "system/t", status: "OVERLAP" }],
  });
  await bench.close();
});
