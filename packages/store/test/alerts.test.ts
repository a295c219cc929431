import type { TaskInput } from "@carillon/core";
import { internalsOf } from "@carillon/store/internal";
import { eventually } from "@carillon/testing";
import { expect, it } from "vitest";
import { onEveryEngine } from "../../../test/helpers.js";
import { Bench, QUEUE, START } from "./bench.js";

const MINUTE = 60_000;

onEveryEngine("deadlines and alerts", (connection) => {
  const bench = Bench.use(connection);
  const put = (more: Partial<TaskInput>) =>
    bench.put({ id: "t", schedule: { every: "1h" }, overlap: "allow", ...more });
  /** Deadlines missed by then, as a node that checks would report them. */
  async function missedBy(ms: number): Promise<number[]> {
    await bench.clock.set(START + ms);
    await bench.store.alerts.missed(QUEUE);
    return (await bench.store.alerts.waiting(QUEUE)).map(({ alert }) => alert.at - START);
  }

  it("a finished task that is put with new times has a deadline that counts from that put", async () => {
    await bench.put({ id: "t", schedule: { at: START + 1_000 }, alertIf: { noSuccessFor: "1m" } });
    await bench.clock.set(START + 1_000);
    await bench.claim("t", "first");
    expect((await bench.stored("t")).state).toBe("finished");
    expect(await missedBy(2 * MINUTE)).toEqual([]);
    await bench.put({ id: "t", schedule: { every: "1h" }, alertIf: { noSuccessFor: "1m" } });
    expect(await missedBy(3 * MINUTE - 1)).toEqual([]);
    expect(await missedBy(3 * MINUTE)).toEqual([3 * MINUTE]);
  });

  it("a finished task that a calendar gives times again has a deadline that counts from then", async () => {
    const { calendars } = bench.store;
    const plan = async (entries: readonly string[]) => {
      await calendars.put("holidays", entries, "me");
      await calendars.refresh();
      await calendars.replanStale(QUEUE);
    };
    await plan(["2026-01-01"]);
    const schedule = { every: "1h", end: "2026-01-01T23:30:00Z", except: [{ named: "holidays" }] };
    expect(await bench.put({ id: "t", schedule, alertIf: { noSuccessFor: "1m" } })).toMatchObject({
      state: "finished",
    });
    await bench.clock.set(START + MINUTE);
    await plan([]);
    expect((await bench.stored("t")).state).toBe("scheduled");
    expect(await missedBy(2 * MINUTE - 1)).toEqual([]);
    expect(await missedBy(2 * MINUTE)).toEqual([2 * MINUTE]);
  });

  it("replanning keeps the deadline of a task that was not finished", async () => {
    const { calendars } = bench.store;
    await calendars.put("holidays", [], "me");
    await bench.put({
      id: "t",
      schedule: { every: "1h", except: [{ named: "holidays" }] },
      alertIf: { noSuccessFor: "2m" },
    });
    await bench.clock.set(START + MINUTE);
    await calendars.put("holidays", ["2026-01-01"], "me");
    await calendars.refresh();
    expect(await calendars.replanStale(QUEUE)).toBe(1);
    expect(await missedBy(2 * MINUTE)).toEqual([2 * MINUTE]);
  });

  /** Time of the nodes' next check of deadlines. */
  const looked = async () => (await bench.store.claims.next(QUEUE)).get("e");

  it("a deadline is deleted with `noSuccessFor`, and with the task", async () => {
    await bench.put({ id: "t", schedule: { every: "1h" }, alertIf: { noSuccessFor: "1m" } });
    expect(await looked()).toBe(START + MINUTE);
    await bench.put({ id: "t", schedule: { every: "1h" } });
    expect(await looked()).toBeUndefined();
    expect(await missedBy(MINUTE)).toEqual([]);
    await bench.put({ id: "t", schedule: { every: "1h" }, alertIf: { noSuccessFor: "1m" } });
    await bench.store.tasks.delete(bench.name("t"));
    expect(await bench.ownKeys()).toEqual([]);
  });

  it("the deadline of a paused task counts from its resume", async () => {
    await bench.put({ id: "t", schedule: { every: "1h" }, alertIf: { noSuccessFor: "1m" } });
    await bench.store.tasks.pause(bench.name("t"));
    expect(await looked()).toBeUndefined();
    expect(await missedBy(2 * MINUTE)).toEqual([]);
    await bench.store.tasks.resume(bench.name("t"), "skip");
    expect(await looked()).toBe(START + 3 * MINUTE);
    expect(await missedBy(3 * MINUTE)).toEqual([3 * MINUTE]);
  });

  it("nothing is expected of a shadow, until it is live", async () => {
    await bench.put({ id: "t", schedule: { every: "1h" }, mode: "shadow", alertIf: { noSuccessFor: "1m" } });
    expect(await missedBy(2 * MINUTE)).toEqual([]);
    await bench.store.tasks.pause(bench.name("t"));
    await bench.store.tasks.resume(bench.name("t"), "skip", "", { mode: "live" });
    expect(await missedBy(3 * MINUTE)).toEqual([3 * MINUTE]);
  });

  it("an edit that leaves `noSuccessFor` unchanged keeps the deadline", async () => {
    await bench.put({ id: "t", schedule: { every: "1h" }, alertIf: { noSuccessFor: "2m" } });
    await bench.clock.set(START + MINUTE);
    await bench.put({ id: "t", schedule: { every: "2h" }, alertIf: { noSuccessFor: "2m" } });
    expect(await missedBy(2 * MINUTE)).toEqual([2 * MINUTE]);
  });

  /** Times of the next checks of the queue's alerts and deadlines, by part. */
  async function parts(): Promise<Record<string, number>> {
    const next = [...(await bench.store.claims.next(QUEUE))];
    return Object.fromEntries(
      next.filter(([part]) => "ae".includes(part)).map(([part, at]) => [part, at - START]),
    );
  }
  async function told(): Promise<void> {
    const waiting = await bench.store.alerts.waiting(QUEUE);
    await bench.store.alerts.removeDelivered(
      QUEUE,
      waiting.map(({ line }) => line),
    );
  }
  async function ran(outcome: "succeeded" | "failed"): Promise<void> {
    await bench.work("t", await bench.run("t", outcome), { outcome });
  }

  it("a missed deadline raises one alert, and another only if a run has succeeded since", async () => {
    await put({ alertIf: { noSuccessFor: "1m" } });
    expect(await parts()).toEqual({ e: MINUTE });
    expect(await missedBy(MINUTE)).toEqual([MINUTE]);
    expect(await parts()).toEqual({ a: MINUTE });
    expect(await missedBy(2 * MINUTE)).toEqual([MINUTE]);
    await told();
    expect(await parts()).toEqual({});
    await ran("failed");
    expect(await parts()).toEqual({ a: 2 * MINUTE });
    await told();
    await ran("succeeded");
    expect((await bench.store.alerts.waiting(QUEUE)).map(({ alert }) => alert.kind)).toEqual(["recovered"]);
    await told();
    expect(await parts()).toEqual({ e: 3 * MINUTE });
    expect(await missedBy(3 * MINUTE)).toEqual([3 * MINUTE]);
  });

  it("a paused task raises no deadline alert, and a success during the pause starts no deadline", async () => {
    await put({ alertIf: { noSuccessFor: "1m" } });
    await bench.store.tasks.pause(bench.name("t"));
    expect(await missedBy(MINUTE)).toEqual([]);
    await ran("succeeded");
    expect(await parts()).toEqual({});
    await bench.store.tasks.resume(bench.name("t"), "skip");
    expect(await parts()).toEqual({ e: 2 * MINUTE });
  });

  /** Kinds of the alerts so far, each with its task or run. */
  async function raised(): Promise<unknown[]> {
    const waiting = await bench.store.alerts.waiting(QUEUE);
    return waiting.map(({ alert: { kind, at, message, ended } }) => {
      return [kind, (at - START) / 1_000, ...(message ? [message] : []), ...(ended ?? [])];
    });
  }
  const begin = async (token: string) => {
    return bench.run("t", token);
  };
  /** Starts a run and ends it after a while. */
  async function work(run: string, ms: number, outcome: "succeeded" | "failed" = "succeeded") {
    const { fence } = await bench.begun("t", run);
    await bench.clock.advance(ms);
    await bench.settle("t", run, fence, { outcome });
  }

  it("raises one alert for each incident, and one when a run succeeds again", async () => {
    await put({ alertIf: { noSuccessFor: "5s" } });
    await work(await begin("a"), 1_000, "failed");
    await work(await begin("b"), 1_000, "failed");
    await bench.clock.advance(10_000);
    await bench.store.alerts.missed(QUEUE);
    await work(await begin("c"), 1_000);
    await work(await begin("d"), 1_000);
    await work(await begin("e"), 1_000, "failed");
    expect(await raised()).toEqual([
      ["failed", 1],
      ["missed-deadline", 5],
      ["recovered", 13, "failed", "missed-deadline"],
      ["failed", 15],
    ]);
  });

  it("raises late-start while a run waits or when it ends, until one starts in time", async () => {
    await put({ alertIf: { notStartedFor: "20s" } });
    const run = await begin("a");
    await bench.clock.advance(20_001);
    await bench.store.runs.reconcile(QUEUE);
    expect(await raised()).toEqual([["late-start", 20]]);
    await work(run, 1_000);
    expect(await raised()).toEqual([["late-start", 20]]);
    await work(await begin("b"), 1_000);
    const late = await begin("c");
    await bench.clock.advance(21_000);
    await work(late, 1_000);
    expect((await raised()).slice(1)).toEqual([
      ["recovered", 22.001, "late-start"],
      ["late-start", 42.001],
    ]);
  });

  it("raises slow while a run is running or when it ends, until one is quick", async () => {
    await bench.put({ id: "t", schedule: { every: "1h" }, overlap: "allow", alertIf: { slowerThan: "30s" } });
    const run = await begin("a");
    await bench.begin("t", run);
    // The reconciler checks at the time when the run would be slow, not earlier and not much later.
    const checks = async () => {
      for (let second = 0; second < 40; second++) {
        await bench.clock.advance(1_000);
        await bench.store.runs.reconcile(QUEUE);
        if ((await raised()).length > 0) return second + 1;
      }
      return undefined;
    };
    expect(await checks()).toBe(31);
    expect(await raised()).toEqual([["slow", 30]]);
    await work(await begin("b"), 31_000);
    expect(await raised()).toHaveLength(1);
    await work(await begin("c"), 30_000);
    expect((await raised()).slice(1)).toEqual([["recovered", 92, "slow"]]);
  });

  it("raises slow for a multiple of the usual duration, from the fifth success on", async () => {
    await put({ alertIf: { slowerThan: "300%" } });
    for (const [i, ms] of [9_000, 1_000, 1_000, 1_000, 3_000].entries()) await work(await begin(`${i}`), ms);
    expect(await raised()).toEqual([]);
    // Five took 3 s on average.
    await work(await begin("f"), 9_000);
    expect(await raised()).toEqual([]);
    await work(await begin("g"), 12_001);
    expect(await raised()).toEqual([["slow", 36]]);
  });

  it("raises skipped after a number of skips in a row", async () => {
    await bench.put({ id: "t", schedule: { every: "10s" }, alertIf: { skipsInARow: 3 } });
    await bench.clock.advance(10_000);
    await bench.claim("t", "first");
    const [run = ""] = await bench.store.runs.open(bench.name("t"));
    for (let i = 0; i < 5; i++) {
      await bench.clock.advance(10_000);
      await bench.claim("t", `skip${i}`);
    }
    expect(await raised()).toEqual([["skipped", 40, "3 in a row: behind"]]);
    await work(run, 1_000);
    expect((await raised()).slice(1)).toEqual([["recovered", 61, "skipped"]]);
  });

  it("a failure wakes the nodes", async () => {
    await bench.put({ id: "t", schedule: { every: "1h" }, overlap: "allow" });
    const heard: string[] = [];
    const ears = bench.connect();
    await ears.subscribe(internalsOf(bench.store).keys.wake);
    ears.on("message", (_channel: string, text: string) => void heard.push(text));
    await ran("failed");
    await eventually(() => expect(heard).toContain(`${QUEUE} a ${bench.clock.now}`));
  });

  it("the alert of a long failure with other characters than ASCII is cut between two characters", async () => {
    await bench.put({ id: "t", overlap: "allow" });
    await bench.work("t", await bench.run("t"), { outcome: "failed", error: "€".repeat(1_000) });
    const waiting = await bench.store.alerts.waiting(QUEUE);
    expect(waiting.map(({ alert }) => alert.error)).toEqual(["€".repeat(341)]);
    const lines = waiting.map(({ line }) => line);
    expect(await bench.store.alerts.removeDelivered(QUEUE, lines)).toBe(0);
  });

  it("foreign data in place of an alert does not block others, and is deleted", async () => {
    const { alerts } = internalsOf(bench.store).keys.queue(QUEUE);
    const cut = Buffer.from('{"kind":"failed","task":"system/t","at":1,"error":"\u00e2\u0082"}', "latin1");
    await internalsOf(bench.store).link.ask((client) => client.rpush(alerts, Buffer.from([0xff, 0xfe]), cut));
    const waiting = await bench.store.alerts.waiting(QUEUE);
    expect(waiting.map(({ alert }) => alert.task?.id)).toEqual(["t"]);
    expect(
      await bench.store.alerts.removeDelivered(
        QUEUE,
        waiting.map(({ line }) => line),
      ),
    ).toBe(0);
  });

  it("an alert that is removed twice removes no other", async () => {
    for (const id of ["t", "u"])
      await bench.put({ id, schedule: { every: "1h" }, alertIf: { noSuccessFor: "1m" } });
    expect(await missedBy(MINUTE)).toHaveLength(2);
    const [first, second] = await bench.store.alerts.waiting(QUEUE);
    const lines = [first?.line as Buffer];
    expect(await bench.store.alerts.removeDelivered(QUEUE, lines)).toBe(1);
    expect(await bench.store.alerts.removeDelivered(QUEUE, lines)).toBe(1);
    expect(await bench.store.alerts.waiting(QUEUE)).toEqual([second]);
    expect(await parts()).toEqual({ a: MINUTE });
    expect(await bench.store.alerts.removeDelivered(QUEUE, [second?.line as Buffer])).toBe(0);
    expect(await parts()).toEqual({});
  });
});
