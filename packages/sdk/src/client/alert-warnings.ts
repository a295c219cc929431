import { isIP } from "node:net";
import type { TaskDefinition } from "@carillon/core";
import { canonicalAddress, specialKind } from "../http/addresses.js";
import { bareHost } from "../http/guard.js";
import type { Warning } from "./types.js";

/** Names that lead into a private network by their form alone. */
const INTERNAL = /(^|\.)(localhost|local|internal|home\.arpa)\.?$|^[^.]+$/;

/** Warnings about alert URLs that workers refuse unless `allow` names them. Names are not resolved: a put asks no name server. */
export function alertWarnings({ alerts = [] }: TaskDefinition): Warning[] {
  return alerts.flatMap(({ url }, index) => {
    if (url === undefined) return [];
    const host = bareHost(new URL(url));
    const what = internalKind(host);
    if (what === undefined) return [];
    const message = `alerts[${index}].url: ${host} is ${what}. Workers refuse it.`;
    return [
      { code: "ALERT_NOT_PUBLIC", message, remedy: "Name it in the option allow of their alertWebhook." },
    ];
  });
}

function internalKind(host: string): string | undefined {
  if (isIP(host) === 0) return INTERNAL.test(host) ? "a name of a private network" : undefined;
  const canonical = canonicalAddress(host);
  return canonical === undefined ? "an address that cannot be judged" : specialKind(canonical);
}
