// A scheduler node in its own process: the program of apps/scheduler, of the version in CHAOS_VERSION, with a failpoint
// that obeys the parent.
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { obeyingFailpoint, tell } from "./failpoint.mjs";

const app = join(String(process.env.CHAOS_VERSION), "node_modules/@carillon/scheduler-app/dist");
const { readConfig } = await import(pathToFileURL(join(app, "config.js")).href);
const { runNode } = await import(pathToFileURL(join(app, "node.js")).href);

const { config, problems } = readConfig(process.env);
if (!config) throw new Error(JSON.stringify(problems));

// Logs only the decisions that Redis has acknowledged to this node.
const logger = {
  debug(details) {
    if (details.outcome === "enqueued") {
      const { queue, task, nominal, run, at } = details;
      tell({ what: "ack", queue, task, nominal, run, at });
    }
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
