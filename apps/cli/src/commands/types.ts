import { type Globals, type Register, withClient } from "../command.js";
import { printable } from "../text.js";

export const registerTypes: Register = (program, out) => {
  const types = program
    .command("types")
    .summary("the task types that may be put")
    .description("Shows which task types may be put into the namespace, by any client.")
    .action(async (_: unknown, command) => {
      const options: Globals = command.optsWithGlobals();
      const allowed = await withClient(options, (client) => client.types.list());
      if (options.json) return out.json({ types: allowed });
      await out.write(allowed.length ? allowed.map((type) => `${printable(type)}\n`).join("") : "any type\n");
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

  async function set(allowed: readonly string[], options: Globals): Promise<void> {
    const stored = await withClient(options, async (client) => {
      await client.types.allow(allowed);
      return client.types.list();
    });
    if (options.json) return out.json({ types: stored });
    await out.write(stored.length ? `only ${stored.join(", ")} may be put\n` : "any type may be put\n");
  }
};
