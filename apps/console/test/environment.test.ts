import { describe, expect, test } from "vitest";
import { readConfig } from "../src/environment.js";

const REDIS_URL = "redis://localhost:6379";
/** Tokens of the minimum length. */
const [TOKEN, OTHER, SAME] = ["a".repeat(16), "b".repeat(16), "c".repeat(16)];

describe("the environment", () => {
  test("has defaults for all but Redis", () => {
    expect(readConfig({ REDIS_URL })).toEqual({
      connection: { url: REDIS_URL },
      namespace: "carillon",
      host: "127.0.0.1",
      port: 3000,
      logLevel: "info",
      tokens: { admin: [], operator: [], viewer: [] },
      basePath: "",
      redact: [],
      trustedProxies: 0,
    });
  });

  test("an empty variable is the same as none: an empty token never opens anything", () => {
    const empty = {
      CARILLON_TOKEN: "",
      CARILLON_OPERATOR_TOKEN: "",
      CARILLON_VIEWER_TOKEN: "",
      CARILLON_REDACT: "",
      CARILLON_CONSOLE_PORT: "",
      CARILLON_HOST: "",
      CARILLON_TRUSTED_PROXIES: "",
      CARILLON_TRACE_URL: "",
      CARILLON_BASE_PATH: "",
    };
    expect(readConfig({ REDIS_URL, ...empty })).toEqual(readConfig({ REDIS_URL }));
  });

  test("takes several tokens of a role, so that one can replace another", () => {
    const [a, b, c, d] = ["a", "b", "c", "d"].map((letter) => letter.repeat(16)) as [
      string,
      string,
      string,
      string,
    ];
    const env = { CARILLON_TOKEN: `${a},${b}`, CARILLON_OPERATOR_TOKEN: c, CARILLON_VIEWER_TOKEN: d };
    const tokens = { admin: [a, b], operator: [c], viewer: [d] };
    expect(readConfig({ REDIS_URL, ...env }).tokens).toEqual(tokens);
  });

  test("names the fields to hide", () => {
    const { redact } = readConfig({ REDIS_URL, CARILLON_REDACT: "password, headers.Authorization" });
    expect(redact).toEqual(["password", "headers.Authorization"]);
  });

  test("takes the number of proxies", () => {
    expect(readConfig({ REDIS_URL, CARILLON_TRUSTED_PROXIES: "2" }).trustedProxies).toBe(2);
    const basePath = (path: string) => readConfig({ REDIS_URL, CARILLON_BASE_PATH: path }).basePath;
    expect([basePath("/ops/carillon"), basePath("/")]).toEqual(["/ops/carillon", ""]);
  });

  test.each([
    [{ REDIS_URL: undefined }, "REDIS_URL"],
    [{ CARILLON_NAMESPACE: "a b" }, "CARILLON_NAMESPACE"],
    [{ CARILLON_CONSOLE_PORT: "65536" }, "CARILLON_CONSOLE_PORT"],
    [{ CARILLON_CONSOLE_PORT: "-1" }, "CARILLON_CONSOLE_PORT"],
    [{ CARILLON_CONSOLE_PORT: "3000x" }, "CARILLON_CONSOLE_PORT"],
    [{ CARILLON_HOST: "a b" }, "CARILLON_HOST"],
    [{ CARILLON_BASE_PATH: "ops" }, "CARILLON_BASE_PATH"],
    [{ CARILLON_BASE_PATH: "/queues" }, "CARILLON_BASE_PATH"],
    [{ CARILLON_TRUSTED_PROXIES: "true" }, "CARILLON_TRUSTED_PROXIES"],
    [{ CARILLON_TRUSTED_PROXIES: "11" }, "CARILLON_TRUSTED_PROXIES"],
    [{ CARILLON_TRUSTED_PROXIES: "-1" }, "CARILLON_TRUSTED_PROXIES"],
    [{ CARILLON_LOG_LEVEL: "loud" }, "CARILLON_LOG_LEVEL"],
    [{ CARILLON_TOKEN: "a long one with spaces" }, "CARILLON_TOKEN"],
    [{ CARILLON_TOKEN: "x".repeat(15) }, "CARILLON_TOKEN"],
    [{ CARILLON_VIEWER_TOKEN: `${TOKEN},short` }, "CARILLON_VIEWER_TOKEN"],
    [{ CARILLON_TRACE_URL: "https://jaeger.example.com/trace/" }, "CARILLON_TRACE_URL"],
    [{ CARILLON_REDACT: "a,,b" }, "CARILLON_REDACT"],
    [{ CARILLON_REDACT: "," }, "CARILLON_REDACT"],
    [{ CARILLON_REDACT: "a b" }, "CARILLON_REDACT"],
    [{ CARILLON_REDACT: ".a" }, "CARILLON_REDACT"],
    [{ CARILLON_REDACT: "a..b" }, "CARILLON_REDACT"],
    [{ CARILLON_REDACT: "x".repeat(200) }, "CARILLON_REDACT"],
    [{ CARILLON_REDACT: Array(101).fill("a").join() }, "CARILLON_REDACT"],
    [{ CARILLON_VIEWER_TOKEN: "a-long-one-with-a-new\nline" }, "CARILLON_VIEWER_TOKEN"],
    [{ CARILLON_OPERATOR_TOKEN: "a long one with spaces" }, "CARILLON_OPERATOR_TOKEN"],
    [{ CARILLON_TOKEN: SAME, CARILLON_VIEWER_TOKEN: SAME }, "CARILLON_VIEWER_TOKEN"],
    [{ CARILLON_TOKEN: SAME, CARILLON_OPERATOR_TOKEN: SAME }, "CARILLON_OPERATOR_TOKEN"],
    [{ CARILLON_OPERATOR_TOKEN: SAME, CARILLON_VIEWER_TOKEN: SAME }, "CARILLON_VIEWER_TOKEN"],
    [{ CARILLON_TOKEN: `${TOKEN},${OTHER},${TOKEN}` }, "CARILLON_TOKEN"],
    [
      { CARILLON_TOKEN: `${TOKEN},${SAME}`, CARILLON_VIEWER_TOKEN: `${OTHER},${SAME}` },
      "CARILLON_VIEWER_TOKEN",
    ],
    [{ CARILLON_TOKEN: `${TOKEN},` }, "CARILLON_TOKEN"],
    [{ CARILLON_TOKEN: "," }, "CARILLON_TOKEN"],
    [{ CARILLON_TOKEN: `${TOKEN}, with a space in it` }, "CARILLON_TOKEN"],
    [
      { CARILLON_VIEWER_TOKEN: Array.from({ length: 11 }, (_, i) => TOKEN + i).join() },
      "CARILLON_VIEWER_TOKEN",
    ],
  ])("%o is refused by name, with a remedy", (env, field) => {
    let error: unknown;
    try {
      readConfig({ REDIS_URL, ...env });
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toMatchObject({ field, remedy: expect.stringMatching(/\w/) });
    expect((error as Error).message).toMatch(new RegExp(`^${field}: `));
    expect((error as Error).message).not.toMatch(/with space|\bsame\b/);
  });
});
