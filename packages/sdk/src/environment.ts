import { CarillonError, DEFAULT_NAMESPACE } from "@carillon/core";
import { assertName } from "@carillon/core/internal";
import { type ConnectionSpec, readConnection } from "@carillon/store";
import { readTls } from "./environment-tls.js";

export interface Environment {
  connection: ConnectionSpec;
  namespace: string;
}

const TOPOLOGIES = ["single", "cluster", "sentinel"] as const;

/**
 * Settings that every process of Carillon reads from its environment. An empty variable counts as unset.
 *
 * - `REDIS_URL`: `redis://[user:password@]host:port[/db]`; several, separated by commas, for a cluster;
 *   `redis+sentinel://[user:password@]host:port,host:port/name[/db]` for Sentinels, with `?sentinelUsername=` and
 *   `?sentinelPassword=` for themselves; `rediss` in place of `redis` for TLS. Required.
 * - `REDIS_TLS_CA_FILE`, `REDIS_TLS_CERT_FILE`, `REDIS_TLS_KEY_FILE`: files in PEM, the authority of the server's
 *   certificate, and the client's certificate with its key. `REDIS_TLS_SERVERNAME`: the name that the server's certificate must have.
 * - `CARILLON_NAMESPACE`: default `carillon`.
 * - `CARILLON_TOPOLOGY`: `cluster` when `REDIS_URL` names only one node of a cluster; otherwise the URL says it.
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
  const wanted = readTopology(env.CARILLON_TOPOLOGY || undefined);
  const tls = readTls(env);
  const { topology } = readConnection({ url, ...wanted, ...tls }, "REDIS_URL");
  return {
    connection: { url, topology, ...tls },
    namespace: assertName(env.CARILLON_NAMESPACE || DEFAULT_NAMESPACE, "CARILLON_NAMESPACE"),
  };
}

function readTopology(given: string | undefined): { topology?: (typeof TOPOLOGIES)[number] } {
  if (given === undefined) return {};
  const topology = TOPOLOGIES.find((one) => one === given);
  if (topology) return { topology };
  throw new CarillonError("INVALID_OPTION", `got ${JSON.stringify(given)}.`, {
    field: "CARILLON_TOPOLOGY",
    remedy: `Use one of ${TOPOLOGIES.join(", ")}.`,
  });
}
