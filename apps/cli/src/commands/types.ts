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
