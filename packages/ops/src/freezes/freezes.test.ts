import { shardOf } from "@carillon/core/internal";
import { Client, defineTask } from "@carillon/sdk";
import { internalsOf } from "@carillon/store/internal";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { eachKit } from "../../../../test/each-kit.js";
import { Bench } from "../../../store/test/bench.js";
import { explained } from "../../test/in-words.js";
import { type AnswerTo, operatorOf } from "../operator.js";

const QUEUE = "bells";
const START = Date.parse("2026-01-01T00:00:00Z");
const MINUTE = 60_000;

const ring = defineTask("ring", { queue: QUEUE, payload: z.looseObject({}), handler: () => {} });
/** Fails at the first attempt of each occurrence; retries succeed. */
const failing = defineTask("failing", {
  queue: QUEUE,
  payload: z.looseObject({}),
  handler: (_payload, { occurrence }) => {
    if (occurrence.trigger !== "retry") throw new Error("no");
  },
});

const { kit, ops, redis } = eachKit({ types: [ring, failing], start: START });

const put = (id: string, more: object = {}) =>
  kit.client.put({ id, type: "ring", queue: QUEUE, schedule: { every: "1m" }, ...more });
const nominals = async (id: string) =>
  (await kit.client.runs.list(id)).map(({ nominal }) => (nominal - START) / MINUTE).sort((a, b) => a - b);

describe("a dry run", () => {
  it("counts tasks and starts until the end, of a day at most, and freezes nothing", async () => {
    await put("a", { tags: ["billing"] });
    await put("b", { owner: "acme" });
    await put("c", { owner: "acme", enabled: false });
    const until = START + 10 * MINUTE + 1;
    expect((await ops.freezes.put({ dryRun: true, owner: "acme", until })).holds).toEqual({
      ...{ tasks: 2, starts: 10, until, running: 0, warnings: [] },
    });
    expect((await ops.freezes.put({ dryRun: true, tag: "billing" })).holds).toMatchObject({
      ...{ tasks: 1, starts: 1_440 },
    });
    const windows = { schedule: { cron: "0 3 * * *" }, for: "2h" } as const;
    expect((await ops.freezes.put({ dryRun: true, all: true, ...windows })).holds).toMatchObject({
      ...{ tasks: 3, starts: 240, until: START + 300 * MINUTE },
    });
    expect((await ops.queues.pause({ queue: QUEUE, dryRun: true })).holds).toMatchObject({
      tasks: 3,
      starts: 2_880,
    });
    const silence = { owner: "acme", task: "b", until: "2100-01-01T00:00:00Z" };
    expect((await ops.silences.put({ ...silence, dryRun: true })).holds).toMatchObject({
      tasks: 1,
      warnings: [],
    });
    expect((await ops.freezes.list()).freezes).toEqual([]);
    expect((await ops.silences.list()).silences).toEqual([]);
    // A freeze that holds already hides no starts.
    await ops.freezes.put({ all: true });
    expect((await ops.freezes.put({ dryRun: true, owner: "acme", until })).holds).toMatchObject({
      starts: 10,
    });
  });

  it("warns of a scope that matches nothing, with the nearest name", async () => {
    await put("nightly", { tags: ["billing"], owner: "hooli" });
    await put("paused", { enabled: false, owner: "umbrella" });
    const until = "2100-01-01T00:00:00Z";
    const warned = async (preview: Promise<Pick<AnswerTo<"freezes.put">, "holds">>) => {
      const { tasks, starts, warnings } = (await preview).holds;
      expect([tasks, starts, warnings.length]).toEqual([0, 0, 1]);
      return warnings[0];
    };
    const { freezes, silences } = ops;
    const told = (message: string, remedy: string) => ({ code: "MATCHES_NOTHING", message, remedy });
    expect(await warned(freezes.put({ dryRun: true, owner: "hoolli" }))).toEqual(
      told("No task has the owner hoolli.", "Did you mean hooli?"),
    );
    expect(await warned(freezes.put({ dryRun: true, tag: "biling" }))).toEqual(
      told("No task has the tag biling.", "Did you mean billing?"),
    );
    expect(await warned(freezes.put({ dryRun: true, queue: "bels" }))).toEqual(
      told("No task has the queue bels.", "Did you mean bells?"),
    );
    expect(await warned(freezes.put({ dryRun: true, owner: "zebra" }))).toEqual(
      told("No task has the owner zebra.", "Check the name."),
    );
    expect(await warned(freezes.put({ dryRun: true, owner: "umbrella", tag: "billing" }))).toMatchObject({
      message: "No task matches now.",
    });
    expect(await warned(silences.put({ dryRun: true, task: "nightli", until }))).toEqual(
      told("No task has the id nightli.", "Did you mean nightly?"),
    );
    // Names of other owners are not for a bound client.
    const bound = new Client({ store: kit.store, owner: "other" });
    expect(await warned(operatorOf(bound).freezes.put({ dryRun: true, tag: "biling" }))).toMatchObject({
      remedy: "Check the name.",
    });
  });
});

