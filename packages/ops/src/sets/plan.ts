import { type Call, operation } from "../operation.js";
import { Details } from "./details.js";
import { compare, prepare, type Step } from "./planning.js";
import { type GivenSet, type Plan, plan, setInput } from "./set.js";

/** Each apply makes the same plan again, without the details for people, and refuses it if another one was shown. */
export const planSet = operation({
  http: "POST /sets/:set/plan",
  role: "admin",
  reach: "namespace",
  cost: "computes",
  logs: false,
  once: "reads",
  example: { set: "crew", tasks: [] },
  summary:
    "Compares the tasks of a set with what is stored, and says what an apply would do; changes nothing.",
  input: setInput,
  output: plan,
  run: async (call, input) => (await planFor(call, input)).plan,
});

/** A plan with the details for people. */
export async function planFor(call: Call, input: GivenSet): Promise<{ plan: Plan; steps: readonly Step[] }> {
  const prepared = await prepare(call, input);
  const details = new Details(call, prepared);
  const { plan, steps } = await compare(call, prepared, details.of);
  return { plan: { ...plan, ...(await details.ofAll(steps)) }, steps };
}
