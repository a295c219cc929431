// The command: one run of the battery, the positive controls, the report.
import { parseArgs } from "node:util";
import { Trouble } from "../lib/project.mjs";
import { redisBinary } from "../lib/setup.mjs";
import { runBattery } from "./battery.mjs";
import { CONTROL_NAMES, runControls } from "./controls.mjs";
import { KINDS } from "./faults/index.mjs";
import { summary, textOf, verdict } from "./report.mjs";
import { TOPOLOGY_NAMES } from "./servers.mjs";
import { copies, runDir } from "./versions.mjs";

/** @param {string[]} args @returns {Promise<number>} the exit code */
export async function chaos(args) {
  const { json, ...options } = readOptions(args);
  const dir = runDir();
  const binary = await redisBinary();
  process.env.CARILLON_REDIS_SERVER = binary;
  const all = { ...options, dir, versions: copies(dir), redisBinary: binary };
  const run = await runBattery(all);
  const report = summary(run, await runControls(all));
  console.log(textOf(run, report));
  if (json) console.log(JSON.stringify(report));
  return verdict(report).length === 0 ? 0 : 1;
}

function readOptions(args) {
  const { values } = parseArgs({
    args,
    options: {
      seconds: { type: "string", default: "60" },
      nodes: { type: "string", default: "5" },
      /** In each of the three queues that are only counted; each task is due once a second. */
      tasks: { type: "string", default: "40" },
      seed: { type: "string", default: String(Date.now() % 100_000) },
      topology: { type: "string", default: "single" },
      only: { type: "string", default: "" },
      /** Positive controls by name; default: all. */
      controls: { type: "string", default: CONTROL_NAMES.join(",") },
      json: { type: "boolean", default: false },
      verbose: { type: "boolean", default: false },
    },
  });
  const number = (name, least) => {
    const value = Number(values[name]);
    if (Number.isInteger(value) && value >= least) return value;
    throw new Trouble(`--${name}: give a whole number from ${least} on.`);
  };
  const list = (name, what, known) => {
    const named = values[name].split(",").filter(Boolean);
    const unknown = named.find((one) => !known.includes(one));
    if (unknown)
      throw new Trouble(`--${name}: there is no ${what} "${unknown}". There are: ${known.join(", ")}.`);
    return named;
  };
  if (!TOPOLOGY_NAMES.includes(values.topology))
    throw new Trouble(`--topology: give one of ${TOPOLOGY_NAMES.join(", ")}.`);
  return {
    seconds: number("seconds", 5),
    nodes: number("nodes", 2),
    tasks: number("tasks", 1),
    seed: number("seed", 0),
    topology: values.topology,
    only: list("only", "fault", KINDS),
    controls: list("controls", "control", CONTROL_NAMES),
    json: values.json,
    verbose: values.verbose,
  };
}
