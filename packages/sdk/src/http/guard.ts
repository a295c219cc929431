import type { LookupAddress } from "node:dns";
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { CarillonError } from "@carillon/core";
import { invalid, quote } from "@carillon/core/internal";
import { canonicalAddress, contains, type Network, network, specialKind } from "./addresses.js";
import { HttpError } from "./errors.js";

/** All addresses of a host name. */
export type Resolve = (hostname: string) => Promise<readonly LookupAddress[]>;

/**
 * Says which addresses a request may connect to. It is asked once for each request, and nothing else resolves the name.
 *
 * @throws `FORBIDDEN`, `HTTP_UNREACHABLE`, or the error of the lookup
 */
export type Guard = (url: URL) => Promise<readonly LookupAddress[]>;

export interface GuardOptions {
  /**
   * Non-public destinations to allow: `10.1.0.0/16`, `10.1.2.3`, `10.1.2.3:8080`, `[fd00::1]:8080`, `api.internal`,
   * `api.internal:8080`. A name stands for whatever it resolves to. Default: nothing.
   */
  allow?: readonly string[] | undefined;
  /** For tests; default `dns.lookup`. */
  resolve?: Resolve | undefined;
}

interface Rule {
  /** A host name, or the addresses. */
  readonly target: string | Network;
  /** Default: any. */
  readonly port: number | undefined;
}

/**
 * A guard that lets requests go to public addresses, and to what `allow` names. A name of which one address is refused is
 * refused altogether.
 *
 * @throws `INVALID_OPTION`
 */
export function createGuard(options: GuardOptions = {}): Guard {
  const rules = (options.allow ?? []).map(parseRule);
  const resolve = options.resolve ?? ((hostname) => lookup(hostname, { all: true }));
  return async (url) => {
    const host = bareHost(url);
    const family = isIP(host);
    const addresses = family === 0 ? await resolve(host) : [{ address: host, family }];
    const open = rules.filter((rule) => rule.port === undefined || rule.port === portOf(url));
    if (addresses.length === 0) {
      throw new HttpError("HTTP_UNREACHABLE", `${quote(host, 253)} has no address.`);
    }
    for (const { address } of addresses) {
      const kind = refusedKind(open, host, address);
      // Omits the address itself: authors of tasks must not learn what internal names resolve to.
      if (kind) throw refusal(host, family === 0 ? `resolves to ${kind}` : `is ${kind}`);
    }
    return addresses;
  };
}

/** The host of a URL as the network knows it: an IPv6 address without its brackets. */
export function bareHost(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, "");
}

/** The port of an http or https URL. */
export function portOf(url: URL): number {
  return url.port === "" ? (url.protocol === "https:" ? 443 : 80) : Number(url.port);
}

function refusedKind(rules: readonly Rule[], host: string, address: string): string | undefined {
  const canonical = canonicalAddress(address);
  if (canonical === undefined) return "an address that cannot be judged";
  const allowed = rules.some(({ target }) =>
    typeof target === "string" ? target === host : contains(target, canonical),
  );
  return allowed ? undefined : specialKind(canonical);
}

function refusal(host: string, what: string): CarillonError {
  return new CarillonError("FORBIDDEN", `${quote(host, 253)} ${what}; nothing was sent.`, {
    field: "url",
    remedy: "Use a public address, or have the worker's operator add it to the allow option of http.request.",
  });
}

function parseRule(entry: string, index: number): Rule {
  try {
    if (entry.includes("/") || isIP(entry) !== 0) return { target: network(entry), port: undefined };
    const [, host = "", digits] = /^(\[[^\]]+\]|[^:]+)(?::(\d{1,5}))?$/.exec(entry) ?? [];
    const url = new URL(`http://${host}/`);
    const name = bareHost(url);
    const target = isIP(name) === 0 ? name : network(name);
    const port = digits === undefined ? undefined : Number(digits);
    // Nothing but a host: no user, no query, no `*`, which a URL takes for a part of the name.
    const whole = url.href === `http://${url.host}/` && !name.includes("*");
    if (whole && (port === undefined || (port > 0 && port < 65_536))) return { target, port };
  } catch {
    // Reported below.
  }
  throw invalid(
    `allow[${index}]`,
    `got ${quote(entry)}.`,
    "Give a range (10.0.0.0/8), an address or a host name, the last two with or without a port.",
  );
}
