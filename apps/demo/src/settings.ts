import { randomBytes } from "node:crypto";
import { CarillonError, type Environment, readEnvironment } from "@carillon/sdk";

export interface Settings extends Environment {
  redisUrl: string;
  /** Token of the console's admin. */
  token: string;
  /** Preferred port of the console; if it is taken, the console uses another one. */
  port: number;
}

/**
 * Settings of the demo, from its environment; an empty variable counts as unset.
 *
 * @throws `INVALID_OPTION`, `INVALID_NAME` naming the variable
 */
export function readSettings(env: Record<string, string | undefined>): Settings {
  const shared = readEnvironment({ ...env, CARILLON_NAMESPACE: env.CARILLON_NAMESPACE || "demo" });
  return {
    ...shared,
    redisUrl: env.REDIS_URL as string,
    token: env.CARILLON_TOKEN || randomBytes(12).toString("hex"),
    port: portOf(env.CARILLON_CONSOLE_PORT || "3000"),
  };
}

function portOf(text: string): number {
  if (/^\d{1,5}$/.test(text) && Number(text) < 65_536) return Number(text);
  throw new CarillonError("INVALID_OPTION", "not a port.", {
    field: "CARILLON_CONSOLE_PORT",
    remedy: "Use a number from 0 to 65535; 0 takes any free port.",
  });
}
