import type { AnswerTo } from "@carillon/ops";
import { findingText } from "@carillon/ops/words";
import { type Globals, noteIfEmpty, type Register, withClient } from "../command.js";
import { EXIT, type ExitCode } from "../exit-codes.js";
import type { Screen } from "../table.js";
import { paragraphs, printable, sentenceCase } from "../text.js";
import { CLI_VOICE } from "../times.js";

type Diagnosis = AnswerTo<"health.doctor">;

const EXIT_BY_STATE: Record<Diagnosis["state"], ExitCode> = {
  healthy: EXIT.ok,
  warnings: EXIT.attention,
  errors: EXIT.trouble,
};

export const registerDoctor: Register = (program, out) => {
  program
    .command("doctor")
    .summary("look for faults beyond the status, each with its remedy")
    .description(
      [
        "Examines the namespace: the status, Redis' settings and memory, versions, clocks, task types and alerts without a worker,",
        "tasks that never ran or take longer than their interval, many due at once, and indexes. Changes nothing; reads at most",
        "2,000 tasks. Exit codes: 0 healthy, 10 warnings, 11 errors.",
      ].join(" "),
    )
    .action(async (_: unknown, command) => {
      const options: Globals = command.optsWithGlobals();
      const found = await withClient(options, async (client, ops) => {
        const diagnosis = await ops.health.doctor();
        // Without an answer of Redis there is nothing to say about its content.
        const { tasks, skipped } = diagnosis;
        if (!options.json && tasks.of === 0 && skipped.length === 0) await noteIfEmpty(client, out);
        return diagnosis;
      });
      out.exitCode = EXIT_BY_STATE[found.state];
      if (options.json) return out.json(found);
      await out.write(page(found, out));
    });
};

function page({ state, findings, tasks, skipped }: Diagnosis, { paint, width }: Screen): string {
  const texts = findings.map((finding) => {
    const { severity, code, task } = finding;
    const { message, remedy } = findingText(finding, CLI_VOICE);
    return { text: `${severity}: ${task === undefined ? sentenceCase(message) : message} [${code}]`, remedy };
  });
  const lines = paragraphs(texts, width).replace(/^(error|warning)(?=: )/gm, (severity) =>
    paint(severity === "error" ? "red" : "yellow", severity),
  );
  return [
    lines === "" ? "" : `${lines.slice(1)}\n`,
    state === "healthy" ? `${paint("green", "healthy")}; ` : "",
    `${tasks.read} of ${tasks.of} tasks read\n`,
    ...skipped.map((what) => `not checked: ${printable(what)}\n`),
  ].join("");
}
