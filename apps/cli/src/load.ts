/**
 * Parts of the packages that a command with a connection needs, loaded when it connects: `--help` need not wait for ioredis. Named one by
 * one, so that the bundle leaves out the rest, such as workers.
 */
export { cutOver, goBack, operatorOf, resolveConfig } from "@carillon/ops";
export {
  firedSince,
  importBullmq,
  Redactor,
  readBullSchedulers,
  redactorOf,
  withBullmq,
  withFields,
} from "@carillon/ops/internal";
export { Client, definitionOf, readEnvironment } from "@carillon/sdk";
export { nearestRemedy } from "@carillon/sdk/internal";
