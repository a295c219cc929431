import { duration } from "@carillon/ops/words";
import { Client, defineTask } from "@carillon/sdk";
import { internalsOf } from "@carillon/store/internal";
import { eventually } from "@carillon/testing";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { eachKit } from "../../../../test/each-kit.js";
import { explained } from "../../test/in-words.js";
import { operatorOf } from "../operator.js";

const QUEUE = "bells";
const START = Date.parse("2026-01-01T00:00:00Z");

const ring = defineTask("ring", { queue: QUEUE, payload: z.looseObject({}), handler: () => {} });
const NONE = {
  succeeded: 0,
  failed: 0,
  "timed-out": 0,
  partial: 0,
  cancelled: 0,
  dropped: 0,
  crashed: 0,
  "nothing-to-do": 0,
  lost: 0,
};

const { kit, ops } = eachKit({ types: [ring], start: START });

const put = (id: string, queue = QUEUE, more: object = {}) =>
  kit.client.put({ id, type: "ring", queue, schedule: { every: "1m" }, ...more });

/** A worker's connection gets its name shortly after the worker has started. */
const worked = () =>
  eventually(async () => expect((await kit.store.queues.workers([QUEUE]))?.get(QUEUE)).toBe(1));

describe("queues", () => {
  it("report waiting jobs, their age, workers, and outcomes", async () => {
    await put("t");
    await put("ghost", "nobody", { overlap: "allow" });
    await kit.advance("150s");
    await worked();
    expect((await ops.queues.list()).queues).toEqual([
      {
        name: QUEUE,
        tasks: 1,
        workers: 1,
        waiting: 0,
        active: 0,
        oldestWaitingMs: undefined,
        outcomes: { ...NONE, succeeded: 2 },
      },
      {
        name: "nobody",
        tasks: 1,
        workers: 0,
        waiting: 2,
        active: 0,
        oldestWaitingMs: 90_000,
        outcomes: NONE,
      },
    ]);
    expect((await ops.names.list({ of: "queue" })).names).toEqual([QUEUE, "nobody"]);
  });

  it("report only the owner's tasks to a bound client", async () => {
    await put("t");
    await put("mine", QUEUE, { owner: "acme" });
    await ops.queues.pause({ queue: QUEUE }, { by: "ann" });
    const acme = new Client({ store: kit.store, owner: "acme" });
    await worked();
    expect((await operatorOf(acme).queues.list()).queues).toEqual([
      { name: QUEUE, tasks: 1, workers: 1, paused: { at: START, by: "ann" } },
    ]);
  });

  it("are paused and resumed: jobs wait meanwhile, and occurrences are skipped as behind", async () => {
    await put("t");
    expect((await ops.queues.pause({ queue: QUEUE, note: "deploy" }, { by: "ann" })).changed).toBe(true);
    expect((await ops.queues.pause({ queue: QUEUE, note: "again" }, { by: "bob" })).changed).toBe(false);
    await kit.advance("3m");
    await kit.expect("t").fired(1).skipped("behind", 2);
    expect((await ops.queues.list()).queues).toMatchObject([
      { paused: { at: START, by: "ann", note: "deploy" }, waiting: 1, oldestWaitingMs: 120_000 },
    ]);
    expect((await ops.queues.resume({ queue: QUEUE })).changed).toBe(true);
    expect((await ops.queues.resume({ queue: QUEUE })).changed).toBe(false);
    await kit.advance(0);
    await kit.expect("t").outcome("succeeded");
    const [queue] = (await ops.queues.list()).queues;
    expect(queue).toMatchObject({ waiting: 0 });
    expect(queue).not.toHaveProperty("paused");
  });

  it("stay paused when their last task is deleted and another one is put", async () => {
    await put("t");
    await ops.queues.pause({ queue: QUEUE }, { by: "ann" });
    await kit.client.delete("t");
    expect((await ops.queues.list()).queues).toEqual([]);
    await put("t");
    expect((await ops.queues.list()).queues).toMatchObject([{ paused: { by: "ann" } }]);
    await kit.client.delete("t");
    expect((await ops.queues.resume({ queue: QUEUE })).changed).toBe(true);
  });

  it("of the alerts cannot be paused: alerts must still be delivered while nothing else runs", async () => {
    const queue = "carillon-alerts";
    await put("hook", queue);
    await expect(ops.queues.pause({ queue })).rejects.toMatchObject({ code: "FORBIDDEN", field: "queue" });
    expect((await ops.queues.resume({ queue })).changed).toBe(false);
  });
});

describe("explain", () => {
  const told = async (at: number) => {
    const { verdict, summary, hold } = await explained(kit.client, "t", START + at);
    return [verdict, summary, hold];
  };
  const enqueued = (ms: number) =>
    `It was enqueued on time, 0 ms after it was due, and has been waiting for ${duration(ms)}`;

  it("reports a paused queue for a waiting run and for the run that blocks it", async () => {
    await put("t");
    await ops.queues.pause({ queue: QUEUE, note: "deploy" }, { by: "ann" });
    await kit.advance("2m");
    const hold = "the queue is paused (by ann since 2026-01-01T00:00:00Z: deploy)";
    expect(await told(60_000)).toEqual(["enqueued", `${enqueued(60_000)}: ${hold}.`, hold]);
    expect(await told(120_000)).toEqual([
      "skipped",
      "It was skipped: an earlier run was not over, because no worker had begun it, or only just." +
        ` The run in its way waits: ${hold}.`,
      hold,
    ]);
    await ops.queues.resume({ queue: QUEUE });
    await kit.advance(0);
    expect(await told(60_000)).toEqual([
      "enqueued",
      "It was enqueued on time, 0 ms after it was due, and succeeded after 0 ms.",
      undefined,
    ]);
    expect((await told(120_000))[2]).toBeUndefined();
  });

  it("reports a paused queue for a pending occurrence, and without an author", async () => {
    await put("t", QUEUE, { overlap: "queue-one" });
    await ops.queues.pause({ queue: QUEUE });
    await kit.advance("2m");
    const hold = "the queue is paused (since 2026-01-01T00:00:00Z)";
    expect(await told(120_000)).toEqual([
      "waiting",
      `It waits: kept (schedule) until no run is in its way. The run in its way waits: ${hold}.`,
      hold,
    ]);
    const { bull } = internalsOf(kit.store).keys.queue(QUEUE);
    await internalsOf(kit.store).link.client.hdel(`${bull}meta`, "carillon.pause");
    expect((await told(60_000))[2]).toBe("the queue is paused");
  });

  it("reports a queue without workers, and nothing if Redis does not tell", async () => {
    await put("t", "nobody");
    await kit.advance("1m");
    const hold = "no worker works the queue nobody";
    expect(await told(60_000)).toEqual(["enqueued", `${enqueued(0)}: ${hold}.`, hold]);
    const { queues } = kit.store;
    const connections = queues.connections.bind(queues);
    queues.connections = async () => undefined;
    expect(await told(60_000)).toEqual([
      "enqueued",
      expect.stringMatching(/and has been waiting for a worker for 0 ms\.$/),
      undefined,
    ]);
    queues.connections = connections;
    await kit.bullWorker("nobody", async () => {});
    await eventually(async () => expect((await told(60_000))[2]).toBeUndefined());
  });
});
