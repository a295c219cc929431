import type { AnswerTo } from "@carillon/ops";
import { type Register, withClient } from "../command.js";
import { summaryOf } from "../fields.js";
import { momentsOf } from "../moment.js";
import type { Output } from "../output.js";
import { printable, wrap } from "../text.js";
import { HERE, localIso, wallText } from "../times.js";
import { showMany } from "./many.js";

type Load = AnswerTo<"occurrences.load">;

/** Length of the longest bar, in characters. */
const BAR = 40;

export const registerLoad: Register = (program, out) => {
  program
    .verb("load", "occurrences planned per hour or minute")
    .calls(
      "occurrences.load",
      (found) =>
        (found.total > 0 ? histogram(found) + collisions(found, out) : "Nothing is planned.\n") +
        (found.frozen > 0 ? `Freezes hold ${found.frozen} more.\n` : ""),
      { times: "from" },
    );
  program
    .verb("spread", "give a jitter to all tasks that start in one minute", summaryOf("tasks.spread"))
    .argument("<minute>", "its start, as load shows it: ISO 8601, 09:00, tomorrow 03:00")
    .argument("<jitter>", "each start is delayed by up to this time: 5m")
    .takes("tasks.spread", ["queue", "tag", "dryRun"])
    .does(async (options, minute: string, jitter: string) => {
      const { queue, tag, owner, dryRun, by } = options;
      const done = await withClient(options, async (client, ops) => {
        const { minute: at = 0 } = await momentsOf(client, { minute }, "from");
        return ops.tasks.spread({ at, jitter, queue, tag, owner, dryRun }, { by });
      });
      const more = ({ curve: { step, before, after }, change }: typeof done) =>
        `most starts in ${step / 1_000} s: ${Math.max(...after)} instead of ${Math.max(...before)}\n` +
        (change === undefined ? "" : `carillon undo ${change} takes it back\n`);
      await showMany({ verb: "spread", past: "spread", more }, done, options, out);
    });
};

function histogram({ from, step, counts }: Load): string {
  const most = Math.max(...counts);
  const width = String(most).length;
  const lines = counts.map((count, i) => {
    const at = localIso(from + i * step)
      .slice(5, step < 60_000 ? 19 : 16)
      .replace("T", " ");
    const bar = "█".repeat(Math.ceil((BAR * count) / most));
    return `${at}  ${String(count).padStart(width)}  ${bar}`.trimEnd();
  });
  return `${lines.join("\n")}\n`;
}

function collisions({ busiest }: Load, out: Output): string {
  const lines = busiest
    .flatMap((one) => one.collisions)
    .sort((a, b) => b.count - a.count)
    .slice(0, 5)
    .flatMap(({ at, count, schedules }) => [
      out.paint("bold", `\n${wallText(at, HERE)}: ${count} tasks meet`),
      ...schedules.slice(0, 3).map(({ humanized, tasks, sample, jitter }) => {
        const [first] = sample;
        const name = first ? `${first.owner}/${first.id}` : "";
        const others = tasks > 1 ? ` and ${tasks - 1} more` : "";
        const advice = jitter === undefined ? "" : `; a jitter of ${jitter} would spread them`;
        return wrap(
          printable(`${tasks}: ${humanized}: ${name}${others}${advice}`),
          out.width,
          "  ",
        ).trimEnd();
      }),
    ]);
  return lines.length > 0 ? `${lines.join("\n")}\n` : "";
}
