import type { AnswerTo, InputTo } from "@carillon/ops";
import type { Register } from "../command.js";
import { printable } from "../text.js";

export const registerDefaults: Register = (program) => {
  const defaults = program
    .verb("defaults", "default policies of tasks")
    .calls("defaults.list", ({ defaults }) => {
      const lines = Object.entries(defaults).map(([scope, policies]) =>
        printable(`${scope} ${JSON.stringify(policies)}`),
      );
      return lines.length > 0 ? `${lines.join("\n")}\n` : "No defaults.\n";
    });
  defaults
    .verb(
      "set",
      "set the policies of a scope, replacing earlier ones",
      "Sets the policies of all tasks, of an owner's or of a type's.",
    )
    .calls("defaults.set", done("set"), { about: { policies: `as JSON: '{"timeLimit":"50%"}'` } });
  defaults
    .verb("rm", "remove them", "Removes the policies of a scope.")
    .calls("defaults.set", done("removed"), { only: ["scope"], input: () => ({ policies: null }) });
};

const done =
  (verb: string) =>
  ({ changed }: AnswerTo<"defaults.set">, { scope }: InputTo<"defaults.set">) =>
    `${changed ? `${verb} the defaults of` : "unchanged:"} ${scope}\n`;
