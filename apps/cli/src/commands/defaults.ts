import type { InputTo } from "@carillon/ops";
import type { PoliciesInput } from "@carillon/sdk/internal";
import type { Command, Register } from "../command.js";
import { misuse } from "../failure.js";
import { printable } from "../text.js";

const SCOPES = "Whose tasks: all, owner:NAME or type:NAME.";

export const registerDefaults: Register = (program) => {
  const setting = (command: Command) =>
    command.answer(
      ({ ops }, scope: InputTo<"defaults.set">["scope"], policies?: PoliciesInput) =>
        ops.defaults.set({ scope, policies: policies ?? null }),
      ({ changed }, [scope, policies]) =>
        `${changed ? `${policies ? "set" : "removed"} the defaults of` : "unchanged:"} ${scope}\n`,
    );
  const defaults = program
    .verb(
      "defaults",
      "default policies of tasks",
      "Shows the policies that a put or an enqueue fills in if the task has none. Those of a type override\n" +
        "those of an owner, which override those of all. Stored tasks do not change until they are put again, but default alerts hold for them too.",
    )
    .answer(
      ({ ops }) => ops.defaults.list(),
      ({ defaults }) => {
        const lines = Object.entries(defaults).map(([scope, policies]) =>
          printable(`${scope} ${JSON.stringify(policies)}`),
        );
        return lines.length > 0 ? `${lines.join("\n")}\n` : "No defaults.\n";
      },
    );
  setting(
    defaults
      .verb(
        "set",
        "set the policies of a scope, replacing earlier ones",
        `Sets the policies of all tasks, of an owner's or of a type's. ${SCOPES}`,
      )
      .argument("<scope>")
      .argument("<policies>", `as JSON: '{"timeLimit":"50%"}'`, policiesOf),
  );
  setting(
    defaults.verb("rm", "remove them", `Removes the policies of a scope. ${SCOPES}`).argument("<scope>"),
  );
};

function policiesOf(text: string): PoliciesInput {
  try {
    return JSON.parse(text) as PoliciesInput;
  } catch {
    throw misuse("policies", "not JSON.", `Give an object such as '{"timeLimit":"50%"}'.`);
  }
}
