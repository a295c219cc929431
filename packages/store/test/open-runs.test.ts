import { afterEach, beforeEach, expect, it } from "vitest";
import { Bench, QUEUE } from "./bench.js";
import { onEveryEngine } from "./engines.js";

onEveryEngine("the runs of a task that are not final", (connection) => {
  let bench: Bench;
  beforeEach(async () => {
    bench = await Bench.open(connection(), { retention: { completedJobs: 0 } });
  });
  afterEach(async () => {
    await bench.close();
  });
  const open = (id = "t") => bench.store.runs.open(bench.name(id));
  const keys = () => bench.store.keys.queue(QUEUE);
  const named = (id = "t") =>
    bench.store.link.ask((client) => client.hget(keys().task(`system/${id}`), "open"));
  const inSet = (id = "t") =>
    bench.store.link.ask((client) => client.zrange(keys().open(`system/${id}`), 0, "-1"));
  /** A plain worker does what waits, and the reconciler sees it. */
  const finishAll = async () => {
    await bench.workAll();
    await bench.clock.advance(60_000);
    await bench.reconcile();
  };

  it("one alone is named by the task, and needs no key", async () => {
    await bench.put({ id: "t" });
    expect(await named()).toBeNull();
    await bench.trigger("t", "a");
    const [run] = await open();
    expect(run).toMatch(/^t@/);
    expect([await named(), await inSet()]).toEqual([run, []]);
    await finishAll();
    expect([await named(), await open()]).toEqual(["", []]);
  });

  it("more are in a set, in their order, until none is left", async () => {
    await bench.put({ id: "t", overlap: "allow" });
    const runs: string[] = [];
    for (const token of ["a", "b", "c"]) {
      const { run } = (await bench.trigger("t", token)) as { run: string };
      runs.push(run);
      await bench.clock.advance(10);
    }
    expect(await named()).toBe("*");
    expect(await inSet()).toEqual(runs);
    expect(await open()).toEqual(runs);
    expect((await bench.store.runs.list(bench.name("t"), 2)).map(({ id }) => id)).toEqual(
      runs.slice(1).reverse(),
    );
    await finishAll();
    expect([await named(), await inSet()]).toEqual(["", []]);
    await bench.trigger("t", "d");
    expect([await named(), await inSet()]).toEqual([(await open())[0], []]);
  });

  it("one with a long id is in the set, so that the task's hash stays small", async () => {
    const id = "t".repeat(60);
    await bench.put({ id });
    await bench.trigger(id, "a");
    const [run] = await open(id);
    expect([await named(id), await inSet(id)]).toEqual(["*", [run]]);
    await expect(bench.trigger(id, "b", "skip")).resolves.toEqual({ outcome: "skipped", reason: "overlap" });
    await finishAll();
    expect(await named(id)).toBe("");
  });

  it.each([1, 2])("of %i that are open, none is left with a deleted task", async (count) => {
    await bench.put({ id: "t", overlap: "allow" });
    for (let i = 0; i < count; i++) await bench.trigger("t", `a${i}`);
    await bench.store.tasks.delete(bench.name("t"));
    expect(await bench.jobs()).toEqual([]);
    expect((await bench.ownKeys()).filter((key) => /~(r|open|t):/.test(key))).toEqual([]);
  });

  it("nothing is enqueued where the set cannot be written, however often", async () => {
    const long = "t".repeat(60);
    await bench.put({ id: "t", overlap: "allow" });
    await bench.put({ id: long });
    await bench.trigger("t", "a");
    const before = (await bench.jobs()).length;
    await bench.store.link.ask((client) =>
      Promise.all([client.set(keys().open("system/t"), "x"), client.set(keys().open(`system/${long}`), "x")]),
    );
    await bench.clock.advance(10_000);
    for (const token of ["b", "c"]) {
      for (const id of ["t", long]) expect((await bench.claim(id, token))[0]).toMatch(/^ERROR .*WRONGTYPE/);
    }
    expect(await bench.jobs()).toHaveLength(before);
    for (const id of ["t", long]) await bench.store.tasks.delete(bench.name(id));
    expect((await bench.ownKeys()).filter((key) => /~(r|open|t|gone):/.test(key))).toEqual([]);
  });

  it("a put keeps it", async () => {
    await bench.put({ id: "t" });
    await bench.trigger("t", "a");
    const before = await open();
    await bench.put({ id: "t", schedule: { every: "20s" } });
    expect(await open()).toEqual(before);
    await expect(bench.trigger("t", "b", "skip")).resolves.toEqual({ outcome: "skipped", reason: "overlap" });
  });

  it.each(["\x7f", "\x1f", "a\nb", "\u0000", "é\x7f\x1f|"])(
    "keeps a key with odd characters whole: %j",
    async (odd) => {
      await bench.put({ id: "t", overlap: "queue-all", payload: { odd } });
      const name = bench.name("t");
      for (const n of [1, 2])
        await bench.store.claims.trigger(name, { key: odd + n, token: `t${n}`, node: "n" });
      const [run] = await bench.store.runs.list(name, 10);
      expect(run).toMatchObject({ key: `${odd}1`, type: "noop", trigger: "manual" });
      expect((await bench.stored("t")).pending).toMatchObject([{ key: `${odd}2` }]);
      const [job] = await bench.jobs();
      expect(job?.data).toMatchObject({ payload: { odd }, occurrence: { key: `${odd}1`, run: run?.id } });
      await finishAll();
      await bench.clock.advance(1);
      for (let i = 0; i < 2; i++) await bench.claim("t", `c${i}`);
      expect((await bench.store.runs.list(name, 10)).map(({ key }) => key)).toContain(`${odd}2`);
    },
  );

  it("stays in Redis' small encoding, the run's record too", async () => {
    await bench.put({ id: "t", payload: { customer: 7 } });
    await bench.clock.advance(10_000);
    expect(await bench.claim("t", "token")).toEqual(["OK"]);
    const [run] = (await open()) as [string];
    const encodings = await bench.store.link.ask((client) =>
      Promise.all([keys().task("system/t"), keys().run(run)].map((key) => client.object("ENCODING", key))),
    );
    // What took its place in Redis 7.
    const small = encodings.map((name) => (name === "ziplist" ? "listpack" : name));
    expect(small).toEqual(["listpack", "listpack"]);
    expect(await bench.store.runs.get(QUEUE, run)).toMatchObject({
      ...{ key: `${QUEUE}/system/t@1767225610000`, nominal: 1767225610000, due: 1767225610000 },
      ...{ trigger: "schedule", type: "noop", state: "queued" },
    });
  });
});
