import type { AnswerTo } from "@carillon/ops";
import { type Register, withClient } from "../command.js";
import { EXIT } from "../exit-codes.js";
import { summaryOf } from "../fields.js";
import { counted, printable, wrap } from "../text.js";
import { utcIso, when } from "../times.js";
import { refusals, showMany } from "./many.js";
import { showPlan } from "./plan.js";

type Change = AnswerTo<"changes.list">["changes"][number];

export const registerChanges: Register = (program, out) => {
  program
    .verb(
      "changes",
      "who changed what, of one task or all, newest first",
      "Lists who changed what, from where, and the fields that differ, newest first. A change of many tasks is one entry,\n" +
        "with the first ten; one of more than ten is listed for each task that it may contain.",
    )
    .calls(
      "changes.list",
      ({ changes, cursor }, { task }) => {
        out.more(cursor);
        const texts = changes.map((change) => changeText(change, task === undefined, out.width));
        return texts.join("") || "No changes.\n";
      },
      { args: ["task"], about: { task: "[owner/]id; default all" } },
    );
  program
    .verb("undo", "put the definitions again that a change of many tasks replaced", summaryOf("changes.undo"))
    .argument("<change>", "its id, as changes shows it")
    .takes("changes.undo", ["dryRun"])
    .does(async (options, id: string) => {
      const { by, dryRun, json } = options;
      const done = await withClient(options, (_, ops) => ops.changes.undo({ id, dryRun }, { by }));
      if (!done.plan || json) return showMany({ verb: "undo", past: "restored" }, done, options, out);
      await showPlan(done.plan, out);
      if (done.plan.refused.length + done.refused.count > 0) out.exitCode = EXIT.refused;
      refusals(done, out);
    });
};

/** A line about the change, its sample if `listed`, and a line for each field that differs. */
function changeText(change: Change, listed: boolean, width: number | undefined): string {
  const { id, at, kind, by, origin, before = {}, after = {}, details = {}, sample = [], undo } = change;
  const more = Object.entries(details).map(([name, value]) => `${name} ${JSON.stringify(value)}`);
  const lines = [
    `${when(Math.floor(at / 1_000) * 1_000)}  ${kind} ${subject(change)}  by ${by ?? "-"} (${origin})${more.length > 0 ? `  ${more.join(", ")}` : ""}`,
    ...sample
      .filter(({ schedule }) => listed || schedule)
      .map(({ queue, owner, id, schedule, next }) =>
        [`    ${queue} ${owner}/${id}`, ...sides(schedule, JSON.stringify), ...sides(next, utcIso)].join(
          "  ",
        ),
      ),
    ...fieldLines(before, after),
    ...(undo === undefined ? [] : [`    carillon undo ${id} takes it back`]),
  ];
  return lines.map((line) => wrap(printable(line.trimStart()), width, /^ */.exec(line)?.[0])).join("");
}

/** `BEFORE -> AFTER`, if either is there. */
function sides<Value>(
  of: { readonly before?: Value | undefined; readonly after?: Value | undefined } | undefined,
  text: (value: Value) => string,
): string[] {
  const shown = [of?.before, of?.after].map((one) => (one === undefined ? "-" : text(one)));
  return of ? [shown.join(" -> ")] : [];
}

/** Two lines for each field that differs. */
export function fieldLines(before: Readonly<Record<string, unknown>>, after: typeof before): string[] {
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap((field) => [
    ...(before[field] === undefined ? [] : [`  - ${field}: ${JSON.stringify(before[field])}`]),
    ...(after[field] === undefined ? [] : [`  + ${field}: ${JSON.stringify(after[field])}`]),
  ]);
}

function subject({ scope: { queue, owner, id, tag, calendar, freeze, token, set }, count }: Change): string {
  if (id !== undefined) return `${owner}/${id} in ${queue}`;
  const parts = Object.entries({ set, queue, owner, tag, calendar, freeze, token }).filter(
    ([, name]) => name !== undefined,
  );
  const of = parts.map(([part, name]) => `${part} ${name}`).join(", ");
  const tasks = counted(count ?? 0, "task");
  return count === undefined ? of || "namespace" : of ? `${tasks} of ${of}` : tasks;
}
