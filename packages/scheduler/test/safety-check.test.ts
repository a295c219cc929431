import { unsafeSettings } from "@carillon/store";
import { readServerInfo } from "@carillon/store/internal";
import { describe, expect, it } from "vitest";
import { refusal } from "../src/safety-check.js";

const judge = (reply: string) => unsafeSettings(readServerInfo(reply));
const GOOD = "# Memory\r\nmaxmemory_policy:noeviction\r\n# Persistence\r\naof_enabled:1\r\n";

describe("the check of a Redis' durability", () => {
  it("finds nothing against noeviction with AOF", () => {
    expect(judge(GOOD)).toEqual([]);
  });

  it.each([
    ["EVICTION", GOOD.replace("noeviction", "allkeys-lru"), "maxmemory-policy is allkeys-lru"],
    ["AOF_OFF", GOOD.replace("aof_enabled:1", "aof_enabled:0"), "appendonly is off"],
  ])("refuses %s and says what to set", (code, info, message) => {
    const settings = judge(info);
    expect(settings).toMatchObject([{ code }]);
    const error = refusal(settings);
    expect(error?.code).toBe("REDIS_UNSAFE");
    expect(error?.message).toContain(message);
    expect(error?.remedy).toContain("noeviction");
  });

  it("warns of settings that a managed server hides, and does not refuse them", () => {
    const settings = judge("# Server\r\nredis_version:7.0.0\r\n");
    expect(settings).toEqual([{ code: "UNKNOWN_SETTINGS", settings: ["appendonly", "maxmemory-policy"] }]);
    expect(refusal(settings)).toBeUndefined();
  });
});
