import type { Redactor, SetTask } from "@carillon/ops/internal";
import { Argument } from "commander";
import { type Command, type OptionsOf, type Register, withClient } from "../command.js";
import { configWriter } from "../config-writer.js";
import { EXIT } from "../exit-codes.js";
import { misuse } from "../failure.js";
import { type Checked, reportText } from "../import/report.js";
import { readAll } from "../input.js";
import { Progress } from "../progress.js";
import { secretFlags } from "../secrets.js";

const SYSTEMS = ["bullmq", "agenda", "pg-boss", "crontab", "kubernetes"] as const;
type System = (typeof SYSTEMS)[number];

const importCommand = (program: Command) =>
  secretFlags(
    program
      .verb(
        "import",
        "write the schedules of another system as a carillon.config",
        "Writes a carillon.config with the schedules of another system, and reports which of them fire at other times here,\n" +
          "computed for two years by the library of that system. Stores nothing, and changes nothing there.\n" +
          "bullmq is read from Redis: schedulers and repeatable jobs of BullMQ 4 to 6. The others read FILE: a crontab,\n" +
          "manifests of CronJobs, or rows of agenda's collection or pgboss.schedule, as JSON, JSON lines or CSV. The report\n" +
          "hides secrets, and names those that the file has.",
      )
      .addArgument(new Argument("<system>").choices(SYSTEMS))
      .argument("[file]", "default: standard input")
      .needs("--out <file>", "a file that ends with .ts, .js, .mjs, .json or .jsonl", {
        otherwise: "carillon.config.mjs",
      })
      .flag("--force", "replace the file")
      .flag("--set <name>", "name of the set; default that of the system")
      .flag("-z, --timezone <zone>", "IANA zone of schedules that name none; default UTC, with a note")
      .flag("-q, --queue <queue>", "queue of the tasks; of bullmq, only this queue; pg-boss has its own")
      .flag("--shadow", "tasks start as shadows, for carillon shadow and cutover, instead of paused")
      .flag("--bullmq <url>", "Redis of BullMQ; default that of --redis")
      .flag("--prefix <prefix>", "BullMQ's prefix; default bull")
      .flag("--system", "the lines of the crontab name a user, as in /etc/crontab")
      .flag("--no-compare", "do not compare the times there and here, which takes minutes for many rules")
      .flag("--exit-code", "exit with 10 if a schedule is not imported, or fires at other times"),
  );

type ImportOptions = OptionsOf<typeof importCommand>;

export const registerImport: Register = (program, out) => {
  importCommand(program).does(async (options, system: System, file: string | undefined) => {
    const write = configWriter(options.out, options.force);
    const found = await read(system, file, options);
    if (found.length === 0) throw misuse("system", `no schedule of ${system} found.`, "Check what you gave.");
    const { redact, secrets } = options;
    const redactor = (await import("../load.js")).redactorOf({ redact });
    const all = found.map((one) => shownOf(one, redactor, secrets));
    const tasks = (secrets === false ? all : found).flatMap(({ task }) =>
      task ? [options.shadow ? shadowOf(task) : task] : [],
    );
    await write({ set: options.set ?? system, redact }, tasks);
    const differ = all.some(({ task, verdict }) => !task || (verdict && verdict.differences.length > 0));
    if (options.exitCode && differ) out.exitCode = EXIT.attention;
    const schedules = all.map(({ theirs: _, ...one }) => one);
    await (options.json
      ? out.json({ file: options.out, schedules })
      : out.write(reportText(all, options.out, out.paint)));
  });
};

/** A schedule as a report may show it. */
function shownOf({ task, notes, ...one }: Checked, redactor: Redactor, secrets = true): Checked {
  const shown = task && { ...task, payload: redactor.shown(task.payload) as SetTask["payload"] };
  const hidden = shown ? redactor.placeholdersIn(shown.payload) : [];
  const text = secrets
    ? "secrets, by their names, in the file. Take them from the environment there, or give --no-secrets."
    : "secrets, left out of the file. Give them there before an apply.";
  return {
    ...one,
    task: shown,
    notes: [
      ...notes.map(({ code, text }) => ({ code, text: redactor.shown(text) as string })),
      ...(hidden.length > 0 ? [{ code: "SECRET", text: `${hidden.join(", ")}: ${text}` }] : []),
    ],
  };
}

function shadowOf({ enabled, ...task }: SetTask): SetTask {
  return task.state === undefined ? { ...task, mode: "shadow" } : { ...task, enabled };
}

async function read(system: System, file: string | undefined, options: ImportOptions): Promise<Checked[]> {
  const load = await import("../import/load.js");
  const { io, timezone, queue, prefix, bullmq, system: users } = options;
  const now = Date.now();
  const checked = (found: readonly Checked[]) => {
    if (options.compare === false) return [...found];
    const [verify, progress] = [
      load.verifier(now),
      new Progress(io.stderr, `of ${found.length} schedules compared`),
    ];
    const all = found.map((one) => {
      progress.add(1);
      return { ...one, verdict: verify(one) };
    });
    progress.end();
    return all;
  };
  if (system === "bullmq") {
    if (file !== undefined) throw misuse("FILE", "bullmq is read from Redis.", "Give --bullmq URL.");
    const at = { ...options, ...(bullmq !== undefined && { redis: bullmq }) };
    const schedulers = await withClient(at, (client) =>
      load.withBullmq(client, undefined, (redis) => load.readBullSchedulers(redis, { prefix, queue })),
    );
    return checked(load.importBullmq(schedulers, { timezone, now }));
  }
  const text = await readAll(io, file, "Split it.");
  return checked(load.SOURCES[system](text, { timezone, now, queue: queue ?? system, system: users }));
}
