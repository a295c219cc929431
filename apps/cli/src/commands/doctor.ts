import type { AnswerTo } from "@carillon/ops";
import { findingText } from "@carillon/ops/words";
import { noteIfEmpty, type Register, withClient } from "../command.js";
import { EXIT, type ExitCode } from "../exit-codes.js";
import type { Screen } from "../table.js";
import { paragraphs, printable } from "../text.js";
import { CLI_VOICE, utcIso } from "../times.js";
import { bullOptions } from "./shadow.js";

type Diagnosis = AnswerTo<"health.doctor">;

const EXIT_BY_STATE: Record<Diagnosis["state"], ExitCode> = {
  healthy: EXIT.ok,
  warnings: EXIT.attention,
  errors: EXIT.trouble,
};

export const registerDoctor: Register = (program, out) => {
  bullOptions(program.command("doctor"), "also look for dead job schedulers of BullMQ in this Redis")
    .summary("look for faults beyond the status, each with its remedy")
    .description(
      [
        "Examines the namespace: the status, Redis' settings and memory, versions, clocks, task types and alerts without a worker,",
        "tasks that never ran or take longer than their interval, many due at once, and indexes. Changes nothing; reads at most",
        "2,000 tasks. Exit codes: 0 healthy, 10 warnings, 11 errors.",
      ].join(" "),
    )
    .does(async (options) => {
      const { bullmq: url, prefix } = options;
      const [found, dead] = await withClient(options, async (client, ops) => {
        const diagnosis = await ops.health.doctor();
        // Without an answer of Redis there is nothing to say about its content.
        const { tasks, skipped } = diagnosis;
        if (!options.json && tasks.of === 0 && skipped.length === 0) await noteIfEmpty(client, out);
        if (url === undefined) return [diagnosis];
        const { readBullSchedulers, withBullmq } = await import("../load.js");
        const schedulers = await withBullmq(client, url, (redis) => readBullSchedulers(redis, { prefix }));
        return [diagnosis, schedulers.filter(({ alive }) => !alive)];
      });
      out.exitCode = EXIT_BY_STATE[found.state];
      if (dead?.length && out.exitCode === EXIT.ok) out.exitCode = EXIT.attention;
      if (options.json)
        return out.json({
          ...found,
          ...(dead && { dead: dead.map(({ queue, id, next }) => ({ queue, id, next })) }),
        });
      await out.write(page(found, out));
      for (const { queue, id, next } of dead ?? [])
        await out.write(
          `${printable(`dead: BullMQ's ${queue}/${id} has no job to come since ${utcIso(next)}`)}\n`,
        );
    });
};

function page({ state, findings, tasks, skipped }: Diagnosis, { paint, width }: Screen): string {
  const texts = findings.map((finding) => {
    const { severity, code } = finding;
    const { message, remedy } = findingText(finding, CLI_VOICE);
    return { text: `${severity}: ${message} [${code}]`, remedy };
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
