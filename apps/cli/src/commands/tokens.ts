import type { AnswerTo, InputTo } from "@carillon/ops";
import { type Globals, operate, type Register } from "../command.js";
import { readMoment } from "../moment.js";
import { type Column, table } from "../table.js";
import { printable } from "../text.js";
import { HERE } from "../times.js";

interface CreateOptions extends Globals {
  role: string;
  expires?: string;
  by?: string;
}

export const registerTokens: Register = (program, out) => {
  const tokens = program
    .command("tokens")
    .summary("named tokens of the HTTP API and the console")
    .description(
      "Lists the named tokens of the HTTP API and the console, or creates and revokes one. A token's name is the author of\n" +
        "all changes made with it.",
    )
    .action(async (_: unknown, command) => {
      await operate(
        command.optsWithGlobals(),
        out,
        (ops) => ops.tokens.list(),
        ({ tokens }) => (tokens.length ? table(COLUMNS, tokens, out) : "No tokens.\n"),
      );
    });
  tokens
    .command("create")
    .summary("create a token")
    .description(
      "Creates a token and prints its secret, this once: only a hash is stored. --owner acme,beta binds it to the tasks of\n" +
        "these owners.",
    )
    .argument("<name>", "letters, digits, dots, dashes and underscores")
    .requiredOption("--role <role>", "viewer, operator or admin")
    .option("--expires <time>", "after this time, 90d, or then: ISO 8601, 2027-01-31; default: never")
    .option("--by <name>", "who; default $USER@host")
    .action(async (name: string, _: unknown, command) => {
      // Not the owner of the client: tokens belong to the namespace.
      const { owner, ...options }: CreateOptions = command.optsWithGlobals();
      const { role, by } = options;
      const sdk = await import("@carillon/sdk/schedule");
      await operate(
        options,
        out,
        async (ops, client) => {
          const now = await client.serverTime();
          const at = { zone: HERE, now, field: "--expires", duration: "from" } as const;
          const expires =
            options.expires === undefined ? undefined : readMoment(sdk, options.expires, at).time;
          const owners = owner?.split(",");
          return ops.tokens.create(
            { name, role: role as InputTo<"tokens.create">["role"], owners, expires },
            { by },
          );
        },
        ({ secret }) => {
          out.stderr.write("The secret is not shown again:\n");
          return `${secret}\n`;
        },
      );
    });
  tokens
    .command("revoke")
    .summary("revoke a token")
    .description("Revokes a token: it opens nothing from now on, nor do the sessions that it opened.")
    .argument("<name>", "as tokens lists it")
    .option("--by <name>", "who; default $USER@host")
    .action(async (name: string, _: unknown, command) => {
      const options: Globals & { by?: string } = command.optsWithGlobals();
      const { by } = options;
      await operate(
        options,
        out,
        async (ops) => {
          await ops.tokens.revoke({ name }, { by });
          return { name, revoked: true };
        },
        () => `revoked ${printable(name)}\n`,
      );
    });
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
