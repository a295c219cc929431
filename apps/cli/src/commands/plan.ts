import { writeFile } from "node:fs/promises";
import { createInterface } from "node:readline";
import type { AnswerTo, SetConfig } from "@carillon/ops";
import { type Command, type OptionsOf, type Register, withClient } from "../command.js";
import { inFile, readConfig, readSet } from "../config-file.js";
import { EXIT } from "../exit-codes.js";
import { Failure, misuse } from "../failure.js";
import { parseJson, readAll } from "../input.js";
import type { Io } from "../io.js";
import type { Output } from "../output.js";
import { type Column, table } from "../table.js";
import { planMarkdown } from "./plan-markdown.js";
import { planText, summary, total } from "./plan-text.js";

type Plan = AnswerTo<"sets.plan">;

type PlanOptions = OptionsOf<typeof setCommand>;

/** A plan that was shown, with the input that it was made of, as it may be shown. */
interface SavedPlan {
  readonly input: SetConfig;
  readonly plan: Plan;
  /** The file that has the hidden values; missing: none is hidden. */
  readonly hidden?: { readonly config: string; readonly env?: string | undefined };
}

export const registerPlan: Register = (program, out) => {
  setCommand(program, "plan", "show what an apply of carillon.config would do")
    .description(
      "Compares the tasks of carillon.config.ts, .js, .mjs, .json or .jsonl with what is stored, and shows what an apply\n" +
        "would do: fields, and the next five times old and new. Changes nothing.",
    )
    .flag("--out <file>", "save the plan, for carillon apply FILE")
    .flag("--exit-code", "exit with 10 if an apply would change something, 5 if it would be refused")
    .flag("--markdown", "for a comment on a pull request")
    .does(async (options) => {
      const { path, input } = await inputOf(options);
      const plan = await withClient(options, (_client, ops) => inFile(path, () => ops.sets.plan(input)));
      if (options.out !== undefined) await save(options.out, await savedOf(input, plan, path, options.env));
      if (options.exitCode && plan.refused.length > 0) out.exitCode = EXIT.refused;
      else if (options.exitCode && total(plan) > 0) out.exitCode = EXIT.attention;
      if (options.json) await out.json(plan);
      else await (options.markdown ? out.write(planMarkdown(plan)) : showPlan(plan, out));
    });
  setCommand(program, "apply", "make the stored tasks of a set those of carillon.config")
    .description(
      "Makes the stored tasks of a set those of carillon.config, after it has shown the plan and asked.\n" +
        "With PLAN, a file of carillon plan --out, it does exactly that, or nothing: STALE_PLAN. Values that the plan hides\n" +
        "are read again from the carillon.config that it was made of.",
    )
    .argument("[plan]", "a file that carillon plan --out wrote")
    .flag("--yes", "do not ask; needed without a terminal, and with --json")
    .takes("sets.apply", ["wait"])
    .does(async (options, file: string | undefined) => {
      const { io, json, yes } = options;
      if (file === undefined && !yes && (json || !io.stdin.isTTY))
        throw misuse("yes", "missing, and nobody can be asked.", "Look at carillon plan, then add --yes.");
      const saved = file === undefined ? undefined : await readSaved(file, options);
      const { path, input } = saved
        ? { path: saved.path, input: await wholeOf(saved, io) }
        : await inputOf(options);
      const plan = await withClient(options, async (_client, ops) => {
        const shown = saved?.plan ?? (await inFile(path, () => ops.sets.plan(input)));
        if (!saved && !json) await showPlan(shown, out);
        // The operation refuses what nobody need be asked about.
        if (!saved && !yes && shown.refused.length === 0 && total(shown) > 0) await confirm(io);
        const { wait, by } = options;
        return ops.sets.apply({ ...input, plan: shown.id, wait }, { by });
      });
      await (json ? out.json(plan) : out.write(`applied ${summary(plan)}\n`));
    });
  program
    .verb(
      "drift",
      "list the tasks of a set that others have changed since its last apply",
      "Lists the tasks of a set whose definitions others have changed since its last apply.",
    )
    .argument("[set]", "default: that of carillon.config")
    .flag("--config <file>", "default: carillon.config.ts, .js, .mjs, .json or .jsonl here")
    .flag("--exit-code", "exit with 10 if there are any, or some were deleted")
    .answer(
      async ({ ops, options }, name?: string) => {
        const set = name ?? (await readConfig(options.io, options.config)).config.set;
        const found = await ops.sets.drift({ set });
        const differs = found.drift.length > 0 || found.found < found.set.members;
        if (options.exitCode && differs) out.exitCode = EXIT.attention;
        return found;
      },
      ({ set, found, drift }) => {
        const lost = set.members - found;
        const deleted = lost > 0 ? `${lost} of the ${set.members} tasks of ${set.name} were deleted.\n` : "";
        const listed = drift.length > 0 ? table(DRIFT, drift, out) : "";
        return `${listed}${deleted}` || `No drift in ${set.name}.\n`;
      },
    );
};

