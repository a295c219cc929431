import { duration, isTraceUrl, TRACE_URL_REMEDY, traceLink } from "@carillon/ops/words";
import type { RunDetails } from "@carillon/sdk";
import { type Register, withClient } from "../command.js";
import { misuse } from "../failure.js";
import type { Io } from "../io.js";
import type { Output } from "../output.js";
import { type Column, table } from "../table.js";
import { cut, facts, type Paint, printable } from "../text.js";
import { when } from "../times.js";
import { fieldLines } from "./changes.js";
import { manyOptions, refuseBesideTask } from "./conditions.js";
import { type Deed, doToMany, showMany } from "./many.js";
import { RUN_COLUMNS, took } from "./run-columns.js";

export const registerRun: Register = (program, out) => {
  program
    .verb("run", "show a run: its record, its attempts, what it printed")
    .calls("runs.get", (run, _, { io }) => describe(run, traceLink(traceUrlIn(io), run), out), {
      input: (_, { options: { io } }) => void traceUrlIn(io),
    });
  program
    .verb("compare", "a run beside the last good one of its task, and what changed between them")
    .calls("runs.compare", ({ run, good, definition }) => {
      if (!good) return `No good run of ${run.task.owner}/${run.task.id} is recorded before it.\n`;
      const { before = {}, after = {} } = definition ?? {};
      const changed = fieldLines(before, after).map((line) => `${printable(line)}\n`);
      const unknown = "The definition of one of them is no longer recorded.\n";
      return [table(RUN_COLUMNS, [run, good], out), definition ? changed : unknown].flat().join("");
    });
  const command = program
    .verb(
      "cancel",
      "cancel runs, queued or running, or all of many tasks",
      "Cancels a run: one that has not started never starts, a running one is asked to\n" +
        "stop. Refused if it has ended. Of several runs, those that have ended are left out. With --all: the open runs\n" +
        "of all tasks that match.",
    )
    .argument("[runs...]", RUN);
  manyOptions(command, "runs.cancelMany", {
    about: { queue: "without a run: of the tasks of this queue" },
    but: ["runs"],
  }).does(async (options, ids: string[]) => {
    const { by, dryRun } = options;
    const [id, ...others] = ids;
    if (id === undefined) return doToMany(MANY, [], options, out);
    refuseBesideTask(options, ["queue", "all"]);
    if (dryRun || others.length > 0) {
      const answer = await withClient(options, (_, ops) =>
        ops.runs.cancelMany({ runs: ids, dryRun }, { by }),
      );
      return showMany(MANY, answer, options, out);
    }
    const changed = await withClient(options, (client) => client.runs.cancel(id, { by }));
    const text = `${changed ? "asked for the end of" : "was asked to end already:"} ${id}\n`;
    await (options.json ? out.json({ run: id, changed }) : out.write(text));
  });
};

/** @throws `INVALID_OPTION` */
function traceUrlIn({ env: { CARILLON_TRACE_URL: url } }: Io): string | undefined {
  if (!url || isTraceUrl(url)) return url || undefined;
  throw misuse("CARILLON_TRACE_URL", "not the address of a trace.", TRACE_URL_REMEDY);
}

const MANY: Deed<"runs.cancelMany"> = {
  calls: "runs.cancelMany",
  verb: "cancel",
  past: "asked for the end of",
  noun: "run",
  columns: [
    { title: "RUN", value: "run" },
    { title: "TASK", value: ({ task }) => `${task.owner}/${task.id}` },
    { title: "QUEUE", value: ({ task }) => task.queue, rank: 1, least: 8 },
    { title: "STATE", value: "state" },
  ],
};

export const RUN = "a run's id, as runs, journal and explain show it";

function describe(run: RunDetails, trace: string | undefined, out: Output): string {
  const { paint } = out;
  const { task, missed, cancel } = run;
  const head = facts(
    [
      ["run", run.id],
      ["task", `${task.owner}/${task.id}`],
      ["queue", task.queue],
      ["type", run.type],
      ["state", run.outcome ?? run.state],
      ["trigger", run.trigger],
      ["asked for by", run.by],
      ["own payload", run.payload === undefined ? undefined : cut(JSON.stringify(run.payload), 500)],
      ["nominal", when(run.nominal)],
      ["due", run.due === run.nominal ? undefined : when(run.due)],
      [
        "enqueued",
        `${when(run.enqueued)} by ${run.node}, ${duration(run.enqueued - run.due)} after it was due`,
      ],
      ["stands for", missed && `all from ${when(missed.from)} to ${when(missed.to)}`],
      ["started", run.started === undefined ? undefined : when(run.started)],
      ["finished", run.finished === undefined ? undefined : when(run.finished)],
      ["took", run.finished === undefined ? undefined : took(run)],
      ["cancel", cancel && `asked for by ${cancel.by}, ${when(cancel.at)}`],
      ["crashes", run.crashes ? `${run.crashes} attempts lost their worker` : undefined],
      ["not before", run.notBefore === undefined ? undefined : when(run.notBefore)],
      ["key", run.key],
      ["trace", trace],
      ["result", run.result === undefined ? undefined : cut(JSON.stringify(run.result), 2_000)],
      ["checkpoint", run.checkpoint === undefined ? undefined : cut(JSON.stringify(run.checkpoint), 500)],
    ],
    paint,
  );
  const { attemptList } = run;
  const attempts = attemptList.length > 0 ? `\n${table(ATTEMPTS, attemptList, out)}` : "";
  const error = run.error === undefined ? "" : `\n${paint("bold", "Error")}\n${lines(run.error)}`;
  return `${head}${attempts}${error}${printed(run, paint)}`;
}

function printed({ output, attempts }: RunDetails, paint: Paint): string {
  return output
    .map(({ attempt, text }) => {
      const which = attempts > 1 ? ` by attempt ${attempt}` : "";
      return `\n${paint("bold", `Printed${which}`)}\n${lines(text.trimEnd())}`;
    })
    .join("");
}

/** Splits text into lines: line ends are kept, other control characters are made visible. */
function lines(text: string): string {
  return text
    .split("\n")
    .map((line) => `  ${printable(line)}\n`)
    .join("");
}

const ATTEMPTS: Column<RunDetails["attemptList"][number]>[] = [
  { title: "ATTEMPT", right: true, value: "attempt" },
  { title: "STARTED", value: ({ started }, { when }) => when(started) },
  { title: "HOST", value: "host", rank: 2 },
  { title: "PID", right: true, value: "pid", rank: 3 },
  { title: "WORKER", value: "worker" },
];
