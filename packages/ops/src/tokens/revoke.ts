import { CarillonError } from "@carillon/core";
import { assertName, quote } from "@carillon/core/internal";
import { z } from "zod";
import { operation } from "../operation.js";
import { given } from "../shapes.js";

export const revokeToken = operation({
  http: "DELETE /tokens/:name",
  role: "admin",
  reach: "namespace",
  logs: "token.revoke",
  once: "script",
  example: { name: "ci" },
  summary: "Deletes a token: it opens nothing from now on, nor do the sessions that it opened.",
  input: z.strictObject({ name: given.describe("A token's name.") }),
  async run({ store, log }, { name }) {
    if (!(await store.tokens.remove(assertName(name, "name"))))
      throw new CarillonError("TOKEN_NOT_FOUND", `there is no token ${quote(name)}.`, {
        field: "name",
        remedy: "It may have been revoked: list the tokens.",
      });
    log({ token: name });
  },
});
