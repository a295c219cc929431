// A worker in its own process, to be killed. Reports its steps, one JSON line each.
import { defineTask, Worker } from "@carillon/sdk";
import { z } from "zod";

const { REDIS_URL, CARILLON_NAMESPACE, MODE } = process.env;
const payload = z.looseObject({});
const say = (what) => process.stdout.write(`${JSON.stringify({ ...what, pid: process.pid })}\n`);
const forEver = () => new Promise(() => {});

const work = defineTask("work", {
  queue: "bells",
  payload,
  async handler(_payload, { attempt, occurrence }) {
    say({ attempt, run: occurrence.run });
    if (MODE === "hang") await forEver();
  },
});

const fanOut = defineTask("fan-out", {
  queue: "bells",
  payload,
  generate: () => Array.from({ length: 100 }, (_, n) => n),
  async process(item, { attempt }) {
    say({ item, attempt });
    if (item === 7 && MODE === "seven") process.exit(1);
  },
});

const oneItem = defineTask("one-item", {
  queue: "bells",
  payload,
  generate: () => ["only"],
  async process(item, { attempt }) {
    say({ item, attempt });
    if (MODE === "hang") await forEver();
  },
});

const worker = new Worker({
  connection: REDIS_URL,
  namespace: CARILLON_NAMESPACE,
  types: [work, fanOut, oneItem],
  lockDuration: 2_000,
  stalledInterval: 200,
  logger: { debug() {}, info() {}, warn() {}, error() {} },
});
worker.on("settled", ({ run, outcome }) => say({ settled: run, outcome }));
worker.on("error", () => {});
await worker.start();
say({ ready: true });
