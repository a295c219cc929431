import { internalsOf } from "@carillon/store/internal";
import { expect, it } from "vitest";
import { DECLARED } from "../src/script/script.js";
import { Bench } from "./bench.js";
import { onEveryEngine } from "./engines.js";
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
