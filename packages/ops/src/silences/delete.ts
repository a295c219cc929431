import { CarillonError } from "@carillon/core";
import { quote } from "@carillon/core/internal";
import { z } from "zod";
import { operation } from "../operation.js";
import { given } from "../shapes.js";
import { silencesOf } from "./silence.js";

export const deleteSilence = operation({
  http: "DELETE /silences/:id",
  role: "operator",
  reach: "owner",
  logs: "unsilence",
  once: "script",
  summary: "Ends a silence.",
  input: z.strictObject({ id: given.describe("As `alerts` lists it.") }),
  async run(call, { id }) {
    const silence = (await silencesOf(call)).find((one) => one.id === id);
    if (!silence || !(await call.store.alerts.unsilence(id)))
      throw new CarillonError("SILENCE_NOT_FOUND", `there is no silence ${quote(id)}.`, {
        field: "id",
        remedy: "It may have ended: list the silences.",
      });
    const { owner, task, queue } = silence;
    call.log({ owner, id: task, queue }, { details: { silence: id } });
  },
});
