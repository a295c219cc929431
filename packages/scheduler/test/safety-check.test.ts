import { readServerInfo } from "@carillon/store/internal";
import { describe, expect, it } from "vitest";
import { judge as judgeFacts, refusal } from "../src/safety-check.js";

const judge = (reply: string) => judgeFacts(readServerInfo(reply));
const GOOD = "# Memory\r\nmaxmemory_policy:noeviction\r\n# Persistence\r\naof_enabled:1\r\n";

describe("the check of a Redis' durability", () => {
  it("finds nothing against noeviction with AOF", () => {
    expect(judge(GOOD)).toEqual([]);
  });

  it.each([
    ["eviction", GOOD.replace("noeviction", "allkeys-lru"), "maxmemory-policy is allkeys-lru"],
    ["aof", GOOD.replace("aof_enabled:1", "aof_enabled:0"), "appendonly is off"],
  ])("refuses %s and says what to set", (what, info, message) => {
    const findings = judge(info);
    expect(findings).toMatchObject([{ what }]);
    const error = refusal(findings);
    expect(error?.code).toBe("REDIS_UNSAFE");
    expect(error?.message).toContain(message);
    expect(error?.remedy).toContain("noeviction");
  });

  it("warns of settings that a managed server hides, and does not refuse them", () => {
    const findings = judge("# Server\r\nredis_version:7.0.0\r\n");
    expect(findings.map(({ what }) => what)).toEqual(["unknown", "unknown"]);
    expect(refusal(findings)).toBeUndefined();
  });
});
