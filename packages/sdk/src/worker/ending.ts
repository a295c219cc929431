import type { Json } from "@carillon/core";

/** Return value of a handler that states how its run ended. Created by `context.partial()` and `context.nothingToDo()`. */
export class Ending {
  readonly #outcome: "partial" | "nothing-to-do";
  readonly #result: Json | undefined;

  constructor(outcome: "partial" | "nothing-to-do", result: Json | undefined) {
    this.#outcome = outcome;
    this.#result = result;
  }

  get outcome(): "partial" | "nothing-to-do" {
    return this.#outcome;
  }

  get result(): Json | undefined {
    return this.#result;
  }
}
