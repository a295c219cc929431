import { internalsOf } from "@carillon/store/internal";
import { startRedis } from "@carillon/testing";
import { Redis } from "ioredis";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Bench, START } from "./bench.js";

/** A replica that took over without the last writes counts the generations of the lost ones again. */
describe("a decision that was read from a lost history", () => {
  const open: (() => Promise<unknown>)[] = [];
  let lost: Bench;
  let next: Bench;

  beforeEach(async () => {
    const master = await startRedis();
    const replica = await startRedis({ config: { replicaof: ["127.0.0.1", master.port] } });
    const onReplica = new Redis(replica.url);
    open.push(
      () => replica.stop(),
      () => master.stop(),
    );
    open.push(async () => onReplica.disconnect());
    lost = await Bench.open(master.url, { namespace: "lost" });
    await lost.put({ id: "t", overlap: "allow" });
    // Waits until the replica has the writes of this connection.
    expect(await internalsOf(lost.store).link.ask((client) => client.wait(1, 10_000))).toBe(1);
    // From here on the replica receives no writes.
    await onReplica.call("REPLICAOF", "NO", "ONE");
    next = await Bench.open(replica.url, { namespace: "lost" });
    open.push(
      () => lost.close(),
      () => next.close(),
    );
  });
  afterEach(async () => {
    for (const close of open.splice(0).reverse()) await close();
  });

  it.each<[string, () => Promise<unknown>]>([
    [
      "that an occurrence was enqueued meanwhile",
      async () => expect(await next.claim("t", "b")).toEqual(["OK"]),
    ],
    ["that the task was edited", () => next.put({ id: "t", overlap: "allow", payload: { edited: 1 } })],
  ])("is not committed if the generation is the same but for %s", async (_what, meanwhile) => {
    await lost.clock.advance(10_000);
    expect(await lost.claim("t", "a")).toEqual(["OK"]);
    await lost.clock.advance(10_000);
    const decided = await lost.read("t");
    await next.clock.advance(20_000);
    await meanwhile();
    expect((await next.stored("t")).generation).toBe((await lost.stored("t")).generation);
    const nominal = async () => (await next.jobs()).map(({ data }) => data.occurrence.nominal);
    const before = await nominal();
    expect(await next.commit(decided, "c")).toEqual(["STALE"]);
    expect(await nominal()).toEqual(before);
    // Decided again: nothing is lost and nothing doubled.
    await next.claim("t", "d");
    expect(await nominal()).toEqual([START + 20_000]);
  });

  it("gives no fence again that an attempt of the lost history has", async () => {
    const fences = async (bench: Bench, token: string) => {
      await bench.trigger("t", token, "allow");
      const [run = ""] = (await bench.store.runs.open(bench.name("t"))).filter((id) => id.endsWith(token));
      const started = await bench.begin("t", run, { worker: `w${token}` });
      return started.word === "OK" ? started.fence : Number.NaN;
    };
    const before = [await fences(lost, "a"), await fences(next, "a")];
    expect(before[1]).toBe(before[0]);
    await lost.clock.advance(10_000);
    await next.clock.advance(10_001);
    const after = [await fences(lost, "b"), await fences(next, "b")];
    expect(after[1]).toBe((after[0] as number) + 1_000);
    expect(after[0]).toBeGreaterThan(before[0] as number);
  });
});
