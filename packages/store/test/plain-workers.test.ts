import { bullPrefix } from "@carillon/store";
import { eventually } from "@carillon/testing";
import { UnrecoverableError, Worker } from "bullmq";
import { UnrecoverableError as Unrecoverable5, Worker as Worker5 } from "bullmq-5";
import { describe, expect, it } from "vitest";
import { sharedRedis } from "../../../test/helpers.js";
import { Bench, QUEUE } from "./bench.js";

const redis = sharedRedis();

/** The signature that both versions share. */
type Start = (
  queue: string,
  process: (job: {
    name: string;
    data: { payload: unknown; occurrence: { task: string } };
    attemptsMade: number;
  }) => Promise<unknown>,
  options: { connection: { url: string }; prefix: string },
) => { close(): Promise<void> };

/**
 * Copies of BullMQ that an application may use: the newest of each major version. Carillon's exact version is the
 * newest 6.
 */
describe.each<[version: string, start: Start, Unrecoverable: new (message: string) => Error]>([
  ["5", (...args) => new Worker5(...args), Unrecoverable5],
  ["6", (...args) => new Worker(...args), UnrecoverableError],
])("a plain worker of the newest BullMQ %s", (_version, start, Unrecoverable) => {
  it("a plain worker runs each job once, by priority, and retries; a node settles the runs", async () => {
    const bench = await Bench.open(redis.url);
    const ids = ["plain", "later", "sooner", "flaky", "broken"];
    await bench.put({ id: "plain", payload: { strokes: 3 } });
    await bench.put({ id: "later", priority: 9 });
    await bench.put({ id: "sooner", priority: 1 });
    await bench.put({ id: "flaky", priority: 10, retry: { attempts: 2, delay: "1s" } });
    await bench.put({ id: "broken", priority: 11, retry: { attempts: 2, delay: "1s" } });
    await bench.clock.advance(10_000);
    for (const id of ids) await bench.trigger(id, `token${id}`);

    const worked: string[] = [];
    const worker = start(
      QUEUE,
      async ({ data: { payload, occurrence }, attemptsMade }) => {
        const { task } = occurrence;
        worked.push(`${task} ${attemptsMade}`);
        if (task === "flaky" && attemptsMade === 0) throw new Error("cracked");
        if (task === "broken") throw new Unrecoverable("no bell");
        return payload;
      },
      { connection: { url: redis.url }, prefix: bullPrefix(bench.store.namespace, QUEUE) },
    );
    const first = ["plain 0", "sooner 0", "later 0", "flaky 0", "broken 0"];
    await eventually(() => expect(worked).toEqual(first));
    await bench.clock.advance(1_000);
    await eventually(() => expect(worked).toEqual([...first, "flaky 1"]));
    await worker.close();

    await bench.clock.advance(30_000);
    const settled = await bench.reconcile();
    const outcomes = settled.map(([run, outcome]) => `${run.split("@")[0]} ${outcome}`).sort();
    expect(outcomes).toEqual([
      "broken failed",
      "flaky succeeded",
      "later succeeded",
      "plain succeeded",
      "sooner succeeded",
    ]);
    await bench.close();
  });
});
