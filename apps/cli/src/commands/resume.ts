import type { AnswerTo, InputTo } from "@carillon/ops";
import { duration } from "@carillon/ops/words";
import { type Command, type OptionsOf, type Register, taskRef, withClient } from "../command.js";
import { misuse } from "../failure.js";
import type { Output } from "../output.js";
import { type Column, table } from "../table.js";
import { counted } from "../text.js";
import { utcIso } from "../times.js";
import { type Conditions, conditionsOf, tasksCommand } from "./conditions.js";
import { doToMany, onlyTask, selectionOf } from "./many.js";

type ResumePlan = AnswerTo<"tasks.resumePlan">;
type Counted = ResumePlan["starts"]["all"];

const resumeCommand = (program: Command) =>
  tasksCommand(program, "resume", "let a paused task go on, or many", "tasks.resumeMany", {
    about: {
      note: "without a task: only those that were paused with this note",
      pausedBy: "without a task: only those that were paused by this name",
    },
  })
    .description(
      "Lets a paused task go on, or many. --plan says what they owe, and how much each choice of --missed starts.\n" +
        "latest and all run owed occurrences as backfills: --per-minute of them, all tasks together, evenly spread.",
    )
    .takes("tasks.resume", ["mode"], { of: "of one task: " })
    .flag("--plan", "change nothing; show what is owed, and what each --missed starts");

type ResumeOptions = OptionsOf<typeof resumeCommand>;

export const registerResume: Register = (program, out) => {
  resumeCommand(program).does(async (options, tasks: string[]) => {
    const { missed, perMinute, mode, plan } = options;
    const paused = { note: options.note, pausedBy: options.pausedBy };
    const task = onlyTask(tasks, options);
    if (plan) {
      const selected = tasks.length > 0 ? selectionOf(tasks, options) : conditionsOf(options);
      return showPlan({ ...selected, ...paused }, options, out);
    }
    if (task === undefined || missed === "latest" || missed === "all" || perMinute !== undefined) {
      if (mode !== undefined)
        throw misuse("mode", "applies to one task, with skip or catch-up.", "Leave it out.");
      return doToMany(
        {
          calls: "tasks.resumeMany",
          verb: "resume",
          past: "resumed",
          conditions: paused,
          more: ({ batch, replayed }) =>
            [
              batch === undefined ? "" : `what they owe runs as backfills: batch ${batch}\n`,
              replayed === undefined
                ? ""
                : `another resume let ${counted(replayed.count, "task")} go on; what they owed, ${occurrences({ count: replayed.total, exact: true })}, runs as backfills: batch ${replayed.batches.join(", ")}\n`,
            ].join(""),
        },
        tasks,
        options,
        out,
      );
    }
    for (const field of ["note", "pausedBy"] as const) {
      if (options[field] !== undefined)
        throw misuse(field === "note" ? "note" : "paused-by", "applies to many tasks only.", "Leave it out.");
    }
    const { changed } = await withClient(options, (_, ops) => {
      const ref = taskRef(task, options.queue, options.owner);
      return ops.tasks.resume({ ...ref, missed, mode }, { by: options.by });
    });
    const text = `${changed ? "resumed" : "was not paused:"} ${task}\n`;
    await (options.json ? out.json({ task, changed }) : out.write(text));
  });
};

