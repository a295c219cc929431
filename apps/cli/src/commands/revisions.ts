import type { TaskRevision } from "@carillon/sdk";
import { type Globals, type Register, taskCommand, taskRef, wholeNumber, withClient } from "../command.js";
import { type Column, table } from "../table.js";
import { tellPuts } from "./put.js";

interface RevisionOptions extends Globals {
  queue?: string;
  by?: string;
}

export const registerRevisions: Register = (program, out) => {
  taskCommand(program, "revisions", "earlier definitions of a task, newest first")
    .description("Lists the replaced definitions of a task, newest first; --json shows them in full.")
    .action(async (task: string, _: unknown, command) => {
      const options: RevisionOptions = command.optsWithGlobals();
      const ref = taskRef(task, options.queue, options.owner);
      const revisions = await withClient(options, (client) => client.revisions(ref));
      if (options.json) return out.json({ revisions });
      await out.write(revisions.length > 0 ? table(COLUMNS, revisions, out) : "No revisions.\n");
    });
};

export const registerRestore: Register = (program, out) => {
  taskCommand(program, "restore", "put an earlier definition of a task again")
    .description("Puts an earlier definition of a task again. Neither pauses nor resumes it.")
    .argument("<number>", "as revisions lists it", wholeNumber)
    .option("--by <name>", "who")
    .action(async (task: string, number: number, _: unknown, command) => {
      const options: RevisionOptions = command.optsWithGlobals();
      const ref = taskRef(task, options.queue, options.owner);
      const put = await withClient(options, (client) => client.restore(ref, number, { by: options.by }), {
        maxPayloadBytes: Number.MAX_SAFE_INTEGER,
      });
      await (options.json ? out.json(put) : tellPuts([put], out));
    });
};

const COLUMNS: Column<TaskRevision>[] = [
  { title: "NUMBER", right: true, value: ({ number }) => String(number) },
  { title: "REPLACED", value: ({ until }, { when }) => when(until) },
  { title: "BY", value: ({ by }) => by ?? "-" },
  { title: "TYPE", value: ({ definition }) => definition.type },
  { title: "SCHEDULE", value: ({ definition }) => JSON.stringify(definition.schedule) },
];
