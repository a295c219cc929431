import type { Operator } from "@carillon/ops";
import type { Client, ListOptions, Task, TaskName } from "@carillon/sdk";
import { type Command, type Globals, noteIfEmpty, type OptionsOf, withClient } from "../command.js";
import { misuse } from "../failure.js";
import type { Output } from "../output.js";
import { type Column, type Layout, table } from "../table.js";
import { counted, printable } from "../text.js";
import { conditionsOf, SELECTING } from "./conditions.js";

/** Options of a command that lists tasks in pages. */
type PageOptions = OptionsOf<typeof pageOptions>;

/** The options besides conditions. */
export const PAGING = ["sort", "limit", "cursor", "all"] as const;

/** Names in one note. */
const NAMED = 10;

/** Page size for --all: one round trip. */
const PAGE = 500;

/** The options besides `--queue`. */
export function pageOptions<Options extends Globals>(command: Command<Options>) {
  return command
    .takes("tasks.list", [...SELECTING, "sort", "limit", "cursor"], { flags: { limit: "-l, --limit <n>" } })
    .flag("--all", "all pages; with --json one task a line");
}

/** Prints one page, or with `--all` all of them. */
export async function printPages<Row>(
  options: PageOptions,
  columns: readonly Column<Row>[],
  read: (
    client: Client,
    filter: ListOptions,
    ops: Operator,
  ) => Promise<{
    tasks: readonly Row[];
    unreadable?: readonly TaskName[];
    cursor: string | undefined;
  }>,
  out: Output,
): Promise<void> {
  const filter = filterOf(options);
  if (options.all && options.cursor !== undefined)
    throw misuse("cursor", "cannot be combined with --all.", "Leave one of the two out.");
  await withClient(options, async (client, ops) => {
    const none = async () => {
      await out.write("No tasks.\n");
      await noteIfEmpty(client, out);
    };
    if (!options.all) {
      const page = await read(client, filter, ops);
      if (options.json) return out.json(page);
      if (page.tasks.length === 0) await none();
      else await out.write(table(columns, page.tasks, out));
      noteUnreadable(page.unreadable, out);
      return out.more(page.cursor);
    }
    const layout: Layout = {};
    let cursor: string | undefined;
    do {
      const page = await read(client, { ...filter, limit: filter.limit ?? PAGE, cursor }, ops);
      cursor = page.cursor;
      if (options.json) await out.write(page.tasks.map((task) => `${JSON.stringify(task)}\n`).join(""));
      else if (page.tasks.length > 0) await out.write(table(columns, page.tasks, out, layout));
      noteUnreadable(page.unreadable, out);
    } while (cursor !== undefined && !out.closed);
    if (!options.json && layout.widths === undefined) await none();
  });
}

/** All tasks that a filter selects; names those that cannot be read. */
export async function tasksOf(client: Client, filter: ListOptions, out: Output): Promise<Task[]> {
  const tasks: Task[] = [];
  let cursor: string | undefined;
  do {
    const page = await client.list({ ...filter, limit: PAGE, cursor });
    tasks.push(...page.tasks);
    noteUnreadable(page.unreadable, out);
    cursor = page.cursor;
  } while (cursor !== undefined);
  return tasks;
}

/** Names the tasks that are left out of a list because their data cannot be read. */
function noteUnreadable(names: readonly TaskName[] = [], out: Output): void {
  if (names.length === 0) return;
  const some = names.slice(0, NAMED).map(({ queue, owner, id }) => `${owner}/${id} (${queue})`);
  const more = names.length > NAMED ? ", …" : "";
  out.note(
    printable(
      `${counted(names.length, "task")} cannot be read: ${some.join(", ")}${more}. See carillon doctor.`,
    ),
  );
}

function filterOf(options: PageOptions): ListOptions {
  const { sort, limit, cursor } = options;
  return { ...conditionsOf(options), sort, limit, cursor };
}
