/**
 * The console to mount in a server of your own.
 *
 * @packageDocumentation
 */
export type { TokenRole as Role } from "@carillon/sdk/internal";
export type { Tokens } from "./auth.js";
export type { Person } from "./context.js";
export { type Console, type ConsoleOptions, createConsole } from "./create.js";
export { fastifyConsole } from "./fastify.js";
export type { OwnAuth } from "./identity.js";
