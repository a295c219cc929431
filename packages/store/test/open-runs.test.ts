import { internalsOf } from "@carillon/store/internal";
import { eventually } from "@carillon/testing";
import { describe, expect, it } from "vitest";
import { attempt, onEveryEngine } from "../../../test/helpers.js";
import { Bench, QUEUE, START } from "./bench.js";

const HOUR = 3_600_000;

onEveryEngine("the runs of a task that are not final", (connection) => {
  const bench = Bench.use(connection, { retention: { completedJobs: { for: 0 } } });
  const open = (id = "t") => bench.store.runs.open(bench.name(id));
  const keys = () => internalsOf(bench.store).keys.queue(QUEUE);
  const named = (id = "t") =>
    internalsOf(bench.store).link.ask((client) => client.hget(keys().task(`system/${id}`), "open"));
  const inSet = (id = "t") =>
    internalsOf(bench.store).link.ask((client) => client.zrange(keys().open(`system/${id}`), 0, "-1"));
  /** A plain worker works all waiting jobs, and the reconciler settles their runs. */
  const finishAll = async () => {
    await bench.workAll();
    await bench.clock.advance(60_000);
    await bench.reconcile();
  };

  it("need no key if there is only one: the task names it", async () => {
    await bench.put({ id: "t" });
    expect(await named()).toBeNull();
    await bench.trigger("t", "a");
    const [run] = await open();
    expect(run).toMatch(/^t@/);
    expect([await named(), await inSet()]).toEqual([run, []]);
    await finishAll();
    expect([await named(), await open()]).toEqual(["", []]);
  });

  it("are in a set if there are more, in order", async () => {
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
    for (const most of [1, 2, 9]) {
      expect(await bench.store.runs.open(bench.name("t"), most)).toEqual(runs.slice(0, most));
    }
    expect((await bench.store.runs.list(bench.name("t"), 2)).map(({ id }) => id)).toEqual(
      runs.slice(1).reverse(),
    );
    await finishAll();
    expect([await named(), await inSet()]).toEqual(["", []]);
    await bench.trigger("t", "d");
    expect([await named(), await inSet()]).toEqual([(await open())[0], []]);
  });

  it("are in the set if the id is long, so that the task's hash stays small", async () => {
    const id = "t".repeat(60);
    await bench.put({ id });
    await bench.trigger(id, "a");
    const [run] = await open(id);
    expect([await named(id), await inSet(id)]).toEqual(["*", [run]]);
    await expect(bench.trigger(id, "b", "skip")).resolves.toMatchObject({
      outcome: "skipped",
      reason: "overlap",
    });
    await finishAll();
    expect(await named(id)).toBe("");
  });

  it.each([1, 2])("are deleted with their task if %i are open", async (count) => {
    await bench.put({ id: "t", overlap: "allow" });
    for (let i = 0; i < count; i++) await bench.trigger("t", `a${i}`);
    await bench.store.tasks.delete(bench.name("t"));
    expect(await bench.jobs()).toEqual([]);
    expect((await bench.ownKeys()).filter((key) => /~(r|open|t):/.test(key))).toEqual([]);
  });

  it.each([1, 2])("are cleared by a node after an interrupted delete if %i are open", async (count) => {
    await bench.put({ id: "t", overlap: "allow" });
    for (let i = 0; i < count; i++) await bench.trigger("t", `a${i}`);
    // They are checked less and less often.
    await bench.clock.advance(HOUR);
    await bench.reconcile();
    await bench.cutOff("clear-runs", () => bench.store.tasks.delete(bench.name("t")));
    expect((await bench.store.claims.next(QUEUE)).get("r")).toBe(bench.clock.now + 10_000);
    await bench.clock.advance(10_000);
    await bench.reconcile();
    expect(await bench.jobs()).toEqual([]);
    expect((await bench.ownKeys()).filter((key) => /~(r|open|gone):/.test(key))).toEqual([]);
  });

  it("stop every enqueue if their set cannot be written", async () => {
    const long = "t".repeat(60);
    await bench.put({ id: "t", overlap: "allow" });
    await bench.put({ id: long });
    await bench.trigger("t", "a");
    const before = (await bench.jobs()).length;
    await internalsOf(bench.store).link.ask((client) =>
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

  it("are kept by a put", async () => {
    await bench.put({ id: "t" });
    await bench.trigger("t", "a");
    const before = await open();
    await bench.put({ id: "t", schedule: { every: "20s" } });
    expect(await open()).toEqual(before);
    await expect(bench.trigger("t", "b", "skip")).resolves.toMatchObject({
      outcome: "skipped",
      reason: "overlap",
    });
  });

  it.each(["\x7f", "\x1f", "a\nb", "\u0000", "é\x7f\x1f|"])(
    "keep an occurrence key with odd characters: %j",
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

  it("stay in Redis' small encoding, as the run's record does", async () => {
    await bench.put({ id: "t", payload: { customer: 7 } });
    await bench.clock.advance(10_000);
    expect(await bench.claim("t", "token")).toEqual(["OK"]);
    const [run] = (await open()) as [string];
    const small = await Promise.all(
      [keys().task("system/t"), keys().run(run)].map((key) => bench.encoding(key)),
    );
    expect(small).toEqual(["listpack", "listpack"]);
    expect(await bench.store.runs.get(QUEUE, run)).toMatchObject({
      key: `${QUEUE}/system/t@1767225610000`,
      nominal: 1767225610000,
      due: 1767225610000,
      trigger: "schedule",
      type: "noop",
      state: "queued",
    });
  });

  describe("if there are very many", () => {
    const MANY = 1_300;
    const ids = Array.from({ length: MANY }, (_, i) => `t@many.${String(i).padStart(4, "0")}`);
    /** Adds open runs of `t`, as claims do. */
    async function fill(): Promise<void> {
      const { link } = internalsOf(bench.store);
      await bench.put({ id: "t", overlap: "allow" });
      for (const token of ["a", "b"]) await bench.trigger("t", token);
      await link.ask((client) =>
        Promise.all(
          ids.flatMap((id) => [
            client.zadd(keys().open("system/t"), START, id),
            client.hset(keys().run(id), { state: "queued", of: `system/t ${START} n`, info: "{}" }),
            client.hset(keys().job(id), { timestamp: START, data: "{}", name: "noop", opts: "{}" }),
            client.lpush(`${keys().bull}wait`, id),
          ]),
        ),
      );
    }
    const cancelled = async () => {
      const asked = await bench.store.runs.cancelRequests(QUEUE, ids);
      return asked.length;
    };
    /**
     * Observes each script that is sent.
     * @param before called with its name before it is sent
     * @param after likewise, after its answer
     */
    function watch(before: (name: string) => unknown, after: (name: string) => unknown = () => {}): void {
      const { link } = internalsOf(bench.store);
      const run = link.run.bind(link);
      link.run = async (script, ...rest) => {
        await before(script.name);
        const answer = await run(script, ...rest);
        await after(script.name);
        return answer;
      };
    }

    it("are cancelled in batches, including those that move up while others end", async () => {
      await fill();
      const seen: number[] = [];
      watch(async (name) => {
        if (name !== "cancel-open") return;
        seen.push(await cancelled());
        const ended = ids.slice((seen.length - 1) * 100, seen.length * 100);
        if (seen.length > 3) return;
        await internalsOf(bench.store).link.ask((client) => client.zrem(keys().open("system/t"), ...ended));
      });
      await expect(bench.trigger("t", "x", "cancel-running")).resolves.toMatchObject({ outcome: "queued" });
      const steps = seen.map((many, i) => many - (seen[i - 1] ?? 0));
      expect(steps.length).toBeGreaterThan(3);
      for (const step of steps) expect(step).toBeLessThanOrEqual(500);
      const open = await inSet();
      expect(open.length).toBeGreaterThan(900);
      expect(await bench.store.runs.cancelRequests(QUEUE, open)).toEqual(open);
    });

    it("are cancelled by a pause in batches if they are queued", async () => {
      await fill();
      const [running = ""] = await open();
      await bench.begin("t", running);
      let underWay = 0;
      let most = 0;
      watch(
        () => {
          underWay += 1;
          most = Math.max(most, underWay);
        },
        () => {
          underWay -= 1;
        },
      );
      expect(await bench.store.runs.cancelQueued(bench.name("t"), "me")).toBe(ids.length + 1);
      expect(await cancelled()).toBe(ids.length);
      expect((await bench.store.runs.get(QUEUE, running))?.cancel).toBeUndefined();
      expect(most).toBeLessThanOrEqual(500);
    });

    it("are cancelled by a pause, except one that starts meanwhile", async () => {
      await fill();
      const [starts = ""] = await open();
      const by = attempt();
      const { runs } = bench.store;
      bench.before("cancel-run", () => runs.start(bench.name("t"), starts, by));
      expect(await runs.cancelQueued(bench.name("t"), "me")).toBe(ids.length + 1);
      expect(await runs.get(QUEUE, starts)).toMatchObject({ state: "running" });
      expect((await runs.get(QUEUE, starts))?.cancel).toBeUndefined();
    });

    it("are cancelled without a message for those that no worker has", async () => {
      await fill();
      const [running = "", itsItemsRun = ""] = await open();
      const by = attempt();
      const [name, { runs }] = [bench.name("t"), bench.store];
      await runs.start(name, running, by);
      const started = await runs.start(name, itsItemsRun, by);
      const fence = started.word === "OK" ? started.fence : 0;
      expect(await runs.settle(name, itsItemsRun, { fence, outcome: undefined })).toBe("OK");
      const heard: string[] = [];
      let standing = () => {};
      const stands = new Promise<void>((resolve) => {
        standing = resolve;
      });
      const ears = bench.store.listen("cancel", {
        message: (text) => void heard.push(text),
        standing,
        failed: () => {},
      });
      await stands;
      await bench.trigger("t", "x", "cancel-running");
      await internalsOf(bench.store).link.ask((client) =>
        client.publish(internalsOf(bench.store).keys.cancel, "end"),
      );
      await eventually(() => heard.includes("end"));
      ears.stop();
      expect(await runs.get(QUEUE, running)).toMatchObject({ state: "terminating" });
      expect(await cancelled()).toBe(MANY);
      expect(heard.filter((text) => text !== "end").sort()).toEqual(
        [`${QUEUE} ${running}`, `${QUEUE} ${itsItemsRun}`].sort(),
      );
    });

    it("are all cancelled if the commit's answer was lost", async () => {
      await fill();
      let lost = false;
      const { link } = internalsOf(bench.store);
      const { run } = link;
      link.run = async (script, ...rest) => {
        const answer = await run.call(link, script, ...rest);
        if (script.name !== "commit" || lost) return answer;
        lost = true;
        return run.call(link, script, ...rest);
      };
      await bench.trigger("t", "x", "cancel-running");
      expect([lost, await cancelled()]).toEqual([true, MANY]);
    });

    it("are not cancelled if they started before the commit was repeated", async () => {
      await fill();
      let lost = false;
      watch(
        () => {},
        async (name) => {
          if (name !== "commit" || lost) return;
          lost = true;
          await bench.clock.advance(1);
          await bench.trigger("t", "late", "allow");
        },
      );
      const { link } = internalsOf(bench.store);
      const run = link.run.bind(link);
      let asked = 0;
      link.run = async (script, ...rest) => {
        const answer = await run(script, ...rest);
        asked += script.name === "commit" ? 1 : 0;
        // The answer of the first one is lost: the late run had begun by then.
        return script.name === "commit" && asked === 2 ? run(script, ...rest) : answer;
      };
      await bench.trigger("t", "x", "cancel-running");
      const [late] = (await inSet()).filter((id) => id.endsWith(".late"));
      expect(await bench.store.runs.cancelRequests(QUEUE, [late as string])).toEqual([]);
      expect(await cancelled()).toBe(MANY);
    });

    it("are not cancelled if they started after the commit", async () => {
      await fill();
      let once = false;
      watch(
        () => {},
        async (name) => {
          if (name !== "commit" || once) return;
          once = true;
          await bench.clock.advance(1);
          await bench.trigger("t", "late", "allow");
        },
      );
      await bench.trigger("t", "x", "cancel-running");
      const [late] = (await inSet()).filter((id) => id.endsWith(".late"));
      expect(await bench.store.runs.cancelRequests(QUEUE, [late as string])).toEqual([]);
      expect(await cancelled()).toBe(MANY);
    });

    it("are cleared with their task in few steps if they are the oldest waiting jobs", async () => {
      await fill();
      let steps = 0;
      watch((name) => (steps += name === "clear-runs" ? 1 : 0));
      await bench.store.tasks.delete(bench.name("t"));
      expect(steps).toBeLessThan(15);
      expect(await bench.jobs()).toEqual([]);
    });

    /** Puts 200,000 others before all that wait. */
    async function crowd(): Promise<void> {
      const others = Array.from({ length: 10_000 }, (_, i) => `other@${i}`);
      for (let i = 0; i < 20; i++) {
        await internalsOf(bench.store).link.ask((client) => client.rpush(`${keys().bull}wait`, ...others));
      }
    }

    it("are cleared in small steps if many others wait before them", async () => {
      await fill();
      await crowd();
      const { link } = internalsOf(bench.store);
      const run = link.run.bind(link);
      const taken: number[] = [];
      link.run = async (script, ...rest) => {
        const answer = await run(script, ...rest);
        if (script.name !== "clear-runs") return answer;
        taken.push(answer as number);
        // The following script would be as slow.
        throw new Error("enough");
      };
      await expect(bench.store.tasks.delete(bench.name("t"))).rejects.toThrow("enough");
      expect(taken).toEqual([1]);
    });

    it("are removed from a long list one at a time after a cancel, between other due work", async () => {
      await fill();
      await crowd();
      await bench.put({ id: "u" });
      await bench.trigger("u", "u");
      await (await bench.queue().getJob((await open("u"))[0] as string))?.remove();
      await bench.clock.advance(9_000);
      const some = ids.slice(0, 5);
      for (const id of some) await bench.store.runs.cancel(bench.name("t"), id, "me");
      await bench.clock.advance(1_000);
      const waiting = await internalsOf(bench.store).link.ask((client) => client.llen(`${keys().bull}wait`));
      const steps: string[][] = [];
      for (let more = true; more; ) {
        const step = await bench.store.runs.reconcile(QUEUE);
        more = step.more;
        steps.push(step.seen.map(([, what]) => what));
      }
      expect(steps).toEqual([["cancelled", "lost"], ...Array(4).fill(["cancelled"])]);
      const left = await internalsOf(bench.store).link.ask((client) => client.llen(`${keys().bull}wait`));
      expect(waiting - left).toBe(some.length);
      for (const id of some) {
        expect(await bench.store.runs.get(QUEUE, id)).toMatchObject({ state: "final", outcome: "cancelled" });
      }
    });

    it("are removed from a long list one at a time after a delete, too", async () => {
      await fill();
      await crowd();
      await bench.cutOff("clear-runs", () => bench.store.tasks.delete(bench.name("t")));
      const { link } = internalsOf(bench.store);
      await bench.clock.advance(10_000);
      const left = () => link.ask((client) => client.zcard(keys().gone("gone:open:system/t")));
      for (let n = 1; n < 4; n++) {
        expect(await bench.store.runs.reconcile(QUEUE)).toMatchObject({ more: true, cleared: false });
        expect(await left()).toBe(MANY + 2 - n);
      }
    });
  });
});
