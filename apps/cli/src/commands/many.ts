import type { BulkFilter, BulkResult, BulkSample, Client } from "@carillon/sdk";
import { type Globals, withClient } from "../command.js";
import { misuse } from "../failure.js";
import type { Output } from "../output.js";
import { type Column, table } from "../table.js";

/** Options that select tasks: one, or many with `--all`. */
export interface Named extends Globals {
  queue?: string;
  tag?: string;
  all?: boolean;
  dryRun?: boolean;
}

/** An operation on many tasks. */
export interface Deed {
  readonly verb: string;
  readonly past: string;
  act(client: Client, filter: BulkFilter, dryRun: boolean): Promise<BulkResult>;
}

/** One task is meant, and nothing says many. @throws `INVALID_OPTION` */
export function assertOne({ tag, all, dryRun }: Named): void {
  const field = all ? "all" : dryRun ? "dry-run" : tag === undefined ? undefined : "tag";
  if (field !== undefined)
    throw misuse(field, "cannot be combined with a task.", "Leave one of the two out.");
}

/** @throws `INVALID_OPTION` if nothing says which tasks, or without `--all`: then nothing is done */
export async function doToMany(deed: Deed, options: Named, out: Output): Promise<void> {
  const { queue, tag, owner, all, dryRun = false, json } = options;
  const filter: BulkFilter = { queue, tag, owner };
  const given = Object.entries(filter).filter(([, name]) => name !== undefined);
  if (given.length === 0) {
    throw misuse("TASK", "missing.", "Give a task; or --owner, --tag or --queue, and --all.");
  }
  const result = await withClient(options, async (client) => {
    if (all || dryRun) return deed.act(client, filter, dryRun);
    const whose = given.map(([kind, name]) => `${kind} ${name}`).join(", ");
    const { count } = await deed.act(client, filter, true);
    throw misuse(
      "all",
      `missing. ${deed.verb} means ${tasks(count)} of ${whose}.`,
      "Add --dry-run to see which, --all to go on.",
    );
  });
  if (json) return out.json(result);
  if (!dryRun) return out.write(`${deed.past} ${tasks(result.count)}\n`);
  await out.write(`${deed.verb} means ${tasks(result.count)}\n${sample(result, out)}`);
}

const SAMPLE: Column<BulkSample>[] = [
  { title: "TASK", value: ({ owner, id }) => `${owner}/${id}` },
  { title: "QUEUE", value: ({ queue }) => queue, rank: 2, least: 8 },
  { title: "PAUSED", value: ({ paused }, { when }) => (paused === undefined ? "" : when(paused.at)) },
  { title: "BY", value: ({ paused }) => paused?.by ?? "", rank: 1, least: 8 },
  { title: "NOTE", value: ({ paused }) => paused?.note ?? "", least: 12 },
];

function sample({ count, sample }: BulkResult, out: Output): string {
  if (count === 0) return "";
  const more = count > sample.length ? `… and ${count - sample.length} more\n` : "";
  return `${table(SAMPLE, sample, out)}${more}`;
}

function tasks(count: number): string {
  return count === 1 ? "1 task" : `${count} tasks`;
}
