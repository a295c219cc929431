import { scopeText } from "@carillon/ops/words";
import type { TriggerResult } from "@carillon/sdk";
import { collect, type Register, taskRef, withClient } from "../command.js";
import { EXIT } from "../exit-codes.js";
import { misuse } from "../failure.js";
import { parseJson } from "../input.js";
import { momentsOf } from "../moment.js";
import type { Output } from "../output.js";
import { when } from "../times.js";
import { tasksCommand } from "./conditions.js";
import { holdsText } from "./holds-text.js";
import { type Deed, doToMany, type Named, onlyTask } from "./many.js";
import { OVERLAPS } from "./overlaps.js";

export const registerRm: Register = (program, out) => {
  tasksCommand(program, "rm", "delete a task with its records, or many")
    .flag("--by <name>", "who; default $USER@host")
    .does(async (options, tasks: string[]) => {
      const task = onlyTask(tasks, options);
      if (task === undefined) {
        const deed: Deed = {
          verb: "rm",
          past: "deleted",
          act: (ops, input) => ops.tasks.deleteMany(input, { by: options.by }),
        };
        return doToMany(deed, tasks, options, out);
      }
      await withClient(options, (client) =>
        client.delete(taskRef(task, options.queue, options.owner), { by: options.by }),
      );
      await (options.json ? out.json({ task, deleted: true }) : out.write(`deleted ${task}\n`));
    });
};

export const registerPause: Register = (program, out) => {
  tasksCommand(program, "pause", "hold a task's future occurrences, or those of many; queued runs go on")
    .flag("--note <text>", "why; shown with the task")
    .flag(
      "--until <time>",
      "of named tasks: end, 2h from now or a time; a freeze of these tasks, which resume ends too",
    )
    .flag("--by <name>", "who")
    .flag("--cancel-queued", "of one task: cancel its runs that wait for a worker, too")
    .does(async (options, tasks: string[]) => {
      const task = onlyTask(tasks, options);
      const why = { note: options.note, by: options.by };
      if (options.until !== undefined) return pauseUntil(options.until, tasks, options, out);
      if (task === undefined) {
        if (options.cancelQueued)
          throw misuse("cancel-queued", "applies to one task only.", "Leave it out, or give a task.");
        const deed: Deed = {
          verb: "pause",
          past: "paused",
          act: (ops, input) => ops.tasks.pauseMany({ ...input, note: options.note }, { by: options.by }),
        };
        return doToMany(deed, tasks, options, out);
      }
      const changed = await withClient(options, (client) =>
        client.pause(taskRef(task, options.queue, options.owner), {
          ...why,
          cancelQueued: options.cancelQueued ?? false,
        }),
      );
      const text = `${changed ? "paused" : "was paused already:"} ${task}\n`;
      await (options.json ? out.json({ task, state: "paused", changed }) : out.write(text));
    });
};

async function pauseUntil(
  text: string,
  tasks: string[],
  options: Named & { note?: string; by?: string; cancelQueued?: boolean },
  out: Output,
): Promise<void> {
  const { queue, owner, note, by, dryRun, cancelQueued } = options;
  if (tasks.length === 0)
    throw misuse("until", "given without tasks.", "Name tasks, or use carillon freeze with --until.");
  if (cancelQueued) throw misuse("cancel-queued", "given with --until.", "Leave one of the two out.");
  const put = await withClient(options, async (client, ops) => {
    const { until } = await momentsOf(client, { until: text }, "from");
    const named = tasks.map((task) => taskRef(task, queue, owner));
    return ops.freezes.put({ tasks: named, until, note, dryRun }, { by });
  });
  if (options.json) return out.json(put);
  const done = dryRun ? "" : `paused ${scopeText(put)} until ${when(put.until)}: freeze ${put.id}\n`;
  await out.write(done + holdsText(out, put.holds, dryRun ? "would hold" : "holds"));
}

export const registerTrigger: Register = (program, out) => {
  tasksCommand(program, "trigger", "run a task now, paused or not, or many; schedules are not touched")
    .flag("--overlap <policy>", "policy while a run is open; default: the task's policy", OVERLAPS)
    .flag("--key <key>", "make one run for all triggers of the task with this key, within a day")
    .flag("--payload <json>", "of one task: instead of its own payload, for this run only")
    .flag("--force", "even if a freeze holds the task")
    .flag("--by <name>", "who")
    .does(async (options, tasks: string[]) => {
      const { key, overlap, by, force } = options;
      const task = onlyTask(tasks, options);
      if (task === undefined) {
        if (options.payload !== undefined)
          throw misuse("payload", "applies to one task only.", "Leave it out, or give a task.");
        const deed: Deed = {
          verb: "trigger",
          past: "triggered",
          act: (ops, input) => ops.tasks.triggerMany({ ...input, key, overlap, force }, { by }),
        };
        return doToMany(deed, tasks, options, out);
      }
      const payload =
        options.payload === undefined
          ? undefined
          : parseJson(options.payload, `Give JSON, as in --payload '{"day":"2026-01-31"}'.`, {
              code: "INVALID_PAYLOAD",
            });
      const result = await withClient(options, (client) =>
        client.trigger(taskRef(task, options.queue, options.owner), { key, overlap, by, force, payload }),
      );
      if (result.outcome === "skipped") out.exitCode = EXIT.refused;
      if (options.json) return out.json(result);
      await out.write(`${said(task, result)}\n`);
      if (result.outcome !== "skipped") out.warn(task, result.warnings);
    });
};

export const registerTag: Register = (program, out) => {
  tasksCommand(program, "tag", "add tags to tasks, or remove them")
    .flag("--add <tag>", "this tag; can be repeated", collect)
    .flag("--remove <tag>", "this tag; can be repeated", collect)
    .flag("--by <name>", "who")
    .does(async (options, tasks: string[]) => {
      const { add, remove, by } = options;
      onlyTask(tasks, options);
      const deed: Deed = {
        verb: "tag",
        past: "tagged",
        act: (ops, input) => ops.tasks.tagMany({ ...input, add, remove }, { by }),
      };
      await doToMany(deed, tasks, options, out);
    });
};

function said(task: string, result: TriggerResult): string {
  switch (result.outcome) {
    case "enqueued":
      return `${result.repeated ? "was enqueued with this key before:" : "enqueued"} ${task}: run ${result.run}`;
    case "queued":
      if (result.repeated) return `was queued with this key before: ${task}`;
      return `queued ${task}: it starts when the run in its way is over`;
    default:
      return `skipped ${task}: a run of it is not over [${result.code}]. --overlap allow runs it all the same.`;
  }
}
