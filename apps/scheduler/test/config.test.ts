import { describe, expect, it } from "vitest";
import { readConfig } from "../src/config.js";

const REDIS_URL = "redis://localhost:6379";

describe("the environment", () => {
  it("needs only REDIS_URL, and treats an empty value as absent", () => {
    expect(readConfig({ REDIS_URL, CARILLON_PORT: "", HOME: "/" })).toEqual({
      problems: [],
      warnings: [],
      config: {
        connection: { url: REDIS_URL },
        namespace: "carillon",
        nodeId: undefined,
        metricsTag: undefined,
        host: "127.0.0.1",
        port: 9464,
        logLevel: "info",
        unsafeRedis: "refuse",
        mutexTtl: undefined,
        rereadEvery: undefined,
        heartbeatEvery: undefined,
        grace: undefined,
        sabotage: [],
      },
    });
  });

  it("is read completely", () => {
    const { config } = readConfig({
      REDIS_URL: "redis://a:1,redis://b:2",
      CARILLON_NAMESPACE: "shop",
      CARILLON_NODE_ID: "n1",
      CARILLON_HOST: "0.0.0.0",
      CARILLON_PORT: "0",
      CARILLON_LOG_LEVEL: "debug",
      CARILLON_UNSAFE_REDIS: "warn",
      CARILLON_MUTEX_TTL_MS: "1000",
      CARILLON_REREAD_MS: "500",
      CARILLON_HEARTBEAT_MS: "2000",
      CARILLON_GRACE_MS: "0",
      CARILLON_WATCHDOG_URL: "https://hc-ping.example.com/1",
      CARILLON_TEST_ONLY_SABOTAGE: "mutex, fence",
    });
    expect(config).toMatchObject({
      connection: { url: "redis://a:1,redis://b:2" },
      namespace: "shop",
      nodeId: "n1",
      host: "0.0.0.0",
      port: 0,
      logLevel: "debug",
      unsafeRedis: "warn",
      watchdog: { url: "https://hc-ping.example.com/1", every: 60_000 },
      mutexTtl: 1_000,
      rereadEvery: 500,
      heartbeatEvery: 2_000,
      grace: 0,
      sabotage: ["mutex", "fence"],
    });
  });

  it.each([
    ["REDIS_URL", undefined],
    ["CARILLON_NAMESPACE", "a b"],
    ["CARILLON_NODE_ID", "a:b"],
    ["CARILLON_PORT", "65536"],
    ["CARILLON_PORT", "-1"],
    ["CARILLON_PORT", "80.5"],
    ["CARILLON_LOG_LEVEL", "loud"],
    ["CARILLON_UNSAFE_REDIS", "maybe"],
    ["CARILLON_MUTEX_TTL_MS", "99"],
    ["CARILLON_MUTEX_TTL_MS", "60001"],
    ["CARILLON_REREAD_MS", "9"],
    ["CARILLON_REREAD_MS", "30001"],
    ["CARILLON_HEARTBEAT_MS", "1e3"],
    ["CARILLON_HEARTBEAT_MS", "99"],
    ["CARILLON_HEARTBEAT_MS", "300001"],
    ["CARILLON_GRACE_MS", "1s"],
    ["CARILLON_WATCHDOG_URL", "hc-ping.example.com"],
    ["CARILLON_WATCHDOG_EVERY_MS", "999"],
    ["CARILLON_TEST_ONLY_SABOTAGE", "mutex,brakes"],
  ])("refuses %s=%s by name, with a remedy", (variable, value) => {
    const { config, problems } = readConfig({ REDIS_URL, [variable]: value });
    expect(config).toBeUndefined();
    expect(problems).toEqual([
      { variable, message: expect.stringMatching(new RegExp(`^${variable}: .+\\. ?(Set|Use|Give) .+\\.$`)) },
    ]);
  });

  it("reports all mistakes at once", () => {
    const { problems } = readConfig({ CARILLON_PORT: "x", CARILLON_LOG_LEVEL: "y" });
    expect(problems.map(({ variable }) => variable)).toEqual([
      "REDIS_URL",
      "CARILLON_PORT",
      "CARILLON_LOG_LEVEL",
    ]);
  });

  it("repeats only the beginning of a long value", () => {
    const { problems } = readConfig({ REDIS_URL, CARILLON_LOG_LEVEL: "x".repeat(100_000) });
    expect(problems[0]?.message).toContain(`got "${"x".repeat(60)}…".`);
  });

  it.each([
    ["CARILLON_MUTEX_TTL", "CARILLON_MUTEX_TTL_MS"],
    ["CARILLON_NODEID", "CARILLON_NODE_ID"],
    ["CARILLON_NAMSPACE", "CARILLON_NAMESPACE"],
    ["REDIS_TLS_CAFILE", "REDIS_TLS_CA_FILE"],
    ["CARILLON_SOMETHING_ELSE", undefined],
  ])("warns of the unknown %s and means %s", (variable, meant) => {
    const { config, warnings } = readConfig({ REDIS_URL, [variable]: "1" });
    expect(config).toBeDefined();
    const hint = meant ? ` Did you mean ${meant}?` : "";
    expect(warnings).toEqual([{ variable, message: `${variable} is not known here.${hint}` }]);
  });

  it("does not warn of the console's variables", () => {
    const { warnings } = readConfig({ REDIS_URL, CARILLON_CONSOLE_PORT: "3000", CARILLON_TOKEN: "t" });
    expect(warnings).toEqual([]);
  });
});
