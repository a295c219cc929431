import { assertName, CarillonError, DEFAULT_NAMESPACE } from "@carillon/core";
import { type ConnectionSpec, parseRedisUrls } from "@carillon/store";

export interface Environment {
  connection: ConnectionSpec;
  namespace: string;
}

/**
 * What every process of Carillon reads from its environment.
 *
 * - `REDIS_URL`: `redis://` or `rediss://`; several, separated by commas, for a cluster. Required.
 * - `CARILLON_NAMESPACE`: default `carillon`.
 * - `CARILLON_TOPOLOGY`: `single` (default) or `cluster`; several URLs mean `cluster`.
 *
 * @throws `INVALID_OPTION`, `INVALID_NAME` naming the variable
 */
export function readEnvironment(env: Record<string, string | undefined> = process.env): Environment {
  const url = env.REDIS_URL;
  if (!url) {
    throw new CarillonError("INVALID_OPTION", "missing.", {
      field: "REDIS_URL",
      remedy: "Set it, for example REDIS_URL=redis://localhost:6379.",
    });
  }
  parseRedisUrls(url, "REDIS_URL");
  const topology = env.CARILLON_TOPOLOGY ?? (url.includes(",") ? "cluster" : "single");
  if (topology !== "single" && topology !== "cluster") {
    throw new CarillonError("INVALID_OPTION", `got ${JSON.stringify(topology)}.`, {
      field: "CARILLON_TOPOLOGY",
      remedy: "Use single or cluster.",
    });
  }
  return {
    connection: { url, topology },
    namespace: assertName(env.CARILLON_NAMESPACE ?? DEFAULT_NAMESPACE, "CARILLON_NAMESPACE"),
  };
}
