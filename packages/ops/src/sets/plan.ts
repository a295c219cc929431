import { operation } from "../operation.js";
import { planning } from "./planning.js";
import { plan, setInput } from "./set.js";

/** Each apply makes the same plan again, and refuses it if another one was shown. */
export const planSet = operation({
  http: "POST /sets/:set/plan",
  role: "admin",
  reach: "namespace",
  cost: "computes",
  logs: false,
  summary:
    "Compares the tasks of a set with what is stored, and says what an apply would do; changes nothing.",
  input: setInput,
  output: plan,
  run: async (call, input) => (await planning(call, input)).plan,
});
