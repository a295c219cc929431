import type { Client, Definition, PutResult, TaskInput, TaskRef } from "@carillon/sdk";
import { edited } from "../assignments.js";
import { collect, type Globals, type Register, taskCommand, taskRef } from "../command.js";
import { Draft } from "../draft.js";
import { Failure, reportOf } from "../failure.js";
import { putsText } from "./put.js";

export const registerEdit: Register = (program, out) => {
  taskCommand(program, "edit", "change a task: in an editor, or by --set and --unset")
    .description(
      "Changes a task as it is. Without --set and --unset its definition is opened as JSON in $VISUAL, else $EDITOR,\n" +
        "and the saved text is put, unless someone else has changed the task meanwhile.",
    )
    .flag(
      "--set <field=value>",
      "JSON, or else text: priority=5, schedule.timezone=Europe/Paris; repeatable",
      collect,
    )
    .flag("--unset <field>", "reset a field to its default; repeatable", collect)
    .flag("--by <name>", "who")
    .answer(
      ({ client, options }, task: string) => {
        const { set = [], unset = [], by } = options;
        const ref = taskRef(task, options.queue, options.owner);
        return set.length + unset.length > 0
          ? client.update(ref, (definition) => edited(definition, set, unset) as TaskInput, { by })
          : inEditor(client, ref, options);
      },
      (put) => putsText([put], out),
      // The payload was stored already, so its size is within the limit of the client that stored it.
      { maxPayloadBytes: Number.MAX_SAFE_INTEGER },
    );
};

async function inEditor(
  client: Client,
  ref: TaskRef,
  { io, by }: Globals & { by?: string },
): Promise<PutResult> {
  const draft = new Draft(io);
  try {
    const change = async (definition: Definition) => {
      if (draft.file !== undefined) throw changedMeanwhile();
      return (await draft.edit(definition)) as TaskInput;
    };
    const put = await client.update(ref, change, { by });
    await draft.discard();
    return put;
  } catch (error) {
    // Keep the edited text.
    if (draft.file === undefined) throw error;
    const report = reportOf(error);
    const kept = `What you saved is in ${draft.file}.`;
    throw new Failure({ ...report, message: `${report.message} ${kept}` }, error);
  }
}

function changedMeanwhile(): Failure {
  const remedy = "Look at it, and edit it again.";
  const message = `Someone else has changed the task while you edited it. ${remedy}`;
  return new Failure({ code: "CONFLICT", message, remedy });
}
