import { CarillonError } from "@carillon/core";
import type { ServerInfo, Store } from "@carillon/store";

export interface SafetyFinding {
  readonly what: "eviction" | "aof" | "unknown";
  readonly message: string;
}

/** Remedies for settings that this program cannot see. */
const LOOK = "Check it with your provider: appendonly yes, maxmemory-policy noeviction.";

/** Checks whether this Redis keeps its data. A setting that it does not show is a finding of its own. */
export async function inspectRedis(store: Store): Promise<SafetyFinding[]> {
  return (await store.info()).flatMap(judge);
}

export function judge({ eviction, aof }: Pick<ServerInfo, "eviction" | "aof">): SafetyFinding[] {
  const findings: SafetyFinding[] = [];
  if (eviction === undefined)
    findings.push({ what: "unknown", message: `INFO does not show maxmemory-policy. ${LOOK}` });
  else if (eviction !== "noeviction") {
    findings.push({
      what: "eviction",
      message: `maxmemory-policy is ${eviction}: Redis may drop tasks and jobs.`,
    });
  }
  if (aof === undefined)
    findings.push({ what: "unknown", message: `INFO does not show whether AOF is on. ${LOOK}` });
  else if (!aof) {
    findings.push({
      what: "aof",
      message: "appendonly is off: a restart of Redis loses acknowledged writes.",
    });
  }
  return findings;
}

export function refusal(findings: readonly SafetyFinding[]): CarillonError | undefined {
  const grave = findings.filter(({ what }) => what !== "unknown");
  if (grave.length === 0) return undefined;
  return new CarillonError("REDIS_UNSAFE", grave.map(({ message }) => message).join(" "), {
    remedy:
      "Set maxmemory-policy noeviction and appendonly yes; or accept the risk with unsafeRedis: warn (CARILLON_UNSAFE_REDIS=warn).",
  });
}
