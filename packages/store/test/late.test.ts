import { internalsOf } from "@carillon/store/internal";
import { startFaultProxy, startRedis } from "@carillon/testing";
import { expect, it } from "vitest";
import { gate, LANE, onEveryEngine } from "../../../test/helpers.js";
import type { TurnLane } from "../src/run/turns.js";
import { DECLARED } from "../src/script/script.js";
import { Bench, QUEUE, START } from "./bench.js";
import { QUEUES, SCENARIOS, type Scenario, type Sent, sending } from "./writing.js";

const writing = [...DECLARED.values()].filter(({ once }) => once !== "reads");

/** All data, and the change log, which `dump` leaves out. */
async function stateOf(bench: Bench): Promise<unknown> {
  const { link, keys } = internalsOf(bench.store);
  const changes = await link.ask((client) => client.xrange(keys.changes, "-", "+"));
  return { ...(await bench.dump()), changes };
}

/** Acts, undoes it, and delivers the requests of the act again. Returns the state before and after that. */
async function deliverLate(bench: Bench, { script, before, act, opposite }: Scenario) {
  const { link } = internalsOf(bench.store);
  const copies: Sent[] = [];
  await before?.(bench);
  const at = await stateOf(bench);
  await sending(
    bench,
    script,
    (sent) => void copies.push(sent),
    () => act(bench),
  );
  expect(copies.length, `${script} was sent`).toBeGreaterThan(0);
  expect(await stateOf(bench), "the act changes something").not.toEqual(at);
  await opposite(bench);
  const undone = await stateOf(bench);
  for (const copy of copies) await link.run(copy.script, copy.keys, copy.args).catch(() => {});
  return { undone, late: await stateOf(bench) };
}

it("is tried with every script that writes, unless a copy may repeat it", () => {
  const tried = new Set(SCENARIOS.map(({ script }) => script));
  const untried = writing.filter(({ name, once }) => typeof once === "string" && !tried.has(name));
  expect(untried.map(({ name }) => name)).toEqual([]);
  for (const { name, once } of writing)
    if (typeof once === "object") expect(once.repeats, name).toMatch(/^[A-Z].+\.$/);
});

onEveryEngine("a request that arrives again after the opposite one", (connection) => {
  it.each(SCENARIOS.map((one) => [one.script, one.title, one] as const))(
    "changes nothing: %s (%s)",
    async (_, __, scenario) => {
      const bench = await Bench.open(connection(), { queues: QUEUES });
      try {
        const { undone, late } = await deliverLate(bench, scenario);
        expect(late).toEqual(undone);
      } finally {
        await bench.close();
      }
    },
  );
});

onEveryEngine("without the comparison", (connection) => {
  it.each([
    "pause",
    "delete",
    "put",
    "change-settings",
    "change-freezes",
    "put-calendar",
    "pause-queue",
    "enqueue-new",
  ])("a late copy changes something: %s", async (script) => {
    const bench = await Bench.open(connection(), { queues: QUEUES, sabotage: ["once"] });
    try {
      const scenario = SCENARIOS.find((one) => one.script === script) as Scenario;
      const { undone, late } = await deliverLate(bench, scenario);
      expect(late).not.toEqual(undone);
    } finally {
      await bench.close();
    }
  });
});

it("turns that a proxy delivers again take no job and end no run", async () => {
  const redis = await startRedis();
  const proxy = await startFaultProxy(redis);
  const bench = await Bench.open(proxy.url);
  await bench.put({ id: "t", overlap: "allow" });
  for (const token of ["a", "b", "c", "d"]) await bench.trigger("t", token);
  const [lane] = bench.store.runs.lanes(QUEUE, LANE) as [TurnLane];
  const copies = proxy.copy("~turn:");
  const [first] = (await lane.next(1)([])).jobs;
  const [run = "", token = "", , start] = first ?? [];
  const end = { name: bench.name("t"), run, token, fence: Number(start?.[1]), outcome: "succeeded" } as const;
  expect((await lane.next(1)([{ ...end, made: 1, result: 1 }])).words).toEqual(["OK"]);
  // Jobs still wait, and the worker has gone: nothing that it has sent may take one.
  const before = await bench.dump();
  expect(copies.count).toBeGreaterThanOrEqual(2);
  await copies.deliver();
  await copies.deliver();
  expect(await bench.dump()).toEqual(before);
  await bench.close();
  await proxy.close();
  await redis.stop();
});

it("a queue that another client clears during a put keeps the freezes", async () => {
  const redis = await startRedis();
  const [one, other] = [
    await Bench.open(redis.url, { namespace: "n" }),
    await Bench.open(redis.url, { namespace: "n" }),
  ];
  await one.put({ id: "last" });
  await one.store.freezes.put({ id: "f", all: true, from: START, created: START, by: "me" } as never);
  const [reached, go] = [gate(), gate()];
  let put: Promise<unknown> | undefined;
  // The queue is empty, and about to be cleared, when the other client has copied the freezes and is about to put.
  one.before("clear-queue", async () => {
    other.before("put", async () => {
      reached.resolve();
      await go.promise;
    });
    put = other.put({ id: "t" });
    await reached.promise;
  });
  await one.store.tasks.delete(one.name("last"));
  go.resolve();
  await put;
  const { link, keys } = internalsOf(one.store);
  expect(await link.ask((client) => client.hget(keys.queue(QUEUE).frozen, "list"))).toContain('"all":true');
  await one.close();
  await other.close();
  await redis.stop();
});
