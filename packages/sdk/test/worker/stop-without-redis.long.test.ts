import { type AnyTaskType, defineTask, Worker } from "@carillon/sdk";
import { type FaultProxy, startFaultProxy } from "@carillon/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { gate, SILENT } from "../../../../test/helpers.js";
import { aborted, Bench, nothing, QUEUE } from "./bench.js";
import { Lives } from "./lives.js";

const bench = Bench.use("away");
const lives = Lives.use(bench);

describe("a stop while Redis cannot be reached", () => {
  let proxy: FaultProxy;
  beforeEach(async () => {
    proxy = await startFaultProxy(bench.redis);
  });
  afterEach(() => proxy.close());

  /** Resolves when `atWork` handlers are running; they run until their signals are aborted. */
  function working(atWork: number) {
    const { promise, resolve } = gate();
    let begun = 0;
    const work = ({ signal }: { signal: AbortSignal }) => {
      begun += 1;
      if (begun === atWork) resolve();
      return aborted(signal);
    };
    return { promise, work };
  }
  const common = { queue: QUEUE, payload: nothing };

  const start = async (type: AnyTaskType) => {
    const worker = new Worker({
      connection: proxy.url,
      namespace: bench.namespace,
      types: [type],
      logger: SILENT,
    });
    await worker.start();
    return worker;
  };

  it("does not wait for Redis to take back a run, but waits for a running handler", async () => {
    const { promise, work } = working(1);
    const heeds = defineTask("heeds", { ...common, handler: (_payload, context) => work(context) });
    const [begun, finish] = [gate(), gate()];
    const handler = () => {
      begun.resolve();
      return finish.promise;
    };
    const goesOn = defineTask("goes-on", { ...common, queue: "others", handler });
    const [first, second] = [await start(goesOn), await start(heeds)];
    await bench.run("a", "heeds");
    await bench.run("b", "goes-on", { queue: "others" });
    await Promise.all([promise, begun.promise]);
    proxy.refuse();
    let over = false;
    const stopped = first.stop({ within: 0 }).then(() => {
      over = true;
    });
    await second.stop({ within: 0 });
    expect(over).toBe(false);
    finish.resolve();
    await stopped;
  });

  it("does not wait for Redis to take back items, running or waiting for a place", async () => {
    const { promise, work } = working(2);
    const process = (_item: number, context: { signal: AbortSignal }) => work(context);
    const type = defineTask("type", { ...common, generate: () => [0, 1, 2, 3], process, concurrency: 2 });
    const worker = await start(type);
    await bench.run("t", "type");
    await promise;
    proxy.refuse();
    await worker.stop({ within: 0 });
  });

  it.each(["went away", "was never there"])(
    "leaves nothing that keeps the process: Redis %s",
    async (how) => {
      const there = how === "went away";
      if (!there) proxy.refuse();
      const life = lives.start("stop", 60_000, "", proxy.url);
      await life.says({ ready: true });
      if (there) {
        await bench.run("t", "heeds");
        await life.says({ attempt: 1 });
        proxy.refuse();
      }
      life.stop();
      await life.says({ stopped: true });
      expect(await life.ended).toMatchObject({ code: 0, stderr: "" });
    },
  );
});
