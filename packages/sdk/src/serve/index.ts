/**
 * Task types that run where `deliver` of `@carillon/sdk/http` posts them: in Next.js, Hono, Workers, Deno, Bun and any other place with
 * Web-standard requests. Needs nothing of Node.js.
 *
 * @packageDocumentation
 */

export type { Context } from "../context.js";
export { PermanentError } from "../permanent-error.js";
export { defineTask, type Handler, implement, type TaskContract, type TaskType } from "../task-type.js";
export { type ServeOptions, serve } from "./serve.js";