function setCommand(program: Command, name: string, summary: string) {
  return program
    .command(name)
    .summary(summary)
    .flag("--config <file>", "default: carillon.config.ts, .js, .mjs, .json or .jsonl here")
    .flag("--env <name>", "of the environments that the file has")
    .takes("sets.plan", ["adopt", "allowRemovals", "keep", "prune"], { flags: { adopt: "--adopt <task>" } });
}

/** The file, and the flags, which win. @throws `INVALID_OPTION` */
async function inputOf(options: PlanOptions): Promise<{ path: string; input: SetConfig }> {
  const { path, input } = await readSet(options.io, options.config, options.env);
  return { path, input: { ...input, ...flagsOf(options) } };
}

function flagsOf({ adopt, allowRemovals, keep, prune }: PlanOptions): Partial<SetConfig> {
  const flags = { adopt, allowRemovals, keep, prune };
  return Object.fromEntries(Object.entries(flags).filter(([, value]) => value !== undefined));
}

/** Alert settings whose texts are secrets. */
const ALERT_SECRETS = ["url", "routingKey"];

async function savedOf(
  input: SetConfig,
  plan: Plan,
  config: string,
  env: string | undefined,
): Promise<SavedPlan> {
  const { Redactor, redactorOf } = await import("../load.js");
  const [payloads, alerts] = [redactorOf(input), new Redactor(ALERT_SECRETS)];
  const tasks = input.tasks.map((task) => ({
    ...task,
    ...(task.payload !== undefined && { payload: payloads.shown(task.payload) }),
    ...(task.alerts !== undefined && { alerts: alerts.shown(task.alerts) }),
  }));
  const isHidden = JSON.stringify(tasks) !== JSON.stringify(input.tasks);
  return { input: { ...input, tasks } as SetConfig, plan, ...(isHidden && { hidden: { config, env } }) };
}

/**
 * The input of a saved plan with the values that it hides, as its file has them now: the plan is stale if they have changed.
 * @throws `STALE_PLAN` if the file does not have the task any more
 */
async function wholeOf({ input, hidden }: SavedPlan, io: Io): Promise<SetConfig> {
  if (!hidden) return input;
  const { config, env } = hidden;
  const nameOf = ({ queue, owner = "", id }: SetConfig["tasks"][number]) => `${queue}/${owner}/${id}`;
  const now = new Map((await readSet(io, config, env)).input.tasks.map((task) => [nameOf(task), task]));
  const tasks = input.tasks.map((task) => {
    const { payload, alerts } = now.get(nameOf(task)) ?? missing(`${config} has no task ${task.id} any more`);
    return { ...task, ...(payload !== undefined && { payload }), ...(alerts && { alerts }) };
  });
  return { ...input, tasks };
}

function missing(what: string): never {
  const remedy = "Make the plan again.";
  throw new Failure({
    code: "STALE_PLAN",
    message: `${what}, and the plan hides its values. ${remedy}`,
    remedy,
  });
}

async function save(file: string, saved: SavedPlan): Promise<void> {
  await writeFile(file, `${JSON.stringify(saved)}\n`).catch((error: Error) => {
    throw misuse("out", `${file} cannot be written: ${error.message}.`, "Check the path.");
  });
}

/** @throws `INVALID_OPTION` */
async function readSaved(file: string, options: PlanOptions): Promise<SavedPlan & { path: string }> {
  const { config, env } = options;
  const [flag] = Object.keys({
    ...flagsOf(options),
    ...(config !== undefined && { config }),
    ...(env !== undefined && { env }),
  });
  if (flag !== undefined) throw misuse(flag, "given with a saved plan.", "Give it to carillon plan.");
  const hint = "Give a file of carillon plan --out.";
  const text = await readAll(options.io, file, hint);
  const read = parseJson(text, hint, { code: "INVALID_OPTION" }) as Partial<SavedPlan> | null;
  if (typeof read?.plan?.id === "string" && typeof read.input === "object")
    return { ...(read as SavedPlan), path: file };
  throw misuse("plan", `${file} is not a saved plan.`, hint);
}

export async function showPlan(plan: Plan, out: Output): Promise<void> {
  await out.write(planText(plan, out.paint));
  for (const { tasks, count, ...warning } of plan.warnings) {
    const [first = `set ${plan.set}`] = tasks;
    out.warn(count > 1 ? `${first} and ${count - 1} more` : first, [warning]);
  }
}

/** @throws `INVALID_OPTION` unless the answer is yes */
async function confirm({ stdin, stderr }: Io): Promise<void> {
  stderr.write("Apply this? Type yes: ");
  const lines = createInterface({ input: stdin });
  for await (const line of lines) {
    if (line.trim() === "yes") return;
    break;
  }
  throw misuse("apply", "not confirmed.", "Nothing was written.");
}

const DRIFT: Column<AnswerTo<"sets.drift">["drift"][number]>[] = [
  { title: "TASK", value: ({ owner, id }) => `${owner}/${id}` },
  { title: "QUEUE", value: "queue", rank: 1, least: 8 },
  { title: "CHANGED", value: ({ at }, { when }) => when(at) },
  { title: "BY", value: ({ by }) => by ?? "", least: 8 },
];
