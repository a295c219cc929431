import {
  assertName,
  assertOptions,
  assertWhole,
  DEFAULT_PAYLOAD_LIMITS,
  durationOption,
} from "@carillon/core/internal";
import { assertTelemetry } from "@carillon/store";
import { assertList, MOST_MS } from "../options.js";
import { assertTaskType, typesByName } from "../task-type.js";
import { shortText } from "./input.js";
import type { ClientOptions } from "./types.js";

const CLIENT_OPTIONS = [
  "connection",
  "store",
  "namespace",
  "owner",
  "by",
  "origin",
  "maxPayloadBytes",
  "types",
  "connectTimeout",
  "onProgress",
  "telemetry",
] as const satisfies (keyof ClientOptions)[];

/** @throws `INVALID_OPTION`, `INVALID_NAME` */
export function checkedOptions(options: ClientOptions) {
  assertOptions(options, CLIENT_OPTIONS);
  assertTelemetry(options.telemetry);
  const owner = options.owner === undefined ? undefined : assertName(options.owner, "owner");
  assertWhole(options.maxPayloadBytes, "maxPayloadBytes", 1, Number.MAX_SAFE_INTEGER);
  const connectTimeout = durationOption(options.connectTimeout, "connectTimeout", 1, MOST_MS);
  if (options.types !== undefined) assertList(options.types, "types", "Give the task types that may be put.");
  for (const [i, type] of (options.types ?? []).entries()) assertTaskType(type, `types[${i}]`);
  return {
    owner,
    by: shortText(options.by, "by"),
    origin: shortText(options.origin, "origin") || undefined,
    types: options.types && typesByName(options.types),
    maxPayloadBytes: options.maxPayloadBytes ?? DEFAULT_PAYLOAD_LIMITS.maxBytes,
    /** Milliseconds. */
    connectTimeout,
  };
}
