import { once } from "node:events";
import { defineTask } from "@carillon/sdk";
import { Store } from "@carillon/store";
import { withSeams } from "@carillon/store/internal";
import { expect, it } from "vitest";
import { gate, SILENT } from "../../../../test/helpers.js";
import type { Active } from "../../src/worker/active.js";
import { monotonicClock } from "../../src/worker/clock.js";
import { Output } from "../../src/worker/output.js";
import { OutputSaver } from "../../src/worker/output-saver.js";
import { TimeBox } from "../../src/worker/time-box.js";
import { Bench, nothing, QUEUE } from "./bench.js";

const bench = Bench.use("saver");

it("a save that is sent again after a lost answer does not overwrite a later one", async () => {
  const run = await bench.run("t", "type");
  let lost = false;
  const failpoint = (point: string) => {
    if (point !== "after save-output" || lost) return;
    lost = true;
    throw new Error("Connection is closed.");
  };
  const store = new Store(
    withSeams({ connection: bench.redis.url, namespace: bench.namespace }, { failpoint }),
  );
  const saver = new OutputSaver(store, SILENT);
  const output = new Output(1_000);
  const box = new TimeBox(monotonicClock);
  const active: Active = { queue: QUEUE, run, task: "system/t", job: run, attempt: 1, box, output };
  output.write("log", "one");
  const first = saver.save(active);
  output.write("log", "two");
  await Promise.all([first, saver.save(active)]);
  expect(lost).toBe(true);
  expect(await bench.output(run)).toEqual([{ attempt: 1, text: "log one\nlog two\n", cut: false }]);

  output.write("log", "three");
  const third = saver.save(active);
  await active.saving;
  expect(await bench.output(run)).toMatchObject([{ text: "log one\nlog two\nlog three\n" }]);
  await third;
  await store.close();
});

it("the end of a run is sent after its whole output, even if an earlier save is under way", async () => {
  const [saving, ended] = [gate(), gate()];
  let begun = false;
  const sent: string[] = [];
  const failpoint = async (point: string) => {
    if (!begun || (point !== "before save-output" && point !== "before turn")) return;
    sent.push(point);
    saving.resolve();
    await ended.promise;
  };
  const store = new Store(
    withSeams({ connection: bench.redis.url, namespace: bench.namespace }, { failpoint }),
  );
  const handler = async (_payload: object, { log }: { log: (text: string) => void }) => {
    begun = true;
    log("one");
    await saving.promise;
    log("two");
    setImmediate(ended.resolve);
  };
  const type = defineTask("type", { queue: QUEUE, payload: nothing, handler });
  // With one place the worker takes nothing during the run, so the turn with its end is the only one.
  const worker = await bench.work([type], { connection: undefined, store, concurrency: 1 });
  const run = await bench.run("t", "type");
  await once(worker, "settled");
  expect(sent).toEqual(["before save-output", "before save-output", "before turn"]);
  expect(await bench.output(run)).toMatchObject([{ text: "log one\nlog two\n" }]);
  await worker.stop();
  await store.close();
});
