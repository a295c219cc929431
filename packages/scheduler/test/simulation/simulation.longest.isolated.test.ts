import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { CONTROLS, tryControl } from "./controls.js";
import { Coverage } from "./coverage.js";
import { Ground } from "./ground.js";
import { Report } from "./report.js";
import { simulate } from "./simulation.js";
import { watchMulti } from "./watch-multi.js";

vi.mock("node:crypto", async (original) => {
  const crypto = await original<typeof import("node:crypto")>();
  const { chance } = await import("./seams.js");
  return { ...crypto, randomBytes: (count: number) => chance.bytes?.(count) ?? crypto.randomBytes(count) };
});
vi.mock("node:timers/promises", async (original) => {
  const timers = await original<typeof import("node:timers/promises")>();
  // Uses the global timer of the moment: the simulation's, while one runs.
  return { ...timers, setTimeout: (ms: number) => new Promise((resolve) => setTimeout(resolve, ms)) };
});

const number = (name: string) => (process.env[name] ? Number(process.env[name]) : undefined);
/** Seed of a single history, whose events are printed. */
const ONE = number("CARILLON_SIMULATE_SEED");
const SEEDS = ONE === undefined ? (number("CARILLON_SIMULATE_SEEDS") ?? 40) : 1;
const FROM = ONE ?? number("CARILLON_SIMULATE_FROM") ?? 1;
/** Number of seeds after which a control counts as not caught. */
const CONTROL_SEEDS = 1_000;
const HOURS = { timeout: 6 * 3_600_000 };
/** Number of histories in which each of these faults must strike. */
const ENOUGH = 1_000;
const EACH_STEP = [
  ...["lock", "renew", "free", "read-due", "commit", "unlock"].map((step) => `node before ${step}`),
  ...["read-due", "commit"].map((step) => `node after ${step}`),
  ...["reconcile", "settle-run"].map((step) => `node before ${step}`),
  ...["start-run", "read-settle", "settle-run", "end"].map((step) => `worker before ${step}`),
  ...["start-run", "settle-run"].map((step) => `worker after ${step}`),
];

const report = new Report(process.env.CARILLON_SIMULATE_REPORT === "1");
let ground: Ground;
beforeAll(async () => {
  ground = await Ground.open();
});
afterAll(async () => {
  await ground.close();
});

test(`every promise is kept (${SEEDS} histories from seed ${FROM})`, HOURS, async () => {
  const coverage = new Coverage();
  report.begin();
  for (let seed = FROM; seed < FROM + SEEDS; seed++) {
    const history = await simulate(ground, seed, { coverage });
    report.add(history);
    if (ONE !== undefined) report.trace(history);
    if (history.violation !== undefined) {
      if (ONE === undefined) report.trace(history);
      expect.fail(`seed ${seed}: ${history.violation}`);
    }
  }
  if (ONE === undefined) report.end(coverage);
  if (SEEDS >= ENOUGH) expect(EACH_STEP.filter((point) => !coverage.struck(point))).toEqual([]);
});

test.skipIf(ONE !== undefined)("a seed repeats one history: the same steps, the same Redis", async () => {
  for (const seed of [FROM, FROM + 1]) {
    const [first, second] = [await again(seed), await again(seed)];
    expect(second.trace).toEqual(first.trace);
    expect(second).toEqual(first);
  }
});

const again = (seed: number) => simulate(ground, seed, { coverage: new Coverage(), digest: true });

test.skipIf(ONE !== undefined).each(CONTROLS)("the control fails: $name", HOURS, async (control) => {
  const finding = await tryControl(ground, control, CONTROL_SEEDS);
  report.control(finding);
  expect(finding.violation).toMatch(control.breaks);
});

test.skipIf(ONE !== undefined)("WATCH and MULTI keep the promises if nothing fails", HOURS, async () => {
  const sabotage = ["fence", "overlap-guard"] as const;
  for (let seed = FROM; seed < FROM + 4; seed++) {
    const { violation } = await simulate(ground, seed, {
      sabotage,
      rig: watchMulti("sha"),
      faults: [],
      coverage: new Coverage(),
    });
    expect(violation).toBeUndefined();
  }
});
