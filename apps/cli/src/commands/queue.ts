import type { Command } from "commander";
import { type Globals, type Register, withClient } from "../command.js";
import { misuse } from "../failure.js";
import type { Output } from "../output.js";
import { given } from "./given.js";
import { jobs } from "./queues.js";

interface QueueOptions extends Globals {
  note?: string;
  by?: string;
  all?: boolean;
}

export const registerQueue: Register = (program, out) => {
  const queue = program
    .command("queue")
    .summary("pause, resume or delete a queue")
    .description("Acts on a queue as a whole. `carillon queues` lists them.");
  registerPause(queue, out);
  registerResume(queue, out);
  registerRm(queue, out);
};

function registerPause(queue: Command, out: Output): void {
  queue
    .command("pause")
    .summary("let the workers of a queue take no more jobs")
    .description(
      "Pauses a queue: its workers take no more jobs, and finish those they have. Scheduling goes on: jobs wait,\n" +
        "and a task with overlap skip skips what comes due while its run waits. (pause --queue holds the tasks.)",
    )
    .argument("<queue>")
    .option("--note <text>", "why; shown with the queue")
    .option("--by <name>", "who")
    .action(async (name: string, _: unknown, command) => {
      const options: QueueOptions = command.optsWithGlobals();
      const { note, by } = options;
      const changed = await withClient(options, (client) => client.queues.pause(name, given({ note, by })));
      if (options.json) return out.json({ queue: name, state: "paused", changed });
      await out.write(`${changed ? "paused" : "was paused already:"} ${name}\n`);
    });
}

function registerResume(queue: Command, out: Output): void {
  queue
    .command("resume")
    .summary("let the workers of a queue take jobs again")
    .description("Lets the workers of a queue take jobs again, whoever has paused it.")
    .argument("<queue>")
    .action(async (name: string, _: unknown, command) => {
      const options: QueueOptions = command.optsWithGlobals();
      const changed = await withClient(options, (client) => client.queues.resume(name));
      if (options.json) return out.json({ queue: name, changed });
      await out.write(`${changed ? "resumed" : "was not paused:"} ${name}\n`);
    });
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
      const count = await withClient(options, async (client) => {
        if (options.all) return client.queues.delete(name);
        const found = (await client.queues.list()).find((one) => one.name === name);
        const what = found ? jobs(found) : "no tasks";
        throw misuse("all", `missing. queue rm means all of ${name}: ${what}.`, "Add --all to go on.");
      });
      if (options.json) return out.json({ queue: name, deleted: true, count });
      await out.write(`deleted ${name} with ${count === 1 ? "1 task" : `${count} tasks`}\n`);
    });
}
