import type { Command, Register } from "../command.js";
import { printable } from "../text.js";

export const registerTypes: Register = (program) => {
  const setting = (command: Command) =>
    command.answer(
      ({ ops }, types: string[] = []) => ops.types.allow({ types }),
      ({ types }) => (types.length ? `only ${types.join(", ")} may be put\n` : "any type may be put\n"),
    );
  const types = program
    .verb(
      "types",
      "the task types that may be put",
      "Shows which task types may be put into the namespace, by any client.",
    )
    .answer(
      ({ ops }) => ops.types.list(),
      ({ types }) => (types.length ? types.map((type) => `${printable(type)}\n`).join("") : "any type\n"),
    );
  setting(
    types
      .verb(
        "allow",
        "allow only these task types",
        "Allows only these task types in puts. Stored tasks stay.",
      )
      .argument("<types...>"),
  );
  types
    .verb(
      "show",
      "the JSON Schema of a type's payload",
      "Shows the JSON Schemas of a type's payload that live workers of the queue publish.",
    )
    .argument("<type>")
    .needs("--queue <queue>", "the queue of its workers")
    .answer(
      ({ ops, options: { queue } }, type: string) => ops.types.get({ type, queue }),
      ({ schemas }) =>
        schemas.map(({ schema }) => `${JSON.stringify(schema, null, 2)}\n`).join("") || "no schema\n",
    );
  setting(types.verb("any", "allow any task type", "Allows any task type in puts."));
};
