import type { AnswerTo } from "@carillon/ops";
import { printable, warningText } from "../text.js";
import { detailsOf, side, summary } from "./plan-text.js";

/** Changes that are shown in detail: hosts of code limit the length of a comment. */
const DETAILED = 50;

/** A plan as GitHub, GitLab and others show it in a comment on a pull request. */
export function planMarkdown(plan: AnswerTo<"sets.plan">): string {
  const { calendars, items, load, refused, warnings } = plan;
  const more = items.length - DETAILED;
  const parts = [
    `### Schedules of ${summary(plan)}`,
    ...refused.map((one) => `**Refused:** ${plain(warningText(one))}`),
    ...warnings.map(({ tasks, count, ...one }) => {
      const whose =
        tasks.length > 0 ? ` (${tasks.slice(0, 3).join(", ")}${count > 3 ? `, ${count} in all` : ""})` : "";
      return `**Warning:** ${plain(warningText(one))}${whose}`;
    }),
    ...calendars.map(({ name, outcome }) => `Calendar \`${name}\` is ${outcome}.`),
    ...items.slice(0, DETAILED).map((item) => {
      const { queue, owner, id } = item.task;
      const head = `<b>${item.action}</b> <code>${owner}/${id}</code> in queue <code>${queue}</code>`;
      const lines = detailsOf(item).map(printable);
      return lines.length === 0
        ? head
        : `<details><summary>${head}</summary>\n\n${fenced(lines)}\n</details>`;
    }),
    ...(more > 0 ? [`and ${more} more changes`] : []),
    ...(load ? [`Runs per day: ${side(load.before)} -> ${side(load.after)}`] : []),
  ];
  return `${parts.join("\n\n")}\n`;
}

/** Text that no Markdown in it can change. */
function plain(text: string): string {
  return printable(text).replace(/[\\`*_{}[\]<>#|~@]/g, "\\$&");
}

/** A block that no line of it can end. */
function fenced(lines: readonly string[]): string {
  const longest = Math.max(
    2,
    ...lines.flatMap((line) => [...line.matchAll(/`+/g)].map(([ticks]) => ticks.length)),
  );
  const fence = "`".repeat(longest + 1);
  return [fence, ...lines, fence].join("\n");
}
