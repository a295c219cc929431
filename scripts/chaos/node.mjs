// A scheduler node in its own process: the program of apps/scheduler, of the version in CHAOS_VERSION, with a failpoint
// that obeys the parent.
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { makeDeafening, obeyingFailpoint, tell } from "./failpoint.mjs";

const packages = join(String(process.env.CHAOS_VERSION), "node_modules/@carillon");
const of = (file) => import(pathToFileURL(join(packages, file)).href);
const { readConfig } = await of("scheduler-app/dist/config.js");
const { runNode } = await of("scheduler-app/dist/node.js");
makeDeafening((await of("store/dist/index.js")).Store);

const { config, problems } = readConfig(process.env);
if (!config) throw new Error(JSON.stringify(problems));

// Logs only the decisions that Redis has acknowledged to this node, and those that it refused as outdated.
const logger = {
  debug(details) {
    const { outcome, status, queue, task, nominal, run, at } = details;
    if (outcome === "enqueued") tell({ what: "ack", queue, task, nominal, run, at });
    if (status === "STALE") tell({ what: "stale", queue, task });
  },
  info(_details, message) {
    if (message === "node is running") tell({ what: "ready" });
  },
  warn(details, message) {
    tell({ what: "warning", message, ...details });
  },
  error(details, message) {
    tell({ what: "error", message, ...details });
  },
  fatal(details, message) {
    tell({ what: "error", message, fatal: true, ...details, err: String(details.err ?? "") });
  },
};
process.exit(await runNode(config, logger, obeyingFailpoint()));
