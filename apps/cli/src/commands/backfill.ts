import { setTimeout as delay } from "node:timers/promises";
import type { AnswerTo, Operator } from "@carillon/ops";
import { duration } from "@carillon/ops/words";
import type { Client, Task } from "@carillon/sdk";
import {
  type Command,
  type Globals,
  type OptionsOf,
  type Register,
  taskRef,
  withClient,
} from "../command.js";
import { EXIT } from "../exit-codes.js";
import { misuse } from "../failure.js";
import { readMoment, zoneOfSchedule } from "../moment.js";
import type { Output } from "../output.js";
import { counted, facts } from "../text.js";
import { when } from "../times.js";
import { tasksCommand } from "./conditions.js";
import { doToMany, onlyTask } from "./many.js";

/** Polling interval for the progress, in ms. */
const POLL = 500;

const backfillCommand = (program: Command) =>
  tasksCommand(program, "backfill", "run past occurrences of a task, or of many", "backfills.startMany", {
    about: {
      to: "last nominal time, as --from; default now",
      perMinute: "of many tasks: occurrences a minute, of all together; required unless --dry-run",
    },
  })
    .description(
      "Runs past occurrences of a task, again or for the first time, in order, under its overlap policy or another.\n" +
        "A scheduler node runs it; the schedule continues at the same time. Of many tasks, --per-minute spreads all occurrences evenly.",
    )
    .flag("-z, --timezone <zone>", "zone of times without an offset; default: the schedule's")
    .takes("backfills.start", ["every"], { of: "of one task: " })
    .flag(
      "--wait",
      "wait until all are decided, and show the progress; interrupting does not end the backfill",
    );

type BackfillOptions = OptionsOf<typeof backfillCommand>;

export const registerBackfill: Register = (program, out) => {
  backfillCommand(program).does(async (options, tasks: string[]) => {
    if (options.dryRun && options.wait)
      throw misuse("wait", "cannot be combined with --dry-run.", "Leave one of the two out.");
    onlyTask(tasks, options);
    const [task] = tasks;
    if (task === undefined || tasks.length > 1) return beginMany(tasks, options, out);
    if (options.perMinute !== undefined)
      throw misuse("per-minute", "applies to many tasks only.", "Give --every.");
    await withClient(options, async (client, ops) => {
      const put = await begin(client, ops, task, options, out);
      if (!options.wait || put.id === undefined) return answer(put, task, options, out);
      if (!options.json) await out.write(begun(put, task));
      await ended(await awaitEnd(ops, put.id, options.json, out), options, out);
    });
  });
};

/** Adds the commands about one backfill to those that list them. */
export function registerOne(backfills: Command, out: Output): void {
  let now = 0;
  backfills
    .verb("show", "how far a backfill is")
    .calls("backfills.get", (found) => describe(found, now, out), {
      input: async (_, { client }) => {
        now = await client.serverTime();
      },
    });
  backfills
    .verb("cancel", "stop a backfill, or all of a batch; what it has enqueued goes on")
    .calls(
      "backfills.cancel",
      ({ changed }, { id }) => `${changed ? "stopped" : "was over already:"} backfill ${id}\n`,
      { also: ({ id }) => ({ id }) },
    );
}

type Backfill = AnswerTo<"backfills.get">;

async function begin(
  client: Client,
  ops: Operator,
  task: string,
  options: BackfillOptions,
  out: Output,
): Promise<AnswerTo<"backfills.start">> {
  const { queue, owner, overlap, every, only, by, dryRun } = options;
  assertRange(options);
  const found = await client.get(taskRef(task, queue, owner));
  const range = await rangeOf(client, options, out, found.schedule);
  const { queue: in_, owner: whose, id } = found;
  return ops.backfills.start(
    { queue: in_, owner: whose, id, ...range, overlap, every, only, dryRun },
    { by },
  );
}

function assertRange({ from }: BackfillOptions): void {
  if (from === undefined)
    throw misuse("from", "missing.", "Give --from TIME, and --to TIME unless it is now.");
}

/** @param schedule in whose time zone times without an offset are read; default UTC */
async function rangeOf(
  client: Client,
  { timezone, from = "", to = "now" }: BackfillOptions,
  out: Output,
  schedule?: Task["schedule"],
): Promise<{ from: number; to: number }> {
  const sdk = await import("@carillon/sdk/schedule");
  const now = await client.serverTime();
  const zone = timezone ?? (schedule ? zoneOfSchedule(sdk, schedule) : "UTC");
  const read = (text: string, field: string) => {
    const moment = readMoment(sdk, text, { zone, now, field, duration: "before" });
    if (moment.note) out.note(`${field}: ${moment.note}`);
    return moment.time;
  };
  return { from: read(from, "from"), to: read(to, "to") };
}

