import type { Diagnosis, Finding } from "@carillon/sdk";
import { type Globals, noteIfEmpty, type Register, withClient } from "../command.js";
import { EXIT, type ExitCode } from "../exit-codes.js";
import type { Output } from "../output.js";
import { printable, sentenceCase } from "../text.js";

const EXIT_BY_STATE: Record<Diagnosis["state"], ExitCode> = {
  healthy: EXIT.ok,
  warnings: EXIT.unexpected,
  errors: EXIT.usage,
};

export const registerDoctor: Register = (program, out) => {
  program
    .command("doctor")
    .summary("look for faults beyond the status, each with its remedy")
    .description(
      [
        "Examines the namespace: the status, Redis' settings and memory, versions, clocks, task types and alerts without a worker,",
        "tasks that never ran or take longer than their interval, many due at once, and indexes. Changes nothing; reads at most",
        "2,000 tasks. Exit codes: 0 healthy, 1 warnings, 2 errors.",
      ].join(" "),
    )
    .action(async (_: unknown, command) => {
      const options: Globals = command.optsWithGlobals();
      const found = await withClient(options, async (client) => {
        const diagnosis = await client.doctor();
        if (!options.json && diagnosis.tasks.of === 0) await noteIfEmpty(client, out);
        return diagnosis;
      });
      out.exitCode = EXIT_BY_STATE[found.state];
      if (options.json) return out.json(found);
      await out.write(page(found, out));
    });
};

function page({ state, findings, tasks, skipped }: Diagnosis, { paint }: Pick<Output, "paint">): string {
  const about = ({ severity, code, message, remedy, task }: Finding) =>
    `${paint(severity === "error" ? "red" : "yellow", severity)}: ${printable(`${task === undefined ? sentenceCase(message) : message} [${code}]`)}\n  ${printable(remedy)}\n\n`;
  return [
    ...findings.map(about),
    state === "healthy" ? `${paint("green", "healthy")}; ` : "",
    `${tasks.read} of ${tasks.of} tasks read\n`,
    ...skipped.map((what) => `not checked: ${printable(what)}\n`),
  ].join("");
}
