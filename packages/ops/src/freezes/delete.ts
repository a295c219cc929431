import { CarillonError } from "@carillon/core";
import { z } from "zod";
import { operation } from "../operation.js";
import { given } from "../shapes.js";
import { loggedOf, mayRead, ownerOf } from "./freeze.js";

/** Lifts a freeze. The occurrences that it held continue at once, unless another freeze or a pause holds them. */
export const deleteFreeze = operation({
  http: "DELETE /freezes/:id",
  role: "operator",
  reach: "owner",
  logs: "unfreeze",
  once: { known: "state", leaves: "whole", against: [["freezes.put", { owner: "cold" }]] },
  summary:
    "Lifts a freeze. Pauses of tasks, and other freezes, stay. A caller that is bound to an owner lifts only its own.",
  input: z.strictObject({ id: given.describe("As `freezes` lists it.") }),
  async run(call, { id }) {
    const { scope, store, log } = call;
    const freeze = (await store.freezes.list()).find((one) => one.id === id && mayRead(call, one));
    if (freeze) scope.bind({ owner: ownerOf(freeze) ?? (scope.owner && "*") });
    if (!freeze || !(await store.freezes.lift(id)))
      throw new CarillonError("FREEZE_NOT_FOUND", "there is no such freeze.", {
        field: "id",
        remedy: "It may have ended or been lifted: list the freezes.",
      });
    log(loggedOf(freeze));
  },
});
