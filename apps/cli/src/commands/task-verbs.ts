import { scopeText } from "@carillon/ops/words";
import type { TriggerResult } from "@carillon/sdk";
import { type Register, taskRef, withClient } from "../command.js";
import { EXIT } from "../exit-codes.js";
import { misuse } from "../failure.js";
import { parseJson } from "../input.js";
import { momentsOf } from "../moment.js";
import type { Output } from "../output.js";
import { when } from "../times.js";
import { tasksCommand } from "./conditions.js";
import { holdsText } from "./holds-text.js";
import { doToMany, type Named, onlyTask } from "./many.js";

export const registerTaskVerbs: Register = (program, out) => {
  tasksCommand(program, "rm", "delete a task with its records, or many", "tasks.deleteMany").does(
    async (options, tasks: string[]) => {
      const task = onlyTask(tasks, options);
      if (task === undefined)
        return doToMany({ calls: "tasks.deleteMany", verb: "rm", past: "deleted" }, tasks, options, out);
      await withClient(options, (client) =>
        client.delete(taskRef(task, options.queue, options.owner), { by: options.by }),
      );
      await (options.json ? out.json({ task, deleted: true }) : out.write(`deleted ${task}\n`));
    },
  );
  tasksCommand(
    program,
    "pause",
    "hold a task's future occurrences, or those of many; queued runs go on",
    "tasks.pauseMany",
  )
    .takes("tasks.pause", ["until"], { of: "of named tasks: ", times: "from" })
    .takes("tasks.pause", ["cancelQueued"], { of: "of one task: " })
    .does(async (options, tasks: string[]) => {
      const task = onlyTask(tasks, options);
      const why = { note: options.note, by: options.by };
      if (options.until !== undefined) return pauseUntil(options.until, tasks, options, out);
      if (task === undefined) {
        if (options.cancelQueued)
          throw misuse("cancel-queued", "applies to one task only.", "Leave it out, or give a task.");
        return doToMany({ calls: "tasks.pauseMany", verb: "pause", past: "paused" }, tasks, options, out);
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
  tasksCommand(
    program,
    "trigger",
    "run a task now, paused or not, or many; schedules are not touched",
    "tasks.triggerMany",
  )
    .flag("--payload <json>", "of one task: instead of its own payload, for this run only")
    .does(async (options, tasks: string[]) => {
      const { key, overlap, by, force } = options;
      const task = onlyTask(tasks, options);
      if (task === undefined) {
        if (options.payload !== undefined)
          throw misuse("payload", "applies to one task only.", "Leave it out, or give a task.");
        const deed = { calls: "tasks.triggerMany", verb: "trigger", past: "triggered" } as const;
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
  tasksCommand(program, "tag", "add tags to tasks, or remove them", "tasks.tagMany", {
    flags: { add: "--add <tag>", remove: "--remove <tag>" },
  }).does(async (options, tasks: string[]) => {
    onlyTask(tasks, options);
    await doToMany({ calls: "tasks.tagMany", verb: "tag", past: "tagged" }, tasks, options, out);
  });
};

async function pauseUntil(
  text: string,
  tasks: string[],
  options: Named & { note?: string; cancelQueued?: boolean },
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
