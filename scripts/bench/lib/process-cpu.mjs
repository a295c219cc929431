import { readFileSync } from "node:fs";

/** Linux reports CPU time in hundredths of a second, whatever its clock. */
const TICKS = 100;

/** CPU seconds of a process so far; NaN if the system does not report them. */
export function processCpu(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The name may hold spaces; it ends with the last bracket.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return (Number(fields[11]) + Number(fields[12])) / TICKS;
  } catch {
    return Number.NaN;
  }
}
