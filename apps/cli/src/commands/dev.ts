import { type Globals, type Register, wholeNumber } from "../command.js";
import { loadDev } from "../load-dev.js";

export interface DevOptions extends Globals {
  port: number;
}

export const registerDev: Register = (program, out) => {
  program
    .verb(
      "dev",
      "a Redis, a node, the console and a worker, for development",
      [
        "Runs all that tasks need on this machine, until Ctrl-C: a scheduler node, the console, and with FILE a worker of the task types",
        "that it exports, which puts the tasks that it exports; again when code in FILE's folder changes. Prints a line",
        "for each event.",
        "",
        "Uses the Redis of --redis or REDIS_URL; else starts one, on port 6379 if that is free, whose data is deleted at the end.",
      ].join("\n"),
    )
    .argument("[file]", "a module that exports task types, and tasks made by `task`; TypeScript too")
    .needs("--port <port>", "port of the console; another one if it is taken", {
      read: wholeNumber,
      otherwise: 9465,
    })
    .does(async (options, file: string | undefined) => {
      const { dev } = await loadDev();
      await dev(file, options, out);
    });
};