describe("a pause until a time", () => {
  it("holds one task, ends by itself with no node alive, and goes before its end by a resume", async () => {
    await put("a");
    await put("b");
    const { tasks, freezes } = ops;
    const until = START + 5 * MINUTE + 1;
    const ref = { queue: QUEUE, owner: "system", id: "a" };
    const dry = await freezes.put({ tasks: ["a"], until, dryRun: true });
    expect(dry).toMatchObject({ tasks: [ref], holds: { tasks: 1, starts: 5, running: 0 } });
    expect(await tasks.pause({ id: "a", until, note: "INC-7" })).toMatchObject({ changed: true });
    expect((await freezes.list()).freezes).toMatchObject([{ tasks: [ref], note: "INC-7", active: true }]);
    await kit.advance("2m");
    expect([await nominals("a"), await nominals("b")]).toEqual([[], [1, 2]]);
    // Its end is a time that every reader obeys: nobody has to act at it.
    await kit.advance("6m");
    expect(await nominals("a")).toEqual([6, 7, 8]);
    await tasks.pause({ id: "a", until: "2100-01-01T00:00:00Z" });
    expect(await tasks.resume({ id: "a" })).toEqual({ changed: true });
    expect(await tasks.resume({ id: "a" })).toEqual({ changed: false });
    await kit.advance("1m");
    expect(await nominals("a")).toEqual([6, 7, 8, 9]);
  });

  it("is refused for a missing task, tasks of several owners, too many, and other tasks than the caller's", async () => {
    await put("a");
    await put("b", { owner: "acme" });
    const { tasks, freezes } = ops;
    const code = (call: Promise<unknown>) =>
      call.then(
        () => "OK",
        ({ code, field }) => `${code} ${field}`,
      );
    expect(await code(freezes.put({ tasks: ["none"] }))).toBe("TASK_NOT_FOUND undefined");
    expect(await code(freezes.put({ tasks: ["a", "acme/b"] }))).toBe("INVALID_OPTION tasks");
    expect(await code(freezes.put({ tasks: [], all: true }))).toBe("INVALID_OPTION tasks");
    expect(await code(freezes.put({ tasks: Array(101).fill("a") }))).toBe("INVALID_OPTION tasks");
    expect(await code(freezes.put({ tasks: ["a"], all: true }))).toBe("INVALID_OPTION undefined");
    expect(await code(tasks.pause({ id: "a", until: START }))).toBe("INVALID_OPTION until");
    const forever = { id: "a", until: "2100-01-01T00:00:00Z" };
    expect(await code(tasks.pause({ ...forever, cancelQueued: true }))).toBe("INVALID_OPTION cancelQueued");
    const { freeze = "" } = await tasks.pause(forever);
    const acme = operatorOf(new Client({ store: kit.store, owner: "acme" }));
    expect(await code(acme.freezes.put({ tasks: [{ queue: QUEUE, owner: "system", id: "a" }] }))).not.toBe(
      "OK",
    );
    expect((await acme.freezes.list()).freezes).toEqual([]);
    expect(await code(acme.freezes.delete({ id: freeze }))).toBe("FREEZE_NOT_FOUND id");
    const { id } = await acme.freezes.put({ tasks: ["b"] });
    expect((await acme.freezes.list()).freezes).toMatchObject([{ id }]);
    await acme.freezes.delete({ id });
  });
});

