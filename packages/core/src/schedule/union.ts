import type { CompiledSchedule } from "./types.js";

/** Each time of any member. */
export class Union implements CompiledSchedule {
  constructor(private readonly members: readonly CompiledSchedule[]) {}

  next(after: number): number | undefined {
    let first: number | undefined;
    for (const member of this.members) {
      const time = member.next(after);
      if (time !== undefined && (first === undefined || time < first)) first = time;
    }
    return first;
  }

  latest(at: number): number | undefined {
    let last: number | undefined;
    for (const member of this.members) {
      const time = member.latest(at);
      if (time !== undefined && (last === undefined || time > last)) last = time;
    }
    return last;
  }
}
