import type { Triggered } from "@carillon/sdk";
import { Option } from "commander";
import { type Globals, type Register, taskCommand, taskRef, withClient } from "../command.js";
import { EXIT } from "../exit-codes.js";

interface VerbOptions extends Globals {
  queue?: string;
  note?: string;
  by?: string;
  from?: "now" | "catch-up";
  overlap?: "skip" | "allow";
}

export const registerRm: Register = (program, out) => {
  taskCommand(program, "rm", "delete a task with its records").action(
    async (task: string, _: unknown, command) => {
      const options: VerbOptions = command.optsWithGlobals();
      await withClient(options, (client) => client.delete(taskRef(task, options.queue, options.owner)));
      await (options.json ? out.json({ task, deleted: true }) : out.write(`deleted ${task}\n`));
    },
  );
};

export const registerPause: Register = (program, out) => {
  taskCommand(program, "pause", "hold a task's future occurrences; queued runs go on")
    .option("--note <text>", "why; shown with the task")
    .option("--by <name>", "who")
    .action(async (task: string, _: unknown, command) => {
      const options: VerbOptions = command.optsWithGlobals();
      const { note, by } = options;
      const changed = await withClient(options, (client) =>
        client.pause(taskRef(task, options.queue, options.owner), {
          ...(note === undefined ? {} : { note }),
          ...(by === undefined ? {} : { by }),
        }),
      );
      const text = `${changed ? "paused" : "was paused already:"} ${task}\n`;
      await (options.json ? out.json({ task, state: "paused", changed }) : out.write(text));
    });
};

export const registerResume: Register = (program, out) => {
  taskCommand(program, "resume", "let a paused task go on")
    .addOption(
      new Option("--from <where>", "now passes over what fell due meanwhile; catch-up owes it")
        .choices(["now", "catch-up"])
        .default("now"),
    )
    .option("--by <name>", "who")
    .action(async (task: string, _: unknown, command) => {
      const options: VerbOptions = command.optsWithGlobals();
      const { from = "now", by } = options;
      const changed = await withClient(options, (client) =>
        client.resume(taskRef(task, options.queue, options.owner), {
          from,
          ...(by === undefined ? {} : { by }),
        }),
      );
      const text = `${changed ? "resumed" : "was not paused:"} ${task}\n`;
      await (options.json ? out.json({ task, changed }) : out.write(text));
    });
};

export const registerTrigger: Register = (program, out) => {
  taskCommand(program, "trigger", "run a task now, paused or not; its schedule is not touched")
    .addOption(
      new Option(
        "--overlap <policy>",
        "what to do while a run is not over; default: the task's policy",
      ).choices(["skip", "allow"]),
    )
    .action(async (task: string, _: unknown, command) => {
      const options: VerbOptions = command.optsWithGlobals();
      const { overlap } = options;
      const result = await withClient(options, (client) =>
        client.trigger(taskRef(task, options.queue, options.owner), overlap === undefined ? {} : { overlap }),
      );
      if (result.outcome === "skipped") process.exitCode = EXIT.refused;
      if (options.json) return out.json(result);
      await out.write(`${said(task, result)}\n`);
    });
};

function said(task: string, result: Triggered): string {
  if ("run" in result) return `enqueued ${task}: run ${result.run}`;
  if (!("code" in result)) return `queued ${task}: it waits until the run before it is over`;
  return `skipped ${task}: a run of it is not over [${result.code}]. --overlap allow runs it all the same.`;
}
