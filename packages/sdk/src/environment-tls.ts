import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { createSecureContext } from "node:tls";
import { CarillonError } from "@carillon/core";

type Environment = Record<string, string | undefined>;

interface Certificates {
  ca?: string;
  cert?: string;
  key?: string;
  servername?: string;
}

/**
 * Certificates for Redis, read and checked at once: later, a wrong one would only show as a failed connection.
 * @throws `INVALID_OPTION` naming the variable
 */
export function readTls(env: Environment): { tls?: Certificates } {
  const tls: Certificates = {
    ...read(env, "ca", "REDIS_TLS_CA_FILE", (text) => new X509Certificate(text)),
    ...read(env, "cert", "REDIS_TLS_CERT_FILE", (text) => new X509Certificate(text)),
    ...read(env, "key", "REDIS_TLS_KEY_FILE", (text) => createPrivateKey(text)),
    ...(env.REDIS_TLS_SERVERNAME ? { servername: env.REDIS_TLS_SERVERNAME } : {}),
  };
  if (tls.cert && !tls.key)
    throw refused("REDIS_TLS_KEY_FILE", "missing.", "Give the key of REDIS_TLS_CERT_FILE.");
  if (tls.key && !tls.cert)
    throw refused("REDIS_TLS_CERT_FILE", "missing.", "Give the certificate of REDIS_TLS_KEY_FILE.");
  try {
    createSecureContext(tls);
  } catch (error) {
    const remedy = "Give the key that REDIS_TLS_CERT_FILE was made with.";
    throw refused("REDIS_TLS_KEY_FILE", "not the key of the certificate.", remedy, error);
  }
  return Object.keys(tls).length > 0 ? { tls } : {};
}

function read(
  env: Environment,
  member: keyof Certificates,
  variable: string,
  check: (text: string) => unknown,
): Certificates {
  const file = env[variable];
  if (!file) return {};
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw refused(variable, `the file cannot be read (${code}).`, "Give the path of a PEM file.", error);
  }
  try {
    check(text);
  } catch (error) {
    const remedy = "Give a PEM file, its key not encrypted.";
    throw refused(variable, "the file holds something else.", remedy, error);
  }
  return { [member]: text };
}

function refused(field: string, what: string, remedy: string, cause?: unknown): CarillonError {
  return new CarillonError("INVALID_OPTION", what, { field, remedy, cause });
}
