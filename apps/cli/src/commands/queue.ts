import type { AnswerTo } from "@carillon/ops";
import type { Command } from "../command.js";
import { misuse } from "../failure.js";
import type { Output } from "../output.js";
import { counted } from "../text.js";
import { holdsText } from "./holds-text.js";

/** Adds the commands that act on one queue to those that list them. */
export function registerQueue(queues: Command, out: Output): void {
  registerPause(queues, out);
  registerResume(queues);
  registerLimit(queues);
  registerLimits(queues);
  registerRm(queues);
}

function registerPause(queues: Command, out: Output): void {
  queues
    .verb(
      "pause",
      "let the workers of a queue take no more jobs",
      "Pauses a queue: its workers take no more jobs, and finish those they have. Scheduling goes on: jobs wait,\n" +
        "and a task with overlap skip skips occurrences that come due while its run waits. (pause --queue holds the tasks.)",
    )
    .argument("<queue>")
    .flag("--note <text>", "why; shown with the queue")
    .flag("--by <name>", "who")
    .flag("--dry-run", "count what it would hold, and pause nothing")
    .answer(
      async ({ ops, options: { note, dryRun, by } }, queue: string) => {
        const answer = await ops.queues.pause({ queue, note, dryRun }, { by });
        return { queue, ...(dryRun ? {} : { state: "paused" }), ...answer };
      },
      ({ queue, changed, holds }, _, { dryRun }) =>
        (dryRun ? "" : `${changed ? "paused" : "was paused already:"} ${queue}\n`) +
        holdsText(out, holds, dryRun ? "would hold" : "holds"),
    );
}

function registerResume(queues: Command): void {
  queues
    .verb(
      "resume",
      "let the workers of a queue take jobs again",
      "Lets the workers of a queue take jobs again, no matter who paused it.",
    )
    .argument("<queue>")
    .answer(
      async ({ ops }, queue: string) => ({ queue, ...(await ops.queues.resume({ queue })) }),
      ({ queue, changed }) => `${changed ? "resumed" : "was not paused:"} ${queue}\n`,
    );
}

function registerLimit(queues: Command): void {
  queues
    .verb(
      "limit",
      "limit the runs that one owner may have open in a queue",
      "Limits how many runs of one owner may be queued or running in a queue at once. Further occurrences\n" +
        "wait until one of them ends; other owners are not delayed. Owner '*': each owner without a limit of its own.",
    )
    .argument("<queue>")
    .argument("<owner>")
    .argument("<runs>", "1 to 100000, or none", runsOf)
    .answer(
      async ({ ops }, queue: string, owner: string, runs: number | null) => {
        const input = { queue, owner, runs };
        return { ...input, ...(await ops.queues.limit(input)) };
      },
      ({ queue, owner, runs, changed }) => {
        const limit = runs === null ? "no limit" : counted(runs, "run");
        return `${changed ? "" : "unchanged: "}${queue}: ${limit} for ${ownerText(owner)}\n`;
      },
    );
}

function registerLimits(queues: Command): void {
  queues
    .verb(
      "limits",
      "the limits of a queue by owner",
      "Lists how many runs of each owner may be queued or running in a queue at once.",
    )
    .argument("<queue>")
    .answer(
      async ({ ops }, queue: string) => ({ queue, ...(await ops.queues.limits({ queue })) }),
      ({ limits }) =>
        Object.entries(limits)
          .map(([owner, runs]) => `${ownerText(owner)}: ${runs}\n`)
          .join("") || "No limits.\n",
    );
}

const ownerText = (owner: string) => (owner === "*" ? "any other owner" : owner);

function runsOf(text: string): number | null {
  if (text === "none") return null;
  if (/^\d{1,6}$/.test(text)) return Number(text);
  throw misuse("runs", `got ${text}.`, "Give a whole number from 1 to 100000, or none.");
}

function registerRm(queues: Command): void {
  queues
    .verb(
      "rm",
      "delete a queue with its tasks and jobs",
      "Deletes a queue with its tasks, their records, and all jobs and settings that BullMQ keeps of it.\n" +
        "Stop its workers first.",
    )
    .argument("<queue>")
    .flag("--all", "all of it; refused without it")
    .answer(
      async ({ ops, options: { all } }, queue: string) => {
        if (all) return { queue, deleted: true, ...(await ops.queues.delete({ queue })) };
        const found = (await ops.queues.list()).queues.find((one) => one.name === queue);
        const what = found ? jobs(found) : "no tasks";
        throw misuse("all", `missing. queues rm means all of ${queue}: ${what}.`, "Add --all to go on.");
      },
      ({ queue, count }) => `deleted ${queue} with ${counted(count, "task")}\n`,
    );
}

function jobs({ tasks, waiting = 0, active = 0 }: AnswerTo<"queues.list">["queues"][number]): string {
  return `${counted(tasks, "task")}, ${waiting} waiting and ${active} active jobs`;
}
