import { Client, defineTask, type Run, type TaskInput } from "@carillon/sdk";
import { beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { eachKit } from "../../../../test/each-kit.js";
import { type AnswerTo, type InputTo, operatorOf } from "../operator.js";

const START = Date.parse("2026-01-01T00:00:00Z");
const [MINUTE, HOUR, DAY] = [60_000, 3_600_000, 86_400_000];
const GOOD = ["succeeded", "partial", "nothing-to-do"];
const BAD = ["failed", "timed-out", "crashed", "lost"];

type Row = AnswerTo<"runs.trends">["rows"][number];

/** Length of the handler's run in ms; an error: it fails. */
let course: (id: string, nominal: number) => number | Error;
const types = ["bells", "gongs"].map((queue) =>
  defineTask(`ring-${queue}`, {
    queue,
    payload: z.looseObject({}),
    handler: async (_, { occurrence: { task, nominal } }) => {
      const is = course(task, nominal);
      if (is instanceof Error) throw is;
      await kit.sleep(is);
    },
  }),
);

/** Figures of runs, and of skips by their nominal time, counted one by one. */
function plain(runs: readonly Run[], skips: number): Row["figures"] {
  const took = runs
    .filter(({ outcome }) => GOOD.includes(outcome!))
    .map(({ started, finished }) => finished! - started!);
  // The least one that so many of all do not exceed.
  const least = (percent: number) =>
    Math.min(...took.filter((ms) => 100 * took.filter((one) => one <= ms).length >= percent * took.length));
  const [good, bad] = [GOOD, BAD].map((of) => runs.filter(({ outcome }) => of.includes(outcome!)).length);
  return {
    runs: runs.length,
    ...(good! + bad! > 0 && { share: good! / (good! + bad!) }),
    ...(took.length > 0 && { p50: least(50), p95: least(95) }),
    late: runs.filter(({ lateMs = 0, waitMs = 0 }) => lateMs >= 1_000 || waitMs >= MINUTE).length,
    skipped: skips,
  };
}

const { kit } = eachKit({ types, start: START });

describe("trends", () => {
  beforeEach(() => {
    course = () => 1_000;
  });
  const ops = (owner?: string) =>
    operatorOf(owner === undefined ? kit.client : new Client({ store: kit.store, owner }));
  const put = (owner: string, id: string, more: Partial<TaskInput> = {}, queue = "bells") =>
    kit.client.put({
      ...{ owner, id, queue, type: `ring-${queue}`, schedule: { every: "1h" }, payload: {} },
      ...more,
    });
  const nameOf = ({ task, owner, queue, tag }: Row) => owner ?? queue ?? tag ?? `${task?.owner}/${task?.id}`;
  const trends = async (input: InputTo<"runs.trends"> = {}, owner?: string) =>
    ops(owner).runs.trends({ from: kit.now - 2 * HOUR, ...input });
  const rows = async (input?: InputTo<"runs.trends">) =>
    Object.fromEntries((await trends(input)).rows.map((row) => [nameOf(row), row]));

  it("are what a plain count of the same runs gives, by task, owner, queue and tag", async () => {
    // Repeats: no two times are alike, and each run differs from the one before it.
    let seed = 11;
    const random = () => {
      seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
      return seed / 2 ** 31;
    };
    course = () => (random() < 0.15 ? new Error("no paper") : Math.floor(random() ** 5 * 25 * MINUTE));
    const tasks = [
      ["acme", "a", "bells", ["red"]],
      ["acme", "b", "gongs", ["red", "blue"]],
      ["beta", "c", "bells", []],
    ] as const;
    for (const [owner, id, queue, tags] of tasks)
      await put(owner, id, { tags: [...tags], schedule: { every: "15m" } }, queue);
    await kit.advance("9h");
    kit.worker.pause();
    await kit.advance("17m");
    kit.worker.resume();
    await kit.advanceTo(START + 16 * HOUR);

    const [from, to] = [START + 8 * HOUR, START + 16 * HOUR];
    const known = await Promise.all(
      tasks.map(async ([owner, id, queue, tags]) => {
        const { runs, skips, cut } = await kit.history({ owner, id, queue });
        return { owner, task: `${owner}/${id}`, queue, tags, cut, runs, skips };
      }),
    );
    const within = (of: typeof known, first: number, last: number) => {
      const runs = of.flatMap((one) =>
        one.runs.filter(({ finished = 0 }) => finished >= first && finished < last),
      );
      // A skip for an overlap is one time, or several a quarter of an hour apart.
      const times = of.flatMap((one) =>
        one.skips.flatMap((skip) =>
          Array.from({ length: skip.occurrences }, (_, i) => skip.from + 15 * i * MINUTE),
        ),
      );
      return plain(runs, times.filter((at) => at >= first && at < last).length);
    };
    const wanted = (of: typeof known) => ({
      figures: within(of, from, to + 1),
      before: within(of, START, from),
    });
    const expected = {
      task: Object.fromEntries(known.map((one) => [one.task, wanted([one])])),
      owner: { acme: wanted(known.slice(0, 2)), beta: wanted(known.slice(2)) },
      queue: { bells: wanted([known[0]!, known[2]!]), gongs: wanted([known[1]!]) },
      tag: { red: wanted(known.slice(0, 2)), blue: wanted([known[1]!]), "": wanted([known[2]!]) },
    };
    expect(known.map(({ cut }) => cut)).toEqual([false, false, false]);
    for (const by of ["task", "owner", "queue", "tag"] as const) {
      const found = await trends({ by, from });
      expect(found).toMatchObject({ start: START, from, to, more: 0, deploys: [] });
      const figures = Object.fromEntries(found.rows.map((row) => [nameOf(row), row]));
      expect(Object.keys(figures).sort()).toEqual(Object.keys(expected[by]).sort());
      expect(figures).toMatchObject(expected[by]);
    }
    // The comparison is one of something.
    const { figures, before } = expected.owner.acme;
    for (const one of [figures, before]) {
      expect(one.runs).toBeGreaterThan(45);
      expect(one.skipped).toBeGreaterThan(0);
      expect(one.share).toBeLessThan(0.95);
      expect(one.p95).toBeGreaterThan(one.p50! * 2);
    }
    expect([figures.late > 0, before.late]).toEqual([true, 0]);
  });

  it("are sorted by a figure or its difference, worst first, and cut", async () => {
    course = (id, nominal) => {
      const isLater = nominal > START + 4 * HOUR;
      if (id === "fails" && isLater) return new Error("no paper");
      return id === "slow" ? (isLater ? 9 * MINUTE : MINUTE) : id === "long" ? 20 * MINUTE : 1_000;
    };
    for (const id of ["fails", "slow", "long", "fine"]) await put("acme", id, { schedule: { every: "30m" } });
    await kit.advance("8h");
    const sorted = async (input: InputTo<"runs.trends">) =>
      (await trends({ from: START + 4.25 * HOUR, ...input })).rows.map((row) => row.task?.id).join(" ");
    expect(await sorted({ sort: "p95" })).toBe("long slow fine fails");
    expect(await sorted({ sort: "p95", reverse: true })).toBe("fine slow long fails");
    expect(await sorted({ sort: "p95", change: true })).toMatch(/^slow .* fails$/);
    expect(await sorted({ sort: "share", change: true })).toMatch(/^fails /);
    expect(await sorted({ sort: "name" })).toBe("fails fine long slow");
    expect(await trends({ from: START + 4 * HOUR, limit: 3 })).toMatchObject({
      rows: { length: 3 },
      more: 1,
    });
  });

  it("compare no task whose records do not reach back, and leave it out of groups", async () => {
    course = (id, nominal) => (id === "rare" && nominal === START + HOUR ? new Error("no ink") : 1_000);
    const every = { schedule: { every: "10m" } };
    await put("acme", "whole", every);
    await put("acme", "few", { ...every, retention: { successes: 5 } });
    // Its failure is deleted for its age: what it has is whole from that age on.
    await put("beta", "rare", { retention: { failuresFor: "5h" } });
    await put("beta", "short", { ...every, retention: { successesFor: "3h" } });
    await kit.advance("7h");
    const { runs } = await kit.history({ owner: "beta", id: "rare" });
    expect(runs.map(({ outcome }) => outcome)).not.toContain("failed");
    // A limit that is raised brings no record back.
    await put("acme", "few", { ...every, retention: { successes: 1_000 } });
    await put("beta", "short", { ...every, retention: { successesFor: "7d" } });
    const tasks = await rows();
    expect(tasks["acme/whole"]).toMatchObject({ compared: 1, figures: { runs: 12 }, before: { runs: 12 } });
    expect(tasks["beta/rare"]).toMatchObject({ compared: 1, before: { runs: 2, share: 1 } });
    for (const [id, most] of [
      ["acme/few", 5],
      ["beta/short", 12],
    ] as const) {
      const { compared, since, before, figures } = tasks[id]!;
      expect([compared, before]).toEqual([0, undefined]);
      expect(since).toBeGreaterThan(START + 3 * HOUR);
      expect(figures.runs).toBe(most);
    }
    const owners = await rows({ by: "owner" });
    expect(owners["acme"]).toMatchObject({
      ...{ tasks: 2, compared: 1, figures: tasks["acme/whole"]!.figures },
      before: tasks["acme/whole"]!.before,
    });
    expect(owners["acme"]!.since).toBeUndefined();
    // A day on, all of its records are new ones.
    await kit.advance("4h");
    expect((await rows())["acme/few"]).toMatchObject({ compared: 1, before: { runs: 12 } });
  });

  it("count no failure that is older than the successes that are kept", async () => {
    course = (_, nominal) => (nominal <= START + 150 * MINUTE ? new Error("no paper") : 1_000);
    await put("acme", "few", { schedule: { every: "10m" }, retention: { successes: 3 } });
    await kit.advance("4h");
    expect((await rows())["acme/few"]).toMatchObject({ compared: 0, figures: { runs: 3, share: 1 } });
  });

  it("name the sets that were applied, and their versions", async () => {
    const apply = async (version: string) => {
      const task = { owner: "acme", id: "a", type: "ring-bells", queue: "bells", payload: { version } };
      await ops().sets.apply(
        { set: "crew", version, tasks: [{ ...task, schedule: { every: "10m" } }] },
        { by: "ann" },
      );
    };
    await apply("1");
    const { from, start, to } = await ops().runs.trends();
    expect([to - from, from - start]).toEqual([7 * DAY, 7 * DAY]);
    await kit.advance("3h");
    await apply("2");
    const at = kit.now;
    await kit.advance("2h");
    const { deploys, rows } = await trends();
    expect(deploys).toEqual([{ id: expect.any(String), at, set: "crew", version: "2", by: "ann" }]);
    expect(rows).toHaveLength(1);
  });

  it("are those of its owner for a caller that is bound to one, and of a filter", async () => {
    await put("acme", "a", { tags: ["red"] });
    await put("beta", "b", {}, "gongs");
    await kit.advance("4h");
    const names = async (input: InputTo<"runs.trends">, owner?: string) =>
      (await trends(input, owner)).rows.map(nameOf);
    expect(await names({}, "acme")).toEqual(["acme/a"]);
    expect(await names({ by: "owner" }, "acme")).toEqual(["acme"]);
    expect(await names({ queue: "gongs" })).toEqual(["beta/b"]);
    expect(await names({ tag: "red" })).toEqual(["acme/a"]);
    await expect(trends({ from: kit.now })).rejects.toMatchObject({ code: "INVALID_OPTION", field: "from" });
    await expect(trends({ owner: "beta" }, "acme")).rejects.toMatchObject({ code: "FORBIDDEN" });
  });

  it("count tasks that were only skipped", async () => {
    await put("acme", "a");
    await ops().freezes.put({ owner: "acme" });
    await kit.advance("4h");
    expect(await rows()).toMatchObject({
      "acme/a": { figures: { runs: 0, skipped: expect.any(Number) }, before: { runs: 0 } },
    });
  });
});
