import type { CutOver } from "@carillon/ops";
import { type Register, taskCommand, taskRef } from "../command.js";
import { utcIso } from "../times.js";
import { bullOptions } from "./shadow.js";

export const registerCutOver: Register = (program) => {
  bullOptions(
    taskCommand(program, "cutover", "let a shadow take over from a job scheduler of BullMQ, or give back"),
  )
    .description(
      "Lets a shadow take over from a job scheduler of BullMQ, at that one's next time. Without --yes it only says so.\n" +
        "The old scheduler is removed only if its next job still waits; its receipt stays in Redis next to its queue, as\n" +
        "PREFIX:QUEUE:carillon:ID. --back puts it back, and makes the task a shadow again. If it is interrupted, repeat it.",
    )
    .flag("--from <queue>", "queue of the job scheduler; default that of the task")
    .flag("--scheduler <id>", "id of the job scheduler; default that of the task")
    .flag("--back", "give back to BullMQ what was taken over")
    .flag("--yes", "do it")
    .flag("--by <name>", "who")
    .answer(
      async ({ client, options }, text: string) => {
        const { bullmq, prefix, back, yes, by } = options;
        const { cutOver, goBack, withBullmq } = await import("../load.js");
        return withBullmq(client, bullmq, async (redis) => {
          const { queue, owner, id } = await client.get(taskRef(text, options.queue, options.owner));
          const old = { redis, prefix, queue: options.from ?? queue, id: options.scheduler ?? id };
          return (back ? goBack : cutOver)(client, { queue, owner, id }, old, { by, dryRun: !yes });
        });
      },
      (found, _, options) => describe(found, options),
    );
};

function describe({ task, next, done, definition }: CutOver, { back }: { back?: boolean }): string {
  const who = back ? "the job scheduler" : `${task.owner}/${task.id}`;
  const left = done ? "" : `old: ${JSON.stringify(definition)}\n--yes does it\n`;
  return `${who} ${done ? "fires" : "would fire"} from ${utcIso(next)} on\n${left}`;
}
