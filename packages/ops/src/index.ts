export type { Call, Method, Operation } from "./operation.js";
export { OPERATIONS } from "./operations.js";
export {
  type AnswerOf,
  type AnswerTo,
  type InputOf,
  type InputTo,
  type OperationName,
  type Operator,
  operatorOf,
} from "./operator.js";
export {
  defineConfig,
  type SetConfig,
  type SetDefaults,
  type SetEnvironment,
  type SetFile,
} from "./sets/define-config.js";
export { resolveConfig } from "./sets/resolve-config.js";
export { type CutOver, type CutOverOptions, cutOver, goBack } from "./shadow/cut-over.js";
