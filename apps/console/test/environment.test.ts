import { describe, expect, test } from "vitest";
import { readConfig, shortTokens } from "../src/environment.js";

const REDIS_URL = "redis://localhost:6379";

describe("the environment", () => {
  test("has defaults for all but Redis", () => {
    expect(readConfig({ REDIS_URL })).toEqual({
      connection: { url: REDIS_URL, topology: "single" },
      namespace: "carillon",
      host: "127.0.0.1",
      port: 3000,
      logLevel: "info",
      token: undefined,
      operatorToken: undefined,
      viewerToken: undefined,
      redact: [],
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
    };
    expect(readConfig({ REDIS_URL, ...empty })).toEqual(readConfig({ REDIS_URL }));
  });

  test("tells whose tokens are short enough to be guessed", () => {
    const long = "x".repeat(16);
    const config = readConfig({ REDIS_URL, CARILLON_TOKEN: long, CARILLON_OPERATOR_TOKEN: long.slice(1) });
    expect(shortTokens(config)).toEqual(["CARILLON_OPERATOR_TOKEN"]);
    const all = { CARILLON_TOKEN: "a", CARILLON_OPERATOR_TOKEN: "b", CARILLON_VIEWER_TOKEN: "c" };
    expect(shortTokens(readConfig({ REDIS_URL, ...all }))).toEqual(Object.keys(all));
    expect(shortTokens(readConfig({ REDIS_URL }))).toEqual([]);
  });

  test("names the fields to hide", () => {
    const { redact } = readConfig({ REDIS_URL, CARILLON_REDACT: "password, headers.Authorization" });
    expect(redact).toEqual(["password", "headers.Authorization"]);
  });

  test.each([
    [{ REDIS_URL: undefined }, "REDIS_URL"],
    [{ CARILLON_NAMESPACE: "a b" }, "CARILLON_NAMESPACE"],
    [{ CARILLON_TOPOLOGY: "ring" }, "CARILLON_TOPOLOGY"],
    [{ CARILLON_CONSOLE_PORT: "65536" }, "CARILLON_CONSOLE_PORT"],
    [{ CARILLON_CONSOLE_PORT: "-1" }, "CARILLON_CONSOLE_PORT"],
    [{ CARILLON_CONSOLE_PORT: "3000x" }, "CARILLON_CONSOLE_PORT"],
    [{ CARILLON_HOST: "a b" }, "CARILLON_HOST"],
    [{ CARILLON_LOG_LEVEL: "loud" }, "CARILLON_LOG_LEVEL"],
    [{ CARILLON_TOKEN: "with space" }, "CARILLON_TOKEN"],
    [{ CARILLON_REDACT: "a,,b" }, "CARILLON_REDACT"],
    [{ CARILLON_REDACT: "," }, "CARILLON_REDACT"],
    [{ CARILLON_REDACT: "a b" }, "CARILLON_REDACT"],
    [{ CARILLON_REDACT: ".a" }, "CARILLON_REDACT"],
    [{ CARILLON_REDACT: "a..b" }, "CARILLON_REDACT"],
    [{ CARILLON_REDACT: "x".repeat(200) }, "CARILLON_REDACT"],
    [{ CARILLON_REDACT: Array(101).fill("a").join() }, "CARILLON_REDACT"],
    [{ CARILLON_VIEWER_TOKEN: "new\nline" }, "CARILLON_VIEWER_TOKEN"],
    [{ CARILLON_OPERATOR_TOKEN: "with space" }, "CARILLON_OPERATOR_TOKEN"],
    [{ CARILLON_TOKEN: "same", CARILLON_VIEWER_TOKEN: "same" }, "CARILLON_VIEWER_TOKEN"],
    [{ CARILLON_TOKEN: "same", CARILLON_OPERATOR_TOKEN: "same" }, "CARILLON_OPERATOR_TOKEN"],
    [{ CARILLON_OPERATOR_TOKEN: "same", CARILLON_VIEWER_TOKEN: "same" }, "CARILLON_VIEWER_TOKEN"],
  ])("%o is refused by name, with a remedy", (env, field) => {
    let error: unknown;
    try {
      readConfig({ REDIS_URL, ...env });
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toMatchObject({ field, remedy: expect.stringMatching(/\w/) });
    expect((error as Error).message).toMatch(new RegExp(`^${field}: `));
    expect((error as Error).message).not.toMatch(/with space|same\b(?! as)/);
  });
});
