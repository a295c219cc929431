import { readFileSync } from "node:fs";

/** Linux says it in hundredths of a second, whatever its clock. */
const TICKS = 100;

/** CPU seconds of a process so far; NaN where the system does not tell. */
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
