// The schedule engine compared with croner and cron-parser, in one process. Rounds alternate, so that a busy machine
// affects all three alike, and medians count. The ratios matter; nanoseconds depend on the machine.
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { randomOf } from "../lib/random.mjs";
import { readOptions } from "./lib/options.mjs";
import { median, print, target, version } from "./lib/report.mjs";

const options = readOptions({ seed: 1 });

const { compileSchedule } = await import(new URL("../../packages/core/dist/index.js", import.meta.url).href);
const { Cron } = await import("croner");
const { CronExpressionParser } = await import("cron-parser");

/** From minutes to Feb 29: expressions that all three read alike. */
const EXPRESSIONS = [
  "* * * * *",
  "*/5 * * * *",
  "17 * * * *",
  "0 */2 * * *",
  "0 9 * * *",
  "30 2 * * *",
  "0 9 * * 1-5",
  "15,45 8-17 * * 1-5",
  "0 0 1 * *",
  "0 3 15 */3 *",
  "0 12 1 1 *",
  "0 0 29 2 *",
];
const ZONES = ["UTC", "Europe/Paris", "America/New_York", "Australia/Sydney", "Asia/Kolkata"];
const MIX = EXPRESSIONS.flatMap((cron) => ZONES.map((timezone) => ({ cron, timezone })));

const ROUNDS = options.smoke ? 5 : 25;
const BASES = options.smoke ? 3 : 12;
const FROM = Date.UTC(2020, 0, 1);
const TO = Date.UTC(2035, 0, 1);

const random = randomOf(options.seed);

const ENGINES = [
  {
    name: "carillon",
    compile: (entry) => compileSchedule(entry),
    next: (compiled, base) => compiled.next(base),
  },
  {
    name: "croner",
    compile: ({ cron, timezone }) => new Cron(cron, { timezone, paused: true }),
    next: (compiled, base) => compiled.nextRun(new Date(base))?.getTime(),
  },
  {
    name: "cron-parser",
    compile: ({ cron, timezone }) => CronExpressionParser.parse(cron, { tz: timezone }),
    next: (compiled, base) => {
      compiled.reset(new Date(base));
      return compiled.next().getTime();
    },
  },
];

/** Sum of all results, so that no call can be optimised away. */
let sink = 0;

/** Compilers in the engine settle after a while; only the time after that is measured. */
function warmUp(compiled, next) {
  const until = performance.now() + 300;
  while (performance.now() < until) {
    for (const schedule of compiled) sink += next(schedule, Math.floor(FROM + random() * (TO - FROM))) ?? 0;
  }
}

/** ns per call, by engine and expression, a list of rounds for each. */
function measureNext() {
  const compiled = ENGINES.map((engine) => MIX.map((entry) => engine.compile(entry)));
  const samples = ENGINES.map(() => MIX.map(() => /** @type {number[]} */ ([])));
  let disagreements = 0;
  for (const [e, { next }] of ENGINES.entries()) warmUp(compiled[e], next);
  for (let round = 0; round < ROUNDS; round++) {
    for (const [m] of MIX.entries()) {
      const bases = Array.from({ length: BASES }, () => Math.floor(FROM + random() * (TO - FROM)));
      const answers = [];
      for (let turn = 0; turn < ENGINES.length; turn++) {
        const e = (turn + round) % ENGINES.length;
        const { next } = ENGINES[e];
        const schedule = compiled[e][m];
        const begin = process.hrtime.bigint();
        let sum = 0;
        for (const base of bases) sum += next(schedule, base) ?? 0;
        const took = Number(process.hrtime.bigint() - begin) / bases.length;
        sink += sum;
        answers[e] = sum;
        samples[e][m].push(took);
      }
      if (answers.some((answer) => answer !== answers[0])) disagreements++;
    }
  }
  const typical = samples.map((perEntry) => perEntry.map(median));
  return { typical, disagreements };
}

function measureCompile() {
  const times = [];
  for (let round = 0; round < ROUNDS; round++) {
    for (const entry of MIX) {
      const begin = process.hrtime.bigint();
      const compiled = compileSchedule(entry, `task-${round}`);
      times.push(Number(process.hrtime.bigint() - begin) / 1_000);
      sink += compiled.next(FROM) ?? 0;
    }
  }
  return median(times);
}

/** Distinct daily schedules of one zone: each minute of the day, with 70 choices of weekdays. */
function distinctDaily(count) {
  return Array.from({ length: count }, (_, i) => {
    const days = [...Array(7).keys()].filter((day) => ((Math.floor(i / 1_440) + 1) >> day) & 1);
    return { cron: `${i % 60} ${Math.floor(i / 60) % 24} * * ${days.join()}`, timezone: "Europe/Paris" };
  });
}

function measureHeap(schedules) {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc");
  for (const schedule of schedules.slice(0, 100)) sink += compileSchedule(schedule).next(FROM);
  const kept = new Array(schedules.length);
  collect();
  const before = process.memoryUsage().heapUsed;
  for (let i = 0; i < schedules.length; i++) kept[i] = compileSchedule(schedules[i]);
  collect();
  return { bytes: (process.memoryUsage().heapUsed - before) / schedules.length, kept };
}

function measureMany(kept) {
  const times = [];
  for (let round = 0; round < (options.smoke ? 2 : 7); round++) {
    const base = Math.floor(FROM + random() * (TO - FROM));
    const begin = performance.now();
    for (const compiled of kept) sink += compiled.next(base);
    times.push(performance.now() - begin);
  }
  return median(times) / 1_000;
}

const { typical, disagreements } = measureNext();
const perEngine = typical.map(median);
const ratio = (e) => perEngine[e] / perEngine[0];
const compileMicros = measureCompile();
// The target is for 100,000; a smoke test computes fewer and scales the result.
const many = options.smoke ? 10_000 : 100_000;
const { bytes, kept } = measureHeap(distinctDaily(many));
const manySeconds = (measureMany(kept) * 100_000) / many;

const targets = [
  target("next: times faster than croner (median)", ratio(1), ">=", 20),
  target("next: times faster than cron-parser (median)", ratio(2), ">=", 20),
  target("heap of a compiled expression, bytes", bytes, "<=", 3_072),
  target("compile, microseconds (median)", compileMicros, "<=", 100),
  target("next of 100,000 daily schedules, seconds", manySeconds, "<=", 0.5),
];
const seen = {
  "median ns": ENGINES.map(({ name }, e) => `${name} ${Math.round(perEngine[e])}`).join(", "),
  "rounds with different answers": `${disagreements} of ${ROUNDS * MIX.length} (the oracles say who is right)`,
  versions: `croner ${version("croner")}, cron-parser ${version("cron-parser")}, tzdata ${process.versions.tz}`,
  rounds: `seed ${options.seed}, ${MIX.length} expressions, ${ROUNDS} rounds of ${BASES} bases; ${sink > 0 ? "ok" : "?"}`,
};
/** Medians of each expression in all zones, and how many times faster we are. */
const table = EXPRESSIONS.map((expression, i) => {
  const ns = typical.map((list) => median(list.slice(i * ZONES.length, (i + 1) * ZONES.length)));
  const times = { "than croner": ns[1] / ns[0], "than cron-parser": ns[2] / ns[0] };
  return { expression, ...times, ns: ns.map(Math.round).join(" / ") };
});
print({ bench: "time", targets, seen, table, smoke: options.smoke }, options.json);
