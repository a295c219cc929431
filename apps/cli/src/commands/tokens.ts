import type { AnswerTo } from "@carillon/ops";
import type { Register } from "../command.js";
import { type Column, rows } from "../table.js";
import { printable } from "../text.js";

export const registerTokens: Register = (program, out) => {
  const tokens = program
    .verb(
      "tokens",
      "named tokens of the HTTP API and the console",
      "Lists the named tokens of the HTTP API and the console, or creates and revokes one. A token's name is the author of\n" +
        "all changes made with it.",
    )
    .calls("tokens.list", rows(out, "tokens", COLUMNS, "No tokens."));
  tokens
    .verb(
      "create",
      "create a token",
      "Creates a token and prints its secret, this once: only a hash is stored. --owner acme,beta binds it to the tasks of\n" +
        "these owners.",
    )
    .calls(
      "tokens.create",
      ({ secret }) => {
        out.stderr.write("The secret is not shown again:\n");
        return `${secret}\n`;
      },
      {
        args: ["name"],
        only: ["name", "role", "expires"],
        times: "from",
        input: (_, { options: { owner } }) => ({ owners: owner?.split(",") }),
        more: { unbound: true },
      },
    );
  tokens
    .verb("revoke", "revoke a token")
    .calls("tokens.revoke", (_, { name }) => `revoked ${printable(name)}\n`, {
      also: ({ name }) => ({ name, revoked: true }),
    });
};

const COLUMNS: Column<AnswerTo<"tokens.list">["tokens"][number]>[] = [
  { title: "NAME", value: "name" },
  { title: "ROLE", value: "role" },
  { title: "OWNERS", value: ({ owners }) => owners?.join(", ") ?? "all" },
  { title: "CREATED", value: ({ created }, { when }) => when(created) },
  { title: "BY", value: "createdBy" },
  {
    title: "EXPIRES",
    value: ({ expires, expired }, { when }) =>
      expires === undefined ? "never" : `${expired ? "expired " : ""}${when(expires)}`,
  },
];