async function beginMany(tasks: readonly string[], options: BackfillOptions, out: Output): Promise<void> {
  const { perMinute, every, wait, dryRun } = options;
  for (const field of ["every", "wait"] as const)
    if ({ every, wait }[field] !== undefined)
      throw misuse(field, "applies to one task only.", "Leave it out.");
  assertRange(options);
  if (perMinute === undefined && !dryRun)
    throw misuse("per-minute", "missing.", "Give the occurrences a minute, or --dry-run to count them.");
  await doToMany(
    {
      calls: "backfills.startMany",
      verb: "backfill",
      past: "backfilling",
      input: (client) => rangeOf(client, options, out),
      columns: [
        { title: "TASK", value: ({ owner, id }) => `${owner}/${id}` },
        { title: "QUEUE", value: "queue", rank: 1, least: 8 },
        { title: "OCCURRENCES", value: "total", right: true },
      ],
      more: ({ total, left, batch }) => {
        const pace =
          perMinute === undefined
            ? ""
            : `, ${duration((total / perMinute) * 60_000)} at ${perMinute} a minute`;
        return `${total} occurrences${pace}${batch === undefined ? "" : `; batch ${batch}`}\n${leftOut(left)}`;
      },
    },
    tasks,
    options,
    out,
  );
}

async function answer(
  put: AnswerTo<"backfills.start">,
  task: string,
  options: BackfillOptions,
  out: Output,
): Promise<void> {
  if (options.json) return out.json(put);
  await out.write(begun(put, task));
}

function begun({ id, total, left }: AnswerTo<"backfills.start">, task: string): string {
  const count = counted(total, "occurrence");
  if (id === undefined) return `${count} of ${task}; nothing was started\n${leftOut(left)}`;
  return `backfill ${id}: ${count} of ${task}\n${leftOut(left)}`;
}

export function leftOut(left = 0): string {
  return left === 0 ? "" : `${left} left out: succeeded since, under way, or about to be run again\n`;
}

/** On a terminal one line that is updated; elsewhere a line for each change. */
async function awaitEnd(
  ops: Operator,
  id: string,
  silent: boolean | undefined,
  out: Output,
): Promise<AnswerTo<"backfills.get">> {
  const { stderr } = out;
  let shown = "";
  if (!(await ops.nodes.list()).nodes.some(({ alive }) => alive))
    out.note("no scheduler node is alive: the backfill begins when one starts.");
  for (;;) {
    const found = await ops.backfills.get({ id });
    const text = progress(found);
    if (!silent && text !== shown) stderr.write(stderr.isTTY ? `\r${text}\u001b[K` : `${text}\n`);
    shown = text;
    if (found.state !== "running") {
      if (!silent && stderr.isTTY) stderr.write("\n");
      return found;
    }
    await delay(POLL);
  }
}

/** Fewer may be decided than were counted: a schedule can change, and `maxRuns` can be reached. */
async function ended(found: Backfill, options: Globals, out: Output): Promise<void> {
  if (found.state === "cancelled") out.exitCode = EXIT.refused;
  if (options.json) return out.json(found);
  await out.write(`${found.state}: ${found.enqueued} enqueued, ${found.skipped} skipped\n`);
}

function progress({ total, enqueued, skipped }: Backfill): string {
  const decided = enqueued + skipped;
  const share = total === 0 ? 100 : Math.floor((decided * 100) / total);
  return `${decided} of ${total} (${share}%): ${enqueued} enqueued, ${skipped} skipped`;
}

function describe(backfill: Backfill, now: number, out: Output): string {
  const behind = behindPace(backfill, now);
  const { task, state, from, to, at, every, overlap } = backfill;
  return facts(
    [
      ["backfill", backfill.id],
      ["task", `${task.owner}/${task.id}`],
      ["queue", task.queue],
      ["state", state],
      ["progress", progress(backfill)],
      ["from", when(from)],
      ["to", when(to)],
      ["last decided", at < from ? undefined : when(at)],
      ["every", every > 0 ? duration(every) : undefined],
      ["behind pace", behind > 0 ? `${behind} occurrences` : undefined],
      ["overlap", overlap],
      ["created", `${when(backfill.created)} by ${backfill.by}`],
    ],
    out.paint,
  );
}

/**
 * Occurrences that the pace of a running backfill asks for by now, and that are not decided yet: its runs, or the round trips of its steps, take
 * longer than the pace allows.
 */
export function behindPace(
  { state, every, created, total, enqueued, skipped }: Backfill,
  now: number,
): number {
  if (state !== "running" || every === 0) return 0;
  // Its first step may come up to `every` after its start.
  const asked = Math.min(total, Math.floor((now - created) / every) - 1);
  return Math.max(0, asked - enqueued - skipped);
}
