import { readFileSync } from "node:fs";
import { CommanderError } from "commander";
import { Command, type Globals, type Register } from "./command.js";
import { registerAlerts } from "./commands/alerts.js";
import { registerBackfill } from "./commands/backfill.js";
import { registerBackfills } from "./commands/backfills.js";
import { registerCalendars } from "./commands/calendars.js";
import { registerCall } from "./commands/call.js";
import { registerChanges } from "./commands/changes.js";
import { registerCompletion } from "./commands/completion.js";
import { registerCutOver } from "./commands/cutover.js";
import { registerDefaults } from "./commands/defaults.js";
import { registerDev } from "./commands/dev.js";
import { registerDoctor } from "./commands/doctor.js";
import { registerEdit } from "./commands/edit.js";
import { registerExplain } from "./commands/explain.js";
import { registerExport } from "./commands/export.js";
import { registerFreezes } from "./commands/freeze.js";
import { registerImport } from "./commands/import.js";
import { registerInit } from "./commands/init.js";
import { registerItems } from "./commands/items.js";
import { registerJournal } from "./commands/journal.js";
import { registerList } from "./commands/list.js";
import { registerLoad } from "./commands/load.js";
import { registerMove } from "./commands/move.js";
import { registerNext } from "./commands/next.js";
import { registerNodes } from "./commands/nodes.js";
import { registerPlan } from "./commands/plan.js";
import { registerPull } from "./commands/pull.js";
import { registerPut } from "./commands/put.js";
import { registerQueues } from "./commands/queues.js";
import { registerQuotas } from "./commands/quotas.js";
import { registerReplay } from "./commands/replay.js";
import { registerResume } from "./commands/resume.js";
import { registerRevisions } from "./commands/revisions.js";
import { registerRun } from "./commands/run.js";
import { registerRuns } from "./commands/runs.js";
import { registerSets } from "./commands/sets.js";
import { registerShadow } from "./commands/shadow.js";
import { registerShow } from "./commands/show.js";
import { registerStats } from "./commands/stats.js";
import { registerStatus } from "./commands/status.js";
import { registerTaskVerbs } from "./commands/task-verbs.js";
import { registerTokens } from "./commands/tokens.js";
import { registerTrends } from "./commands/trends.js";
import { registerTypes } from "./commands/types.js";
import { registerUpcoming } from "./commands/upcoming.js";
import { registerValidate } from "./commands/validate.js";
import { registerWorkers } from "./commands/workers.js";
import { EXIT, EXIT_HELP, type ExitCode } from "./exit-codes.js";
import { fail, misuse } from "./failure.js";
import type { Io } from "./io.js";
import { Output } from "./output.js";

const COMMANDS: readonly Register[] = [
  registerPut,
  registerEdit,
  registerValidate,
  registerPlan,
  registerImport,
  registerExport,
  registerPull,
  registerSets,
  registerList,
  registerShow,
  registerMove,
  registerShadow,
  registerCutOver,
  registerTaskVerbs,
  registerResume,
  registerFreezes,
  registerAlerts,
  registerExplain,
  registerRuns,
  registerRun,
  registerItems,
  registerReplay,
  registerJournal,
  registerChanges,
  registerRevisions,
  registerStats,
  registerTrends,
  registerUpcoming,
  registerLoad,
  registerBackfill,
  registerBackfills,
  registerStatus,
  registerDoctor,
  registerDev,
  registerInit,
  registerNodes,
  registerWorkers,
  registerQueues,
  registerDefaults,
  registerQuotas,
  registerTypes,
  registerCalendars,
  registerTokens,
  registerNext,
  registerCall,
  registerCompletion,
];

export function createProgram(io: Io, out: Output, json: boolean): Command {
  const program = new Command("carillon", out);
  // Set before the commands, which inherit it. Errors are printed in one place, by `fail`.
  program.exitOverride().configureOutput({
    outputError: () => {},
    writeOut: (text) => void io.stdout.write(text),
    // Prints help if a command is missing, but never with --json.
    writeErr: json ? () => {} : (text) => void io.stderr.write(text),
  });
  program
    .description("Stores, runs and inspects Carillon tasks.")
    .version(version())
    .option(
      "--redis <url>",
      "redis://, several of them for a cluster, redis+sentinel://; rediss for TLS; default $REDIS_URL",
    )
    .option("--namespace <name>", "default $CARILLON_NAMESPACE, else carillon")
    .option("--owner <owner>", "act for one owner: reads and changes only its tasks")
    .option(
      "--json",
      "JSON on stdout, one document (or one a line where it streams); errors as JSON on stderr",
    )
    .showSuggestionAfterError()
    .addHelpText("after", EXIT_HELP);
  // Every command knows the global options; its help shows them too.
  program.configureHelp({ showGlobalOptions: true });
  program.setOptionValue("io" satisfies keyof Globals, io);
  for (const register of COMMANDS) register(program, out);
  return program;
}

function version(): string {
  const file = new URL("../package.json", import.meta.url);
  return (JSON.parse(readFileSync(file, "utf8")) as { version: string }).version;
}

/** Runs one command line, `argv` without node and script. Never throws. */
export async function run(argv: readonly string[], io: Io): Promise<ExitCode> {
  const json = argv.includes("--json");
  const out = new Output(io);
  const program = createProgram(io, out, json);
  try {
    await program.parseAsync(argv, { from: "user" });
    return out.exitCode;
  } catch (error) {
    // Help and version end this way too.
    if (error instanceof CommanderError && error.exitCode === 0) return EXIT.ok;
    if (!(error instanceof CommanderError && error.code === "commander.help"))
      return fail(error, json, io.stderr);
    return json
      ? fail(misuse("COMMAND", "missing.", "Give one; carillon --help lists them."), json, io.stderr)
      : EXIT.usage;
  }
}