async function showPlan(
  filter: InputTo<"tasks.resumePlan">,
  options: ResumeOptions,
  out: Output,
): Promise<void> {
  const plan = await withClient(options, (_client, ops) => ops.tasks.resumePlan(filter));
  if (options.json) return out.json(plan);
  const { tasks, owed, most, unpaused, frozen, held } = plan;
  const lines = [`${counted(tasks, "paused task")}; ${owed.tasks} of them owe ${occurrences(owed)}\n`];
  if (owed.tasks > 0) {
    lines.push(table(CHOICES, choices(plan, options.perMinute), out));
    lines.push(`\n${table(MOST, most, out)}`);
    if (owed.tasks > most.length) lines.push(`… and ${owed.tasks - most.length} more\n`);
  }
  if (unpaused.tasks > 0)
    lines.push(
      `${counted(unpaused.tasks, "task")} not paused and overdue, by ${occurrences(unpaused)}: the catch-up policies decide, unless you pause them first\n`,
    );
  const { from, to, scopes } = frozen;
  if (frozen.tasks > 0 && from !== undefined && to !== undefined) {
    const range = `--only frozen --from ${utcIso(from)} --to ${utcIso(to)}`;
    const commands = (scopes.length === 0 ? [{}] : scopes).map((one) => backfillOf(one, options, range));
    lines.push(
      `freezes skipped ${occurrences(frozen)} of ${counted(frozen.tasks, "task")} in the last day; to run them:\n`,
      ...new Set(commands),
    );
  }
  if (held > 0) lines.push(`a freeze holds ${counted(held, "task")} now, also once resumed\n`);
  await out.write(lines.join(""));
}

type FreezeScope = ResumePlan["frozen"]["scopes"][number];

/** The command that backfills the tasks of one freeze, as far as the plan covers them. @param range options for its times */
function backfillOf(
  { tasks, ...scope }: FreezeScope,
  { owner = scope.owner, queue = scope.queue, tag = scope.tag }: Conditions,
  range: string,
): string {
  const given = Object.entries({ owner, queue, tag }).filter(([, value]) => value !== undefined);
  // Only a plan, or a freeze, may cover the whole namespace.
  const conditions =
    given.length === 0 ? "--owner OWNER" : given.map(([field, value]) => `--${field} ${value}`).join(" ");
  const [first, ...queues] = new Set(tasks?.map((task) => task.queue));
  const names = [
    ...(tasks?.map(({ owner, id }) => `${owner}/${id}`) ?? []),
    ...(queues.length === 0 ? [`--queue ${first}`] : []),
  ];
  const which = tasks ? names.join(" ") : `--all ${conditions}`;
  return `  carillon backfill ${which} ${range}${tasks?.length === 1 ? "" : " --per-minute 60"}\n`;
}

interface Choice {
  readonly name: string;
  readonly starts: Counted;
  readonly how: string;
}

function choices({ starts, policies }: ResumePlan, perMinute: number | undefined): Choice[] {
  const pace = ({ count }: Counted) =>
    perMinute !== undefined && perMinute > 0
      ? `${duration((count / perMinute) * 60_000)} at ${perMinute} a minute`
      : "at --per-minute";
  const which = (["all", "one", "skip"] as const)
    .filter((policy) => policies[policy].tasks > 0)
    .map((policy) => `${policy} ${policies[policy].tasks}`);
  return [
    { name: "skip", starts: starts.skip, how: "drops them, as skips" },
    { name: "latest", starts: starts.latest, how: pace(starts.latest) },
    { name: "catch-up", starts: starts["catch-up"], how: `at once; tasks by policy: ${which.join(", ")}` },
    { name: "all", starts: starts.all, how: pace(starts.all) },
  ];
}

const CHOICES: Column<Choice>[] = [
  { title: "--missed", value: "name" },
  { title: "STARTS", value: ({ starts }) => number(starts), right: true },
  { title: "HOW", value: "how", least: 12 },
];

const MOST: Column<ResumePlan["most"][number]>[] = [
  { title: "TASK", value: ({ owner, id }) => `${owner}/${id}` },
  { title: "QUEUE", value: "queue", rank: 2, least: 8 },
  { title: "OWES", value: ({ owed }) => number(owed), right: true },
  { title: "POLICY", value: "catchUp", rank: 1 },
  { title: "SINCE", value: ({ from }, { when }) => when(from) },
];

/** `≥` if it is a lower bound. */
function number({ count, exact }: Counted): string {
  return exact ? String(count) : `≥${count}`;
}

function occurrences(of: Counted): string {
  return `${number(of)} occurrence${of.count === 1 && of.exact ? "" : "s"}`;
}
