import type { Triggered } from "@carillon/sdk";
import { Option } from "commander";
import { type Globals, type Register, taskCommand, taskRef, tasksCommand, withClient } from "../command.js";
import { EXIT } from "../exit-codes.js";
import { misuse } from "../failure.js";
import { assertOne, doToMany, type Named } from "./many.js";
import { OVERLAPS, type Overlap } from "./overlaps.js";

interface VerbOptions extends Named {
  note?: string;
  by?: string;
  from?: "now" | "catch-up";
  cancelQueued?: boolean;
}

export const registerRm: Register = (program, out) => {
  tasksCommand(program, "rm", "delete a task with its records, or many").action(
    async (task: string | undefined, _: unknown, command) => {
      const options: VerbOptions = command.optsWithGlobals();
      if (task === undefined) {
        const deed = { verb: "rm", past: "deleted" };
        return doToMany({ ...deed, act: (client, filter) => client.deleteAll(filter) }, options, out);
      }
      assertOne(options);
      await withClient(options, (client) => client.delete(taskRef(task, options.queue, options.owner)));
      await (options.json ? out.json({ task, deleted: true }) : out.write(`deleted ${task}\n`));
    },
  );
};

export const registerPause: Register = (program, out) => {
  tasksCommand(program, "pause", "hold a task's future occurrences, or those of many; queued runs go on")
    .option("--note <text>", "why; shown with the task")
    .option("--by <name>", "who")
    .option("--cancel-queued", "of one task: cancel its runs that wait for a worker, too")
    .action(async (task: string | undefined, _: unknown, command) => {
      const options: VerbOptions = command.optsWithGlobals();
      const why = given({ note: options.note, by: options.by });
      if (task === undefined) {
        if (options.cancelQueued)
          throw misuse("cancel-queued", "is for one task.", "Leave it out, or give a task.");
        const deed = { verb: "pause", past: "paused", state: "scheduled" } as const;
        return doToMany({ ...deed, act: (client, filter) => client.pauseAll(filter, why) }, options, out);
      }
      assertOne(options);
      const changed = await withClient(options, (client) =>
        client.pause(taskRef(task, options.queue, options.owner), {
          ...why,
          cancelQueued: options.cancelQueued ?? false,
        }),
      );
      const text = `${changed ? "paused" : "was paused already:"} ${task}\n`;
      await (options.json ? out.json({ task, state: "paused", changed }) : out.write(text));
    });
};

export const registerResume: Register = (program, out) => {
  tasksCommand(program, "resume", "let a paused task go on, or many")
    .addOption(
      new Option("--from <where>", "now passes over what fell due meanwhile; catch-up owes it")
        .choices(["now", "catch-up"])
        .default("now"),
    )
    .option("--by <name>", "who")
    .action(async (task: string | undefined, _: unknown, command) => {
      const options: VerbOptions = command.optsWithGlobals();
      const how = { from: options.from ?? "now", ...given({ by: options.by }) };
      if (task === undefined) {
        const deed = { verb: "resume", past: "resumed", state: "paused" } as const;
        return doToMany({ ...deed, act: (client, filter) => client.resumeAll(filter, how) }, options, out);
      }
      assertOne(options);
      const changed = await withClient(options, (client) =>
        client.resume(taskRef(task, options.queue, options.owner), how),
      );
      const text = `${changed ? "resumed" : "was not paused:"} ${task}\n`;
      await (options.json ? out.json({ task, changed }) : out.write(text));
    });
};

/** What was given, without what was not. */
function given<Options extends Record<string, string | undefined>>(
  options: Options,
): { [Name in keyof Options]?: string } {
  const entries = Object.entries(options).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as { [Name in keyof Options]?: string };
}

export const registerTrigger: Register = (program, out) => {
  taskCommand(program, "trigger", "run a task now, paused or not; its schedule is not touched")
    .addOption(
      new Option(
        "--overlap <policy>",
        "what to do while a run is not over; default: the task's policy",
      ).choices(OVERLAPS),
    )
    .action(async (task: string, _: unknown, command) => {
      const options: Globals & { queue?: string; overlap?: Overlap } = command.optsWithGlobals();
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
  switch (result.outcome) {
    case "enqueued":
      return `enqueued ${task}: run ${result.run}`;
    case "queued":
      return `queued ${task}: it starts when the run in its way is over`;
    default:
      return `skipped ${task}: a run of it is not over [${result.code}]. --overlap allow runs it all the same.`;
  }
}
