import { isIP } from "node:net";
import type { TaskDefinition } from "@carillon/core";
import { CARRIERS, carrierOf, endpointOf, formatInstead } from "@carillon/core/internal";
import { canonicalAddress, specialKind } from "../http/addresses.js";
import { bareHost } from "../http/guard.js";
import { HTTP_TYPE } from "../http/payload.js";
import type { Warning } from "./types.js";

/** Names that lead into a private network by their form alone. */
const INTERNAL = /(^|\.)(localhost|local|internal|home\.arpa)\.?$|^[^.]+$/;

/**
 * Warnings about URLs, of alerts and of HTTP tasks, that workers refuse unless `allow` names them. Names are not resolved: a put asks no name
 * server.
 */
export function urlWarnings({ alerts = [], type, payload }: TaskDefinition): Warning[] {
  const { url } = Object(type === HTTP_TYPE ? payload : undefined) as { url?: unknown };
  return [
    ...notPublic("payload.url", url, "httpRequest"),
    ...alerts.flatMap((one, index) => {
      const field = `alerts[${index}]`;
      const instead = formatInstead(one);
      return carrierOf(one) === "mail"
        ? []
        : [
            ...notPublic(`${field}.url`, endpointOf(one), CARRIERS.http.deliverer),
            ...(instead
              ? [
                  {
                    code: "ALERT_FORMAT",
                    message: `${field}: ${instead.host} refuses the format ${one.format}.`,
                    remedy: `Give format: "${instead.format}".`,
                  },
                ]
              : []),
          ];
    }),
  ];
}

/** @param option the function whose option `allow` is meant */
function notPublic(field: string, url: unknown, option: string): Warning[] {
  if (typeof url !== "string" || !URL.canParse(url)) return [];
  const host = bareHost(new URL(url));
  const what = internalKind(host);
  if (what === undefined) return [];
  const message = `${field}: ${host} is ${what}. Workers refuse it.`;
  return [{ code: "URL_NOT_PUBLIC", message, remedy: `Name it in the option allow of their ${option}.` }];
}

function internalKind(host: string): string | undefined {
  if (isIP(host) === 0) return INTERNAL.test(host) ? "a name of a private network" : undefined;
  const canonical = canonicalAddress(host);
  return canonical === undefined ? "an address that cannot be judged" : specialKind(canonical);
}