describe("a freeze", () => {
  it("skips due occurrences with author and note, and starts no flood at its end", async () => {
    await put("t", { catchUp: "all" });
    await put("other", { owner: "acme" });
    await kit.advance("90s");
    await ops.freezes.put({ owner: "system", until: START + 4.5 * MINUTE, note: "INC-43" }, { by: "ann" });
    await kit.advance("5m");
    expect(await nominals("t")).toEqual([1, 5, 6]);
    expect(await nominals("acme/other")).toEqual([1, 2, 3, 4, 5, 6]);
    const note = "frozen by ann until 2026-01-01T00:04:30Z: INC-43";
    expect(await kit.client.runs.skips("t")).toMatchObject([
      { reason: "frozen", from: START + 2 * MINUTE, to: START + 4 * MINUTE, decisions: 3, note },
    ]);
    expect(await explained(kit.client, "t", START + 3 * MINUTE)).toMatchObject({
      verdict: "skipped",
      summary: `It was skipped: ${note}.`,
    });
  });

  it("is told by the one that ends last, if two hold", async () => {
    await put("t");
    for (const minutes of [3, 9, 5])
      await ops.freezes.put({ all: true, until: START + minutes * MINUTE, note: `for ${minutes}` });
    await kit.advance("130s");
    const note = expect.stringContaining("until 2026-01-01T00:09:00Z: for 9");
    expect(await kit.client.runs.skips("t")).toMatchObject([{ reason: "frozen", note }]);
    await expect(kit.client.trigger("t")).rejects.toMatchObject({ message: note });
  });

  it("holds an enqueue whose put is slow", async () => {
    const { id } = await ops.freezes.put({ all: true });
    const { tasks } = kit.store;
    const { put: real } = tasks;
    let slow = 2;
    tasks.put = async (...args) => {
      if (slow-- > 0) await kit.advance("1500ms");
      return real.apply(tasks, args);
    };
    const { run, task } = await kit.client.enqueue(ring, {});
    tasks.put = real;
    expect(run).toBeUndefined();
    await kit.advance("1m");
    expect(await kit.client.runs.list(task)).toEqual([]);
    await ops.freezes.delete({ id });
    await kit.advance("10m");
    expect(await kit.client.runs.list(task)).toHaveLength(1);
  });

  it("holds tasks that are put during it, also in new queues, until it is lifted", async () => {
    const { id } = await ops.freezes.put({ all: true });
    await put("t");
    await kit.advance("3m");
    expect(await nominals("t")).toEqual([]);
    await ops.freezes.delete({ id });
    await kit.advance("1m");
    expect(await nominals("t")).toEqual([4]);
  });

  it("covers a tag and a queue", async () => {
    await put("tagged", { tags: ["billing"] });
    await put("plain");
    await ops.freezes.put({ tag: "billing", queue: QUEUE });
    await kit.advance("2m");
    expect([await nominals("tagged"), await nominals("plain")]).toEqual([[], [1, 2]]);
  });

  it("recurs in windows", async () => {
    await put("t");
    const schedule = { calendar: "*:2/5" };
    const { id } = await ops.freezes.put({ all: true, schedule, for: "2m" });
    await kit.advance("150s");
    expect((await ops.freezes.list()).freezes).toMatchObject([
      { id, active: true, activeUntil: START + 4 * MINUTE },
    ]);
    await kit.advance("6m");
    expect(await nominals("t")).toEqual([1, 4, 5, 6]);
    await kit.expect("t").skipped("frozen", 4);
  });

  it("does not resume paused tasks when it is lifted", async () => {
    await put("t");
    await kit.client.pause("t", { note: "retired", by: "ann" });
    const { id } = await ops.freezes.put({ all: true });
    await ops.freezes.delete({ id });
    await kit.advance("2m");
    expect(await kit.client.get("t")).toMatchObject({ state: "paused", paused: { note: "retired" } });
    expect(await nominals("t")).toEqual([]);
  });

  it("schedules the next time of a fixed delay after the skipped one", async () => {
    await put("t", { schedule: { every: "1m", anchor: "finish" } });
    const { id } = await ops.freezes.put({ all: true });
    await kit.advance("150s");
    await ops.freezes.delete({ id });
    await kit.advance("1m");
    expect(await nominals("t")).toHaveLength(1);
  });

  describe.each(["lifted", "over"])("when it is %s", (how) => {
    it.each(["one", "skip"] as const)("releases held occurrences, with catch-up %s", async (catchUp) => {
      await put("once", { schedule: { at: START + MINUTE }, catchUp });
      const frozen = await ops.freezes.put({
        all: true,
        ...(how === "over" && { until: START + 5 * MINUTE }),
      });
      const { task } = await kit.client.enqueue(ring, {});
      await kit.advance("4m");
      expect([await nominals("once"), await nominals(task.id)]).toEqual([[], []]);
      if (how === "lifted") await ops.freezes.delete({ id: frozen.id });
      // Earlier than the regular check of held occurrences.
      await kit.advance(how === "lifted" ? "10s" : "70s");
      await kit.expect("once").fired(1);
      expect(await nominals("once")).toEqual([1]);
      // The one-off task is deleted after its run.
      const { runs } = await kit.client.runs.journal({ queue: QUEUE });
      expect(runs.filter(({ task: { id } }) => id === task.id)).toHaveLength(1);
    });
  });

  describe.each([true, false])("(with the freeze: %s)", (holds) => {
    // Control: without the freeze the same happens at once, so the freeze is what holds it.
    const frozen = async () => (holds ? (await ops.freezes.put({ all: true })).id : undefined);
    const lift = async (id: string | undefined) => {
      if (id !== undefined) await ops.freezes.delete({ id });
      await kit.advance("10s");
    };

    it("holds a retry, and starts it when it is lifted", async () => {
      await put("t", {
        type: "failing",
        schedule: { at: START + MINUTE },
        rerun: { delay: "1m", jitter: 0 },
      });
      await kit.advance("61s");
      const id = await frozen();
      await kit.advance("5m");
      const held = await kit.client.runs.list("t");
      expect(held.map(({ outcome }) => outcome)).toEqual(holds ? ["failed"] : ["succeeded", "failed"]);
      await lift(id);
      await kit.expect("t").fired(1).outcome("succeeded");
    });

    it("holds the steps of a backfill, which continues at its position when it is lifted", async () => {
      await put("t", { schedule: { every: "1h" } });
      const id = await frozen();
      const range = { from: START - 120 * MINUTE, to: START };
      const started = await ops.backfills.start({ id: "t", ...range, overlap: "allow" });
      await kit.advance("2m");
      const of = () => ops.backfills.get({ id: started.id as string });
      expect(await of()).toMatchObject(
        holds ? { state: "running", enqueued: 0, skipped: 0 } : { state: "done", enqueued: 3 },
      );
      await lift(id);
      expect(await of()).toMatchObject({ state: "done", enqueued: 3, skipped: 0 });
      expect(await nominals("t")).toEqual([-120, -60, 0]);
    });

    it("lets the deadline of a success continue, and sends its alert", async () => {
      const alerts = [{ on: ["missed-deadline"], url: "https://hooks.example.com/x" }];
      await put("t", { alertIf: { noSuccessFor: "3m" }, alerts });
      await frozen();
      await kit.advance("4m");
      const { tasks } = await kit.client.list({ queue: "carillon-alerts" });
      expect(tasks.map(({ payload }) => payload)).toMatchObject(
        holds ? [{ alerts: [{ kind: "missed-deadline", task: { id: "t" } }] }] : [],
      );
    });
  });

  it("refuses a trigger unless it is forced", async () => {
    await put("t");
    await ops.freezes.put({ all: true, note: "INC-43" });
    await expect(kit.client.trigger("t")).rejects.toMatchObject({
      code: "FROZEN",
      statusCode: 409,
      message: expect.stringContaining("frozen until it is lifted: INC-43"),
    });
    expect(await kit.client.trigger("t", { force: true })).toMatchObject({ outcome: "enqueued" });
  });

  it("leaves no key behind", async () => {
    await put("t");
    const { id } = await ops.freezes.put({ all: true });
    await kit.advance("2m");
    await ops.freezes.delete({ id });
    const { link, keys } = internalsOf(kit.store);
    const { frozen, held } = keys.queue(QUEUE);
    expect(await link.ask((client) => client.exists(frozen))).toBe(0);
    expect(await link.ask((client) => client.exists(held))).toBe(0);
    expect(await link.ask((client) => client.exists(keys.freezes))).toBe(0);
  });

  it.each([
    [{}, "options", "INVALID_OPTION"],
    [{ all: true, owner: "acme" }, undefined, "INVALID_OPTION"],
    [{ all: true, until: START - 1 }, "until", "INVALID_OPTION"],
    [{ all: true, for: "2h" }, "for", "INVALID_OPTION"],
    [{ all: true, schedule: { cron: "0 3 * * *" } }, "for", "INVALID_OPTION"],
    [{ all: true, schedule: { cron: "x" }, for: "2h" }, undefined, "INVALID_SCHEDULE"],
    [{ all: true, schedule: { every: "1h" }, for: "2h" }, "schedule.every", "INVALID_OPTION"],
    [{ queue: "carillon-alerts" }, "queue", "FORBIDDEN"],
  ])("is refused for %j", async (input, field, code) => {
    const refused = ops.freezes.put(input as object);
    await expect(refused).rejects.toMatchObject({ code, ...(field && field !== "options" && { field }) });
    expect((await ops.freezes.list()).freezes).toEqual([]);
  });

  it("of a bound client holds its owner's tasks only; the client lifts no others", async () => {
    const bound = new Client({ store: kit.store, owner: "acme" });
    await expect(operatorOf(bound).freezes.put({ owner: "system" })).rejects.toMatchObject({
      code: "FORBIDDEN",
    });
    expect(await operatorOf(bound).freezes.put({ all: true })).toMatchObject({ owner: "acme" });
    const { id } = await ops.freezes.put({ all: true });
    const { id: others } = await ops.freezes.put({ owner: "system" });
    await expect(operatorOf(bound).freezes.delete({ id })).rejects.toMatchObject({ code: "FORBIDDEN" });
    await expect(operatorOf(bound).freezes.delete({ id: others })).rejects.toMatchObject({
      code: "FREEZE_NOT_FOUND",
    });
    const owners = (await operatorOf(bound).freezes.list()).freezes.map(({ owner }) => owner ?? "none");
    expect(owners.sort()).toEqual(["acme", "none"]);
  });
});

