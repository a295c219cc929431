import type { Command } from "commander";
import { type Globals, operate, type Register, withClient } from "../command.js";
import { misuse } from "../failure.js";
import type { Output } from "../output.js";
import { writeHolds } from "./holds-text.js";
import { jobs } from "./queues.js";

interface QueueOptions extends Globals {
  note?: string;
  by?: string;
  all?: boolean;
  dryRun?: boolean;
}

export const registerQueue: Register = (program, out) => {
  const queue = program
    .command("queue")
    .summary("pause, resume, limit or delete a queue")
    .description("Acts on a queue as a whole. `carillon queues` lists them.");
  registerPause(queue, out);
  registerResume(queue, out);
  registerLimit(queue, out);
  registerLimits(queue, out);
  registerRm(queue, out);
};

function registerPause(queue: Command, out: Output): void {
  queue
    .command("pause")
    .summary("let the workers of a queue take no more jobs")
    .description(
      "Pauses a queue: its workers take no more jobs, and finish those they have. Scheduling goes on: jobs wait,\n" +
        "and a task with overlap skip skips occurrences that come due while its run waits. (pause --queue holds the tasks.)",
    )
    .argument("<queue>")
    .option("--note <text>", "why; shown with the queue")
    .option("--by <name>", "who")
    .option("--dry-run", "count what it would hold, and pause nothing")
    .action(async (name: string, _: unknown, command) => {
      const options: QueueOptions = command.optsWithGlobals();
      const { note, dryRun } = options;
      const { changed, holds } = await withClient(options, (_, ops) =>
        ops.queues.pause({ queue: name, note, dryRun }, { by: options.by }),
      );
      if (options.json)
        return out.json({ queue: name, ...(dryRun ? {} : { state: "paused" }), changed, holds });
      if (!dryRun) await out.write(`${changed ? "paused" : "was paused already:"} ${name}\n`);
      await writeHolds(out, holds, dryRun ? "would hold" : "holds");
    });
}

function registerResume(queue: Command, out: Output): void {
  queue
    .command("resume")
    .summary("let the workers of a queue take jobs again")
    .description("Lets the workers of a queue take jobs again, no matter who paused it.")
    .argument("<queue>")
    .action(async (name: string, _: unknown, command) => {
      await operate(
        command.optsWithGlobals(),
        out,
        async (ops) => ({ queue: name, ...(await ops.queues.resume({ queue: name })) }),
        ({ changed }) => `${changed ? "resumed" : "was not paused:"} ${name}\n`,
      );
    });
}

function registerLimit(queue: Command, out: Output): void {
  queue
    .command("limit")
    .summary("limit the runs that one owner may have open in a queue")
    .description(
      "Limits how many runs of one owner may be queued or running in a queue at once. Further occurrences\n" +
        "wait until one of them ends; other owners are not delayed. Owner '*': each owner without a limit of its own.",
    )
    .argument("<queue>")
    .argument("<owner>")
    .argument("<runs>", "1 to 100000, or none", runsOf)
    .action(async (name: string, owner: string, runs: number | null, _: unknown, command) => {
      const input = { queue: name, owner, runs };
      const limit = runs === null ? "no limit" : runs === 1 ? "1 run" : `${runs} runs`;
      await operate(
        command.optsWithGlobals(),
        out,
        async (ops) => ({ ...input, ...(await ops.queues.setLimit(input)) }),
        ({ changed }) => `${changed ? "" : "unchanged: "}${name}: ${limit} for ${ownerText(owner)}\n`,
      );
    });
}

function registerLimits(queue: Command, out: Output): void {
  queue
    .command("limits")
    .summary("the limits of a queue by owner")
    .description("Lists how many runs of each owner may be queued or running in a queue at once.")
    .argument("<queue>")
    .action(async (name: string, _: unknown, command) => {
      await operate(
        command.optsWithGlobals(),
        out,
        async (ops) => ({ queue: name, ...(await ops.queues.limits({ queue: name })) }),
        ({ limits }) =>
          Object.entries(limits)
            .map(([owner, runs]) => `${ownerText(owner)}: ${runs}\n`)
            .join("") || "No limits.\n",
      );
    });
}

const ownerText = (owner: string) => (owner === "*" ? "any other owner" : owner);

function runsOf(text: string): number | null {
  if (text === "none") return null;
  if (/^\d{1,6}$/.test(text)) return Number(text);
  throw misuse("runs", `got ${text}.`, "Give a whole number from 1 to 100000, or none.");
}

function registerRm(queue: Command, out: Output): void {
  queue
    .command("rm")
    .summary("delete a queue with its tasks and jobs")
    .description(
      "Deletes a queue with its tasks, their records, and all jobs and settings that BullMQ keeps of it.\n" +
        "Stop its workers first.",
    )
    .argument("<queue>")
    .option("--all", "all of it; refused without it")
    .action(async (name: string, _: unknown, command) => {
      const options: QueueOptions = command.optsWithGlobals();
      await operate(
        options,
        out,
        async (ops) => {
          if (options.all)
            return { queue: name, deleted: true, ...(await ops.queues.delete({ queue: name })) };
          const found = (await ops.queues.list()).queues.find((one) => one.name === name);
          const what = found ? jobs(found) : "no tasks";
          throw misuse("all", `missing. queue rm means all of ${name}: ${what}.`, "Add --all to go on.");
        },
        ({ count }) => `deleted ${name} with ${count === 1 ? "1 task" : `${count} tasks`}\n`,
      );
    });
}
