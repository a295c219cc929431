import type { Definition } from "@carillon/sdk";
import { type Register, withClient } from "../command.js";
import { configWriter } from "../config-writer.js";
import { misuse } from "../failure.js";
import { secretFlags } from "../secrets.js";
import { conditionOptions, conditionsOf } from "./conditions.js";
import { tasksOf } from "./task-pages.js";

export const registerPull: Register = (program, out) => {
  const command = program
    .verb(
      "pull",
      "write stored tasks as a carillon.config",
      "Writes the tasks of a set as they are stored, or with conditions or --all tasks of no set, as a carillon.config: then\n" +
        "carillon plan finds nothing to change, or to adopt. Pauses and calendars stay where they are.",
    )
    .argument("<set>", "a set; with conditions or --all, the name of a new one")
    .needs("--out <file>", "a file that ends with .ts, .js, .mjs, .json or .jsonl")
    .flag("--force", "replace the file")
    .flag("-q, --queue <queue>", "tasks of no set: of this queue")
    .flag("--all", "all tasks of no set");
  secretFlags(conditionOptions(command)).does(async (options, set: string) => {
    const { out: file, force, json, all, redact, secrets } = options;
    const write = configWriter(file, force);
    const conditions = conditionsOf(options);
    const loose = all || Object.values(conditions).some((value) => value !== undefined);
    const { definitionOf, redactorOf } = await import("../load.js");
    const redactor = redactorOf({ redact });
    const { head, tasks } = await withClient(options, async (client, ops) => {
      const found = loose ? undefined : (await ops.sets.drift({ set })).set;
      const all = await tasksOf(client, loose ? conditions : { set }, out);
      return {
        head: {
          ...{ set, version: found?.version, redact },
          protect: found?.protect.length ? found.protect : undefined,
        },
        tasks: all
          .filter((task) => !loose || task.set === undefined)
          .map((task) => ({
            ...leastOf(definitionOf(task)),
            ...(secrets === false && { payload: redactor.shown(task.payload) }),
            ...(task.set?.filed && { queue: task.set.filed }),
          })),
      };
    });
    if (tasks.length === 0) throw misuse("set", "no task is in it, or matches.", "See carillon list.");
    await write(head, tasks);
    if (json) return out.json({ file, set, tasks: tasks.length });
    const then = loose ? " carillon apply --adopt '*' takes them over." : "";
    await out.write(`wrote ${tasks.length} tasks to ${file}.${then}\n`);
  });
};

/** Values that a task has if its file does not give them. */
const USUAL: Readonly<Record<string, unknown>> = {
  owner: "system",
  tags: [],
  priority: 0,
  overlap: "skip",
  catchUp: "one",
  payload: {},
};

/** A definition without usual values, and without the pause of a person. */
function leastOf({ schedule, enabled: _, ...definition }: Definition) {
  const given = Object.entries(definition).filter(
    ([name, value]) => JSON.stringify(value) !== JSON.stringify(USUAL[name]),
  );
  return { ...Object.fromEntries(given), schedule };
}
