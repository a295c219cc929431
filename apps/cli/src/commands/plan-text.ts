import type { AnswerTo } from "@carillon/ops";
import { type Colour, type Paint, printable, warningText } from "../text.js";
import { utcIso } from "../times.js";
import { besides, fieldLines } from "./put.js";

type Plan = AnswerTo<"sets.plan">;
type Item = Plan["items"][number];

const SIGNS: Record<Item["action"], readonly [sign: string, colour: Colour]> = {
  create: ["+", "green"],
  update: ["~", "yellow"],
  rename: [">", "yellow"],
  remove: ["-", "red"],
  prune: ["x", "red"],
  conflict: ["!", "red"],
};

/** Number of changes that an apply makes, or is refused for. */
export function total({ items, calendars }: Plan): number {
  return items.length + calendars.length;
}

/** `billing: 2 created`, … without what does not happen. */
export function summary({ set, version, counts }: Pick<Plan, "set" | "version" | "counts">): string {
  const some = Object.entries(counts).filter(([name, count]) => count > 0 || name === "unchanged");
  const of = version === undefined ? set : `${set} ${version}`;
  return `${printable(of)}: ${some.map(([name, count]) => `${count} ${name}`).join(", ")}`;
}

/** A plan for people: every change with its fields, words and times, then the load, and what refuses it. */
export function planText(plan: Plan, paint: Paint): string {
  const { calendars, items, load, refused } = plan;
  const parts = [
    ...calendars.map(({ name, outcome }) => `calendar ${name} is ${outcome}`),
    ...items.flatMap((item) => [
      headOf(item, paint),
      ...detailsOf(item).map((line) => `  ${printable(line)}`),
    ]),
    ...(load ? [`per day: ${side(load.before)} -> ${side(load.after)}`] : []),
    ...refused.map((one) => `${paint("red", "refused")}: ${printable(warningText(one))}`),
    paint("bold", summary(plan)),
  ];
  return `${parts.join("\n")}\n`;
}

function headOf({ action, task: { queue, owner, id } }: Item, paint: Paint): string {
  const [sign, colour] = SIGNS[action];
  return paint(colour, `${sign} ${action} ${owner}/${id} in queue ${queue}`);
}

/** Changes of an item, a line each. */
export function detailsOf({ from, set, returns, state, drift, preview, schedule }: Item): string[] {
  const { before, after } = schedule ?? {};
  const words = (one: typeof after) => (one ? `${one.humanized}; ${one.perDay} per day` : "-");
  const { times, givenUp } = preview ?? { times: { before: [], after: [] } };
  return [
    ...(from ? [`was ${from.owner}/${from.id} in queue ${from.queue}`] : []),
    ...(set ? [`belongs to the set ${set}`] : []),
    ...(returns ? ["comes back with its history"] : []),
    ...(state ? [state === "paused" ? "is paused" : "is resumed, without what fell due"] : []),
    ...(drift ? [`was changed by ${drift.by ?? "someone"} at ${utcIso(drift.at)}`] : []),
    ...(preview ? fieldLines(preview) : []),
    ...(before ? [`${words(before)} -> ${words(after)}`, ...besides(times)] : []),
    ...(schedule && !before
      ? [words(after), ...times.after.map(({ nominal }) => `  ${utcIso(nominal)}`)]
      : []),
    ...(givenUp ? [`gives up ${utcIso(givenUp.from)} to ${utcIso(givenUp.to)}`] : []),
    ...(after?.notes ?? []),
  ];
}

export function side({ perDay, busiest }: NonNullable<Plan["load"]>["before"]): string {
  return busiest ? `${perDay} (most in ${utcIso(busiest.at)}: ${busiest.count})` : String(perDay);
}
