// Cost of run records in a worker: a Carillon worker drains a queue, compared with BullMQ's own worker on the same
// jobs. Handlers do nothing and no node is running. Rounds alternate on one Redis.
import { drainRounds } from "./lib/drain.mjs";
import { readOptions } from "./lib/options.mjs";
import { median, print, target } from "./lib/report.mjs";
import { startServer } from "./lib/server.mjs";

const options = readOptions({
  ...{ runs: [20_000, 400], rounds: [5, 1], warmup: [1, 0], concurrency: 50 },
});
const server = await startServer();
const rounds = await drainRounds(server, options);
const ratio = (pick) => median(rounds.map(({ Carillon, BullMQ }) => pick(Carillon) / pick(BullMQ)));
print(
  {
    bench: "worker",
    smoke: options.smoke,
    redis: await server.version(),
    targets: [
      target(
        "share of the runs that were worked once and are on record as succeeded",
        Math.min(...rounds.map(({ Carillon }) => Carillon.recorded)),
        ">=",
        1,
      ),
    ],
    seen: {
      "runs a second, as a share of BullMQ's worker's": ratio(({ rate }) => rate),
      "Redis CPU of a run, times theirs": ratio(({ redis }) => redis),
      "the worker's own CPU of a run, times theirs": ratio((one) => one.process),
    },
    table: ["Carillon", "BullMQ"].map((kind) => {
      const of = (pick) => Math.round(10 * median(rounds.map((pair) => pick(pair[kind])))) / 10;
      return {
        worker: kind,
        "runs a second": of(({ rate }) => rate),
        "Redis CPU us": of(({ redis }) => redis),
        "own CPU us": of((one) => one.process),
        "commands of a run": of(({ commands }) => commands),
        "scripts of a run": of(({ scripts }) => scripts),
      };
    }),
  },
  options.json,
);
await server.stop();
process.exit(0);
