import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { readSettings } from "../src/settings.js";

const MAIN = fileURLToPath(new URL("../dist/main.js", import.meta.url));
const REDIS_URL = "redis://localhost:6379";

describe("the demo's settings", () => {
  it("have defaults, also for empty values", () => {
    const empty = { CARILLON_NAMESPACE: "", CARILLON_TOKEN: "", CARILLON_CONSOLE_PORT: "" };
    for (const env of [{ REDIS_URL }, { REDIS_URL, ...empty }]) {
      const { token, ...others } = readSettings(env);
      expect(others).toMatchObject({ namespace: "demo", redisUrl: REDIS_URL, port: 3000 });
      expect(token).toMatch(/^[0-9a-f]{24}$/);
    }
  });

  it.each([
    ["CARILLON_CONSOLE_PORT", "abc"],
    ["CARILLON_CONSOLE_PORT", "65536"],
    ["CARILLON_NAMESPACE", "a b"],
    ["REDIS_URL", "http://user:hunter2@localhost"],
  ])("report an invalid %s in one line, without a password", (name, value) => {
    const env = { PATH: process.env.PATH, REDIS_URL, [name]: value };
    const { status, stderr } = spawnSync(process.execPath, [MAIN], { env, encoding: "utf8" });
    expect(stderr).toMatch(new RegExp(`^${name}: .*\\n$`));
    expect(stderr).not.toContain("hunter2");
    expect(status).toBe(2);
  });
});