const freeze = { id: "f", all: true, created: START };

describe("in the store", () => {
  const bench = Bench.use(() => redis.url);

  it("a freeze holds in a queue whose first task is put during it, before a node writes its copy", async () => {
    await bench.store.freezes.put({ ...freeze, from: START });
    await bench.put({ id: "t" });
    await bench.clock.advance(10_000);
    expect(await bench.claim("t", "a")).toEqual(["OK"]);
    expect(await bench.store.runs.list(bench.name("t"), 10)).toEqual([]);
  });

  it("a node makes the copies that a process did not make before it died", async () => {
    await bench.put({ id: "t" });
    await bench.cutOff("copy-freezes", () => bench.store.freezes.put({ ...freeze, from: START }));
    await bench.store.freezes.mend([QUEUE]);
    await bench.clock.advance(10_000);
    await bench.claim("t", "a");
    expect(await bench.store.runs.list(bench.name("t"), 10)).toEqual([]);
  });

  it("a node releases tasks that a process left held when it died during a lift", async () => {
    const { link, keys } = internalsOf(bench.store);
    const { held, due } = keys.queue(QUEUE);
    await bench.store.freezes.put({ ...freeze, from: START });
    await bench.put({ id: "t", schedule: { at: START + 1_000 } });
    await bench.clock.advance(2_000);
    await bench.claimAll("a");
    // One step releases 500 tasks: these have been deleted meanwhile.
    const others = Array.from({ length: 500 }, (_, n) => [START, `0 system/gone-${n}`]).flat();
    await link.ask((client) => client.zadd(held, ...others));
    const state = async () => {
      const [left, at] = await link.ask((client) =>
        Promise.all([client.zcard(held), client.zscore(due(shardOf("system/t")), "system/t")]),
      );
      return { left, waits: Number(at) > START + 2_000 };
    };
    expect(await state()).toEqual({ left: 501, waits: true });
    const { run } = link;
    link.run = async (sent, sentKeys, args) => {
      const answer = await run.call(link, sent, sentKeys, args);
      if (sent.name === "copy-freezes") throw new Error("died");
      return answer;
    };
    await expect(bench.store.freezes.lift("f")).rejects.toThrow("died");
    link.run = run;
    expect(await state()).toEqual({ left: 1, waits: true });
    await bench.store.freezes.mend([QUEUE]);
    expect(await state()).toEqual({ left: 0, waits: false });
  });

  it("an older copy does not replace that of a freeze which was added meanwhile", async () => {
    await bench.put({ id: "t" });
    await bench.store.freezes.put({ ...freeze, owner: "acme", all: false, from: START });
    await bench.clock.advance(10_000);
    const { link } = internalsOf(bench.store);
    const { run } = link;
    const statuses: unknown[] = [];
    link.run = async (sent, keys, args) => {
      if (sent.name !== "copy-freezes") return run.call(link, sent, keys, args);
      link.run = run;
      // The other process has read the freezes, and copies them late.
      await bench.store.freezes.put({ ...freeze, id: "g", from: START });
      const answer = await run.call(link, sent, keys, args);
      statuses.push(...(await bench.claim("t", "a")));
      return answer;
    };
    await bench.store.freezes.copyTo([QUEUE]);
    expect(statuses).toEqual(["OK"]);
    expect(await bench.store.runs.list(bench.name("t"), 10)).toEqual([]);
  });

  it("a freeze that was put and lifted while another process copied does not hold", async () => {
    await bench.put({ id: "t" });
    // The other process has read that the queue has no copy, and the freeze. It copies late.
    bench.before("copy-freezes", async () => {
      await bench.store.freezes.copyTo([QUEUE]);
      await bench.store.freezes.lift("f");
    });
    await bench.store.freezes.put({ ...freeze, from: START });
    await bench.clock.advance(10_000);
    await bench.claim("t", "a");
    expect(await bench.store.runs.list(bench.name("t"), 10)).toHaveLength(1);
  });

  it("a trigger that was decided before a planned freeze began is refused if it commits after", async () => {
    await bench.put({ id: "t" });
    await bench.store.freezes.put({ ...freeze, from: START + 5_000 });
    const { link } = internalsOf(bench.store);
    const { run } = link;
    link.run = async (sent, keys, args) => {
      if (sent.name === "commit") {
        link.run = run;
        await bench.clock.advance(5_000);
      }
      return run.call(link, sent, keys, args);
    };
    await expect(bench.trigger("t", "x")).rejects.toMatchObject({ code: "FROZEN" });
    expect(await bench.store.runs.list(bench.name("t"), 10)).toEqual([]);
  });

  describe("a claim that was decided before a freeze", () => {
    it("is STALE when it is committed during the freeze", async () => {
      await bench.put({ id: "t" });
      await bench.clock.advance(10_000);
      const decided = await bench.read("t");
      await bench.store.freezes.put({ ...freeze, from: START });
      expect(await bench.commit(decided, "a")).toEqual(["STALE"]);
      expect(await bench.claim("t", "b")).toEqual(["OK"]);
      expect(await bench.store.runs.list(bench.name("t"), 10)).toEqual([]);
    });

    it("is STALE when the freeze was planned and has begun since", async () => {
      await bench.put({ id: "t" });
      await bench.store.freezes.put({ ...freeze, from: START + 12_000 });
      await bench.clock.advance(10_000);
      const decided = await bench.read("t");
      await bench.clock.advance(2_000);
      expect(await bench.commit(decided, "a")).toEqual(["STALE"]);
    });

    it("is enqueued without the check, as a positive control", async () => {
      const bench = await Bench.open(redis.url, { sabotage: ["freeze"] });
      await bench.put({ id: "t" });
      await bench.clock.advance(10_000);
      const decided = await bench.read("t");
      await bench.store.freezes.put({ ...freeze, from: START });
      expect(await bench.commit(decided, "a")).toEqual(["OK"]);
      expect(await bench.store.runs.list(bench.name("t"), 10)).toHaveLength(1);
      await bench.close();
    });
  });
});
