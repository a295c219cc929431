import type { AnswerTo } from "@carillon/ops";
import type { Command } from "../command.js";
import { misuse } from "../failure.js";
import type { Output } from "../output.js";
import { counted } from "../text.js";
import { holdsText } from "./holds-text.js";

/** Adds the commands that act on one queue to those that list them. */
export function registerQueue(queues: Command, out: Output): void {
  const also = ({ queue }: { readonly queue: string }) => ({ queue });
  queues
    .verb("pause", "let the workers of a queue take no more jobs")
    .calls(
      "queues.pause",
      ({ changed, holds }, { queue, dryRun }) =>
        (dryRun ? "" : `${changed ? "paused" : "was paused already:"} ${queue}\n`) +
        holdsText(out, holds, dryRun ? "would hold" : "holds"),
      { also: ({ queue, dryRun }) => ({ queue, ...(dryRun ? {} : { state: "paused" }) }) },
    );
  queues
    .verb("resume", "let the workers of a queue take jobs again")
    .calls(
      "queues.resume",
      ({ changed }, { queue }) => `${changed ? "resumed" : "was not paused:"} ${queue}\n`,
      {
        also,
      },
    );
  queues.verb("limit", "limit the runs that one owner may have open in a queue").calls(
    "queues.limit",
    ({ changed }, { queue, owner, runs }) => {
      const limit = runs === null ? "no limit" : counted(runs, "run");
      return `${changed ? "" : "unchanged: "}${queue}: ${limit} for ${ownerText(owner)}\n`;
    },
    { also: ({ queue, owner, runs }) => ({ queue, owner, runs }) },
  );
  queues.verb("limits", "the limits of a queue by owner").calls(
    "queues.limits",
    ({ limits }) =>
      Object.entries(limits)
        .map(([owner, runs]) => `${ownerText(owner)}: ${runs}\n`)
        .join("") || "No limits.\n",
    { also },
  );
  queues
    .verb("rm", "delete a queue with its tasks and jobs")
    .flag("--all", "all of it; refused without it")
    .calls("queues.delete", ({ count }, { queue }) => `deleted ${queue} with ${counted(count, "task")}\n`, {
      also: ({ queue }) => ({ queue, deleted: true }),
      async input({ queue }, { ops, options: { all } }) {
        if (all) return;
        const found = (await ops.queues.list()).queues.find((one) => one.name === queue);
        const what = found ? jobs(found) : "no tasks";
        throw misuse("all", `missing. queues rm means all of ${queue}: ${what}.`, "Add --all to go on.");
      },
    });
}

const ownerText = (owner: string) => (owner === "*" ? "any other owner" : owner);

function jobs({ tasks, waiting = 0, active = 0 }: AnswerTo<"queues.list">["queues"][number]): string {
  return `${counted(tasks, "task")}, ${waiting} waiting and ${active} active jobs`;
}
