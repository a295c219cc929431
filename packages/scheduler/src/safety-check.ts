import { CarillonError } from "@carillon/core";
import type { Store } from "@carillon/store";

export interface SafetyFinding {
  readonly what: "eviction" | "aof" | "unknown";
  readonly message: string;
}

/**
 * Checks whether this Redis keeps its data. Reads INFO, because managed servers often forbid CONFIG; a field that is
 * missing there is a finding of its own.
 */
export async function inspectRedis(store: Store): Promise<SafetyFinding[]> {
  const infos = await store.info();
  return infos.flatMap((info) => judge(info));
}

export function judge(info: string): SafetyFinding[] {
  const field = (name: string) => new RegExp(`^${name}:(.*?)\r?$`, "m").exec(info)?.[1];
  const findings: SafetyFinding[] = [];
  const policy = field("maxmemory_policy");
  const aof = field("aof_enabled");
  if (policy === undefined)
    findings.push({ what: "unknown", message: "INFO does not show maxmemory-policy." });
  else if (policy !== "noeviction") {
    findings.push({
      what: "eviction",
      message: `maxmemory-policy is ${policy}: Redis may drop tasks and jobs.`,
    });
  }
  if (aof === undefined) findings.push({ what: "unknown", message: "INFO does not show whether AOF is on." });
  else if (aof !== "1") {
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
