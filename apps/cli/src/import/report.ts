import type { Imported } from "@carillon/ops/internal";
import type { Paint } from "../text.js";
import { printable } from "../text.js";
import { utcIso } from "../times.js";
import type { Verdict } from "./verify.js";

/** A schedule of the other system, and the comparison of its times. */
export interface Checked extends Imported {
  readonly verdict?: Verdict | undefined;
}

/** All that a reader must decide: schedules that fire differently, those that are not here, notes by code. */
export function reportText(all: readonly Checked[], file: string, paint: Paint): string {
  const tasks = all.filter(({ task }) => task);
  const compared = tasks.filter(({ verdict }) => verdict);
  const differing = compared.filter(({ verdict }) => verdict!.differences.length > 0);
  const sampled = compared.filter(({ verdict }) => verdict!.sampled).length;
  const heading = (text: string, lines: readonly string[]) =>
    lines.length > 0 ? [paint("bold", text), ...lines, ""] : [];
  return `${[
    ...heading("Other times", differing.flatMap(differenceLines)),
    ...heading("Notes", noteLines(tasks)),
    ...heading(
      "Not imported",
      all
        .filter(({ task }) => !task)
        .flatMap(({ from, notes }) => notes.map(({ text }) => `  ${printable(from)}: ${printable(text)}`)),
    ),
    compared.length === 0
      ? tasks.some(({ theirs }) => theirs)
        ? "Times were not compared."
        : "No library here computes as the other system does: its times were not compared."
      : `Compared over two years: ${compared.length - differing.length} of ${compared.length} fire at the same times${sampled > 0 ? `, ${sampled} of them by samples` : ""}.`,
    `${file} has ${tasks.length} of ${all.length} schedules. Nothing was stored: see carillon plan.`,
  ].join("\n")}\n`;
}

function differenceLines({ from, task, verdict }: Checked): string[] {
  const { differences = [], reason } = verdict ?? {};
  const side = { ours: "only here", theirs: "only there" };
  return [
    `  ${printable(from)} (${task!.id}): ${reason}`,
    ...differences.map(({ time, only }) => `    ${utcIso(time)} ${side[only]}`),
  ];
}

/** Texts of one code that are shown. */
const SHOWN = 5;

/** By code. A text that many share stands once. */
function noteLines(tasks: readonly Checked[]): string[] {
  const codes = new Map<string, Map<string, string[]>>();
  for (const { from, notes } of tasks) {
    for (const { code, text } of notes) {
      const texts = codes.get(code) ?? new Map<string, string[]>();
      codes.set(code, texts.set(text, [...(texts.get(text) ?? []), from]));
    }
  }
  return [...codes].sort().flatMap(([code, texts]) => {
    const more = (count: number) => (count > 0 ? ` and ${count} more` : "");
    const lines = [...texts]
      .slice(0, SHOWN)
      .map(
        ([text, [first = "", ...rest]]) => `  ${code} ${printable(`${text} (${first}${more(rest.length)})`)}`,
      );
    return texts.size > SHOWN ? [...lines, `  ${code}${more(texts.size - SHOWN)}: see --json`] : lines;
  });
}
