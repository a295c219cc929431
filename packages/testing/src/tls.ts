import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeIdentities } from "./certificates.js";
import { scratchDir } from "./scratch.js";

/** Paths of PEM files: an authority, a client and its key, a server (`localhost`, `127.0.0.1`, `::1`) and its key. */
export interface TlsFiles {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
  readonly serverCert: string;
  readonly serverKey: string;
}

let files: TlsFiles | undefined;

/** Certificates for tests, created at the first call, and deleted when this process ends. */
export function tlsFiles(): TlsFiles {
  if (files) return files;
  const { ca, client, server } = makeIdentities();
  const dir = join(scratchDir(), "certificates");
  mkdirSync(dir);
  const write = (name: string, text: string) => {
    const file = join(dir, name);
    writeFileSync(file, text, { mode: 0o600 });
    return file;
  };
  files = {
    ca: write("ca.crt", ca),
    cert: write("client.crt", client.cert),
    key: write("client.key", client.key),
    serverCert: write("server.crt", server.cert),
    serverKey: write("server.key", server.key),
  };
  return files;
}

/** Options of a client for a server with `tls: true`: the texts of the authority's and the client's certificates. */
export interface ClientTls {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

export function clientTls(): ClientTls {
  const { ca, cert, key } = tlsFiles();
  const read = (file: string) => readFileSync(file, "utf8");
  return { ca: read(ca), cert: read(cert), key: read(key) };
}

/** Directives of a server that uses only TLS, for replication and the cluster bus too, and requires a client certificate. */
export function tlsConfig(port: number): Record<string, string | number> {
  const { ca, serverCert, serverKey } = tlsFiles();
  return {
    port: 0,
    "tls-port": port,
    "tls-ca-cert-file": ca,
    "tls-cert-file": serverCert,
    "tls-key-file": serverKey,
    "tls-auth-clients": "yes",
    "tls-replication": "yes",
    "tls-cluster": "yes",
  };
}
