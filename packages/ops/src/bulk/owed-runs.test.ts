import { CarillonError } from "@carillon/core";
import { defineTask } from "@carillon/sdk";
import { internalsOf } from "@carillon/store/internal";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { eachKit } from "../../../../test/each-kit.js";

const QUEUE = "bells";
const START = Date.parse("2026-01-01T00:00:00Z");
const MINUTE = 60_000;

const ring = defineTask("ring", { queue: QUEUE, payload: z.looseObject({}), handler: () => {} });

describe("a resume that runs what is owed", () => {
  const { kit, ops } = eachKit({ types: [ring], start: START });

  const all = (missed: "all" | "latest" = "all") =>
    ops.tasks.resumeMany({ queue: QUEUE, missed, perMinute: 6_000 });
  /** Nominal minutes of a task's runs, in order. */
  const nominals = async (id: string) =>
    (await kit.client.runs.list(id, { limit: 1_000 }))
      .map(({ nominal }) => (nominal - START) / MINUTE)
      .sort((a, b) => a - b);
  const skipped = async (id: string) =>
    (await kit.client.runs.skips(id)).map(({ reason, from, to }) => [
      reason,
      (from - START) / MINUTE,
      (to - START) / MINUTE,
    ]);
  const every10 = (from: number, to: number) =>
    Array.from({ length: (to - from) / 10 + 1 }, (_, i) => from + 10 * i);

  /** Tasks that owe 12 occurrences each, at the minutes 10 to 120. */
  async function paused(count: number): Promise<string[]> {
    const ids = Array.from({ length: count }, (_, n) => `t${n}`);
    for (const id of ids)
      await kit.client.put({
        id,
        type: "ring",
        queue: QUEUE,
        schedule: { every: "10m" },
        overlap: "allow",
        catchUp: "all",
      });
    await ops.tasks.pauseMany({ queue: QUEUE, note: "INC-43" });
    await kit.advance("2h5m");
    return ids;
  }

  it("asked for by two at one instant runs each owed occurrence once, and tells both of it", async () => {
    const ids = await paused(8);
    const answers = await Promise.all([all(), all()]);
    const batches = answers.map(({ batch }) => batch);
    const counts = answers.map(({ count }) => count);
    expect(counts.reduce((sum, count) => sum + count)).toBe(8);
    for (const [i, { replayed }] of answers.entries()) {
      const others = 8 - (counts[i] ?? 0);
      const batch = batches[1 - i];
      const by = others > 0 && { count: others, total: others * 12, batches: [batch] };
      expect(replayed).toEqual(by || undefined);
    }
    await kit.advance("1m");
    for (const id of ids) expect(await nominals(id)).toEqual(every10(10, 120));
    expect((await ops.backfills.list({ state: "cancelled" })).backfills).toEqual([]);
    // A repetition resumes nothing, and says so.
    expect(await all()).toMatchObject({ count: 0, replayed: { count: 8, total: 96 } });
    const manual = { type: "ring", queue: QUEUE, schedule: { manual: true } } as const;
    await kit.client.putMany(ids.map((id) => ({ id, ...manual })));
    expect(await all()).toMatchObject({ count: 0, replayed: { count: 8, total: 96 } });
    await kit.advance("1d");
    expect(await all()).not.toHaveProperty("replayed");
  });

  it("is found by a repetition with the same conditions only", async () => {
    await paused(2);
    await kit.client.put({ id: "other", type: "ring", queue: QUEUE, schedule: { every: "1d" } });
    const { batch } = await all();
    const replayed = { count: 2, total: 24, batches: [batch] };
    const resume = async (input: object) => (await ops.tasks.resumeMany(input)).replayed;
    expect(await resume({ note: "INC-43", missed: "skip" })).toEqual(replayed);
    expect(await resume({ queue: QUEUE, dryRun: true })).toEqual(replayed);
    expect(await resume({ tasks: ["t1"] })).toEqual({ ...replayed, count: 1, total: 12 });
    expect(await resume({ note: "INC-44" })).toBeUndefined();
    expect(await resume({ tasks: ["other"] })).toBeUndefined();
    await ops.backfills.cancel({ id: batch as string });
    expect(await resume({ queue: QUEUE })).toBeUndefined();
  });

  /** The process that resumes dies before or after the n-th task. Returns a function that starts another one. */
  function dies(at: "before" | "after", nth: number): () => void {
    const { link } = internalsOf(kit.store);
    const run = link.run.bind(link);
    let sent = 0;
    const dead = () => new CarillonError("REDIS_UNAVAILABLE", "the process died.");
    link.run = async (script, keys, args) => {
      if (script.name !== "resume") return run(script, keys, args);
      sent += 1;
      const last = sent === nth;
      if (sent > nth || (last && at === "before")) throw dead();
      const answer = await run(script, keys, args);
      if (last) throw dead();
      return answer;
    };
    return () => {
      link.run = run;
    };
  }

  describe.each([
    ["before", 2],
    ["after", 2],
  ] as const)("whose process dies %s its script %i", (at, nth) => {
    it.each(["all", "latest", "catch-up", "skip"] as const)(
      "and that is repeated with missed %s neither loses nor doubles an occurrence",
      async (missed) => {
        const ids = await paused(3);
        const revive = dies(at, nth);
        await expect(all()).rejects.toMatchObject({ code: "REDIS_UNAVAILABLE" });
        revive();
        // Nodes go on meanwhile.
        await kit.advance("1s");
        const resumed = at === "after" ? nth : nth - 1;
        const replays = missed === "all" || missed === "latest";
        const { count } = replays ? await all(missed) : await ops.tasks.resumeMany({ queue: QUEUE, missed });
        expect(count).toBe(3 - resumed);
        await kit.advance("2m");
        const times = { all: every10(10, 120), latest: [120], "catch-up": every10(10, 120), skip: [] }[
          missed
        ];
        let [first, then] = [0, 0];
        for (const id of ids) {
          const ran = await nominals(id);
          if (ran.length === 12 && missed !== "all") first += 1;
          else then += 1;
          if (ran.length !== 12 || missed === "all") expect(ran).toEqual(times);
          else expect(ran).toEqual(every10(10, 120));
        }
        if (missed === "latest" || missed === "skip") expect([first, then]).toEqual([resumed, 3 - resumed]);
      },
    );
  });

  it("raced by a resume of another rule is decided once", async () => {
    const ids = await paused(20);
    const [mine, other] = await Promise.all([all(), ops.tasks.resumeMany({ queue: QUEUE, missed: "skip" })]);
    expect(mine.count + other.count).toBe(20);
    await kit.advance("4m");
    let ran = 0;
    for (const id of ids) {
      const its = await nominals(id);
      expect([every10(10, 120), []]).toContainEqual(its);
      if (its.length > 0) ran += 1;
      expect(await skipped(id)).toEqual([["paused", 10, 120]]);
    }
    expect(ran).toBe(mine.count);
  });

  /** Acts when the call has counted what is owed, before its first resume. */
  function beforeResume(act: () => Promise<unknown>): void {
    const { tasks } = kit.store;
    const { resume } = tasks;
    tasks.resume = async (...args) => {
      tasks.resume = resume;
      await act();
      return resume.apply(tasks, args);
    };
  }

  it("leaves a task alone that another client resumes meanwhile", async () => {
    await paused(1);
    beforeResume(() => kit.client.resume("t0"));
    expect(await all()).toMatchObject({ count: 0, refused: { count: 0 } });
    await kit.advance("1m");
    expect(await nominals("t0")).toEqual([]);
  });

  it("is refused for a task that owes something else than what was counted", async () => {
    await paused(1);
    beforeResume(async () => {
      await kit.client.resume("t0");
      await kit.client.pause("t0");
    });
    expect(await all()).toMatchObject({ count: 0, refused: { count: 1, sample: [{ code: "CONFLICT" }] } });
    expect((await ops.backfills.list()).backfills).toEqual([]);
    expect((await kit.client.get("t0")).state).toBe("paused");
  });

  it("whose requests arrive twice is answered as if they had come once", async () => {
    await paused(2);
    const { link } = internalsOf(kit.store);
    const run = link.run.bind(link);
    link.run = async (...request) => {
      await run(...request);
      return run(...request);
    };
    expect(await all()).toMatchObject({ count: 2, batch: expect.stringMatching(/^b-/) });
    link.run = run;
    await kit.advance("1m");
    for (const id of ["t0", "t1"]) expect(await nominals(id)).toEqual(every10(10, 120));
  });
});
