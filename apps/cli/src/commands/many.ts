import type { BulkFilter, Client, Task } from "@carillon/sdk";
import { type Globals, withClient } from "../command.js";
import { misuse } from "../failure.js";
import type { Output } from "../output.js";

/** What tasks are named by: one of them, or with `--all` many. */
export interface Named extends Globals {
  queue?: string;
  tag?: string;
  all?: boolean;
}

/** Something that is done to many tasks. */
export interface Deed {
  readonly verb: string;
  readonly past: string;
  /** Only tasks in this state are concerned. */
  readonly state?: Task["state"];
  /** Returns how many tasks it changed. */
  act(client: Client, filter: BulkFilter): Promise<number>;
}

/** Tasks counted before the answer is "more". */
const COUNTED = 10_000;

/** One task is meant, and nothing says many. @throws `INVALID_OPTION` */
export function assertOne({ tag, all }: Named): void {
  const field = all ? "all" : tag === undefined ? undefined : "tag";
  if (field !== undefined) throw misuse(field, "given beside a task.", "Leave one of the two out.");
}

/** @throws `INVALID_OPTION` where nothing says which, or without `--all`: then nothing is done */
export async function doToMany(deed: Deed, options: Named, out: Output): Promise<void> {
  const { queue, tag, owner, all, json } = options;
  const filter: BulkFilter = { queue, tag, owner };
  const said = Object.entries(filter).filter(([, name]) => name !== undefined);
  if (said.length === 0) {
    throw misuse("TASK", "missing.", "Give a task; or --owner, --tag or --queue, and --all.");
  }
  const count = await withClient(options, async (client) => {
    if (all) return deed.act(client, filter);
    const whose = said.map(([kind, name]) => `${kind} ${name}`).join(", ");
    const found = await matching(client, { ...filter, state: deed.state });
    throw misuse("all", `missing. ${deed.verb} means ${found} of ${whose}.`, "Add --all to go on.");
  });
  if (json) return out.json({ count });
  await out.write(`${deed.past} ${tasks(count)}\n`);
}

async function matching(
  client: Client,
  filter: BulkFilter & { state: Task["state"] | undefined },
): Promise<string> {
  let count = 0;
  let cursor: string | undefined;
  do {
    const page = await client.list({ ...filter, limit: 1_000, cursor });
    count += page.tasks.length;
    cursor = page.cursor;
  } while (cursor !== undefined && count < COUNTED);
  return cursor === undefined ? tasks(count) : `more than ${COUNTED} tasks`;
}

function tasks(count: number): string {
  return count === 1 ? "1 task" : `${count} tasks`;
}
