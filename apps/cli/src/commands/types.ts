import type { AnswerTo } from "@carillon/ops";
import type { Register } from "../command.js";
import { printable } from "../text.js";

export const registerTypes: Register = (program) => {
  const may = ({ types }: AnswerTo<"types.allow">) =>
    types.length ? `only ${types.join(", ")} may be put\n` : "any type may be put\n";
  const types = program
    .verb("types", "the task types that may be put")
    .calls("types.list", ({ types }) => types.map((type) => `${printable(type)}\n`).join("") || "any type\n");
  types.verb("allow", "allow only these task types").calls("types.allow", may);
  types
    .verb(
      "show",
      "the JSON Schema of a type's payload",
      "Shows the JSON Schemas of a type's payload that live workers of the queue publish.",
    )
    .calls(
      "types.get",
      ({ schemas }) =>
        schemas.map(({ schema }) => `${JSON.stringify(schema, null, 2)}\n`).join("") || "no schema\n",
      { args: ["type"] },
    );
  types
    .verb("any", "allow any task type", "Allows any task type in puts.")
    .calls("types.allow", may, { only: [], input: () => ({ types: [] }) });
};
