import type { LedgerEntry, Task } from "@carillon/sdk";
import { type Globals, type Register, taskCommand, taskRef, withClient } from "../command.js";
import type { Output } from "../output.js";
import { type Column, cut, facts, table } from "../text.js";
import { when } from "../times.js";

/** Ledger lines shown to people; --json has all. */
const SHOWN = 10;

export const registerShow: Register = (program, out) => {
  taskCommand(program, "show", "show a task, and what of it was not enqueued").action(
    async (task: string, _: unknown, command) => {
      const options: Globals & { queue?: string } = command.optsWithGlobals();
      const [found, ledger] = await withClient(options, async (client) => {
        const got = await client.get(taskRef(task, options.queue, options.owner));
        const { queue, owner, id } = got;
        return [got, await client.ledger({ queue, owner, id })] as const;
      });
      if (options.json) return out.json({ ...found, ledger });
      await out.write(describe(found, ledger, out));
    },
  );
};

function describe(task: Task, ledger: readonly LedgerEntry[], out: Output): string {
  const { paused } = task;
  const by = paused?.by ? ` by ${paused.by}` : "";
  const note = paused?.note ? `: ${paused.note}` : "";
  const head = facts(
    [
      ["task", `${task.owner}/${task.id}`],
      ["queue", task.queue],
      ["type", task.type],
      ["description", task.description],
      ["state", task.state],
      ["paused", paused && `${when(paused.at)}${by}${note}`],
      ["schedule", task.humanized],
      ["definition", JSON.stringify(task.schedule)],
      ["next", when(task.nextExecution)],
      ["last decided", when(task.cursor)],
      ["overlap", task.overlap],
      ["catch-up", task.catchUp],
      ["priority", task.priority ? String(task.priority) : undefined],
      ["tags", task.tags.join(", ")],
      ["subject", task.subject],
      ["submitter", task.submitter],
      ["group", task.group],
      ["payload", cut(JSON.stringify(task.payload), 500)],
      ["generation", String(task.generation)],
      ["created", when(task.created)],
      ["updated", when(task.updated)],
    ],
    out.paint,
  );
  if (ledger.length === 0) return head;
  const more = ledger.length > SHOWN ? `… and ${ledger.length - SHOWN} more; --json shows them\n` : "";
  return `${head}\nNot enqueued:\n${table(COLUMNS, ledger.slice(0, SHOWN), out.paint)}${more}`;
}

const COLUMNS: Column<LedgerEntry>[] = [
  { title: "REASON", value: (entry) => entry.reason },
  { title: "FROM", value: (entry) => when(entry.from) },
  { title: "TO", value: (entry) => (entry.to === entry.from ? "" : when(entry.to)) },
  { title: "BY", value: (entry) => entry.by },
];
