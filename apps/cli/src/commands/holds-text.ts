import type { AnswerTo } from "@carillon/ops";
import type { Output } from "../output.js";
import { counted } from "../text.js";
import { when } from "../times.js";

/** The extent of a freeze, a silence or a pause: `holds 127 tasks, 14 starts until 18:00; 3 run and go on`. Warnings go to `out`. */
export function holdsText(out: Output, holds: AnswerTo<"freezes.put">["holds"], verb: string): string {
  const { tasks, starts, until, running, warnings } = holds;
  const parts = [counted(tasks, "task"), ...(starts === undefined ? [] : [counted(starts, "start")])];
  const end = starts === undefined ? "" : ` until ${when(Math.floor(until / 1_000) * 1_000)}`;
  const open = running === 0 ? "" : `; ${running === 1 ? "1 runs and goes" : `${running} run and go`} on`;
  out.warn(verb, warnings);
  return `${verb} ${parts.join(", ")}${end}${open}\n`;
}
