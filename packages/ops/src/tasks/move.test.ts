import { CarillonError } from "@carillon/core";
import { Client, defineTask, type TaskInput } from "@carillon/sdk";
import { internalsOf, withSeams } from "@carillon/store/internal";
import { virtualStore } from "@carillon/testing";
import { Redis } from "ioredis";
import { beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { eachKit } from "../../../../test/each-kit.js";
import { ownRedis } from "../../../../test/helpers.js";
import { examined, explained, statusOf } from "../../test/in-words.js";
import { operatorOf } from "../operator.js";

const [QUEUE, OTHER] = ["bells", "gongs"];
const START = Date.parse("2026-01-01T00:00:00Z");
const MINUTE = 60_000;
const payload = z.looseObject({});

describe("a move to another queue", () => {
  /** Minutes of the nominal times that ran, with their triggers. */
  let ran: string[];
  const minute = (time: number) => (time - START) / MINUTE;
  const ring = defineTask("ring", {
    queue: QUEUE,
    payload,
    handler: (_payload, { occurrence }) => void ran.push(`${minute(occurrence.nominal)}`),
  });
  const fail = defineTask("fail", {
    queue: OTHER,
    payload,
    handler: async (_payload, { occurrence, saveCheckpoint }) => {
      await saveCheckpoint({ at: minute(occurrence.nominal) });
      if (occurrence.trigger !== "retry") throw new Error("no");
      ran.push(`${minute(occurrence.nominal)} again`);
    },
  });
  const { kit, ops } = eachKit({ types: [ring, fail], start: START });
  beforeEach(() => {
    ran = [];
  });

  const put = (id: string, more: Partial<TaskInput> = {}) =>
    kit.client.put({ id, type: "ring", queue: QUEUE, schedule: { every: "1m" }, catchUp: "all", ...more });
  const held = (queue: string) => kit.store.tasks.get({ queue, owner: "system", id: "t" });
  const queues = async () => (await kit.client.list()).tasks.map(({ queue }) => queue);

  it("continues at its position: no occurrence is lost or runs twice; counters and settings are kept", async () => {
    await put("t", {
      tags: ["x"],
      priority: 3,
      schedule: { every: "1m", maxRuns: 7 },
      alertIf: { noSuccessFor: "1h" },
    });
    await put("t", {
      tags: ["x", "y"],
      priority: 3,
      schedule: { every: "1m", maxRuns: 7 },
      alertIf: { noSuccessFor: "1h" },
    });
    await kit.advance("150s");
    const before = await kit.client.get("t");
    const stats = await kit.client.runs.stats("t");
    expect(await ops.tasks.move({ id: "t", to: OTHER }, { by: "ann" })).toEqual({
      task: { queue: OTHER, owner: "system", id: "t" },
      changed: true,
    });
    const after = await kit.client.get("t");
    expect(after).toMatchObject({
      queue: OTHER,
      state: "scheduled",
      tags: ["x", "y"],
      priority: 3,
      fired: 2,
      cursor: before.cursor,
      nominal: before.nominal,
      created: before.created,
    });
    expect(after.generation).toBeGreaterThan(before.generation);
    expect(after.paused).toBeUndefined();
    // Figures from the record of its last run, which stays behind.
    const ofRun = { lastLateMs: undefined, lastWaitMs: undefined };
    expect(await kit.client.runs.stats("t")).toEqual({ ...stats, ...ofRun });
    expect(await ops.tasks.revisions({ id: "t" })).toMatchObject({
      revisions: [{ number: 1, definition: { tags: ["x"] } }],
    });
    expect((await kit.client.list({ tag: "y" })).tasks).toHaveLength(1);
    expect((await kit.client.list({ outcome: "succeeded" })).tasks).toHaveLength(1);
    await kit.advance("10m");
    expect(ran).toEqual(["1", "2", "3", "4", "5", "6", "7"]);
    expect((await kit.client.get("t")).state).toBe("finished");
    expect((await ops.changes.list()).changes[0]).toMatchObject({
      kind: "move",
      by: "ann",
      scope: { queue: OTHER, id: "t" },
      details: { from: QUEUE },
    });
    expect(await ops.tasks.move({ id: "t", to: OTHER })).toMatchObject({ changed: false });
    expect(await ops.tasks.move({ id: "t", to: QUEUE })).toMatchObject({ changed: true });
    expect(await kit.client.get("t")).toMatchObject({ queue: QUEUE, state: "finished", fired: 7 });
  });

  it("keeps pause, note, owed times, a waiting retry and the checkpoint, and leaves no key behind", async () => {
    await put("p");
    await kit.client.pause("p", { note: "retired", by: "ann" });
    const rerun = { delay: "3m", jitter: 0 };
    await kit.client.put({ id: "r", type: "fail", queue: OTHER, schedule: { at: START + MINUTE }, rerun });
    await kit.advance("90s");
    await ops.tasks.move({ id: "p", to: OTHER });
    await ops.tasks.move({ id: "r", to: QUEUE });
    const paused = { at: START, note: "retired", by: "ann" };
    expect(await kit.client.get("p")).toMatchObject({
      queue: OTHER,
      state: "paused",
      paused,
      nominal: START + MINUTE,
    });
    await kit.advance("2m");
    expect(ran).toEqual([]);
    await kit.client.resume("p", { missed: "catch-up" });
    await kit.advance("1m");
    expect(ran.toSorted()).toEqual(["1", "1 again", "2", "3", "4"]);
    expect(await kit.client.runs.stats("r")).toMatchObject({ runs: 2, failures: 1 });
    for (const id of ["p", "r"]) await kit.client.delete(id);
    await kit.advance("30m");
    const { link } = internalsOf(kit.store);
    const left = (await link.ask((client) =>
      (client as never as { keys(p: string): Promise<string[]> }).keys(`*${kit.namespace}*:~*`),
    )) as string[];
    const own = left.filter((key) => /:~(t|s|ledger|revs|hist|fail|open|r|is|last):/.test(key));
    // Definitions of deleted tasks, where the tasks were last.
    expect(own.map((key) => key.slice(key.indexOf(":") + 1)).sort()).toEqual(
      [`${OTHER}}:~revs:system/p`, `${QUEUE}}:~revs:system/r`].sort(),
    );
  });

  const STEPS = ["hold", "put", "adopt", "delete", "end"] as const;
  it.each(STEPS.flatMap((step) => (["before", "after"] as const).map((when) => [when, step] as const)))(
    "whose process dies %s `%s` holds the task, and ends when it is repeated",
    async (when, step) => {
      await put("t");
      await kit.advance("150s");
      const { tasks, moves } = kit.store;
      const owners = {
        hold: moves,
        put: tasks,
        adopt: moves,
        delete: tasks,
        end: moves,
      } as unknown as Record<string, never>;
      let dead = false;
      const undo = STEPS.map((name) => {
        const owner = owners[name] as unknown as Record<string, (...args: unknown[]) => Promise<unknown>>;
        const real = owner[name] as (...args: unknown[]) => Promise<unknown>;
        owner[name] = async (...args) => {
          if (name === step && when === "before") dead = true;
          if (dead) throw new Error("died");
          const answer = await real.apply(owner, args);
          if (name === step) dead = true;
          if (dead) throw new Error("died");
          return answer;
        };
        return () => {
          delete owner[name];
        };
      });
      await expect(ops.tasks.move({ id: "t", to: OTHER })).rejects.toThrow("died");
      for (const restore of undo) restore();
      await kit.advance("2m");
      // Held from the first step to the last; owed meanwhile.
      const isHeld = !(step === "hold" && when === "before") && !(step === "end" && when === "after");
      expect(ran).toEqual(isHeld ? ["1", "2"] : ["1", "2", "3", "4"]);
      const last = await queues();
      if (isHeld) {
        const copy = last.includes(QUEUE) ? await held(QUEUE) : await held(OTHER);
        expect(copy?.moving).toMatch(last.includes(QUEUE) ? /^to gongs t$/ : /^from bells t \d+$/);
        await expect(kit.client.resume({ queue: last[0] as string, id: "t" })).rejects.toMatchObject({
          code: "CONFLICT",
        });
      }
      await ops.tasks.move({ id: "t", to: OTHER });
      expect(await queues()).toEqual([OTHER]);
      await kit.advance("2m");
      expect(ran).toEqual(["1", "2", "3", "4", "5", "6"]);
      expect((await held(OTHER))?.moving).toBeUndefined();
    },
  );

  it("is refused, and undone, while runs are open, backfills run, or the name is taken", async () => {
    await put("t");
    await kit.worker.pause();
    await kit.client.trigger("t");
    await expect(ops.tasks.move({ id: "t", to: OTHER, wait: 0 })).rejects.toMatchObject({ code: "CONFLICT" });
    expect([await queues(), (await held(QUEUE))?.state]).toEqual([[QUEUE], "scheduled"]);
    await kit.worker.resume();
    await kit.advance("1s");
    const { id } = await ops.backfills.start({ id: "t", from: START - 5 * MINUTE, to: START, every: "1h" });
    await expect(ops.tasks.move({ id: "t", to: OTHER })).rejects.toMatchObject({
      code: "CONFLICT",
      message: expect.stringMatching(`backfill ${id}`),
    });
    await ops.backfills.cancel({ id: id as string });
    await kit.client.put({ id: "t", type: "ring", queue: OTHER, schedule: { every: "1h" } });
    await expect(ops.tasks.move({ queue: QUEUE, id: "t", to: OTHER })).rejects.toMatchObject({
      code: "CONFLICT",
    });
    expect((await queues()).sort()).toEqual([QUEUE, OTHER]);
    await expect(ops.tasks.move({ id: "none", to: OTHER })).rejects.toMatchObject({ code: "TASK_NOT_FOUND" });
    await expect(ops.tasks.move({ id: "t", to: "carillon-alerts" })).rejects.toMatchObject({
      code: "FORBIDDEN",
    });
    await expect(ops.tasks.move({ id: "t", to: "a b" })).rejects.toMatchObject({ code: "INVALID_NAME" });
  });

  it("is made once by two calls at one instant", async () => {
    await put("t");
    const move = () => ops.tasks.move({ id: "t", to: OTHER });
    await Promise.all([move(), move(), move()]);
    expect(await queues()).toEqual([OTHER]);
    expect((await held(OTHER))?.moving).toBeUndefined();
    await kit.advance("2m");
    expect(ran).toEqual(["1", "2"]);
  });

  it("includes an edit that comes between the read and the copy", async () => {
    await put("t");
    const { tasks } = kit.store;
    const real = tasks.put.bind(tasks);
    tasks.put = async (...args) => {
      delete (tasks as Partial<typeof tasks>).put;
      const stored = await real(...args);
      await put("t", { priority: 7 });
      return stored;
    };
    await ops.tasks.move({ id: "t", to: OTHER });
    expect(await kit.client.get("t")).toMatchObject({ queue: OTHER, priority: 7, state: "scheduled" });
  });

  it("includes an edit that comes during the copy, which makes the first copy stale", async () => {
    await put("t");
    const { moves } = kit.store;
    const { adopt } = moves;
    moves.adopt = async (...args) => {
      moves.adopt = adopt;
      const copied = await adopt.apply(moves, args);
      await put("t", { priority: 7 });
      return copied;
    };
    await ops.tasks.move({ id: "t", to: OTHER });
    expect(await kit.client.get("t")).toMatchObject({ queue: OTHER, priority: 7, state: "scheduled" });
    await kit.advance("2m");
    expect(ran).toEqual(["1", "2"]);
  });

  /** Runs `act` while the move of `t` waits for an open run, which then ends. */
  async function during(act: () => Promise<void>): Promise<unknown> {
    await kit.worker.pause();
    await kit.client.trigger("t");
    const { runs } = kit.store;
    const { open } = runs;
    let ended = false;
    runs.open = async (...args) => {
      if (!ended && (await held(QUEUE))?.moving !== undefined) {
        ended = true;
        await act();
        const [run] = await open.apply(runs, [{ queue: QUEUE, owner: "system", id: "t" }, 1]);
        await kit.client.runs.cancel(run as string);
        await kit.worker.resume();
        await kit.store.runs.reconcile(QUEUE);
      }
      return open.apply(runs, args);
    };
    return ops.tasks.move({ id: "t", to: OTHER }).finally(() => {
      runs.open = open;
    });
  }

  it("takes a pause with it, or a resume, that comes while it waits", async () => {
    await put("t");
    await during(async () => {
      expect(await kit.client.pause("t", { note: "no paper", by: "ann" })).toBe(true);
    });
    expect(await kit.client.get("t")).toMatchObject({
      queue: OTHER,
      state: "paused",
      paused: { note: "no paper", by: "ann" },
    });
    await ops.tasks.move({ id: "t", to: QUEUE });
    await during(async () => expect(await kit.client.resume("t")).toBe(true));
    expect(await kit.client.get("t")).toMatchObject({ queue: OTHER, state: "scheduled" });
    await kit.advance("2m");
    expect(ran).toHaveLength(2);
  });

  it("refuses a delete and a backfill that come while it waits, and shows that it moves", async () => {
    await put("t");
    await during(async () => {
      const conflict = { code: "CONFLICT", message: expect.stringContaining("moved to queue gongs") };
      await expect(kit.client.delete("t")).rejects.toMatchObject(conflict);
      const range = { from: START - 5 * MINUTE, to: START, every: "1h" } as const;
      await expect(ops.backfills.start({ id: "t", ...range })).rejects.toMatchObject(conflict);
      expect((await ops.backfills.list()).backfills).toEqual([]);
      expect(await kit.client.get("t")).toMatchObject({
        state: "scheduled",
        moving: { to: OTHER },
        nextExecution: undefined,
      });
      expect((await explained(kit.client, "t", kit.now + MINUTE)).summary).toMatch(
        /^A move to another queue/,
      );
    });
    expect(await queues()).toEqual([OTHER]);
    expect(await kit.client.get("t")).not.toHaveProperty("moving");
  });

  it("is refused by a backfill that started just before the hold, and the task goes on", async () => {
    await put("t");
    const { moves } = kit.store;
    const { hold } = moves;
    moves.hold = async (...args) => {
      moves.hold = hold;
      await ops.backfills.start({ id: "t", from: START - 5 * MINUTE, to: START, every: "1h" });
      return hold.apply(moves, args);
    };
    const message = expect.stringMatching(/the backfill \w+ of t is running/);
    await expect(ops.tasks.move({ id: "t", to: OTHER })).rejects.toMatchObject({ code: "CONFLICT", message });
    expect([await queues(), (await held(QUEUE))?.moving]).toEqual([[QUEUE], undefined]);
    await kit.advance("2m");
    expect(ran).toContain("2");
  });

  it("leaves no copy if its delete fails, and can be repeated", async () => {
    await put("t");
    const { tasks } = kit.store;
    const real = tasks.delete;
    tasks.delete = async (...args) => {
      if (args[0].queue !== QUEUE) return real.apply(tasks, args);
      throw new Error("NOREPLICAS");
    };
    await expect(ops.tasks.move({ id: "t", to: OTHER })).rejects.toThrow("NOREPLICAS");
    tasks.delete = real;
    expect([await queues(), (await held(QUEUE))?.moving]).toEqual([[QUEUE], undefined]);
    await ops.tasks.move({ id: "t", to: OTHER });
    expect(await queues()).toEqual([OTHER]);
  });

  describe("while Redis is full", () => {
    const full = ownRedis();
    const name = (queue: string) => ({ queue, owner: "system", id: "t" });

    /** Moves `t` while Redis is full from the nth write on, for that one or until the move has ended. */
    async function moved(at: number, until: "write" | "end") {
      const admin = new Redis(full.url);
      const [LIMIT, NONE] = [1, 0].map((bytes) => () => admin.config("SET", "maxmemory", bytes));
      let [left, writes] = [Number.POSITIVE_INFINITY, 0];
      const failpoint = async (point: string) => {
        if (/ (read|mark)-/.test(point)) return;
        if (point.startsWith("before ")) {
          writes += 1;
          if (writes === left) await LIMIT!();
          else if (writes > left && until === "write") await NONE!();
        }
      };
      const made = { connection: full.url, start: START, namespace: `${until}${at}`, queues: [QUEUE, OTHER] };
      const { store } = await virtualStore(withSeams(made, { failpoint }));
      const client = new Client({ store });
      await client.put({ id: "t", type: "ring", queue: QUEUE, schedule: { every: "1m" } });
      [left, writes] = [at, 0];
      const answer = await operatorOf(client)
        .tasks.move({ id: "t", to: OTHER })
        .then(
          () => undefined,
          (error: unknown) => error,
        );
      left = Number.POSITIVE_INFINITY;
      await NONE!();
      const stored = async () =>
        (await Promise.all([QUEUE, OTHER].map((queue) => store.tasks.get(name(queue))))).map(
          (task) => task && [task.state, task.moving?.split(" ")[0]],
        );
      const after = await stored();
      await operatorOf(client).tasks.move({ id: "t", to: OTHER });
      const repeated = await stored();
      await store.close();
      admin.disconnect();
      return { answer, after, repeated };
    }

    it.each(["write", "end"] as const)(
      "leaves no second task that is not held, and is continued by its repetition: until its %s",
      async (until) => {
        const seen = new Set<string>();
        let [at, answer]: [number, unknown] = [1, "none yet"];
        for (; answer !== undefined; at++) {
          const found = await moved(at, until);
          answer = found.answer;
          const [original, copy] = found.after;
          if (answer !== undefined) expect(answer).toMatchObject({ code: "REDIS_OUT_OF_MEMORY" });
          // A copy is held from its first write to the last; nothing is paused.
          if (original && copy) expect(copy[1], `full at ${at}`).toBe("from");
          if (until === "write" && original)
            expect([original, copy]).toEqual([["scheduled", undefined], undefined]);
          expect(found.repeated, `full at ${at}`).toEqual([undefined, ["scheduled", undefined]]);
          seen.add(JSON.stringify(found.after));
        }
        expect(at).toBeGreaterThan(4);
        expect(seen.size).toBeGreaterThan(1);
      },
    );
  });

  it("keeps the skips, and lets the generation grow after the clock of Redis went back", async () => {
    await put("t");
    await kit.client.pause("t");
    await kit.advance("150s");
    await kit.client.resume("t");
    const skips = await kit.client.runs.skips("t");
    expect(skips).toMatchObject([{ reason: "paused" }]);
    const { generation } = await kit.client.get("t");
    const { link, keys } = internalsOf(kit.store);
    // A generation of a clock that was an hour ahead.
    const ahead = generation + 3_600_000_000;
    await link.client.hset(keys.queue(QUEUE).task("system/t"), "gen", ahead);
    await ops.tasks.move({ id: "t", to: OTHER });
    expect(await kit.client.runs.skips("t")).toEqual(skips);
    expect((await kit.client.get("t")).generation).toBeGreaterThan(ahead);
  });

  it("that left a copy is named by status and doctor, and goes on when it is repeated", async () => {
    await put("t");
    const { moves, tasks } = kit.store;
    moves.adopt = () => Promise.reject(new CarillonError("REDIS_OUT_OF_MEMORY", "Redis is out of memory."));
    tasks.delete = () => Promise.reject(new Error("died"));
    await expect(ops.tasks.move({ id: "t", to: OTHER })).rejects.toMatchObject({
      code: "REDIS_OUT_OF_MEMORY",
    });
    delete (moves as Partial<typeof moves>).adopt;
    delete (tasks as Partial<typeof tasks>).delete;
    await kit.advance("2m");
    // Only the original goes on, even if somebody resumes the copy.
    await kit.client.resume({ queue: OTHER, id: "t" });
    await kit.advance("1m");
    expect(ran).toEqual(["1", "2", "3"]);
    const held = { code: "TASK_HELD", queue: OTHER, remedy: expect.stringContaining("carillon move") };
    const told = async () => (await statusOf(kit.client)).reasons.filter(({ code }) => code === held.code);
    expect(await told()).toMatchObject([held]);
    expect((await examined(kit.client)).findings).toContainEqual(expect.objectContaining(held));
    await ops.tasks.move({ queue: QUEUE, id: "t", to: OTHER });
    expect(await queues()).toEqual([OTHER]);
    expect(await told()).toEqual([]);
    await kit.advance("1m");
    expect(ran).toEqual(["1", "2", "3", "4"]);
  });

  it("that was interrupted is named by status and doctor, with the call that ends it", async () => {
    await put("t");
    const { moves } = kit.store;
    const { end } = moves;
    moves.end = () => Promise.reject(new Error("NOREPLICAS"));
    await expect(ops.tasks.move({ id: "t", to: OTHER })).rejects.toThrow("NOREPLICAS");
    moves.end = end;
    const told = async () => (await statusOf(kit.client)).reasons.filter(({ code }) => code === "TASK_HELD");
    await kit.advance("2m");
    expect(ran).toEqual([]);
    const reason = {
      code: "TASK_HELD",
      message: "the task system/t does not run: a move from queue bells to gongs holds it.",
      remedy: expect.stringContaining("carillon move system/t gongs"),
      queue: OTHER,
    };
    expect(await told()).toMatchObject([{ ...reason, since: START }]);
    const { findings } = await examined(kit.client);
    const message = reason.message.replace("the", "The");
    expect(findings).toContainEqual(expect.objectContaining({ ...reason, message, severity: "error" }));
    await ops.tasks.move({ id: "t", to: OTHER });
    expect(await told()).toEqual([]);
    await kit.advance("1m");
    expect(ran).toEqual(["1", "2", "3"]);
  });
});
