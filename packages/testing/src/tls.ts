import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const path = (name: string) => fileURLToPath(new URL(`../certificates/${name}`, import.meta.url));

/**
 * Files of certificates for tests, valid from 2020 to 2119: an authority, a server (`localhost`, `127.0.0.1`, `::1`), a client.
 * Their keys are public: never use them elsewhere.
 */
export const tlsFiles = {
  ca: path("ca.crt"),
  cert: path("client.crt"),
  key: path("client.key"),
  serverCert: path("server.crt"),
  serverKey: path("server.key"),
} as const;

/** What a client of a server with `tls: true` needs: the texts of the authority's and the client's certificates. */
export interface ClientTls {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

export function clientTls(): ClientTls {
  const read = (file: string) => readFileSync(file, "utf8");
  return { ca: read(tlsFiles.ca), cert: read(tlsFiles.cert), key: read(tlsFiles.key) };
}

/** Directives of a server that speaks TLS only, to its replicas, masters and cluster too, and wants a client certificate. */
export function tlsConfig(port: number): Record<string, string | number> {
  return {
    port: 0,
    "tls-port": port,
    "tls-ca-cert-file": tlsFiles.ca,
    "tls-cert-file": tlsFiles.serverCert,
    "tls-key-file": tlsFiles.serverKey,
    "tls-auth-clients": "yes",
    "tls-replication": "yes",
    "tls-cluster": "yes",
  };
}
