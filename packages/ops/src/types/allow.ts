import { isDeepStrictEqual } from "node:util";
import { assertName } from "@carillon/core/internal";
import { shown } from "@carillon/sdk/internal";
import { z } from "zod";
import { operation } from "../operation.js";
import { given } from "../shapes.js";
import { taskTypes } from "./list.js";

export const allowTypes = operation({
  http: "PUT /types",
  role: "admin",
  reach: "namespace",
  logs: "types",
  once: "script",
  example: { types: ["ring"] },
  summary:
    "Allows only these task types in puts, by any client. An empty list allows any type. Stored tasks stay.",
  input: z.strictObject({ types: z.array(given, "not a list of texts") }),
  output: taskTypes,
  async run({ store: { registry }, log }, { types }) {
    const names = new Set(types.map((type, i) => assertName(type, `types[${i}]`)));
    const before = await registry.types();
    await registry.setTypes([...names]);
    const facts = { before: shown({ types: before }), after: shown({ types: [...names].sort() }) };
    if (!isDeepStrictEqual(facts.before, facts.after)) log({}, facts);
    return { types: await registry.types() };
  },
});
