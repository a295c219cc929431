import { setTimeout as delay } from "node:timers/promises";
import type { AnswerTo } from "@carillon/ops";
import { duration } from "@carillon/ops/words";
import type { Client, ListOptions, TaskName } from "@carillon/sdk";
import { type Command, type Globals, type Register, taskCommand, taskRef, withClient } from "../command.js";
import { EXIT } from "../exit-codes.js";
import { reportOf } from "../failure.js";
import { momentsOf } from "../moment.js";
import type { Output } from "../output.js";
import { type Column, table } from "../table.js";
import { utcIso } from "../times.js";
import { conditionOptions, conditionsOf, refuseBesideTask } from "./conditions.js";
import { tasksOf } from "./task-pages.js";

type Report = AnswerTo<"shadow.report">;
type Difference = Report["differences"][number];

const CAUSES: Readonly<Record<Difference["cause"], string>> = {
  "time-zone": "another time zone",
  dst: "a clock change",
  dialect: "cron-parser reads the expression differently: dialect",
  "held-up": "their worker was down, or their queue paused",
  stopped: "they have fired nothing since",
  skipped: "skipped here",
  unknown: "unknown",
};

export const registerShadow: Register = (program, out) => {
  const shadow = program.verb(
    "shadow",
    "compare shadows with what another scheduler fires",
    'Compares tasks with `mode: "shadow"` with what another scheduler really fires.',
  );
  registerReport(shadow, out);
  registerWatch(shadow, out);
  taskCommand(program, "observe", "mark that another scheduler has fired a task, for shadow report")
    .flag("--at <time>", "when; default now")
    .answer(
      async ({ ops, client, options: { queue, owner, at: text } }, task: string) => {
        const { at } = await momentsOf(client, { at: text }, "before");
        const times = at === undefined ? undefined : [{ nominal: at }];
        await ops.shadow.observe({ ...taskRef(task, queue, owner), times });
        return { task, observed: true };
      },
      ({ task }) => `observed ${task}\n`,
    );
};

function registerReport(shadow: Command, out: Output): void {
  conditionOptions(
    shadow.command("report").summary("compare what shadows would have enqueued with what really fired"),
  )
    .description(
      "Compares what shadows would have enqueued with what really fired: times that are the same, shifted, or of one side.",
    )
    .argument("[tasks...]", "[owner/]id; default all shadows that the conditions select")
    .flag("-q, --queue <queue>", "the task's queue; without a task: those of this queue")
    .flag("--since <time>", "7d before now, or a time; default 7d")
    .flag("--tolerance <duration>", "largest difference of equal times; default 60s")
    .flag("--exit-code", "exit with 10 if anything differs, or nothing was observed")
    .answer(
      async ({ ops, client, options }, tasks: string[]) => {
        const { queue, owner, tolerance, exitCode } = options;
        if (tasks.length > 0) refuseBesideTask(options, []);
        const { since } = await momentsOf(client, { since: options.since ?? "7d" }, "before");
        const refs =
          tasks.length > 0
            ? tasks.map((task) => taskRef(task, queue, owner))
            : await shadowsOf(client, conditionsOf(options), out);
        const reports: Report[] = [];
        for (const ref of refs) reports.push(await ops.shadow.report({ ...ref, since, tolerance }));
        const differs = reports.some(({ different, observed }) => different > 0 || observed === 0);
        if (exitCode && (differs || reports.length === 0)) out.exitCode = EXIT.attention;
        return { reports };
      },
      ({ reports }) => reports.map((one) => reportText(one, out)).join(""),
    );
}

async function shadowsOf(client: Client, filter: ListOptions, out: Output): Promise<TaskName[]> {
  const tasks = await tasksOf(client, filter, out);
  return tasks.flatMap(({ queue, owner, id, mode }) => (mode === "shadow" ? [{ queue, owner, id }] : []));
}

function reportText({ task, from, to, observed, same, different, differences }: Report, out: Output): string {
  const name = `${task.owner}/${task.id}`;
  if (observed === 0) return `${name}: nothing was observed; use carillon shadow watch or carillon observe\n`;
  const head = `${name}: ${same} same, ${different} different, ${utcIso(from)} to ${utcIso(to)}\n`;
  const more = different > differences.length ? `… and ${different - differences.length} more\n` : "";
  return head + (differences.length > 0 ? table(COLUMNS, differences, out) : "") + more;
}

const COLUMNS: Column<Difference>[] = [
  { title: "OURS", value: ({ ours }, { when }) => (ours === undefined ? "-" : when(ours)) },
  { title: "THEIRS", value: ({ theirs }, { when }) => (theirs === undefined ? "-" : when(theirs)) },
  {
    title: "SHIFT",
    value: ({ ours, theirs }) => (ours === undefined || theirs === undefined ? "" : shift(theirs - ours)),
  },
  {
    title: "CAUSE",
    value: ({ cause, reason }) => (reason ? `${CAUSES[cause]}: ${reason}` : CAUSES[cause]),
    least: 16,
  },
];

function shift(ms: number): string {
  return `${ms < 0 ? "-" : "+"}${duration(Math.abs(ms))}`;
}

/** Interval of the reads, in ms: BullMQ keeps some 10,000 events. */
const POLL = 1_000;

function registerWatch(shadow: Command, out: Output): void {
  bullOptions(shadow.command("watch").summary("mark what BullMQ's job schedulers fire"))
    .description(
      "Reads the event stream of a queue of BullMQ, and marks each start of a job scheduler for the task with its id (as an\n" +
        "import names it) in the queue of that name. BullMQ keeps some 10,000 events: let it run as long as the shadow does.",
    )
    .needs("-q, --queue <queue>", "the queue, here and there")
    .flag("--once", "read what is there, and end")
    .does(async (options) => {
      const { queue, prefix, once } = options;
      const { firedSince, importBullmq, readBullSchedulers, withBullmq } = await import("../load.js");
      const unknown = new Set<string>();
      const marked = await withClient(options, (client, ops) =>
        withBullmq(client, options.bullmq, async (redis) => {
          const found = await readBullSchedulers(redis, { prefix, queue });
          // An import may have renamed them.
          const tasks = new Map(
            importBullmq(found, { now: 0 }).map(({ task }, i) => [schedulerOf(found[i]?.jobId), task?.id]),
          );
          let [last, sum] = ["0", 0];
          for (;;) {
            const page = await firedSince({ redis, prefix, queue }, last);
            for (const [scheduler, times] of page.fired) {
              const id = tasks.get(scheduler) ?? scheduler;
              const done = await ops.shadow.observe({ queue, id, times }).then(
                () => true,
                (error: unknown) => {
                  if (!["TASK_NOT_FOUND", "INVALID_NAME"].includes(reportOf(error).code)) throw error;
                },
              );
              if (done) sum += times.length;
              else if (!unknown.has(id)) out.note(`no task ${id} in queue ${queue}`);
              if (!done) unknown.add(id);
            }
            last = page.last;
            if (once) return sum;
            await delay(POLL);
          }
        }),
      );
      await (options.json ? out.json({ queue, marked }) : out.write(`marked ${marked} in ${queue}\n`));
    });
}

/** `repeat:ID:TIME` */
function schedulerOf(jobId = ""): string {
  return jobId.replace(/^repeat:|:\d+$/g, "");
}

export function bullOptions<Options extends Globals>(
  command: Command<Options>,
  url = "Redis of BullMQ; default that of --redis",
) {
  return command
    .flag("--bullmq <url>", url)
    .needs("--prefix <prefix>", "BullMQ's prefix", { otherwise: "bull" });
}
