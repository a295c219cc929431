import { internalsOf } from "@carillon/store/internal";
import { eventually } from "@carillon/testing";
import { afterEach, beforeEach, expect, it } from "vitest";
import { Bench, QUEUE, START } from "./bench.js";
import { onEveryEngine } from "./engines.js";

const MINUTE = 60_000;

onEveryEngine("deadlines and alerts", (connection) => {
  let bench: Bench;
  beforeEach(async () => {
    bench = await Bench.open(connection());
  });
  afterEach(async () => {
    await bench.close();
  });
  /** What is told of by then, if a node looks. */
  async function missedBy(ms: number): Promise<number[]> {
    await bench.clock.set(START + ms);
    await bench.store.alerts.missed(QUEUE);
    return (await bench.store.alerts.waiting(QUEUE)).map(({ alert }) => alert.at - START);
  }

  it("a finished task that is put with new times has its deadline from that put on", async () => {
    await bench.put({ id: "t", schedule: { at: START + 1_000 }, expectWithin: "1m" });
    await bench.clock.set(START + 1_000);
    await bench.claim("t", "first");
    expect((await bench.stored("t")).state).toBe("finished");
    expect(await missedBy(2 * MINUTE)).toEqual([]);
    await bench.put({ id: "t", schedule: { every: "1h" }, expectWithin: "1m" });
    expect(await missedBy(3 * MINUTE - 1)).toEqual([]);
    expect(await missedBy(3 * MINUTE)).toEqual([3 * MINUTE]);
  });

  it("a finished task that a calendar gives times again has its deadline from then on", async () => {
    const { calendars } = bench.store;
    const plan = async (entries: readonly string[]) => {
      await calendars.put("holidays", entries, "me");
      await calendars.refresh();
      await calendars.replanStale(QUEUE);
    };
    await plan(["2026-01-01"]);
    const schedule = { every: "1h", end: "2026-01-01T23:30:00Z", except: [{ named: "holidays" }] };
    expect(await bench.put({ id: "t", schedule, expectWithin: "1m" })).toMatchObject({ state: "finished" });
    await bench.clock.set(START + MINUTE);
    await plan([]);
    expect((await bench.stored("t")).state).toBe("scheduled");
    expect(await missedBy(2 * MINUTE - 1)).toEqual([]);
    expect(await missedBy(2 * MINUTE)).toEqual([2 * MINUTE]);
  });

  it("planning anew leaves the deadline of a task that was not finished", async () => {
    const { calendars } = bench.store;
    await calendars.put("holidays", [], "me");
    await bench.put({
      id: "t",
      schedule: { every: "1h", except: [{ named: "holidays" }] },
      expectWithin: "2m",
    });
    await bench.clock.set(START + MINUTE);
    await calendars.put("holidays", ["2026-01-01"], "me");
    await calendars.refresh();
    expect(await calendars.replanStale(QUEUE)).toBe(1);
    expect(await missedBy(2 * MINUTE)).toEqual([2 * MINUTE]);
  });

  /** When the nodes look at deadlines next. */
  const looked = async () => (await bench.store.claims.next(QUEUE)).get("e");

  it("goes with an edit that takes `expectWithin` away, and with the task", async () => {
    await bench.put({ id: "t", schedule: { every: "1h" }, expectWithin: "1m" });
    expect(await looked()).toBe(START + MINUTE);
    await bench.put({ id: "t", schedule: { every: "1h" } });
    expect(await looked()).toBeUndefined();
    expect(await missedBy(MINUTE)).toEqual([]);
    await bench.put({ id: "t", schedule: { every: "1h" }, expectWithin: "1m" });
    await bench.store.tasks.delete(bench.name("t"));
    expect(await bench.ownKeys()).toEqual([]);
  });

  it("of a task that was paused begins when it is resumed", async () => {
    await bench.put({ id: "t", schedule: { every: "1h" }, expectWithin: "1m" });
    await bench.store.tasks.pause(bench.name("t"));
    expect(await looked()).toBeUndefined();
    expect(await missedBy(2 * MINUTE)).toEqual([]);
    await bench.store.tasks.resume(bench.name("t"), "now");
    expect(await looked()).toBe(START + 3 * MINUTE);
    expect(await missedBy(3 * MINUTE)).toEqual([3 * MINUTE]);
  });

  it("an edit that leaves `expectWithin` alone leaves the deadline", async () => {
    await bench.put({ id: "t", schedule: { every: "1h" }, expectWithin: "2m" });
    await bench.clock.set(START + MINUTE);
    await bench.put({ id: "t", schedule: { every: "2h" }, expectWithin: "2m" });
    expect(await missedBy(2 * MINUTE)).toEqual([2 * MINUTE]);
  });

  /** What of a queue is to be looked at for these, and when. */
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
    const answer = await bench.trigger("t", outcome);
    if (answer.outcome !== "enqueued") throw new Error(answer.outcome);
    const by = { worker: "w", pid: 1, host: "h", attempt: 1, made: 0 };
    const started = await bench.store.runs.start(bench.name("t"), answer.run, by);
    if (started.word !== "OK") throw new Error(started.word);
    await bench.store.runs.settle(bench.name("t"), answer.run, { fence: started.fence, made: 0, outcome });
  }

  it("a deadline that passed is told once, and again only where a run has succeeded since", async () => {
    await bench.put({ id: "t", schedule: { every: "1h" }, overlap: "allow", expectWithin: "1m" });
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
    expect(await parts()).toEqual({ e: 3 * MINUTE });
    expect(await missedBy(3 * MINUTE)).toEqual([3 * MINUTE]);
  });

  it("of a task that is paused none is told, and a run that succeeds then begins none", async () => {
    await bench.put({ id: "t", schedule: { every: "1h" }, overlap: "allow", expectWithin: "1m" });
    await bench.store.tasks.pause(bench.name("t"));
    expect(await missedBy(MINUTE)).toEqual([]);
    await ran("succeeded");
    expect(await parts()).toEqual({});
    await bench.store.tasks.resume(bench.name("t"), "now");
    expect(await parts()).toEqual({ e: 2 * MINUTE });
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

  it("of a long failure that is no ASCII is told once, cut between two characters", async () => {
    await bench.put({ id: "t", overlap: "allow" });
    const triggered = await bench.trigger("t", "a");
    if (triggered.outcome !== "enqueued") throw new Error(triggered.outcome);
    const by = { worker: "w", pid: 1, host: "h", attempt: 1, made: 0 };
    const started = await bench.store.runs.start(bench.name("t"), triggered.run, by);
    if (started.word !== "OK") throw new Error(started.word);
    const end = { fence: started.fence, made: 0, outcome: "failed", error: "€".repeat(1_000) } as const;
    await bench.store.runs.settle(bench.name("t"), triggered.run, end);
    const waiting = await bench.store.alerts.waiting(QUEUE);
    expect(waiting.map(({ alert }) => alert.error)).toEqual(["€".repeat(341)]);
    const lines = waiting.map(({ line }) => line);
    expect(await bench.store.alerts.removeDelivered(QUEUE, lines)).toBe(0);
  });

  it("what is no text stands in no other's way, and goes", async () => {
    const { alerts } = internalsOf(bench.store).keys.queue(QUEUE);
    const cut = Buffer.from('{"kind":"failed","task":"system/t","at":1,"error":"\u00e2\u0082"}', "latin1");
    await internalsOf(bench.store).link.ask((client) => client.rpush(alerts, Buffer.from([0xff, 0xfe]), cut));
    const waiting = await bench.store.alerts.waiting(QUEUE);
    expect(waiting.map(({ alert }) => alert.task.id)).toEqual(["t"]);
    expect(
      await bench.store.alerts.removeDelivered(
        QUEUE,
        waiting.map(({ line }) => line),
      ),
    ).toBe(0);
  });

  it("told of twice, an alert takes no other with it", async () => {
    for (const id of ["t", "u"]) await bench.put({ id, schedule: { every: "1h" }, expectWithin: "1m" });
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
