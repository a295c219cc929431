import type { Globals } from "./command.js";
import { type Command, collect } from "./command.js";

/** Flags of a command that writes stored or foreign payloads to a carillon.config. */
export function secretFlags<Options extends Globals>(command: Command<Options>) {
  return command
    .flag(
      "--redact <field>",
      "hide this payload field in plans of the set, by name or dotted path, besides secrets by their names; repeatable",
      collect,
    )
    .flag(
      "--no-secrets",
      "write [redacted] in place of what plans hide: an apply refuses the file until it has the values",
    );
}
