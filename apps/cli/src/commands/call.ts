import type { Register, Use } from "../command.js";
import { misuse } from "../failure.js";
import { parseJson } from "../input.js";

type Ask = (input: unknown) => Promise<object | undefined>;

export const registerCall: Register = (program) => {
  program
    .verb(
      "call",
      "any operation by its name, for scripts",
      "Calls an operation of @carillon/ops by its name, with its input as JSON, and prints its answer as JSON: what the console\n" +
        "copies, and all that docs/operations-reference.md lists. An input has the same fields over HTTP.",
    )
    .argument("<operation>", "such as tasks.pause")
    .argument("[input]", "a JSON object", "{}")
    .answer(
      async ({ ops }: Use, name: string, input: string): Promise<object> => {
        const known = new Map<string, Ask>(
          Object.entries(ops as unknown as Record<string, Record<string, Ask>>).flatMap(([noun, verbs]) =>
            Object.entries(verbs).map(([verb, ask]) => [`${noun}.${verb}`, ask] as const),
          ),
        );
        const ask = known.get(name);
        if (!ask) {
          const { nearestRemedy } = await import("../load.js");
          throw misuse("operation", "there is no such operation.", nearestRemedy(name, [...known.keys()]));
        }
        const given = parseJson(input, "Give the input as a JSON object.", { code: "INVALID_OPTION" });
        return (await ask(given)) ?? {};
      },
      (answer) => `${JSON.stringify(answer, null, 2)}\n`,
    );
};
