import { DEFAULT_NAMESPACE } from "@carillon/core";
import { assertName, invalid } from "@carillon/core/internal";
import { type ConnectionSpec, readConnection } from "@carillon/store";
import { readTls } from "./environment-tls.js";

export interface Environment {
  connection: ConnectionSpec;
  namespace: string;
}

/**
 * Settings that every process of Carillon reads from its environment. An empty variable counts as unset.
 *
 * - `REDIS_URL`: `redis://[user:password@]host:port[/db]`, of one server, or any address of a cluster; several may be given,
 *   separated by commas;
 *   `redis+sentinel://[user:password@]host:port,host:port/name[/db]` for Sentinels, with `?sentinelUsername=` and
 *   `?sentinelPassword=` for themselves; `rediss` in place of `redis` for TLS. Required.
 * - `REDIS_TLS_CA_FILE`, `REDIS_TLS_CERT_FILE`, `REDIS_TLS_KEY_FILE`: files in PEM, the authority of the server's
 *   certificate, and the client's certificate with its key. `REDIS_TLS_SERVERNAME`: the name that the server's certificate must have.
 * - `CARILLON_NAMESPACE`: default `carillon`.
 *
 * @throws `INVALID_OPTION`, `INVALID_NAME` naming the variable
 */
export function readEnvironment(env: Record<string, string | undefined> = process.env): Environment {
  const url = env.REDIS_URL;
  if (!url) throw invalid("REDIS_URL", "missing.", "Set it, for example REDIS_URL=redis://localhost:6379.");
  const connection = { url, ...readTls(env) };
  readConnection(connection, "REDIS_URL");
  return {
    connection,
    namespace: assertName(env.CARILLON_NAMESPACE || DEFAULT_NAMESPACE, "CARILLON_NAMESPACE"),
  };
}
