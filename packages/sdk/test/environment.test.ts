import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readEnvironment } from "@carillon/sdk";
import { tlsFiles } from "@carillon/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

let dir: string;
let nothing: string;
const files = tlsFiles();

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "environment-"));
  nothing = join(dir, "nothing.pem");
  await writeFile(nothing, "hunter2");
});
afterAll(() => rm(dir, { recursive: true }));

const REDIS_URL = "rediss://:hunter2@localhost";

describe("readEnvironment", () => {
  it("takes an empty variable for none", () => {
    const empty = {
      CARILLON_NAMESPACE: "",
      REDIS_TLS_CA_FILE: "",
      REDIS_TLS_SERVERNAME: "",
    };
    const url = "redis://localhost";
    expect(readEnvironment({ REDIS_URL: url, ...empty })).toEqual(readEnvironment({ REDIS_URL: url }));
  });

  it("reads the certificates", async () => {
    const env = {
      REDIS_URL,
      REDIS_TLS_CA_FILE: files.ca,
      REDIS_TLS_CERT_FILE: files.cert,
      REDIS_TLS_KEY_FILE: files.key,
      REDIS_TLS_SERVERNAME: "localhost",
    };
    const [ca, cert, key] = await Promise.all(
      [files.ca, files.cert, files.key].map((file) => readFile(file, "utf8")),
    );
    expect(readEnvironment(env).connection).toEqual({
      url: REDIS_URL,
      tls: { ca, cert, key, servername: "localhost" },
    });
  });

  it.each([
    ["REDIS_URL", () => ({ REDIS_URL: "" })],
    ["REDIS_URL", () => ({ REDIS_URL: "http://:hunter2@localhost" })],
    ["REDIS_URL", () => ({ REDIS_URL: "redis+sentinel://:hunter2@localhost" })],
    ["REDIS_URL", () => ({ REDIS_URL: "redis://:hunter2@localhost", REDIS_TLS_CA_FILE: files.ca })],
    ["REDIS_TLS_CA_FILE", () => ({ REDIS_URL, REDIS_TLS_CA_FILE: join(dir, "none.pem") })],
    ["REDIS_TLS_CA_FILE", () => ({ REDIS_URL, REDIS_TLS_CA_FILE: nothing })],
    ["REDIS_TLS_CA_FILE", () => ({ REDIS_URL, REDIS_TLS_CA_FILE: files.key })],
    ["REDIS_TLS_KEY_FILE", () => ({ REDIS_URL, REDIS_TLS_CERT_FILE: files.cert })],
    ["REDIS_TLS_CERT_FILE", () => ({ REDIS_URL, REDIS_TLS_KEY_FILE: files.key })],
    [
      "REDIS_TLS_KEY_FILE",
      () => ({ REDIS_URL, REDIS_TLS_CERT_FILE: files.cert, REDIS_TLS_KEY_FILE: files.serverKey }),
    ],
    [
      "REDIS_TLS_KEY_FILE",
      () => ({ REDIS_URL, REDIS_TLS_CERT_FILE: files.cert, REDIS_TLS_KEY_FILE: nothing }),
    ],
  ])("names the variable that is wrong, and quotes no secret: %s", (field, env) => {
    expect(() => readEnvironment(env())).toThrow(
      expect.objectContaining({
        code: "INVALID_OPTION",
        field,
        message: expect.not.stringContaining("hunter2"),
        remedy: expect.any(String),
      }),
    );
  });
});
