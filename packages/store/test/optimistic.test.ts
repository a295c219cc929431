import { expect, it } from "vitest";
import { onEveryEngine } from "../../../test/helpers.js";
import { Bench } from "./bench.js";

// Concurrent decisions about one task: one is committed, all others are made again, and none is given up.
onEveryEngine("concurrent calls for one task", (connection) => {
  const NAMESPACE = "contended";

  async function withBenches(count: number, use: (benches: Bench[]) => Promise<void>): Promise<void> {
    const benches: Bench[] = [];
    try {
      for (let i = 0; i < count; i++)
        benches.push(
          await Bench.open(connection(), { namespace: NAMESPACE, retention: { completedJobs: { for: 0 } } }),
        );
      await use(benches);
    } finally {
      for (const bench of benches) await bench.close();
    }
  }

  it("run every trigger", async () => {
    await withBenches(1, async ([bench]) => {
      if (!bench) return;
      await bench.put({ id: "t", overlap: "allow" });
      const asked = await Promise.all(Array.from({ length: 100 }, (_, i) => bench.trigger("t", `token${i}`)));
      expect(asked.filter(({ outcome }) => outcome === "enqueued")).toHaveLength(100);
      expect(await bench.jobs()).toHaveLength(100);
    });
  });

  it("leave the last definition of one client", async () => {
    await withBenches(1, async ([bench]) => {
      if (!bench) return;
      const puts = Array.from({ length: 50 }, (_, n) => bench.put({ id: "p", payload: { n } }));
      expect((await Promise.all(puts)).map(({ outcome }) => outcome)).toEqual(
        puts.map((_, n) => (n === 0 ? "created" : "updated")),
      );
      expect((await bench.stored("p")).definition.payload).toEqual({ n: 49 });
    });
  });

  it("leave the last definition, even if it was put while others were under way", async () => {
    await withBenches(1, async ([bench]) => {
      if (!bench) return;
      for (let round = 0; round < 10; round++) {
        const put = (n: number) => bench.put({ id: "l", payload: { round, n } });
        const puts = [put(0), put(1), put(2), put(3)];
        await puts[0];
        await Promise.all([...puts, put(4)]);
        expect((await bench.stored("l")).definition.payload).toEqual({ round, n: 4 });
      }
    });
  });

  it("serve several clients, triggers and definitions", async () => {
    await withBenches(12, async (benches) => {
      await benches[0]?.put({ id: "c", overlap: "allow" });
      const all = benches.flatMap((bench, n) => [
        bench.put({ id: "c", overlap: "allow", payload: { n } }).then(({ outcome }) => outcome),
        bench.trigger("c", `token${n}`).then(({ outcome }) => outcome),
      ]);
      expect((await Promise.all(all)).sort()).toEqual([
        ...benches.map(() => "enqueued"),
        ...benches.map(() => "updated"),
      ]);
    });
  });
});
