import type { CompiledSchedule } from "../types.js";

export class AtOnce implements CompiledSchedule {
  constructor(private readonly time: number) {}

  next(after: number): number | undefined {
    return after < this.time ? this.time : undefined;
  }

  latest(at: number): number | undefined {
    return at >= this.time ? this.time : undefined;
  }
}
