import { type Json, parseTask } from "@carillon/core";
import { shardOf } from "@carillon/core/internal";
import { internalsOf } from "@carillon/store/internal";
import { describe, expect, it } from "vitest";
import { onEveryEngine } from "../../../test/helpers.js";
import { Bench, ENTERED, QUEUE, START } from "./bench.js";

const HOUR = 3_600_000;

onEveryEngine("pause, resume, trigger, delete", (connection) => {
  const bench = Bench.use(connection);
  const ledger = (id: string) => bench.store.runs.ledger(bench.name(id));
  const nominals = async () =>
    (await bench.jobs()).map((job) => job.data.occurrence.nominal - START).sort((a, b) => a - b);

  describe("pause and resume", () => {
    it("holds future occurrences, records who and why, and is idempotent", async () => {
      await bench.put({ id: "t" });
      const { generation } = await bench.stored("t");
      await bench.clock.advance(1_000);
      expect(await bench.store.tasks.pause(bench.name("t"), "ann", "maintenance")).toBe("OK");
      const paused = await bench.stored("t");
      expect(paused).toMatchObject({
        state: "paused",
        nominal: START + 10_000,
        generation: String(Number(generation) + 1),
        paused: { at: START + 1_000, by: "ann", note: "maintenance" },
      });
      const before = await bench.dump();
      await bench.clock.advance(1_000);
      expect(await bench.store.tasks.pause(bench.name("t"), "bob", "other")).toBe("UNCHANGED");
      expect(await bench.dump()).toEqual(before);
      await bench.clock.advance(HOUR);
      expect((await bench.read("t")).items).toEqual([]);
      expect(await bench.store.claims.next(QUEUE)).toEqual(new Map());
    });

    it("forgets on resume who paused it and why", async () => {
      await bench.put({ id: "t" });
      await bench.store.tasks.pause(bench.name("t"), "ann", "maintenance");
      await bench.store.tasks.resume(bench.name("t"), "skip");
      await bench.store.tasks.pause(bench.name("t"));
      expect((await bench.stored("t")).paused).toEqual({ at: START });
    });

    it("a put that was planned before the resume does not pause it again", async () => {
      await bench.put({ id: "t" });
      await bench.store.tasks.pause(bench.name("t"));
      const resume = () => bench.store.tasks.resume(bench.name("t"), "skip");
      // The first script of the put reads the task, the second one writes it.
      bench.before("put", async () => bench.before("put", resume));
      expect(await bench.put({ id: "t", priority: 1 })).toMatchObject({ state: "scheduled" });
      expect(await bench.stored("t")).toMatchObject({ state: "scheduled", definition: { priority: 1 } });
    });

    it("answers if there is nothing to pause or resume", async () => {
      await bench.put({ id: "over", schedule: { at: START - 1 } });
      await bench.put({ id: "on" });
      expect(await bench.store.tasks.pause(bench.name("none"))).toBe("MISSING");
      expect(await bench.store.tasks.pause(bench.name("over"))).toBe("FINISHED");
      expect(await bench.store.tasks.resume(bench.name("none"), "skip")).toBe("MISSING");
      expect(await bench.store.tasks.resume(bench.name("on"), "skip")).toBe("UNCHANGED");
    });

    it("a resume that skips skips owed times as one range", async () => {
      await bench.put({ id: "t", catchUp: "all" });
      await bench.store.tasks.pause(bench.name("t"));
      await bench.clock.set(START + HOUR + 5_000);
      expect(await bench.store.tasks.resume(bench.name("t"), "skip", "ann")).toBe("OK");
      expect(await ledger("t")).toEqual([
        {
          reason: "paused",
          from: START + 10_000,
          to: START + HOUR,
          decisions: 1,
          at: START + HOUR + 5_000,
          by: "ann",
        },
      ]);
      expect(await bench.stored("t")).toMatchObject({
        state: "scheduled",
        cursor: START + HOUR,
        nominal: START + HOUR + 10_000,
        due: START + HOUR + 10_000,
        paused: undefined,
      });
      await bench.clock.set(START + HOUR + 10_000);
      expect(await bench.claim("t", "a")).toEqual(["OK"]);
      expect(await nominals()).toEqual([HOUR + 10_000]);
    });

    it("superseded pending occurrences are not merged with skips between them", async () => {
      await bench.put({ id: "t", overlap: "queue-all" });
      for (const seconds of [10, 100, 200]) {
        await bench.clock.set(START + seconds * 1_000);
        await bench.claim("t", `k${seconds}`);
      }
      await bench.put({ id: "t", overlap: "cancel-running" });
      await bench.clock.set(START + 210_000);
      await bench.claim("t", "last");
      const told = (await ledger("t")).map(({ reason, from, to }) => [
        reason,
        (from - START) / 1_000,
        (to - START) / 1_000,
      ]);
      expect(told).toEqual([
        ["superseded", 200, 200],
        ["superseded", 100, 100],
        ["missed", 110, 190],
        ["missed", 20, 90],
      ]);
    });

    it("keeps the newest 50 ledger entries", async () => {
      await bench.put({ id: "t", overlap: "allow" });
      for (let i = 0; i < 53; i++) {
        await bench.store.tasks.pause(bench.name("t"));
        await bench.clock.advance(10_000);
        await bench.store.tasks.resume(bench.name("t"), "skip");
        await bench.clock.advance(10_000);
        expect(await bench.claim("t", `k${i}`)).toEqual(["OK"]);
      }
      const kept = Array.from({ length: 50 }, (_, i) => START + 10_000 + (52 - i) * 20_000);
      expect((await ledger("t")).map(({ from }) => from)).toEqual(kept);
    });

    it("a resume that skips leaves no ledger entry if nothing is owed", async () => {
      await bench.put({ id: "t" });
      await bench.store.tasks.pause(bench.name("t"));
      await bench.clock.advance(9_999);
      await bench.store.tasks.resume(bench.name("t"), "skip");
      expect(await ledger("t")).toEqual([]);
      expect(await bench.stored("t")).toMatchObject({ state: "scheduled", due: START + 10_000 });
    });

    it("a resume with catch-up keeps times owed", async () => {
      await bench.put({ id: "t", catchUp: "all", overlap: "allow" });
      await bench.store.tasks.pause(bench.name("t"));
      await bench.clock.advance(35_000);
      expect(await bench.store.tasks.resume(bench.name("t"), "catch-up")).toBe("OK");
      for (const token of ["a", "b", "c"]) expect(await bench.claim("t", token)).toEqual(["OK"]);
      expect((await bench.read("t")).items).toEqual([]);
      expect(await nominals()).toEqual([10_000, 20_000, 30_000]);
      expect(await ledger("t")).toEqual([]);
    });

    it("a single time that passed in the pause is finished from now, and run with catch-up", async () => {
      for (const id of ["now", "owed"]) {
        await bench.put({ id, schedule: { at: START + 5_000 } });
        await bench.store.tasks.pause(bench.name(id));
      }
      await bench.clock.advance(60_000);
      await bench.store.tasks.resume(bench.name("now"), "skip");
      expect(await bench.stored("now")).toMatchObject({
        state: "finished",
        cursor: START + 5_000,
        due: undefined,
      });
      expect(await ledger("now")).toMatchObject([
        { reason: "paused", from: START + 5_000, to: START + 5_000 },
      ]);
      await bench.store.tasks.resume(bench.name("owed"), "catch-up");
      expect(await bench.claim("owed", "a")).toEqual(["OK"]);
      expect(await nominals()).toEqual([5_000]);
    });

    it("queued runs continue while the task is paused", async () => {
      await bench.put({ id: "t" });
      await bench.clock.advance(10_000);
      await bench.claim("t", "a");
      await bench.store.tasks.pause(bench.name("t"));
      const [run] = await bench.store.runs.list(bench.name("t"), 10);
      expect(run).toMatchObject({ state: "queued" });
      expect(await bench.begin("t", run?.id as string)).toMatchObject({
        word: "OK",
      });
    });
  });

  describe("trigger", () => {
    it("adds a manual occurrence and leaves the schedule unchanged", async () => {
      await bench.put({ id: "t", payload: { a: 1 } });
      await bench.clock.advance(3_000);
      const before = await bench.stored("t");
      const result = await bench.trigger("t", "tok");
      const after = await bench.stored("t");
      expect(after).toEqual({
        ...before,
        hasOpenRuns: true,
        generation: String(Number(before.generation) + 1),
      });
      const [job, ...others] = await bench.jobs();
      expect(others).toEqual([]);
      expect(result).toMatchObject({ outcome: "enqueued", run: job?.id, enqueued: START + 3_000 });
      expect(job?.data).toEqual({
        payload: { a: 1 },
        occurrence: {
          key: "key-tok",
          task: "t",
          owner: "system",
          queue: QUEUE,
          nominal: START + 3_000,
          due: START + 3_000,
          enqueued: START + 3_000,
          generation: Number(after.generation),
          trigger: "manual",
          run: job?.id,
        },
      });
      // The scheduled occurrence still comes, once.
      await bench.workAll();
      await bench.clock.advance(7_000);
      expect(await bench.claim("t", "a")).toEqual(["OK"]);
      expect(await nominals()).toEqual([3_000, 10_000]);
    });

    it("obeys the overlap policy, unless told otherwise", async () => {
      await bench.put({ id: "t" });
      expect(await bench.trigger("t", "a")).toMatchObject({ outcome: "enqueued" });
      const { generation: _, ...before } = await bench.stored("t");
      expect(await bench.trigger("t", "b")).toMatchObject({ outcome: "skipped", reason: "overlap" });
      expect(await bench.stored("t")).toMatchObject(before);
      expect(await bench.store.runs.ledger(bench.name("t"))).toMatchObject([
        { reason: "manual-overlap", from: START, to: START, run: expect.stringMatching(/^t@/) },
      ]);
      expect(await bench.trigger("t", "c", "allow")).toMatchObject({ outcome: "enqueued" });
      expect(await bench.jobs()).toHaveLength(2);
      await bench.put({ id: "free", overlap: "allow" });
      expect(await bench.trigger("free", "d")).toMatchObject({ outcome: "enqueued" });
      expect(await bench.trigger("free", "e", "skip")).toMatchObject({
        outcome: "skipped",
        reason: "overlap",
      });
      expect(await bench.trigger("free", "f")).toMatchObject({ outcome: "enqueued" });
    });

    describe("with a payload of its own", () => {
      const trigger = (token: string, payload: Json) =>
        bench.store.claims.trigger(bench.name("t"), { key: token, token, node: "n" }, undefined, { payload });

      it("gives it to one run, at once or when the run in its way is over", async () => {
        // As if it were fields of the run's record, which scripts find by their text.
        const odd = { minGap: 60_000, due: 1, trigger: "retry", list: [], none: {}, text: '"minGap":5' };
        const schedule = { at: START + HOUR };
        await bench.put({ id: "t", overlap: "queue-all", schedule, payload: { a: 1 } });
        expect(await trigger("a", null)).toMatchObject({ outcome: "enqueued" });
        expect(await trigger("b", odd)).toMatchObject({ outcome: "queued" });
        expect(await bench.trigger("t", "c")).toMatchObject({ outcome: "queued" });
        await bench.put({ id: "t", overlap: "queue-all", schedule, payload: { a: 2 } });
        const worked: unknown[] = [];
        for (const token of ["d", "e", "f"]) {
          await bench.workAll(async ({ data }) => worked.push(data.payload));
          await bench.clock.advance(HOUR / 2);
          await bench.store.runs.reconcile(QUEUE);
          expect(await bench.claim("t", token)).toEqual(["OK"]);
        }
        const read = await bench.store.runs.list(bench.name("t"), 10);
        const byEnqueued = read.sort((a, b) => a.enqueued - b.enqueued);
        expect(byEnqueued.map(({ trigger, due, payload }) => [trigger, due - START, payload])).toEqual([
          ["manual", 0, null],
          ["manual", 0, odd],
          ["manual", 0, undefined],
          ["schedule", HOUR, undefined],
        ]);
        await bench.workAll(async ({ data }) => worked.push(data.payload));
        expect(worked).toEqual([null, odd, { a: 2 }, { a: 2 }]);
      });

      it("keeps the start of a long one in the record, and lets no more wait than fits", async () => {
        const long = { text: "x".repeat(200_000) };
        await bench.put({ id: "t", overlap: "queue-all" });
        await trigger("a", long);
        expect((await bench.jobs()).map(({ data }) => data.payload)).toEqual([long]);
        expect(await bench.store.runs.list(bench.name("t"), 1)).toMatchObject([
          { payload: { cut: true, length: 200_011 } },
        ]);
        expect(await trigger("b", long)).toMatchObject({ outcome: "queued" });
        const before = await bench.stored("t");
        await expect(trigger("c", long)).rejects.toMatchObject({
          code: "PAYLOAD_TOO_LARGE",
          field: "payload",
        });
        expect(await bench.stored("t")).toEqual(before);
        expect(await trigger("d", { a: 1 })).toMatchObject({ outcome: "queued" });
      });
    });

    it("works while the task is paused or finished, and changes neither", async () => {
      await bench.put({ id: "paused", enabled: false });
      await bench.put({ id: "over", schedule: { at: START - 1 } });
      expect(await bench.trigger("paused", "a")).toMatchObject({ outcome: "enqueued" });
      expect(await bench.trigger("over", "b")).toMatchObject({ outcome: "enqueued" });
      expect(await bench.stored("paused")).toMatchObject({ state: "paused" });
      expect(await bench.stored("over")).toMatchObject({ state: "finished" });
      // Nodes have no check for them either: only the run, and what lingers, are left to check.
      expect([...(await bench.store.claims.next(QUEUE)).keys()]).toEqual(["r"]);
    });

    it("fails for a task that does not exist", async () => {
      await expect(bench.trigger("none", "a")).rejects.toMatchObject({ code: "TASK_NOT_FOUND" });
      expect(await bench.ownKeys()).toEqual([]);
    });

    it("adds one job for the same run id", async () => {
      await bench.put({ id: "t", overlap: "allow" });
      const first = await bench.trigger("t", "same");
      const before = await bench.dump();
      expect(await bench.trigger("t", "same")).toEqual(first);
      expect(await bench.dump()).toEqual(before);
    });

    it("runs a task that must not overlap once if called 20 times at once", async () => {
      await bench.put({ id: "t" });
      const results = await Promise.all(Array.from({ length: 20 }, (_, i) => bench.trigger("t", `t${i}`)));
      expect(results.filter(({ outcome }) => outcome === "enqueued")).toHaveLength(1);
      expect(await bench.jobs()).toHaveLength(1);
    });
  });

  describe("delete", () => {
    it("deletes the task, its runs, its jobs and its ledger, and keeps only its definition for a while", async () => {
      await bench.put({ id: "stays", tags: ["x"] });
      await bench.clock.advance(10_000);
      await bench.claimAll("s");
      const queue = bench.queue();
      const counter = await queue.getJobCounts();
      const { [`{${bench.store.namespace}}:queues`]: _, ...before } = pickOwn(await bench.dump());

      await bench.clock.advance(10_000);
      await bench.put({ id: "t", tags: ["x", "y"], overlap: "skip" });
      await bench.clock.advance(10_000);
      await bench.claim("t", "a");
      await bench.clock.advance(10_000);
      await bench.claim("t", "b");
      await bench.trigger("t", "c", "allow");
      expect(await ledger("t")).toHaveLength(1);
      expect(await bench.store.tasks.delete(bench.name("t"))).toBe(true);
      const { [`{${bench.store.namespace}}:queues`]: __, ...after } = pickOwn(await bench.dump());
      expect(after).toEqual(before);
      expect(await queue.getJobCounts()).toEqual(counter);
      expect(await bench.store.tasks.delete(bench.name("t"))).toBe(false);
    });

    function pickOwn(all: Record<string, unknown>): Record<string, unknown> {
      return Object.fromEntries(
        Object.entries(all).filter(([key]) => !/\}:bells:|~skips$|~asked:|~deleted($|:)|~revs:/.test(key)),
      );
    }

    it("leaves a job that a worker holds to the reconciler", async () => {
      await bench.put({ id: "t" });
      await bench.clock.advance(10_000);
      await bench.claim("t", "a");
      const [run] = await bench.store.runs.list(bench.name("t"), 1);
      await bench.workAll(async () => {
        await bench.store.tasks.delete(bench.name("t"));
        expect(await bench.jobs()).toHaveLength(1);
        // Its queue stays registered, or no node would ever check it.
        expect(await bench.store.registry.queues()).toEqual([QUEUE]);
        await bench.clock.advance(5_000);
        expect((await bench.store.runs.reconcile(QUEUE)).seen).toEqual([]);
      });
      await bench.clock.advance(5_000);
      expect((await bench.store.runs.reconcile(QUEUE)).seen).toEqual([[run?.id, "removed"]]);
      expect(await bench.jobs()).toEqual([]);
      expect(await bench.store.registry.forgetIfEmpty(QUEUE)).toBe(true);
      expect(await bench.ownKeys()).toEqual([]);
    });

    it("stops queued jobs from starting, even if the task is put again", async () => {
      await bench.put({ id: "t" });
      await bench.clock.advance(10_000);
      await bench.claim("t", "a");
      const [run] = await bench.store.runs.list(bench.name("t"), 1);
      await bench.store.tasks.delete(bench.name("t"));
      await bench.clock.advance(1);
      await bench.put({ id: "t" });
      expect(await bench.begin("t", run?.id as string)).toEqual({ word: "GONE" });
      const end = { fence: 1, outcome: "failed", error: "no" } as const;
      expect(await bench.store.runs.settle(bench.name("t"), run?.id as string, end)).toBe("GONE");
      expect(await bench.store.runs.list(bench.name("t"), 10)).toEqual([]);
    });

    it("keeps a new task apart from an interrupted delete of the same name", async () => {
      await bench.put({ id: "t", overlap: "allow" });
      for (const token of ["a", "b"]) await bench.trigger("t", token);
      await bench.workAll();
      await bench.clock.advance(60_000);
      await bench.reconcile();
      for (const token of ["c", "d"]) await bench.trigger("t", token);
      const queued = await bench.store.runs.open(bench.name("t"));
      await bench.cutOff("clear-runs", () => bench.store.tasks.delete(bench.name("t")));

      await bench.put({ id: "t" });
      expect(await bench.store.runs.list(bench.name("t"), 10)).toEqual([]);
      for (const id of queued) {
        expect(await bench.begin("t", id)).toEqual({ word: "GONE" });
      }
      await expect(bench.trigger("t", "e", "skip")).resolves.toMatchObject({ outcome: "enqueued" });
      // A node clears the rest.
      await bench.clock.advance(10_000);
      expect(await bench.store.runs.reconcile(QUEUE)).toMatchObject({ cleared: true });
      const open = await bench.store.runs.open(bench.name("t"));
      expect((await bench.jobs()).map(({ id }) => id)).toEqual(open);
      const left = (await bench.ownKeys()).filter((key) => /~(gone|r):/.test(key));
      expect(left).toEqual([
        internalsOf(bench.store)
          .keys.queue(QUEUE)
          .run(open[0] as string),
      ]);
    });

    it.each([
      ["put", (id: string) => bench.put({ id, overlap: "allow" })],
      [
        "enqueued",
        (id: string) => {
          const schedule = { at: new Date(START).toISOString() };
          const parsed = parseTask({ id, type: "noop", queue: QUEUE, schedule });
          return bench.store.claims.enqueueNow(parsed, { key: "k", token: "new", node: "n" }, ENTERED);
        },
      ],
    ])("leaves none of many open runs to a task of the same name that is %s", async (_how, again) => {
      await bench.put({ id: "t", overlap: "allow" });
      await bench.trigger("t", "a");
      await bench.trigger("t", "b");
      const { link, keys } = internalsOf(bench.store);
      const { open, run } = keys.queue(QUEUE);
      const many = Array.from({ length: 1_300 }, (_, i) => `t@many.${String(i).padStart(4, "0")}`);
      for (const id of many) {
        await link.ask((client) => client.zadd(open("system/t"), START + 1, id));
        await link.ask((client) =>
          client.hset(run(id), { state: "queued", of: `system/t ${START} n`, info: '{"type":"noop"}' }),
        );
      }
      await bench.cutOff("clear-runs", () => bench.store.tasks.delete(bench.name("t")));
      // The task cannot be created while that cannot be cleared.
      await bench.cutOff("clear-runs", () => again("t"));

      await again("t");
      for (const id of [many[0], many.at(-1)] as string[]) {
        expect(await bench.begin("t", id)).toEqual({ word: "GONE" });
      }
      const ended = { fence: 1, outcome: "succeeded" } as const;
      expect(await bench.store.runs.settle(bench.name("t"), many.at(-1) as string, ended)).toBe("GONE");
      expect(await bench.store.runs.stats(bench.name("t"))).toEqual({});
      expect((await bench.ownKeys()).filter((key) => key.includes(":~r:t@many"))).toEqual([]);
    });

    it("clears a thousand runs", async () => {
      await bench.put({ id: "t", overlap: "allow", catchUp: "all", schedule: { every: "1s" } });
      await bench.clock.advance(450_000);
      for (let i = 0; i < 450; i++) await bench.claim("t", `k${i}`);
      expect(await bench.jobs()).toHaveLength(450);
      await bench.store.tasks.delete(bench.name("t"));
      expect(await bench.jobs()).toEqual([]);
      expect(await bench.ownKeys()).toEqual([]);
    });

    it("a new task's generation and fence are above those of the deleted one", async () => {
      await bench.put({ id: "t", overlap: "allow" });
      const fences: number[] = [];
      const generations: number[] = [];
      for (let life = 0; life < 3; life++) {
        for (let n = 0; n < 3; n++) {
          fences.push((await bench.begun("t", await bench.run("t", `l${life}n${n}`))).fence);
          generations.push(Number((await bench.stored("t")).generation));
        }
        await bench.store.tasks.delete(bench.name("t"));
        await bench.clock.advance(1);
        await bench.put({ id: "t", overlap: "allow" });
      }
      for (const series of [fences, generations]) {
        expect(series).toEqual([...new Set(series)].sort((a, b) => a - b));
      }
    });
  });

  it("removes an edited task from the index of a tag that it lost", async () => {
    const tagged = async (tag: string) =>
      internalsOf(bench.store).link.client.zrange(
        internalsOf(bench.store).keys.queue(QUEUE).tagged(tag),
        0,
        "-1",
      );
    await bench.put({ id: "t", tags: ["a", "b"] });
    await bench.put({ id: "u", tags: ["b"] });
    await bench.put({ id: "t", tags: ["b", "c"] });
    expect([await tagged("a"), await tagged("b"), await tagged("c")]).toEqual([
      [],
      ["system/t", "system/u"],
      ["system/t"],
    ]);
    await bench.put({ id: "t" });
    await bench.store.tasks.delete(bench.name("u"));
    expect((await bench.ownKeys()).filter((key) => key.includes(":~tag:"))).toEqual([]);
    expect(shardOf("system/t")).toBe(7);
  });
});
