// The schedule engine compared with croner and cron-parser, in one process. Rounds alternate, so that a busy machine
// affects all three alike, and medians count. The ratios matter; nanoseconds depend on the machine.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { cpus } from "node:os";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { readOptions } from "./lib/options.mjs";

const options = readOptions({ seed: 1 });

const require = createRequire(import.meta.url);
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

/** The generator mulberry32: the same bases in each run of a seed. */
function generator(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}
const random = generator(options.seed);

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

const median = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)];
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

function version(name) {
  // Not through `require`: packages need not export their package.json.
  for (const folder of require.resolve.paths(name) ?? []) {
    try {
      return JSON.parse(readFileSync(`${folder}/${name}/package.json`, "utf8")).version;
    } catch {}
  }
  return "?";
}

const { typical, disagreements } = measureNext();
const perEngine = typical.map(median);
const ratio = (e) => perEngine[e] / perEngine[0];
const compileMicros = measureCompile();
// The target is for 100,000; a smoke test computes fewer and scales the result.
const many = options.smoke ? 10_000 : 100_000;
const { bytes, kept } = measureHeap(distinctDaily(many));
const manySeconds = (measureMany(kept) * 100_000) / many;

const target = (metric, value, goal, pass) => ({
  metric,
  value: Number(value.toFixed(3)),
  target: goal,
  pass,
});
const targets = [
  target("next: times faster than croner (median)", ratio(1), ">= 20", ratio(1) >= 20),
  target("next: times faster than cron-parser (median)", ratio(2), ">= 20", ratio(2) >= 20),
  target("heap of a compiled expression, bytes", bytes, "<= 3072", bytes <= 3_072),
  target("compile, microseconds (median)", compileMicros, "< 100", compileMicros < 100),
  target("next of 100,000 daily schedules, seconds", manySeconds, "< 0.5", manySeconds < 0.5),
];

console.log("How many times faster (median of next, whole mix; then by expression, all zones)");
console.log(`  than croner ${ratio(1).toFixed(1)}, than cron-parser ${ratio(2).toFixed(1)}`);
for (const [i, cron] of EXPRESSIONS.entries()) {
  const part = typical.map((list) => median(list.slice(i * ZONES.length, (i + 1) * ZONES.length)));
  const ns = part.map((value) => Math.round(value)).join(" / ");
  console.log(
    `  ${cron.padEnd(20)} ${(part[1] / part[0]).toFixed(1).padStart(7)} ${(part[2] / part[0]).toFixed(1).padStart(7)}   ns: ${ns}`,
  );
}
console.log(`\nmedian ns: ${ENGINES.map(({ name }, e) => `${name} ${Math.round(perEngine[e])}`).join(", ")}`);
console.log(
  `rounds with different answers: ${disagreements} of ${ROUNDS * MIX.length} (the oracles say who is right)`,
);
for (const { metric, value, target: goal, pass } of targets) {
  console.log(`${pass ? "pass" : "FAIL"}  ${metric}: ${value} (${goal})`);
}
const cpu = cpus();
console.log(
  `\n${cpu[0]?.model ?? "?"} x ${cpu.length}, Node ${process.versions.node}, V8 ${process.versions.v8}, tzdata ${process.versions.tz}, ` +
    `croner ${version("croner")}, cron-parser ${version("cron-parser")}; seed ${options.seed}, ${MIX.length} expressions, ` +
    `${ROUNDS} rounds of ${BASES} bases${options.smoke ? " (smoke: too few to judge by)" : ""}; ${sink > 0 ? "ok" : "?"}`,
);
if (options.json) console.log(JSON.stringify({ bench: "time", targets }));
