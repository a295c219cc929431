import type { InputTo } from "@carillon/ops";
import type { PoliciesInput } from "@carillon/sdk/internal";
import { type Globals, operate, type Register } from "../command.js";
import { misuse } from "../failure.js";
import { printable } from "../text.js";

const SCOPES = "Whose tasks: all, owner:NAME or type:NAME.";

export const registerDefaults: Register = (program, out) => {
  const defaults = program
    .command("defaults")
    .summary("default policies of tasks")
    .description(
      "Shows the policies that a put or an enqueue fills in if the task has none. Those of a type override\n" +
        "those of an owner, which override those of all. Stored tasks do not change until they are put again, but default alerts hold for them too.",
    )
    .action(async (_: unknown, command) => {
      await operate(
        command.optsWithGlobals(),
        out,
        (ops) => ops.defaults.list(),
        ({ defaults }) => {
          const lines = Object.entries(defaults).map(([scope, policies]) =>
            printable(`${scope} ${JSON.stringify(policies)}`),
          );
          return lines.length > 0 ? `${lines.join("\n")}\n` : "No defaults.\n";
        },
      );
    });
  defaults
    .command("set")
    .summary("set the policies of a scope, replacing earlier ones")
    .description(`Sets the policies of all tasks, of an owner's or of a type's. ${SCOPES}`)
    .argument("<scope>")
    .argument("<policies>", `as JSON: '{"timeLimit":"50%"}'`, policiesOf)
    .action((scope: string, policies: PoliciesInput, _: unknown, command) =>
      set(scope, policies, command.optsWithGlobals()),
    );
  defaults
    .command("rm")
    .summary("remove them")
    .description(`Removes the policies of a scope. ${SCOPES}`)
    .argument("<scope>")
    .action((scope: string, _: unknown, command) => set(scope, null, command.optsWithGlobals()));

  async function set(scope: string, policies: PoliciesInput | null, options: Globals): Promise<void> {
    const done = policies === null ? "removed the defaults of" : "set the defaults of";
    await operate(
      options,
      out,
      (ops) => ops.defaults.set({ scope: scope as InputTo<"defaults.set">["scope"], policies }),
      ({ changed }) => `${changed ? done : "unchanged:"} ${scope}\n`,
    );
  }
};

function policiesOf(text: string): PoliciesInput {
  try {
    return JSON.parse(text) as PoliciesInput;
  } catch {
    throw misuse("policies", "not JSON.", `Give an object such as '{"timeLimit":"50%"}'.`);
  }
}
