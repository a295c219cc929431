import { CarillonError } from "@carillon/core";
import { assertName, invalid } from "@carillon/core/internal";
import { instant as instantOf, shown } from "@carillon/sdk/internal";
import { digestOf, newSecret, TOKEN_ROLES } from "@carillon/store";
import { z } from "zod";
import { operation } from "../operation.js";
import { given, instant, oneOf } from "../shapes.js";
import { token } from "./token.js";

const MOST_OWNERS = 100;

/** Creates a token for the HTTP API and the console. Its secret is returned here and never again: only a hash is stored. */
export const createToken = operation({
  http: "POST /tokens",
  role: "admin",
  reach: "namespace",
  logs: "token.create",
  once: "script",
  example: { name: "deploy", role: "viewer" },
  summary: "Creates a token. Its secret is in this answer and never shown again.",
  input: z.strictObject({
    name: given.describe(
      "Letters, digits, dots, dashes and underscores; not the name of a role. The author of all changes made with the token.",
    ),
    role: oneOf(TOKEN_ROLES).describe("What it may do."),
    owners: z
      .array(given, "not a list of texts")
      .optional()
      .describe(
        `The owners whose tasks it may see and touch, 1 to ${MOST_OWNERS}. Default: all, and the whole namespace.`,
      ),
    expires: instant.optional().describe("End of its validity. Default: none, until it is revoked."),
  }),
  output: z.object({ token, secret: z.string() }),
  status: [201],
  async run({ store, by, log }, input) {
    const name = assertName(input.name, "name");
    if ((TOKEN_ROLES as readonly string[]).includes(name))
      throw new CarillonError("INVALID_NAME", "the name of a role.", {
        field: "name",
        remedy: "Name the person or the program that will use it.",
      });
    const { role } = input;
    const owners = input.owners && checkedOwners(input.owners);
    const expires = input.expires === undefined ? undefined : instantOf(input.expires, "expires");
    const now = await store.serverTime();
    if (expires !== undefined && expires <= now)
      throw invalid("expires", "in the past.", "Give a time after now.");
    const secret = newSecret(name);
    const facts = { name, role, ...(owners && { owners }), ...(expires !== undefined && { expires }) };
    const token = { ...facts, created: now, ...(by && { createdBy: by }) };
    if (!(await store.tokens.add({ ...token, sha256: digestOf(secret) })))
      throw new CarillonError("CONFLICT", "there is a token with this name.", {
        field: "name",
        remedy: "Give another name, such as one with a date, or revoke that token first.",
      });
    log({ token: name }, { after: shown({ role, owners, expires }) });
    return { token: { ...token, expired: false }, secret };
  },
});

/** @throws `INVALID_OPTION`, `INVALID_NAME` */
function checkedOwners(owners: readonly string[]): string[] {
  if (owners.length === 0 || owners.length > MOST_OWNERS)
    throw invalid(
      "owners",
      `${owners.length} owners.`,
      `Give 1 to ${MOST_OWNERS}, or leave the field out for all.`,
    );
  return [...new Set(owners.map((owner, i) => assertName(owner, `owners[${i}]`)))];
}
