import { type Globals, operate, type Register } from "../command.js";
import { printable } from "../text.js";

export const registerTypes: Register = (program, out) => {
  const types = program
    .command("types")
    .summary("the task types that may be put")
    .description("Shows which task types may be put into the namespace, by any client.")
    .action(async (_: unknown, command) => {
      await operate(
        command.optsWithGlobals(),
        out,
        (ops) => ops.types.list(),
        ({ types }) => (types.length ? types.map((type) => `${printable(type)}\n`).join("") : "any type\n"),
      );
    });
  types
    .command("allow")
    .summary("allow only these task types")
    .description("Allows only these task types in puts. Stored tasks stay.")
    .argument("<types...>")
    .action(async (allowed: string[], _: unknown, command) => set(allowed, command.optsWithGlobals()));
  types
    .command("show")
    .summary("the JSON Schema of a type's payload")
    .description("Shows the JSON Schemas of a type's payload that live workers of the queue publish.")
    .argument("<type>")
    .requiredOption("--queue <queue>", "the queue of its workers")
    .action(async (type: string, { queue }: { queue: string }, command) => {
      await operate(
        command.optsWithGlobals(),
        out,
        (ops) => ops.types.get({ type, queue }),
        ({ schemas }) =>
          schemas.map(({ schema }) => `${JSON.stringify(schema, null, 2)}\n`).join("") || "no schema\n",
      );
    });
  types
    .command("any")
    .summary("allow any task type")
    .description("Allows any task type in puts.")
    .action(async (_: unknown, command) => set([], command.optsWithGlobals()));

  async function set(types: string[], options: Globals): Promise<void> {
    await operate(
      options,
      out,
      (ops) => ops.types.allow({ types }),
      (answer) =>
        answer.types.length ? `only ${answer.types.join(", ")} may be put\n` : "any type may be put\n",
    );
  }
};
