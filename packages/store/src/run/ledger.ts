/** A skip, or several alike in a row. Times in UTC ms; `from` and `to` are nominal, both included. */
export interface Skip {
  reason: string;
  from: number;
  to: number;
  /** Number of decisions that this entry stands for. */
  decisions: number;
  at: number;
  /** The node or client that decided. */
  by: string;
  /** The run that was in the way. */
  run?: string;
  /** The note of the pause that passed over these times. */
  note?: string;
}

/** @param lines as lib/ledger.lua writes them */
export function decodeLedger(lines: readonly string[]): Skip[] {
  return lines.map((line) => {
    const [reason = "", from, to, count, at, by = "", run = "-", ...note] = line.split(" ");
    return {
      reason,
      from: Number(from),
      to: Number(to),
      decisions: Number(count),
      at: Number(at),
      by,
      ...(run === "-" ? {} : { run }),
      ...(note.length === 0 ? {} : { note: note.join(" ") }),
    };
  });
}
