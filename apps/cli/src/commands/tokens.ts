import type { AnswerTo, InputTo } from "@carillon/ops";
import { type Register, word } from "../command.js";
import { momentsOf } from "../moment.js";
import { type Column, table } from "../table.js";
import { printable } from "../text.js";

export const registerTokens: Register = (program, out) => {
  const tokens = program
    .verb(
      "tokens",
      "named tokens of the HTTP API and the console",
      "Lists the named tokens of the HTTP API and the console, or creates and revokes one. A token's name is the author of\n" +
        "all changes made with it.",
    )
    .answer(
      ({ ops }) => ops.tokens.list(),
      ({ tokens }) => (tokens.length ? table(COLUMNS, tokens, out) : "No tokens.\n"),
    );
  tokens
    .verb(
      "create",
      "create a token",
      "Creates a token and prints its secret, this once: only a hash is stored. --owner acme,beta binds it to the tasks of\n" +
        "these owners.",
    )
    .argument("<name>", "letters, digits, dots, dashes and underscores")
    .needs("--role <role>", "viewer, operator or admin", { read: word<InputTo<"tokens.create">["role"]> })
    .flag("--expires <time>", "after this time, 90d, or then: ISO 8601, 2027-01-31; default: never")
    .flag("--by <name>", "who; default $USER@host")
    .answer(
      async ({ ops, client, options }, name: string) => {
        const { role, by, owner } = options;
        const { expires } = await momentsOf(client, { expires: options.expires }, "from");
        return ops.tokens.create({ name, role, owners: owner?.split(","), expires }, { by });
      },
      ({ secret }) => {
        out.stderr.write("The secret is not shown again:\n");
        return `${secret}\n`;
      },
      // Tokens belong to the namespace.
      { unbound: true },
    );
  tokens
    .verb(
      "revoke",
      "revoke a token",
      "Revokes a token: it opens nothing from now on, nor do the sessions that it opened.",
    )
    .argument("<name>", "as tokens lists it")
    .flag("--by <name>", "who; default $USER@host")
    .answer(
      async ({ ops, options: { by } }, name: string) => {
        await ops.tokens.revoke({ name }, { by });
        return { name, revoked: true };
      },
      ({ name }) => `revoked ${printable(name)}\n`,
    );
};

const COLUMNS: Column<AnswerTo<"tokens.list">["tokens"][number]>[] = [
  { title: "NAME", value: ({ name }) => name },
  { title: "ROLE", value: ({ role }) => role },
  { title: "OWNERS", value: ({ owners }) => owners?.join(", ") ?? "all" },
  { title: "CREATED", value: ({ created }, { when }) => when(created) },
  { title: "BY", value: ({ createdBy }) => createdBy ?? "-" },
  {
    title: "EXPIRES",
    value: ({ expires, expired }, { when }) =>
      expires === undefined ? "never" : `${expired ? "expired " : ""}${when(expires)}`,
  },
];
