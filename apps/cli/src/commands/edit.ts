import type { AnswerTo } from "@carillon/ops";
import type { Client, Definition, PutResult, TaskInput, TaskRef } from "@carillon/sdk";
import { collect, type Globals, type Register, taskRef, withClient } from "../command.js";
import { Draft } from "../draft.js";
import { Failure, misuse, reportOf } from "../failure.js";
import { printable } from "../text.js";
import { fieldLines } from "./changes.js";
import { tasksCommand } from "./conditions.js";
import { type Deed, doToMany, onlyTask } from "./many.js";
import { putsText } from "./put.js";

type Edit = AnswerTo<"tasks.editMany">["edits"][number];

/** Fields with flags of their own; `--set` sets fields here, and is no condition. */
const OWN = ["set", "fields", "unset", "add"] as const;

export const registerEdit: Register = (program, out) => {
  tasksCommand(
    program,
    "edit",
    "change a task: in an editor, or by --set and --unset; or many",
    "tasks.editMany",
    {
      but: OWN,
    },
  )
    .description(
      "Changes a task as it is. Without --set, --unset and --add its definition is opened as JSON in $VISUAL, else $EDITOR,\n" +
        "and the saved text is put, unless someone else has changed the task meanwhile. Of several tasks, or with --all of all\n" +
        "that match, none is changed if the change does not fit one of them.",
    )
    .flag(
      "--set <field=value>",
      "JSON, or else text: priority=5, schedule.timezone=Europe/Paris; repeatable",
      collect,
    )
    .flag("--unset <field>", "reset a field to its default; repeatable", collect)
    .flag("--add <field=entry>", "an entry for a list that lacks it: tags=billing; repeatable", collect)
    .does(async ({ set = [], unset = [], add = [], ...options }, tasks: string[]) => {
      const { by } = options;
      const task = onlyTask(tasks, options);
      const added: Record<string, unknown[]> = {};
      for (const [path, entry] of add.map(assignment("add"))) added[path] = [...(added[path] ?? []), entry];
      const changes = { fields: Object.fromEntries(set.map(assignment("set"))), unset, add: added };
      if (task === undefined) {
        const deed: Deed<"tasks.editMany"> = {
          ...{ calls: "tasks.editMany", verb: "edit", past: "changed" },
          input: async () => changes,
          more: ({ edits }) => (options.dryRun ? edits.map(editText).join("") : ""),
        };
        return doToMany(deed, tasks, options, out);
      }
      const ref = taskRef(task, options.queue, options.owner);
      const isGiven = [set, unset, add].some(({ length }) => length > 0);
      const { withFields } = await import("../load.js");
      const put = await withClient(
        options,
        (client) =>
          isGiven
            ? client.update(ref, (definition) => withFields(definition, changes) as TaskInput, { by })
            : inEditor(client, ref, options),
        // The payload was stored already, so its size is within the limit of the client that stored it.
        { maxPayloadBytes: Number.MAX_SAFE_INTEGER },
      );
      await (options.json ? out.json(put) : out.write(putsText([put], out)));
    });
};

/** The fields of a task that differ. */
function editText({ owner, id, preview: { before = {}, after = {} } }: Edit): string {
  return `${owner}/${id}\n${fieldLines(before, after)
    .map((line) => `${printable(line)}\n`)
    .join("")}`;
}

/** Reads `name=value`; text that is not JSON is used as a string. @throws `INVALID_OPTION` */
const assignment =
  (option: "set" | "add") =>
  (text: string): [path: string, value: unknown] => {
    const at = text.indexOf("=");
    if (at < 1) throw misuse(option, `got ${text}.`, "Use FIELD=VALUE, for example priority=5.");
    const value = text.slice(at + 1);
    try {
      return [text.slice(0, at), JSON.parse(value)];
    } catch {
      return [text.slice(0, at), value];
    }
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
